"""What sqlglot's parser reads over without a trace in its tree.

`unread` sees that each node is used; this file, that each name, number and string of the text has become a node.  Both
together keep a query from being read in part.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from sqlglot import Token, TokenType, exp
from sqlglot.parsers.duckdb import DuckDBParser

from fuseline.errors import FuselineError, ParseError, Span, UnknownName, nearest
from fuseline.plan.derived import is_function
from fuseline.plan.functions import aggregate_name, scalar_name, sql_names

from .keywords import NO_LABELS, RESERVED
from .pieces import Piece

_LEAVES = (TokenType.VAR, TokenType.IDENTIFIER, TokenType.NUMBER, TokenType.STRING)
_ALIASES = (exp.Alias, exp.TableAlias)
_CONSTANTS = (TokenType.NULL, TokenType.TRUE, TokenType.FALSE)
_BEFORE_AN_ITEM = (TokenType.COMMA, TokenType.L_PAREN, TokenType.SELECT, TokenType.GROUP_BY)
_TEXTS = (
    TokenType.VARCHAR,
    TokenType.CHAR,
    TokenType.TEXT,
    TokenType.NVARCHAR,
    TokenType.NCHAR,
    TokenType.BPCHAR,
)
# Functions to sqlglot that are no functions to us: forms of the grammar, types and sources of rows.
_CALLED = RESERVED | frozenset(
    [
        "between",
        "date",
        "exists",
        "extract",
        "filter",
        "generate_series",
        "grouping",
        "grouping_id",
        "interval",
        "parquet_scan",
        "percentile_cont",
        "percentile_disc",
        "range",
        "read_parquet",
        "row",
        "time",
        "timestamp",
        "try_cast",
        "values",
    ]
)
_FOREIGN = (TokenType.NULLSAFE_EQ, TokenType.RLIKE)  # <=> and RLIKE, which are MySQL's
_CLOSING = (TokenType.COMMA, TokenType.R_PAREN)
_NEVER_LAST = RESERVED - frozenset(
    [
        "all",
        "analyze",
        "any",
        "array",
        "asc",
        "default",
        "desc",
        "end",
        "false",
        "isnull",
        "lambda",
        "notnull",
        "null",
        "only",
        "similar",
        "some",
        "true",
        "unique",
    ]
)
# Words of the grammar that sqlglot's tokenizer takes for names.
_WORDS = frozenset(
    [
        "both",
        "by",
        "cascade",
        "data",
        "exclude",
        "extract",
        "first",
        "if",
        "last",
        "leading",
        "materialized",
        "name",
        "no",
        "nulls",
        "recursive",
        "rename",
        "restrict",
        "temp",
        "temporary",
        "trailing",
        "type",
        "within",
    ]
)


@dataclass(slots=True)
class _Leaves:
    """What the nodes of a tree tell about its tokens."""

    starts: set[int] = field(default_factory=set)
    unplaced: set[str] = field(default_factory=set)  # units and parts of intervals, in lower case
    names: list[exp.Expr] = field(default_factory=list)  # those that may not be names here
    identifiers: set[int] = field(default_factory=set)  # where they start
    # What has no place is counted: NULL, TRUE and FALSE; * and products; parameters
    constants: int = 0
    stars: int = 0
    parameters: int = 0


def dropped(
    tokens: Sequence[Token], nodes: Sequence[exp.Expr], piece: Piece
) -> FuselineError | None:
    """Return the error for the first token without a part in the tree, or for a word that is no name, if there is one."""
    leaves = _leaves(nodes, piece)
    before = tokens[0].token_type
    for i, token in enumerate(tokens):
        kind = token.token_type
        if kind in _LEAVES:
            if token.start not in leaves.starts and not _is_grammar(tokens, i, leaves.unplaced):
                return _error(token, piece)
            if kind is TokenType.STRING and before is kind and i:
                return _error(token, piece)
        elif kind is TokenType.COMMA and before in _BEFORE_AN_ITEM:
            return _error(token, piece, ": an operand or a name is missing")
        elif kind is TokenType.L_PAREN and i and _is_foreign(tokens[i - 1], leaves):
            return _unknown_function(tokens[i - 1], piece)
        elif kind in _CLOSING and _is_dangling(tokens[i - 1], leaves):
            return _error(tokens[i - 1], piece)
        elif kind in _FOREIGN:
            return _error(token, piece)
        elif kind in _CONSTANTS and before is not TokenType.NOT:  # a column may be NOT NULL
            leaves.constants -= 1
        elif kind is TokenType.STAR:
            leaves.stars -= 1
        elif kind is TokenType.PARAMETER and token.text == "$":
            leaves.parameters -= 1
        before = kind
    if _is_dangling(tokens[-1], leaves):
        return _error(tokens[-1], piece)
    for count, kinds in (
        (leaves.constants, _CONSTANTS),
        (leaves.stars, (TokenType.STAR,)),
        (leaves.parameters, (TokenType.PARAMETER,)),
    ):
        if count < 0:
            return _error(next(t for t in reversed(tokens) if t.token_type in kinds), piece)
    return _wrong_name(leaves.names, tokens, piece) if leaves.names else None


def _is_foreign(token: Token, leaves: _Leaves) -> bool:
    """Whether a word is a function to sqlglot, which knows those of other databases, and none of ours."""
    if token.token_type is TokenType.IDENTIFIER or token.start in leaves.identifiers:
        return False
    word = token.text.lower()
    if word.upper() not in DuckDBParser.FUNCTIONS or word in _CALLED:
        return False
    return scalar_name(word) is None and aggregate_name(word) is None and not is_function(word)


def _unknown_function(token: Token, piece: Piece) -> UnknownName:
    place = Span(piece.start + token.start, piece.start + token.end + 1)
    return UnknownName(
        f'There is no function "{token.text.lower()}".{nearest(token.text.lower(), sql_names())}',
        place,
    )


def _is_dangling(token: Token, leaves: _Leaves) -> bool:
    """Whether something is missing behind a word, as in `select 1 as`."""
    if token.token_type is TokenType.IDENTIFIER or token.start in leaves.starts:
        return False
    return token.text.lower() in _NEVER_LAST


def _leaves(nodes: Sequence[exp.Expr], piece: Piece) -> _Leaves:
    leaves = _Leaves()
    for node in nodes:
        kind, start = type(node), node.meta_get("start")
        if start is not None:
            leaves.starts.add(start)
        elif kind is exp.Var or kind is exp.Literal:
            leaves.unplaced.add(_singular(node.name))
        if kind is exp.Identifier:
            if start is not None:
                leaves.identifiers.add(start)
            if node.args.get("quoted"):
                if start is not None and piece.text[piece.start + start] == "'":
                    leaves.names.append(node)
            elif (word := node.this.lower()) in RESERVED or word in NO_LABELS:
                leaves.names.append(node)
        elif kind is exp.Null or kind is exp.Boolean:
            leaves.constants += 1
        elif kind is exp.Star or kind is exp.Mul:
            leaves.stars += 1
        elif kind is exp.Placeholder or kind is exp.Parameter:
            leaves.parameters += 1
    return leaves


def _is_grammar(tokens: Sequence[Token], i: int, unplaced: set[str]) -> bool:
    """Whether a leaf that has no node is a word of the grammar, or in the tree without its place."""
    token = tokens[i]
    before = tokens[i - 1] if i else None
    after = tokens[i + 1] if i + 1 < len(tokens) else None
    if before is not None and before.text == "$":  # $1, $name, which are counted
        return True
    if token.token_type is TokenType.VAR:
        call = after is not None and after.token_type is TokenType.L_PAREN
        return call or token.text.lower() in _WORDS or _singular(token.text) in unplaced
    if token.token_type is TokenType.STRING:
        near = (before and before.token_type, after and after.token_type)
        return TokenType.INTERVAL in near or _singular(token.text) in unplaced
    if token.token_type is TokenType.NUMBER:
        length = i > 1 and tokens[i - 2].token_type in _TEXTS  # VARCHAR(9), as in DuckDB
        return length or token.text in unplaced or f"0.{token.text}" in unplaced
    return False


def _singular(word: str) -> str:
    return word.lower().rstrip("s")


def _wrong_name(
    names: Sequence[exp.Expr], tokens: Sequence[Token], piece: Piece
) -> ParseError | None:
    """Return the error for a word of the grammar where only a quoted name could stand, and for a string as an alias without AS."""
    places = {token.start: i for i, token in enumerate(tokens)}
    for name in names:
        i = places.get(name.meta_get("start"), 0)
        before = tokens[i - 1].token_type if i else None
        label = isinstance(name.parent, exp.Alias) and name.arg_key == "alias"
        if before is TokenType.DOT or (label and before is TokenType.ALIAS):
            continue
        if tokens[i].token_type is TokenType.STRING:
            if before is not TokenType.ALIAS and isinstance(name.parent, _ALIASES):
                return _error(tokens[i], piece, ": AS is missing")
        elif name.this.lower() in RESERVED or (label and not _is_prefix(tokens, i)):
            return _error(tokens[i], piece, ": a word of the grammar is a name in quotes alone")
    return None


def _is_prefix(tokens: Sequence[Token], i: int) -> bool:
    """Whether a name stands before its expression, as in `x: 1`."""
    return i + 1 < len(tokens) and tokens[i + 1].token_type is TokenType.COLON


def _error(token: Token, piece: Piece, reason: str = "") -> ParseError:
    place = Span(piece.start + token.start, piece.start + token.end + 1)
    shown = piece.text[place.start : place.end]
    return ParseError(f'Syntax error at or near "{shown}"{reason}.', place)
