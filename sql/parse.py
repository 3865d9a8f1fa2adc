"""SQL text to sqlglot trees whose nodes know their place in the text.

sqlglot returns EXPLAIN, PREPARE, CALL and the like as opaque text, so `split_explain` takes such words off before, and
`first_word` lets `statements` refuse the rest by name.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import sqlglot.errors
from sqlglot import Token, TokenType, exp
from sqlglot.dialects.duckdb import DuckDB

from fuseline.errors import OutOfRange, ParseError, Span, check_text

from .parser import Parser
from .spans import span_of
from .unread import Tree, tree_of

_BLANK = r"(?:\s|--[^\n]*(?:\n|$)|/\*.*?\*/)*"
_WORD = re.compile(_BLANK + r"([a-z_]+)", re.IGNORECASE | re.DOTALL)
_EXPLAIN = re.compile(_BLANK + rf"explain\b(?:{_BLANK}(analyze)\b)?", re.IGNORECASE | re.DOTALL)
_EMPTY_NEXT = re.compile(r"[^,']*,\s*''(?!')")  # the argument after this one is an empty string
_PIECE = re.compile(
    r"\b[eE]'(?:[^'\\]|\\.|'')*'|'(?:[^']|'')*'|\"(?:[^\"]|\"\")*\"|--[^\n]*|/\*.*?\*/|\$(\w*)\$.*?\$\1\$|;",
    re.DOTALL,
)
_NAME = re.compile(r"[a-z_]\w*", re.IGNORECASE)
_MOST_ARGUMENTS = re.compile(r"supported arguments \((\d+)\)|Expected at most (\d+) arguments")
_DUCKDB = DuckDB()
MOST_DIGITS = 1000  # Python refuses to read integers of more than 4300
_PLACEHOLDERS = (TokenType.PLACEHOLDER, TokenType.QDCOLON)
_BEFORE_AN_ITEM = (TokenType.COMMA, TokenType.L_PAREN, TokenType.SELECT, TokenType.GROUP_BY)
_TYPES = DuckDB.Parser.TYPE_TOKENS - {TokenType.INTERVAL}


@dataclass(frozen=True, slots=True)
class Piece:
    """Characters `start` to `end` of `text`: one statement of a script, or what follows EXPLAIN in it."""

    text: str
    start: int
    end: int

    @property
    def sql(self) -> str:
        return self.text[self.start : self.end]


def split(text: str) -> Iterator[Piece]:
    """Yield the statements of a script, without the semicolons between them and without empty ones."""
    check_text(text, "The query", 0)
    start = 0
    pieces = _PIECE.finditer(text) if ";" in text else ()
    cuts = [m.start() for m in pieces if m.group() == ";"]
    for end in (*cuts, len(text)):
        if re.fullmatch(_BLANK, text[start:end], re.DOTALL) is None:
            yield Piece(text, start, end)
        start = end + 1


def first_word(piece: Piece) -> str:
    """Return the first word of a statement in upper case, empty when it starts with something else."""
    found = _WORD.match(piece.sql)
    return found.group(1).upper() if found else ""


def split_explain(piece: Piece) -> tuple[Piece, bool]:
    """Return what follows EXPLAIN [ANALYZE], and whether ANALYZE was there."""
    found = _EXPLAIN.match(piece.sql)
    assert found is not None, "only called for a statement that starts with EXPLAIN"
    return Piece(piece.text, piece.start + found.end(), piece.end), found.group(1) is not None


def parse(piece: Piece) -> Tree:
    """Return the tree of one statement, with the place of every node; raises `ParseError`."""
    tokens = _tokenize(piece)
    parser = Parser(dialect=_DUCKDB)
    parser.shift = piece.start
    try:
        trees = parser.parse(tokens, piece.sql)
    except sqlglot.errors.ParseError as error:
        raise _parse_error(error, tokens, piece) from None
    root = trees[0] if trees else None
    if root is None:
        raise ParseError("There is no statement here.", Span(piece.start, piece.end))
    tree = tree_of(root)
    _refuse_gaps(tokens, tree.nodes, piece)
    _place(tree.nodes, piece.start, tokens)
    _mend_empty_formats(tree.nodes, piece.text)
    return tree


def _refuse_gaps(tokens: Sequence[Token], nodes: Sequence[exp.Expr], piece: Piece) -> None:
    """Raise for what is missing between commas and after GROUP BY, which sqlglot reads over."""
    for sign, comma in itertools.pairwise(tokens):
        if comma.token_type is TokenType.COMMA and sign.token_type in _BEFORE_AN_ITEM:
            place = Span(piece.start + comma.start, piece.start + comma.end + 1)
            raise ParseError('Syntax error at or near ",": an operand or a name is missing.', place)
    for node in nodes:
        if isinstance(node, exp.Group) and not any(node.args.values()):
            place = Span(piece.start, piece.end)
            raise ParseError("Syntax error: an operand is missing after GROUP BY.", place)


def _mend_empty_formats(nodes: Sequence[exp.Expr], text: str) -> None:
    """Give strftime and strptime the empty format, of which sqlglot makes 'None'."""
    for node in nodes:
        if type(node) not in (exp.TimeToStr, exp.StrToTime):
            continue
        layout, place = node.args["format"], span_of(node.this)
        if place is not None and layout.name == "None" and _EMPTY_NEXT.match(text, place.end):
            layout.set("this", "")


def _tokenize(piece: Piece) -> list[Token]:
    try:
        tokens = _DUCKDB.tokenize(piece.sql)
    except sqlglot.errors.TokenError as error:
        start = _unterminated(piece)
        what = "string or name" if start is not None else "token"
        place = Span(piece.start if start is None else start, piece.end)
        raise ParseError(f"Syntax error: a {what} does not end.", place) from error
    for token in tokens:
        if (
            token.token_type is TokenType.NUMBER
            and len(token.text) > MOST_DIGITS
            and token.text.isdigit()
        ):
            place = Span(piece.start + token.start, piece.start + token.end + 1)
            raise OutOfRange(f"The integer has {len(token.text):,} digits: 38 are the most.", place)
    kinds = {token.token_type for token in tokens}
    if TokenType.INTERVAL in kinds:
        tokens = list(_cast_clock_intervals(tokens))
    if TokenType.DCOLON in kinds:
        tokens = list(_cast_typed_constants(tokens))
    if not kinds.isdisjoint(_PLACEHOLDERS):
        tokens = list(_number_placeholders(tokens))
    return tokens


def _unterminated(piece: Piece) -> int | None:
    """Return where the quote or comment without an end starts."""
    rest = _PIECE.sub(lambda m: " " * len(m.group()), piece.sql)
    found = re.search(r"['\"]|/\*|\$\w*\$", rest)
    return None if found is None else piece.start + found.start()


def _cast_clock_intervals(tokens: list[Token]) -> Iterator[Token]:
    """Make INTERVAL '1 day 01:30' a cast of the text: sqlglot drops what follows the first number and unit."""
    for i, token in enumerate(tokens):
        before = tokens[i - 1] if i else token
        if token.token_type is TokenType.STRING and before.token_type is TokenType.INTERVAL:
            clock = ":" in token.text
            yield from (token, _cast_sign(token), before) if clock else (before, token)
        elif (
            token.token_type is not TokenType.INTERVAL
            or i + 1 == len(tokens)
            or tokens[i + 1].token_type is not TokenType.STRING
        ):
            yield token


def _cast_typed_constants(tokens: list[Token]) -> Iterator[Token]:
    """Make DATE '2024-01-31'::varchar a cast of the date: sqlglot would make a date of what the text is cast to."""
    typed = False
    for kind, text, sign in itertools.zip_longest(tokens, tokens[1:], tokens[2:]):
        if typed:  # `kind` is the text, which has gone before its type
            typed = False
            continue
        typed = (
            sign is not None
            and sign.token_type is TokenType.DCOLON
            and text.token_type is TokenType.STRING
            and kind.token_type in _TYPES
        )
        yield from (text, _cast_sign(text), kind) if typed else (kind,)


def _cast_sign(token: Token) -> Token:
    return Token(TokenType.DCOLON, "::", token.line, token.col, token.end, token.end)


def _number_placeholders(tokens: Sequence[Token]) -> Iterator[Token]:
    """Make $1, $2 ... of each `?`: their order in the tree is not the one in the text."""
    count = 0
    for token in tokens:
        if token.text[:1] == "?" and token.token_type in _PLACEHOLDERS:
            count += 1
            place = token.line, token.col, token.start, token.start
            yield Token(TokenType.PARAMETER, "$", *place)
            yield Token(TokenType.NUMBER, str(count), *place)
            if (
                token.token_type is TokenType.QDCOLON
            ):  # `?::INTEGER`, which is no operator in DuckDB
                yield Token(
                    TokenType.DCOLON, "::", token.line, token.col, token.start + 1, token.end
                )
        else:
            yield token


def _parse_error(error: sqlglot.errors.ParseError, tokens: list[Token], piece: Piece) -> ParseError:
    details = error.errors[0] if error.errors else {}
    line, column = details.get("line"), details.get("col")
    token = next((t for t in tokens if (t.line, t.col) == (line, column)), None)
    expected = _expected(str(details.get("description", "")))
    if token is None:
        return ParseError(f"Syntax error{expected}.", Span(piece.end, piece.end))
    span = Span(piece.start + token.start, piece.start + token.end + 1)
    given = _wrong_arguments(str(details.get("description", "")), tokens[: tokens.index(token) + 1])
    if given is not None:
        name, complaint = given
        return ParseError(f"{name.text}() {complaint}.", Span(piece.start + name.start, span.end))
    if token is tokens[-1] and "Unexpected token" not in str(details.get("description")):
        return ParseError(f"Syntax error at the end of the statement{expected}.", span)
    return ParseError(
        f'Syntax error at or near "{piece.text[span.start : span.end]}"{expected}.', span
    )


def _wrong_arguments(description: str, tokens: Sequence[Token]) -> tuple[Token, str] | None:
    """Return the name of a function and what is wrong with the number of its arguments; `tokens` end with the parenthesis behind these."""
    if tokens[-1].token_type is not TokenType.R_PAREN:
        return None
    name, depth = None, 0
    for before, token in zip(tokens[-2::-1], tokens[:0:-1], strict=True):
        depth += (token.token_type is TokenType.R_PAREN) - (token.token_type is TokenType.L_PAREN)
        if depth == 0:
            name = before
            break
    if name is None or not _NAME.fullmatch(name.text):
        return None
    found = _MOST_ARGUMENTS.search(description)
    if found:
        most = int(found[1] or found[2])
        return name, f"takes at most {most} argument{'' if most == 1 else 's'}"
    if description.startswith("Required") and tokens[-2].token_type is TokenType.L_PAREN:
        return name, "needs arguments"
    return None


def _expected(description: str) -> str:
    """Turn sqlglot's description into what should have followed, where it says so."""
    found = re.match(r"Expect(?:ed|ing)\s+(.*?)(?:\s+but got.*|\s+after.*)?\.?$", description)
    if found:
        what = found.group(1)
        return f": expected {what}" if what[0].isalpha() else f': expected "{what}"'
    if description.startswith("Required"):
        return ": an operand or a name is missing"
    return ""


