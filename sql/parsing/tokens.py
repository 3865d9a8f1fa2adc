"""A statement's text as tokens, as they are written and as sqlglot's parser reads them as DuckDB's does."""

from __future__ import annotations

import itertools
import re
from bisect import bisect_left
from collections.abc import Iterator, Sequence

import sqlglot.errors
from sqlglot import Token, TokenType
from sqlglot.dialects.duckdb import DuckDB

from fuseline.errors import ConversionError, OutOfRange, ParseError, Span
from fuseline.plan.dialect import dialect
from fuseline.plan.functions.dates import PARTS

from .dialect_words import OPENING, with_array_types, with_arrow_lambdas, with_whole_divisions
from .generated_words import with_generated_columns
from .merge_words import with_merge_words
from .pieces import STRINGS_AND_COMMENTS, Piece, unterminated

DUCKDB = DuckDB()
DUCKDB.INDEX_OFFSET = 0  # places in lists stay as written, where sqlglot would count them from 0
TUPLE = TokenType.LOWCARDINALITY  # of types whose parameters are types
LESS = TokenType.SOUNDS_LIKE  # a < that compares, and begins no parameters of a type
MOST_DIGITS = 1000  # Python refuses to read integers of more than 4300
_PLACEHOLDERS = (TokenType.PLACEHOLDER, TokenType.QDCOLON)
_QUERIES = (TokenType.SELECT, TokenType.FROM, TokenType.VALUES, TokenType.WITH)
_AFTER_WITH = (*_QUERIES, TokenType.L_PAREN, TokenType.TABLE, TokenType.INSERT)
_IN_WITH = (TokenType.COMMA, TokenType.ALIAS)  # behind a parenthesis of an entry
_NO_ENTRIES = ("ordinality", "no", "data", "time")  # behind WITH, which begins no list there
# Words that begin statements, which sqlglot takes for no name; DuckDB takes them for one wherever no statement begins
_BEGIN = {
    *(TokenType.ALTER, TokenType.DROP, TokenType.FORCE, TokenType.GRANT, TokenType.INSERT),
    *(TokenType.INSTALL, TokenType.LOCK, TokenType.REVOKE, TokenType.ROLLBACK),
}
_OF_TABLES = (TokenType.CREATE, TokenType.ALTER)
# Types for sqlglot, of what stands behind a < there; columns may be called so
_OF_PARTS = (TokenType.RANGE, TokenType.LIST, TokenType.OBJECT, TokenType.NULLABLE)
_NAMES = {*_BEGIN, *_OF_PARTS, TokenType.MAP, TokenType.APPLY}
_PIVOTS = {"pivot_wider": TokenType.PIVOT, "pivot_longer": TokenType.UNPIVOT}  # reserved words
_FIRST_CHANGE = 3  # the first token that can be behind ALTER TABLE name
# Behind RENAME, DROP and ADD of ALTER TABLE: what is not the name of a column
_NO_COLUMN = ("column", "to", "constraint", "primary", "unique", "check", "foreign")
_OF_DIGITS = {"x": TokenType.HEX_STRING, "b": TokenType.BIT_STRING}
_SIGN_IN_NUMBER = re.compile(r"(?<=\d)[+-]")  # 1e2+1; the sign of 1e+2 has the e before it
# A parameter before something else than a blank, or what may have a $ in it without one
_PARAMETER = re.compile(
    rf"{STRINGS_AND_COMMENTS}|[^\W\d][\w$]*|(?P<parameter>\$\w+)(?=[^\s\w])", re.DOTALL
)
_NO_EXPONENT = re.compile(r".*[eE]")


def tokenize(piece: Piece) -> list[Token]:
    """Return the tokens of a statement as they are written."""
    tokens = _tokens(piece, piece.sql)
    if any(token.text.lower() in _OF_DIGITS for token in tokens):
        tokens = list(_with_digits(tokens))
    numbers = False
    for token in tokens:
        if token.token_type is TokenType.NUMBER:
            numbers = True
            if len(token.text) > MOST_DIGITS and token.text.isdigit():
                place = Span(piece.start + token.start, piece.start + token.end + 1)
                message = f"The integer has {len(token.text):,} digits: 38 are the most."
                raise OutOfRange(message, place)
    return _split_numbers(tokens, piece) if numbers else tokens


