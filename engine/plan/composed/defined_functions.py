"""Functions that DuckDB defines by others, as macros of its own."""

from __future__ import annotations

import re
from collections.abc import Sequence
from datetime import date

from ...errors import InvalidQuery, Span, Unsupported
from .. import infer
from ..expr import Call, Expr, Literal
from ..types import BIGINT, DATE, INTERVAL, VARCHAR, Kind
from .derived_dates import DERIVED_DATES
from .derived_texts import typeof
from .nested_values import cut, field, listed_constants, struct_pack


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


def _make_date(args: Sequence[Expr], span: Span | None) -> Expr:
    """Of a year, a month and a day, of a STRUCT of them, or of days since 1970."""
    if len(args) == 1 and args[0].type.kind is Kind.STRUCT and not args[0].type.is_tuple:
        args = [field(args[0], part, span) for part in ("year", "month", "day")]
    elif len(args) == 1:
        return infer.call("add_days", [Literal(date(1970, 1, 1), DATE), *args], span)
    return infer.call("make_date", args, span)


def _length_along(args: Sequence[Expr], span: Span | None) -> Expr:
    """Of the first dimension, which may be named."""
    dimension = args[1] if len(args) > 1 else Literal(1, BIGINT)
    if not isinstance(dimension, Literal) or dimension.value != 1:
        raise Unsupported(
            "array_length takes the dimension 1 alone: length(l[1]) is that of an element.", span
        )
    return infer.call("list_length", args[:1], span)


def _regexp_extract(args: Sequence[Expr], span: Span | None) -> Expr:
    """A text in the place of the group is the options; a list is of names, which the groups have as fields of a STRUCT."""
    if len(args) > 2 and args[2].type.kind is Kind.LIST:
        return _named_groups(args, span)
    if len(args) == 3 and args[2].type.kind is Kind.VARCHAR:
        args = [*args[:2], infer.literal(0), args[2]]
    return infer.call("regexp_extract", args, span)


def _named_groups(args: Sequence[Expr], span: Span | None) -> Expr:
    text, pattern, given, *options = args
    named = listed_constants(given) or ()
    names = [str(each.value) for each in named if isinstance(each, Literal) and each.value]
    if not names or len(names) < len(named):
        raise InvalidQuery(
            "The names of groups are a list of constant texts: ['year', 'month'].", span
        )
    if isinstance(pattern, Literal) and (groups := _groups(str(pattern.value))) < len(names):
        raise InvalidQuery(
            f"The pattern has {groups} groups, and {len(names)} names are given.", span
        )
    parts = [
        infer.call("regexp_extract", [text, pattern, infer.literal(i), *options], span)
        for i in range(1, len(names) + 1)
    ]
    made = struct_pack(names, parts, span)
    known = infer.call("is_not_null", [text], span)
    return infer.case([known], [made], Literal(None, made.type), span)


def _groups(pattern: str) -> int:
    """Return how many groups a pattern has: parentheses that open neither behind a backslash, nor in brackets, nor before a question mark, but for (?P<name>."""
    plain = re.sub(r"\\.|\[\^?\]?[^\]]*\]", "", pattern, flags=re.DOTALL)
    return len(re.findall(r"\((?!\?)|\(\?P?<", plain))


def _subscripts(args: Sequence[Expr], span: Span | None) -> Expr:
    """generate_subscripts(l, 1) -> unnest(generate_series(1, array_length(l, 1)))."""
    places = [Literal(1, BIGINT), _length_along(args, span)]
    return Call("unnest", (infer.call("list_of_generate_series", places, span),), BIGINT, span)


def _split_rows(args: Sequence[Expr], span: Span | None) -> Expr:
    """regexp_split_to_table(s, pattern) -> unnest(string_split_regex(s, pattern))."""
    parts = infer.call("string_split_regex", args, span)
    return Call("unnest", (parts,), VARCHAR, span)


DEFINED_FUNCTIONS = {
    "generate_subscripts": (_subscripts, 2, 2, "generate_subscripts(any[], BIGINT)"),
    "regexp_split_to_table": (_split_rows, 2, 2, "regexp_split_to_table(VARCHAR, VARCHAR)"),
    "make_date": (_make_date, 1, 3, "make_date(BIGINT[, BIGINT, BIGINT])"),
    "array_length": (_length_along, 1, 2, "array_length(any[][, BIGINT])"),
    "regexp_extract": (
        _regexp_extract,
        2,
        4,
        "regexp_extract(VARCHAR, VARCHAR[, INTEGER | VARCHAR[][, VARCHAR]])",
    ),
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