def _parameter_places(tokens: list[Token]) -> dict[str, tuple[int, int]]:
    """Return where each parameter stands first, since sqlglot forgets it."""
    places: dict[str, tuple[int, int]] = {}
    for sign, name in itertools.pairwise(tokens):
        if sign.token_type in (TokenType.PARAMETER, TokenType.COLON):
            places.setdefault(name.text, (sign.start, name.end))
    return places


def _place(nodes: Sequence[exp.Expr], shift: int, tokens: list[Token]) -> None:
    """Give every node the places of its first and last token; sqlglot keeps them on names and literals alone."""
    if any(isinstance(node, exp.Placeholder) for node in nodes):
        parameters = _parameter_places(tokens)
        for node in nodes:
            if isinstance(node, exp.Placeholder) and node.name in parameters:
                node.meta["start"], node.meta["end"] = parameters[node.name]
    for node in reversed(nodes):  # children come before their parents
        meta = node.meta
        if "start" in meta:
            _extend(meta, meta["start"] + shift, meta["end"] + shift + 1)
        if node.parent is not None and "first" in meta:
            _extend(node.parent.meta, meta["first"], meta["last"])


def _extend(meta: dict[str, int], first: int, last: int) -> None:
    if "first" not in meta or first < meta["first"]:
        meta["first"] = first
    if "last" not in meta or last > meta["last"]:
        meta["last"] = last
