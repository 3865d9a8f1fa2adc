"""The calls of which sqlglot's parser makes nodes of their own: those that DuckDB has, draws of a value for each row, and calls behind a dot: x.f(y) is f(x, y).

sqlglot knows functions of other databases besides, such as nvl() and to_char(): they are calls of names here, which macros and Python
functions may have.
"""

from __future__ import annotations

import re
import traceback
from collections.abc import Sequence
from typing import TYPE_CHECKING

import sqlglot.errors
from sqlglot import Token, TokenType, exp
from sqlglot.parsers.duckdb import DuckDBParser

from fuseline.errors import ParseError, Span
from fuseline.plan.derived import is_function, is_of_lists
from fuseline.plan.files.read_options import TABLE_FUNCTIONS
from fuseline.plan.functions import aggregate_name, scalar_name, window_name
from fuseline.plan.text.quoted_name import several

from .keywords import RESERVED
from .pieces import Piece

if TYPE_CHECKING:
    from collections.abc import Callable


_NAME = re.compile(r"[a-z_]\w*", re.IGNORECASE)
_MOST_ARGUMENTS = re.compile(r"supported arguments \((\d+)\)|Expected at most (\d+) arguments")


def wrong_arguments(description: str, tokens: Sequence[Token]) -> tuple[Token, str] | None:
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
    if description.startswith("Required"):
        is_bare = tokens[-2].token_type is TokenType.L_PAREN
        return name, "needs arguments" if is_bare else "needs more arguments"
    return None


def parse_error(error: sqlglot.errors.ParseError, tokens: list[Token], piece: Piece) -> ParseError:
    """Return the error of a text that DuckDB's grammar takes and sqlglot's parser does not."""
    details = error.errors[0] if error.errors else {}
    line, column = details.get("line"), details.get("col")
    token = next((t for t in tokens if (t.line, t.col) == (line, column)), None)
    if token is None:
        return ParseError("This syntax is not supported.", Span(piece.start, piece.end))
    span = Span(piece.start + token.start, piece.start + token.end + 1)
    given = wrong_arguments(str(details.get("description", "")), tokens[: tokens.index(token) + 1])
    if given is not None:
        name, said = given
        return ParseError(f"{name.text}() {said}.", Span(piece.start + name.start, span.end))
    shown = piece.text[span.start : span.end]
    return ParseError(f'The syntax at or near "{shown}" is not supported.', span)


def is_of_sqlglot(error: BaseException) -> bool:
    """Whether an error was raised in sqlglot, and not in what it calls of ours, where it is a fault."""
    last = None
    for frame, _ in traceback.walk_tb(error.__traceback__):
        last = frame
    return last is not None and str(last.f_globals.get("__name__")).startswith("sqlglot.")


class RandomUuid(exp.Rand):
    """uuid(), also gen_random_uuid() and uuidv4()."""


class TimedUuid(exp.Rand):
    """uuidv7()."""


# sqlglot makes one node of lower(hex(x)), and upper(hex(x)) is hex(x) to it
_CASES = {
    name: kind.from_arg_list
    for kind, names in ((exp.Lower, ("LOWER", "LCASE")), (exp.Upper, ("UPPER", "UCASE")))
    for name in names
}
DRAWN_CALLS: dict[str, Callable[..., exp.Expr]] = {
    **dict.fromkeys(("UUID", "GEN_RANDOM_UUID", "UUIDV4"), RandomUuid.from_arg_list),
    "UUIDV7": TimedUuid.from_arg_list,
}