def _with_digits(tokens: list[Token]) -> Iterator[Token]:
    """Make one token of x'AB12' and of b'101', of which sqlglot makes a name and a text."""
    before: Token | None = None
    for token in tokens:
        kind = None if before is None else _OF_DIGITS.get(before.text.lower())
        if (
            before is not None
            and kind is not None
            and before.token_type is TokenType.VAR
            and token.token_type is TokenType.STRING
            and token.start == before.end + 1
        ):
            yield Token(kind, token.text, token.line, token.col, before.start, token.end)
            before = None
            continue
        if before is not None:
            yield before
        before = token
    if before is not None:
        yield before


def _without_by_position(tokens: Sequence[Token]) -> Iterator[Token]:
    """Leave out BY POSITION, which is how INSERT takes columns anyway and sqlglot does not know."""
    words = [t.text.lower() if t.token_type is not TokenType.IDENTIFIER else "" for t in tokens]
    for place, token in enumerate(tokens):
        if words[place : place + 2] != ["by", "position"] and words[place - 1 : place + 1] != [
            "by",
            "position",
        ]:
            yield token


def for_parser(tokens: list[Token], piece: Piece) -> list[Token]:
    """Return the tokens as sqlglot's parser has to find them to read the statement as DuckDB's does."""
    kinds = {token.token_type for token in tokens}
    if TokenType.INTERVAL in kinds:
        _refuse_two_units(tokens, piece)
        tokens = list(_cast_clock_intervals(tokens))
    if TokenType.COMMA in kinds:
        tokens = list(_without_last_commas(tokens))
    if not kinds.isdisjoint(_PLACEHOLDERS):
        tokens = list(_number_placeholders(tokens))
    if TokenType.ALIAS in kinds and tokens[0].token_type in _OF_TABLES:
        tokens = list(with_generated_columns(tokens, piece))
    for kind in _MENDED.keys() & kinds:
        tokens = list(_MENDED[kind](tokens))
    if any(token.text.lower() == "tuple" for token in tokens):
        tokens = list(_with_tuple_types(tokens))
    if TokenType.ARROW in kinds:
        tokens = list(with_arrow_lambdas(tokens, piece))
    if TokenType.SLASH in kinds and dialect().divides_whole:
        tokens = list(with_whole_divisions(tokens))
    if TokenType.INSERT in kinds and TokenType.MERGE not in kinds:
        tokens = list(_without_by_position(tokens))
    if TokenType.MERGE in kinds:
        tokens = list(with_merge_words(tokens))
    if any(token.text.lower() in _PIVOTS for token in tokens):
        tokens = list(_with_pivots(tokens))
    if tokens and tokens[0].token_type is TokenType.ALTER:
        return list(_with_column_word(tokens))
    if not kinds.isdisjoint(_NAMES) and not _makes_trigger(tokens):
        tokens = list(_with_names(tokens))
    return tokens


def _makes_trigger(tokens: list[Token]) -> bool:
    """Whether a statement begins with CREATE TRIGGER, inside of which others begin."""
    pairs = itertools.pairwise(token.token_type for token in tokens[:4])
    makers = (TokenType.CREATE, TokenType.REPLACE)
    return any(kind is TokenType.TRIGGER and before in makers for before, kind in pairs)


def _with_open_slices(tokens: list[Token]) -> Iterator[Token]:
    """Write x[:-:-1] for x[::-1], whose colons are one token."""
    before: Token | None = None
    for token in tokens:
        opens = before is not None and before.token_type is TokenType.L_BRACKET
        if opens and token.token_type is TokenType.DCOLON:
            yield _sign(TokenType.COLON, ":", token)
            yield _sign(TokenType.DASH, "-", token)
            yield _sign(TokenType.COLON, ":", token)
        else:
            yield token
        before = token


def _with_pivots(tokens: list[Token]) -> Iterator[Token]:
    """Yield tokens with PIVOT and UNPIVOT for the words that stand for them, outside of quotes."""
    for token in tokens:
        kind = _PIVOTS.get(token.text.lower()) if token.token_type is TokenType.VAR else None
        yield token if kind is None else _of_kind(kind, token)


def _with_column_word(tokens: list[Token]) -> Iterator[Token]:
    """Write the word COLUMN where ALTER TABLE can do without it and sqlglot cannot: behind the table's name."""
    for number, token in enumerate(tokens):
        yield token
        word, after = token.text.lower(), tokens[number + 1 : number + 2]
        if number < _FIRST_CHANGE or word not in ("rename", "drop", "add") or not after:
            continue
        if word == tokens[number - 1].text.lower() or any(
            t.text.lower() in ("rename", "drop", "add", "alter")
            and t.token_type is not TokenType.IDENTIFIER
            for t in tokens[_FIRST_CHANGE:number]
        ):
            continue
        if after[0].text.lower().split()[0] not in _NO_COLUMN:
            yield Token(TokenType.COLUMN, "COLUMN", token.line, token.col, token.start, token.end)


