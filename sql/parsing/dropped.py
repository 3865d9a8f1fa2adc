"""What sqlglot's parser reads over without a trace in its tree.

`unread` sees that each node is used; this file, that each name, number and string of the text has become a node.  Both
together keep a query from being read in part.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import field

from sqlglot import Token, TokenType, exp

from fuseline.errors import FuselineError, ParseError, Span
from fuseline.sql.grammar.recognize import is_word_of_grammar
from fuseline.sql.names.reader import UNITS

from ...records import dataclass
from .pieces import Piece, span_of

_EMPTY_NEXT = re.compile(r"[^,']*,\s*''(?!')")  # the argument after this one is an empty string
_LEAVES = (TokenType.VAR, TokenType.IDENTIFIER, TokenType.NUMBER, TokenType.STRING)
_CONSTANTS = (TokenType.NULL, TokenType.TRUE, TokenType.FALSE)
_TEXTS = (
    TokenType.VARCHAR,
    TokenType.CHAR,
    TokenType.TEXT,
    TokenType.NVARCHAR,
    TokenType.NCHAR,
    TokenType.BPCHAR,
)


@dataclass(slots=True)
class _Leaves:
    """What the nodes of a tree tell about its tokens."""

    starts: set[int] = field(default_factory=set)
    unplaced: set[str] = field(
        default_factory=set
    )  # units and parts of intervals, fields of structs, in lower case
    identifiers: set[int] = field(default_factory=set)  # where they start
    types: set[str] = field(default_factory=set)  # parts of their names, in lower case
    # What has no place is counted: NULL, TRUE and FALSE; * and products; parameters
    constants: int = 0
    stars: int = 0
    parameters: int = 0


def dropped(
    tokens: Sequence[Token], nodes: Sequence[exp.Expr], piece: Piece
) -> FuselineError | None:
    """Return the error for the first token without a part in the tree, if there is one."""
    leaves = _leaves(nodes)
    for i, token in enumerate(tokens):
        kind = token.token_type
        if kind in _LEAVES:
            if token.start not in leaves.starts and not _is_grammar(tokens, i, leaves):
                return _error(token, piece)
        elif kind in _CONSTANTS:
            if tokens[i - 1].token_type is not TokenType.NOT:  # a column may be NOT NULL
                leaves.constants -= token.start not in leaves.identifiers
        elif kind is TokenType.STAR:
            leaves.stars -= 1
            after = [t.token_type for t in tokens[i + 1 : i + 3]]
            # A set operation to DuckDB, and nothing to sqlglot where FROM follows
            if after[:1] == [TokenType.EXCEPT] and after[1:] != [TokenType.L_PAREN]:
                hint = ": columns to leave out stand in parentheses, as in * EXCEPT (a)"
                return _error(tokens[i + 1], piece, hint)
        elif kind is TokenType.PARAMETER and token.text == "$":
            leaves.parameters -= 1
    for count, kinds in (
        (leaves.constants, _CONSTANTS),
        (leaves.stars, (TokenType.STAR,)),
        (leaves.parameters, (TokenType.PARAMETER,)),
    ):
        if count < 0:
            return _error(next(t for t in reversed(tokens) if t.token_type in kinds), piece)
    return None


def refuse_empty_group(nodes: Sequence[exp.Expr], piece: Piece) -> None:
    for node in nodes:
        if type(node) is exp.Group and not any(node.args.values()):
            place = Span(piece.start, piece.end)
            raise ParseError("Syntax error: an operand is missing after GROUP BY.", place)


def mend_empty_formats(nodes: Sequence[exp.Expr], text: str) -> None:
    """Give strftime and strptime the empty format, of which sqlglot makes 'None'."""
    for node in nodes:
        if type(node) not in (exp.TimeToStr, exp.StrToTime):
            continue
        layout, place = node.args["format"], span_of(node.this)
        if place is not None and layout.name == "None" and _EMPTY_NEXT.match(text, place.end):
            layout.set("this", "")


def _leaves(nodes: Sequence[exp.Expr]) -> _Leaves:
    leaves = _Leaves()
    for node in nodes:
        kind, start = type(node), node.meta_get("start")
        leaves.starts.update(node.meta_get("behind") or ())  # the schema of a call
        if start is not None:
            leaves.starts.add(start)
        elif kind is exp.Var or kind is exp.Literal:
            leaves.unplaced.add(_singular(node.name))
        if kind is exp.DataType and node.args.get("kind"):
            leaves.types.update(str(node.args["kind"]).lower().split("."))
        elif kind is exp.Identifier:
            if start is not None:
                leaves.identifiers.add(start)
            elif type(node.parent) is exp.PropertyEQ:  # {'a': 1}
                leaves.unplaced.add(_singular(node.name))
        elif (
            kind is exp.Null
            or kind is exp.Boolean
            or (kind is exp.NotNullColumnConstraint and node.args.get("allow_null"))
        ):
            leaves.constants += 1
        elif (
            kind is exp.Star or kind is exp.Mul or (kind is exp.Columns and node.args.get("unpack"))
        ):
            leaves.stars += 1
        elif kind is exp.Placeholder or kind is exp.Parameter:
            leaves.parameters += 1
    return leaves


def _is_grammar(tokens: Sequence[Token], i: int, leaves: _Leaves) -> bool:
    """Whether a leaf that has no node is a word of the grammar, or in the tree without its place."""
    token, unplaced = tokens[i], leaves.unplaced
    before = tokens[i - 1] if i else None
    after = tokens[i + 1] if i + 1 < len(tokens) else None
    if before is not None and before.text == "$":  # $1, $name, which are counted
        return True
    if token.token_type is not TokenType.STRING and token.text.lower() in leaves.types:
        return True
    if token.token_type is TokenType.VAR:
        call = after is not None and after.token_type is TokenType.L_PAREN
        return call or _is_word(token.text.lower()) or _singular(token.text) in unplaced
    if token.token_type is TokenType.STRING:
        near = (before and before.token_type, after and after.token_type)
        return TokenType.INTERVAL in near or _singular(token.text) in unplaced
    if token.token_type is TokenType.IDENTIFIER:  # {"a": 1}, and "max"(a)
        follows = after and after.token_type
        key = follows is TokenType.COLON and _singular(token.text) in unplaced
        return key or follows is TokenType.L_PAREN
    if token.token_type is TokenType.NUMBER:
        length = i > 1 and tokens[i - 2].token_type in _TEXTS  # VARCHAR(9), as in DuckDB
        return length or token.text in unplaced or f"0.{token.text}" in unplaced
    return False


def _is_word(word: str) -> bool:
    """Whether a name is one of the grammar's; columns are often called as units of time, which the tree has."""
    return is_word_of_grammar(word) and word not in UNITS


def _singular(word: str) -> str:
    return word.lower().rstrip("s")


def _error(token: Token, piece: Piece, hint: str = "") -> ParseError:
    place = Span(piece.start + token.start, piece.start + token.end + 1)
    shown = piece.text[place.start : place.end]
    return ParseError(f'Syntax error at or near "{shown}"{hint}.', place)