# What is no function to us: forms of the grammar, types and sources of rows.
_CALLED = RESERVED.union(
    several("""
    between columns current_schemas date exists extract filter generate_series grouping grouping_id
    insert interval percentile_cont percentile_disc gen_random_uuid random range row struct time
    timestamp try try_cast unnest uuid uuidv4 uuidv7 values version
    """),
    TABLE_FUNCTIONS,
)
# Calls by their own names, with the arguments that are written
_BY_OWN_NAMES = (
    *("ARRAY_AGG", "ENCODE", "IFNULL", "DECODE", "FROM_JSON", "GET_BIT", "TIME_BUCKET"),
    *("DATE_TRUNC", "DATETRUNC", "DATE_DIFF", "DATEDIFF"),
)
# Without parentheses too
WORDS: dict[str, type[exp.Expr]] = {
    name: kind for kind in DuckDBParser.NO_PAREN_FUNCTIONS.values() for name in kind.sql_names()
}


def _is_known(name: str) -> bool:
    word = name.lower()
    named = scalar_name(word) or aggregate_name(word) or window_name(word)
    return named is not None or is_function(word) or word in _CALLED or name in WORDS


FUNCTIONS: dict[str, Callable[..., exp.Expr]] = {  # without those of lists and JSON
    name: make
    for name, make in {**DuckDBParser.FUNCTIONS, **_CASES, **DRAWN_CALLS}.items()
    if _is_known(name)
    and not is_of_lists(name)
    and name not in _BY_OWN_NAMES
    and not name.startswith("JSON")
}
FUNCTIONS["UNLIST"] = FUNCTIONS["UNNEST"]
FUNCTION_PARSERS: dict[str, Callable[..., exp.Expr | None]] = {
    name: parse
    for name, parse in DuckDBParser.FUNCTION_PARSERS.items()
    if (_is_known(name) and not name.startswith("JSON")) or name == "POSITION"
}


_PARTS = ("this", "table", "db", "catalog")
_NAMES = (TokenType.VAR, TokenType.IDENTIFIER)
MAIN = (["main"], ["system", "main"])  # schemas of DuckDB's own functions


def stands_in_main(tokens: Sequence[Token], index: int) -> bool:
    """Whether the token is the name of a call, behind the path of the schema of DuckDB's own functions and nothing else."""
    if index + 1 >= len(tokens) or tokens[index + 1].token_type is not TokenType.L_PAREN:
        return False
    path: list[str] = []
    while (
        index > 1
        and tokens[index - 1].token_type is TokenType.DOT
        and tokens[index - 2].token_type in _NAMES
    ):
        index -= 2
        path.insert(0, tokens[index].text.lower())
    return path in MAIN and (not index or tokens[index - 1].token_type is not TokenType.DOT)


def with_methods(node: exp.Expr) -> exp.Expr:
    """Return an operand with calls in the place of its methods, which the parser leaves in parentheses behind dots."""
    if isinstance(node, exp.Column):
        value: exp.Expr | None = None
        names: list[exp.Expr] = []
        for part in node.parts:
            if isinstance(part, exp.Paren):
                if value is None:
                    value = exp.Column(**dict(zip(_PARTS, reversed(names), strict=False)))
                value = _called(part.this, value)
            elif value is None:
                names.append(part)
            else:
                value = exp.Dot(this=value, expression=part)
        return value or node
    if isinstance(node, exp.Dot) and isinstance(node.expression, exp.Paren):
        return _called(node.expression.this, with_methods(node.this))
    if isinstance(node.args.get("this"), exp.Expr) and not isinstance(node, exp.Query):
        inner = with_methods(node.this)
        if inner is not node.this:
            node.set("this", inner)
    return node


def _called(call: exp.Expr, value: exp.Expr) -> exp.Expr:
    """Return the call of a method of a value, which may be the path of the schema that it is in."""
    parts = value.parts if isinstance(value, exp.Column) else []
    path = [part.name for part in parts]
    if [name.lower() for name in path] in MAIN:
        call.meta["behind"] = [part.meta["start"] for part in parts]
        return call
    assert isinstance(call, exp.Anonymous)
    made = exp.Anonymous(this=call.this, expressions=[value, *call.expressions])
    made.meta.update(call.meta, around=path)
    return made