def _with_names(tokens: list[Token]) -> Iterator[Token]:
    """Make names of words that are none for sqlglot: columns and tables may be called `map`, `force` or `insert`."""
    merges = any(token.token_type is TokenType.MERGE for token in tokens)
    for number, (token, after) in enumerate(itertools.zip_longest(tokens, tokens[1:])):
        kind, following = token.token_type, after and after.token_type
        begins = number == 0 or following is TokenType.INTO
        begins = begins or (merges and tokens[number - 1].token_type is TokenType.THEN)
        if kind is TokenType.APPLY and following is TokenType.L_PAREN:
            yield _of_kind(TokenType.VAR, token)
        elif (
            (kind in _BEGIN and not begins)
            or (kind is TokenType.MAP and following not in OPENING)
            or (kind in _OF_PARTS and following is TokenType.LT)
        ):
            yield _of_kind(TokenType.IDENTIFIER, token)
        else:
            yield token


def _with_comparisons(tokens: list[Token]) -> Iterator[Token]:
    """Have `row(1) < x` and `x::struct(a int) < y` compared, where sqlglot reads on for STRUCT<...>; of `<<` both signs stay."""
    before: Token | None = None
    for token, after in itertools.zip_longest(tokens, tokens[1:]):
        closes = before is not None and before.token_type is TokenType.R_PAREN
        if (
            closes
            and token.token_type is TokenType.LT
            and after
            and after.token_type != token.token_type
        ):
            yield _of_kind(LESS, token)
        else:
            yield token
        before = token


def _with_tuple_types(tokens: list[Token]) -> Iterator[Token]:
    """Have TUPLE(INTEGER, VARCHAR), which sqlglot does not know, parsed as a type of types that it knows and DuckDB does not."""
    for token, after in itertools.zip_longest(tokens, tokens[1:]):
        opens = after is not None and after.token_type is TokenType.L_PAREN
        if opens and token.token_type is TokenType.VAR and token.text.lower() == "tuple":
            token = _of_kind(TUPLE, token)  # noqa: PLW2901
        yield token


def _of_kind(kind: TokenType, token: Token) -> Token:
    return Token(kind, token.text, token.line, token.col, token.start, token.end)


def _without_last_commas(tokens: list[Token]) -> Iterator[Token]:
    """Leave out commas behind the last item where sqlglot expects another: of a WITH, of a query in parentheses, at the end.

    The grammar has seen that they stand where DuckDB takes them.
    """
    queries: list[bool] = []  # for each open parenthesis, whether it is around a query
    lists: list[int] = []  # in how many parentheses each WITH stands whose entries go on
    for token, after in itertools.zip_longest(tokens, tokens[1:]):
        kind, following = token.token_type, after and after.token_type
        entries = bool(lists) and lists[-1] == len(queries)
        if kind is TokenType.WITH and after and after.text.lower() not in _NO_ENTRIES:
            lists.append(len(queries))
        elif kind is TokenType.L_PAREN:
            queries.append(following in _QUERIES)
        elif kind is TokenType.R_PAREN and queries:
            queries.pop()
            if lists and lists[-1] == len(queries) and following not in _IN_WITH:
                lists.pop()
        elif kind is TokenType.COMMA and entries and following in _AFTER_WITH:
            lists.pop()
            continue
        elif kind is TokenType.COMMA and (
            after is None or (following is TokenType.R_PAREN and any(queries[-1:]))
        ):
            continue
        yield token


_MENDED = {  # none of which makes what another looks at
    TokenType.LT: _with_comparisons,
    TokenType.ARRAY: with_array_types,
    TokenType.DCOLON: _with_open_slices,
}


def tokens_of(text: str) -> list[Token]:
    """Return sqlglot's tokens, which puts no text in dollar signs where parameters stand side by side, as in `$1,$2`.

    It looks behind the $ of a parameter for another one, up to a blank, so it reads the text with blanks behind parameters.
    """
    if text.count("$") < 2:
        return list(DUCKDB.tokenize(text))
    ends = [found.end() for found in _PARAMETER.finditer(text) if found["parameter"]]
    spaced = " ".join(text[start:end] for start, end in itertools.pairwise([0, *ends, len(text)]))
    blanks = [end + count for count, end in enumerate(ends)]
    return [_moved(token, blanks) for token in DUCKDB.tokenize(spaced)]


