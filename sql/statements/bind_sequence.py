"""CREATE SEQUENCE and DROP SEQUENCE."""

from __future__ import annotations

from sqlglot import TokenType

from fuseline.errors import FuselineError, InvalidQuery, ParseError, Span
from fuseline.plan.changes.sequences import (
    LEAST,
    MOST,
    CreateSequence,
    DropSequence,
    SequenceValues,
)

from ..binding.scope import Scope
from ..parsing.pieces import Piece
from ..parsing.statement_words import StatementWords
from .assignments import what_if_there

_FORM = (
    "CREATE [OR REPLACE] [TEMP] SEQUENCE [IF NOT EXISTS] name [START n] [INCREMENT n] [MINVALUE n] [MAXVALUE n] "
    "[NO MINVALUE] [NO MAXVALUE] [[NO] CYCLE]"
)
_NUMBERS = {"START": "WITH", "INCREMENT": "BY", "MINVALUE": "", "MAXVALUE": ""}


def create_sequence(piece: Piece, scope: Scope) -> CreateSequence:
    words = StatementWords(piece, _FORM)
    words.expect("CREATE")
    replaces = words.accepts("OR", "REPLACE")
    temporary = words.accepts("TEMP") or words.accepts("TEMPORARY")
    words.expect("SEQUENCE")
    unless = words.accepts("IF", "NOT", "EXISTS")
    if_there = what_if_there(replaces, unless, words.place())
    parts = words.dotted_name()
    place = words.place()
    try:
        name = scope.session.catalog.new_name(parts, temporary)
    except FuselineError as error:
        error.at(place)
        raise
    return CreateSequence(name, _values(words, place), if_there)


def drop_sequence(piece: Piece, _: Scope) -> DropSequence:
    words = StatementWords(piece, "DROP SEQUENCE [IF EXISTS] name [CASCADE]")
    words.expect("DROP", "SEQUENCE")
    named = words.dropped()
    return DropSequence(named.parts, named.exists, named.how == "CASCADE")


def _values(words: StatementWords, place: Span) -> SequenceValues:
    given: dict[str, int | bool | None] = {}
    while words.read < len(words.tokens):
        option, value = _option(words)
        if option in given:
            raise ParseError(f"{option} is given twice.", words.place())
        given[option] = value
    increment = given.get("INCREMENT")
    step = 1 if increment is None else int(increment)
    if not step:
        raise InvalidQuery("The INCREMENT of a sequence cannot be 0.", place)
    least, most = (1, MOST) if step > 0 else (LEAST, -1)
    least = least if given.get("MINVALUE") is None else int(given["MINVALUE"] or 0)
    most = most if given.get("MAXVALUE") is None else int(given["MAXVALUE"] or 0)
    start = given.get("START")
    first = (least if step > 0 else most) if start is None else int(start)
    if least >= most:
        raise InvalidQuery(f"MINVALUE ({least}) is not less than MAXVALUE ({most}).", place)
    if not least <= first <= most:
        bound = f"MINVALUE ({least})" if first < least else f"MAXVALUE ({most})"
        raise InvalidQuery(
            f"The START of a sequence ({first}) is {'less' if first < least else 'greater'} than its {bound}.",
            place,
        )
    return SequenceValues(first, step, least, most, bool(given.get("CYCLE")))


def _option(words: StatementWords) -> tuple[str, int | bool | None]:
    """Read one option; None for one that keeps what it is without."""
    if words.accepts("NO"):
        for name in ("MINVALUE", "MAXVALUE", "CYCLE"):
            if words.accepts(name):
                return name, None
        raise words.error()
    if words.accepts("CYCLE"):
        return "CYCLE", True
    for name, noise in _NUMBERS.items():
        if words.accepts(name):
            if noise:
                words.accepts(noise)
            return name, _number(words, name)
    raise words.error()


def _number(words: StatementWords, name: str) -> int:
    sign = -1 if words.accepts("-") else 1
    token = words.next_token(TokenType.NUMBER)
    place = words.place()
    if not token.text.isdigit():
        raise ParseError(f"{name} takes a whole number.", place)
    value = sign * int(token.text)
    if not LEAST <= value <= MOST:
        raise InvalidQuery(f"{name} takes a BIGINT, which {value} is not.", place)
    return value
