"""Functions that DuckDB defines by others, as macros of its own."""

from __future__ import annotations

from collections.abc import Sequence

from ...errors import Span
from .. import infer
from ..expr import Expr, Literal
from ..types import BIGINT, INTERVAL, VARCHAR
from .derived_dates import DERIVED_DATES
from .derived_texts import typeof
from .nested_values import cut, struct_pack


def _without_last(args: Sequence[Expr], span: Span | None) -> Expr:
    size = infer.call("list_length", args, span)
    last = infer.call("sub", [size, Literal(1, BIGINT)], span)
    return cut([args[0], Literal(1, BIGINT), last], span)


def _without_first(args: Sequence[Expr], span: Span | None) -> Expr:
    return cut([args[0], Literal(2, BIGINT), Literal(-1, BIGINT)], span)


def _has_value(args: Sequence[Expr], span: Span | None) -> Expr:
    return infer.call("list_contains", [infer.call("map_values", args[:1], span), args[1]], span)


def _has_entry(args: Sequence[Expr], span: Span | None) -> Expr:
    entry = struct_pack(("key", "value"), args[1:], span)
    return infer.call("list_contains", [infer.call("map_entries", args[:1], span), entry], span)


def _days_in_month(args: Sequence[Expr], span: Span | None) -> Expr:
    return infer.call("day", [infer.call("last_day", args, span)], span)


def _floored_quotient(args: Sequence[Expr], span: Span | None) -> Expr:
    return infer.call("floor", [infer.call("div", args, span)], span)


def _type_name(args: Sequence[Expr], span: Span | None) -> Expr:
    return infer.call("lower", [typeof(args, span)], span)


def _ago(args: Sequence[Expr], span: Span | None) -> Expr:
    now = DERIVED_DATES["now"][0]((), span)
    return infer.call("sub", [now, infer.cast(args[0], INTERVAL, span=span)], span)


def _assert_true(args: Sequence[Expr], span: Span | None) -> Expr:
    """assert_true(x, 'why') -> CASE WHEN x THEN NULL ELSE error('Assertion: why') END."""
    failed: Expr = Literal("Assertion failed", VARCHAR)
    if len(args) > 1:
        text = infer.call("concat", [Literal("Assertion: ", VARCHAR), infer.to_text(args[1])], span)
        failed = infer.call("coalesce", [text, failed], span)
    raised = infer.call("error", [failed], span)
    return infer.case([infer.condition(args[0])], [Literal(None, raised.type)], raised, span)


def _as_size(args: Sequence[Expr], span: Span | None) -> Expr:
    return infer.call("format_bytes", args, span)


DEFINED_FUNCTIONS = {
    "array_pop_back": (_without_last, 1, 1, "array_pop_back(any[])"),
    "array_pop_front": (_without_first, 1, 1, "array_pop_front(any[])"),
    "map_contains_value": (_has_value, 2, 2, "map_contains_value(MAP, any)"),
    "map_contains_entry": (_has_entry, 3, 3, "map_contains_entry(MAP, any, any)"),
    "days_in_month": (_days_in_month, 1, 1, "days_in_month(DATE)"),
    "fdiv": (_floored_quotient, 2, 2, "fdiv(number, number)"),
    "pg_typeof": (_type_name, 1, 1, "pg_typeof(any)"),
    "pg_size_pretty": (_as_size, 1, 1, "pg_size_pretty(BIGINT)"),
    "ago": (_ago, 1, 1, "ago(INTERVAL)"),
    "assert_true": (_assert_true, 1, 2, "assert_true(BOOLEAN[, VARCHAR])"),
}