def _tokens(piece: Piece, text: str) -> list[Token]:
    try:
        return tokens_of(text)
    except sqlglot.errors.TokenError as error:
        place = unterminated(piece)
        if place is None:
            message = "Syntax error: a token does not end."
            raise ParseError(message, Span(piece.start, piece.end)) from error
        raise ParseError(_not_ended(piece.text, place), place) from error


def _not_ended(text: str, place: Span) -> str:
    sign = text[place.start]
    what = {"'": "a string", '"': "a name in double quotes", "/": "a comment"}.get(sign, "a string")
    message = f"Syntax error: {what} does not end."
    if sign == "'" and text[place.start - 1 : place.start].isalnum():
        message += " A single quote inside a string is written twice: 'it''s'."
    return message


def _split_numbers(tokens: list[Token], piece: Piece) -> list[Token]:
    """Cut 1e2+1 into three tokens, of which sqlglot makes one: it reads the text again, with a blank before the sign."""
    blanks: list[int] = []
    text = piece.sql
    while True:
        signs = [
            found.start()
            for token in tokens
            if token.token_type is TokenType.NUMBER
            and (found := _SIGN_IN_NUMBER.search(text, token.start, token.end + 1))
        ]
        if not signs:
            break
        sign = signs[0]
        text = f"{text[:sign]} {text[sign:]}"
        blanks.append(sign)
        tokens = _tokens(piece, text)
    if blanks:
        tokens = [_moved(token, blanks) for token in tokens]
    for token in tokens:
        if token.token_type is TokenType.NUMBER and _NO_EXPONENT.fullmatch(token.text):
            place = Span(piece.start + token.start, piece.start + token.end + 1)
            raise ParseError(f'"{token.text}" is no number: digits are missing after the e.', place)
    return tokens


def _moved(token: Token, blanks: Sequence[int]) -> Token:
    """Return a token with its place in the text without the blanks at the ascending places `blanks`."""
    shift = bisect_left(blanks, token.start)
    kind, line, col = token.token_type, token.line, token.col
    places = token.start - shift, token.end - shift
    return Token(kind, token.text, line, col, *places, token.comments)


def _refuse_two_units(tokens: Sequence[Token], piece: Piece) -> None:
    """Raise for INTERVAL '5 day' hour, of which sqlglot makes five days that are called hour."""
    for word, text, unit in zip(tokens, tokens[1:], tokens[2:], strict=False):
        if (
            word.token_type is TokenType.INTERVAL
            and text.token_type is TokenType.STRING
            and unit.text.lower() in PARTS
            and unit.token_type is not TokenType.IDENTIFIER
            and any(c.isalpha() for c in text.text)
            and any(c.isdigit() for c in text.text)
        ):
            place = Span(piece.start + text.start, piece.start + unit.end + 1)
            raise ConversionError(
                f"'{text.text}' cannot be read as a number of {PARTS[unit.text.lower()]}s: it has a unit of its own.",
                place,
            )


def _cast_clock_intervals(tokens: list[Token]) -> Iterator[Token]:
    """Make INTERVAL '1 day 01:30' and '1 day ago' casts of the text: sqlglot drops what follows the first number and unit."""
    for i, token in enumerate(tokens):
        before = tokens[i - 1] if i else token
        if token.token_type is TokenType.STRING and before.token_type is TokenType.INTERVAL:
            if ":" not in token.text and not token.text.rstrip().lower().endswith(" ago"):
                yield from (before, token)
                continue
            # In parentheses: after `interval 1 day +` sqlglot expects no text but an interval's.
            yield _sign(TokenType.L_PAREN, "(", before)
            yield from (token, _cast_sign(token), before)
            yield _sign(TokenType.R_PAREN, ")", token)
        elif (
            token.token_type is not TokenType.INTERVAL
            or i + 1 == len(tokens)
            or tokens[i + 1].token_type is not TokenType.STRING
        ):
            yield token


def _cast_sign(token: Token) -> Token:
    return _sign(TokenType.DCOLON, "::", token)


def _sign(kind: TokenType, text: str, token: Token) -> Token:
    """Return a sign that is not in the text, at the end of a token that is."""
    return Token(kind, text, token.line, token.col, token.end, token.end)


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
