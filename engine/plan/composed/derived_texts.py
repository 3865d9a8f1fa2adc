"""Functions of text, types and the session that are others, put together, or constants."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import reduce

from ...errors import Span
from .. import infer
from ..all_values import is_null_constant
from ..expr import Expr, Literal
from ..types import BIT, NULL, VARCHAR

NAMES_OF_HERE = {
    "current_database": "memory",
    "current_schema": "main",
    "current_catalog": "memory",
}
USERS = ("current_user", "session_user", "current_role", "user")


def _text(value: str) -> Callable[..., Expr]:
    return lambda _, span: Literal(value, VARCHAR, span)


def typeof(args: Sequence[Expr], span: Span | None) -> Expr:
    """Return the name of a type as a constant."""
    kind = args[0].type
    return Literal('"NULL"' if kind == NULL else str(kind), VARCHAR, span)


def _constant_or_null(args: Sequence[Expr], span: Span | None) -> Expr:
    """The first argument where no other is NULL."""
    first, *rest = args
    if any(arg.type == NULL for arg in args):
        return Literal(None, NULL, span)
    if any(map(is_null_constant, args)):
        return Literal(None, first.type, span)
    known = [infer.call("is_not_null", [arg], span) for arg in rest]
    every = reduce(lambda a, b: infer.call("and", [a, b], span), known)
    return infer.case([every], [first], Literal(None, first.type), span)


def _bit_length(args: Sequence[Expr], span: Span | None) -> Expr:
    if args[0].type == BIT:
        return infer.call("length", args, span)
    return infer.call("mul", [infer.call("strlen", args, span), infer.literal(8)], span)


DERIVED_TEXTS = {
    **{name: (_text(value), 0, 0, f"{name}()") for name, value in NAMES_OF_HERE.items()},
    **{name: (_text("duckdb"), 0, 0, f"{name}()") for name in USERS},  # the one that DuckDB has
    "typeof": (typeof, 1, 1, "typeof(any)"),
    "constant_or_null": (_constant_or_null, 2, 10_000, "constant_or_null(any, any, ...)"),
    "cast_to_type": (
        lambda args, span: infer.cast(args[0], args[1].type, span=span),
        2,
        2,
        "cast_to_type(any, any)",
    ),
    "bit_length": (_bit_length, 1, 1, "bit_length(VARCHAR)"),
}
