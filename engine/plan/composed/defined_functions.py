"""Functions that DuckDB defines by others, as macros of its own."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from datetime import date
from functools import reduce

from ...errors import InvalidQuery, OutOfRange, Span, TypeMismatch, Unsupported
from .. import infer, types as ty
from ..all_values import is_null_constant
from ..casts import coerce
from ..coercion import as_decimal
from ..expr import Call, Expr, Literal
from ..functions.constant_arguments import constant
from .derived_dates import DERIVED_DATES
from .nested_values import cut, field, list_value, listed_constants, struct_pack, to_string

NAMES_OF_HERE = {
    "current_database": "memory",
    "current_schema": "main",
    "current_catalog": "memory",
}
USERS = ("current_user", "session_user", "current_role", "user")


def _text(value: str) -> Callable[..., Expr]:
    return lambda _, span: Literal(value, ty.VARCHAR, span)


def typeof(args: Sequence[Expr], span: Span | None) -> Literal:
    """Return the name of a type as a constant."""
    return Literal(_type_name(args[0].type), ty.VARCHAR, span)


def _type_name(kind: ty.DataType) -> str:
    return '"NULL"' if kind == ty.NULL else str(kind)


def _constant_or_null(args: Sequence[Expr], span: Span | None) -> Expr:
    """The first argument where no other is NULL."""
    first, *rest = args
    if any(arg.type == ty.NULL for arg in args):
        return Literal(None, ty.NULL, span)
    if any(map(is_null_constant, args)):
        return Literal(None, first.type, span)
    known = [infer.call("is_not_null", [arg], span) for arg in rest]
    every = reduce(lambda a, b: infer.call("and", [a, b], span), known)
    return infer.case([every], [first], Literal(None, first.type), span)


def _bit_length(args: Sequence[Expr], span: Span | None) -> Expr:
    if args[0].type == ty.BIT:
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


TEXTS = ty.list_of(ty.VARCHAR)


def _enum_type(args: Sequence[Expr], span: Span | None) -> ty.DataType:
    types = {arg.type for arg in args} - {ty.NULL}
    if len(types) != 1 or not next(iter(types)).is_enum:
        raise TypeMismatch("This takes values of one ENUM, or NULL::of_its_type.", span)
    return types.pop()


def _end(place: int, args: Sequence[Expr], span: Span | None) -> Expr:
    names = _enum_type(args, span).names
    return Literal(names[place] if names else None, ty.VARCHAR, span)


def _range(args: Sequence[Expr], span: Span | None) -> Expr:
    names = [Literal(name, ty.VARCHAR) for name in _enum_type(args, span).names]
    return list_value(names, span) if names else infer.cast(list_value((), span), TEXTS)


def _boundary(args: Sequence[Expr], span: Span | None) -> Expr:
    """Slice all values from the place of one to that of another, NULL being the first or last."""
    enum = _enum_type(args, span)
    ends = []
    for arg, otherwise in zip(args, (0, len(enum.names) - 1), strict=True):
        value = infer.coerce(arg, enum)
        code = infer.cast(infer.call("enum_code", [value], span), ty.BIGINT)
        known = infer.call("coalesce", [code, Literal(otherwise, ty.BIGINT)], span)
        ends.append(infer.call("add", [known, Literal(1, ty.BIGINT)], span))
    return infer.call("list_cut", [_range([Literal(None, enum)], span), *ends], span)


ENUM_VALUES = {
    "enum_first": (lambda args, span: _end(0, args, span), 1, 1, "enum_first(ENUM)"),
    "enum_last": (lambda args, span: _end(-1, args, span), 1, 1, "enum_last(ENUM)"),
    "enum_range": (_range, 1, 1, "enum_range(ENUM)"),
    "enum_range_boundary": (_boundary, 2, 2, "enum_range_boundary(ENUM, ENUM)"),
}


def _concat(args: Sequence[Expr], span: Span | None) -> Expr:
    """concat(a, b) -> coalesce(a, '') || coalesce(b, ''): NULL counts as empty."""
    if any(a.type.kind is ty.Kind.LIST for a in args):
        return infer.call("list_concat", args, span)
    empty = Literal("", ty.VARCHAR)
    texts = [infer.to_text(a) for a in args]
    known = [
        (empty if t.value is None else t)
        if isinstance(t, Literal)
        else infer.call("coalesce", [t, empty])
        for t in texts
    ]
    return infer.call("concat", known, span)


def _concat_ws(args: Sequence[Expr], span: Span | None) -> Expr:
    """Beside lists, whose elements are texts of their own: the texts of all as one list, joined."""
    separator, *parts = args
    lists = [part.type.kind is ty.Kind.LIST and not part.type.is_array for part in parts]
    if not any(lists) or is_null_constant(separator):
        return infer.call("concat_ws", args, span)
    texts = [
        infer.cast(p, TEXTS, span=span) if is_list else list_value([infer.to_text(p)], span)
        for p, is_list in zip(parts, lists, strict=True)
    ]
    joined = to_string((infer.call("list_concat", texts, span), separator), span)
    return infer.call("coalesce", [joined, Literal("", ty.VARCHAR)], span)


def _without_last(args: Sequence[Expr], span: Span | None) -> Expr:
    size = infer.call("list_length", args, span)
    last = infer.call("sub", [size, Literal(1, ty.BIGINT)], span)
    return cut([args[0], Literal(1, ty.BIGINT), last], span)


def _without_first(args: Sequence[Expr], span: Span | None) -> Expr:
    return cut([args[0], Literal(2, ty.BIGINT), Literal(-1, ty.BIGINT)], span)


def _has_value(args: Sequence[Expr], span: Span | None) -> Expr:
    return infer.call("list_contains", [infer.call("map_values", args[:1], span), args[1]], span)


def _has_entry(args: Sequence[Expr], span: Span | None) -> Expr:
    entry = struct_pack(("key", "value"), args[1:], span)
    return infer.call("list_contains", [infer.call("map_entries", args[:1], span), entry], span)


def _days_in_month(args: Sequence[Expr], span: Span | None) -> Expr:
    return infer.call("day", [infer.call("last_day", args, span)], span)


def _floored_quotient(args: Sequence[Expr], span: Span | None) -> Expr:
    return infer.call("floor", [infer.call("div", args, span)], span)


def _ago(args: Sequence[Expr], span: Span | None) -> Expr:
    now = DERIVED_DATES["now"][0]((), span)
    return infer.call("sub", [now, infer.cast(args[0], ty.INTERVAL, span=span)], span)


def _assert_true(args: Sequence[Expr], span: Span | None) -> Expr:
    """assert_true(x, 'why') -> CASE WHEN x THEN NULL ELSE error('Assertion: why') END."""
    failed: Expr = Literal("Assertion failed", ty.VARCHAR)
    if len(args) > 1:
        text = infer.call(
            "concat", [Literal("Assertion: ", ty.VARCHAR), infer.to_text(args[1])], span
        )
        failed = infer.call("coalesce", [text, failed], span)
    raised = infer.call("error", [failed], span)
    return infer.case([infer.condition(args[0])], [Literal(None, raised.type)], raised, span)


def _as_size(args: Sequence[Expr], span: Span | None) -> Expr:
    return infer.call("format_bytes", args, span)


def _make_date(args: Sequence[Expr], span: Span | None) -> Expr:
    """Of a year, a month and a day, of a STRUCT of them, or of days since 1970."""
    if len(args) == 1 and args[0].type.kind is ty.Kind.STRUCT and not args[0].type.is_tuple:
        args = [field(args[0], part, span) for part in ("year", "month", "day")]
    elif len(args) == 1:
        return infer.call("add_days", [Literal(date(1970, 1, 1), ty.DATE), *args], span)
    return infer.call("make_date", args, span)


def _length_along(args: Sequence[Expr], span: Span | None) -> Expr:
    """Of the first dimension, which may be named."""
    dimension = args[1] if len(args) > 1 else Literal(1, ty.BIGINT)
    if not isinstance(dimension, Literal) or dimension.value != 1:
        raise Unsupported(
            "array_length takes the dimension 1 alone: length(l[1]) is that of an element.", span
        )
    return infer.call("list_length", args[:1], span)


def _regexp_extract(args: Sequence[Expr], span: Span | None) -> Expr:
    """A text in the place of the group is the options; a list is of names, which the groups have as fields of a STRUCT."""
    if len(args) > 2 and args[2].type.kind is ty.Kind.LIST:
        return _named_groups(args, span)
    if len(args) == 3 and args[2].type.kind is ty.Kind.VARCHAR:
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
    places = [Literal(1, ty.BIGINT), _length_along(args, span)]
    return Call("unnest", (infer.call("list_of_generate_series", places, span),), ty.BIGINT, span)


def _split_rows(args: Sequence[Expr], span: Span | None) -> Expr:
    """regexp_split_to_table(s, pattern) -> unnest(string_split_regex(s, pattern))."""
    parts = infer.call("string_split_regex", args, span)
    return Call("unnest", (parts,), ty.VARCHAR, span)


DEFINED_FUNCTIONS = {
    "concat": (_concat, 1, 10_000, "concat(any, ...)"),
    "concat_ws": (_concat_ws, 2, 10_000, "concat_ws(separator, any, ...)"),
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
    "pg_typeof": (
        lambda args, span: Literal(_type_name(args[0].type).lower(), ty.VARCHAR, span),
        1,
        1,
        "pg_typeof(any)",
    ),
    "pg_size_pretty": (_as_size, 1, 1, "pg_size_pretty(BIGINT)"),
    "ago": (_ago, 1, 1, "ago(INTERVAL)"),
    "assert_true": (_assert_true, 1, 2, "assert_true(BOOLEAN[, VARCHAR])"),
}


LEAST_SCALE = 6  # of a quotient whose scale is not given
SIGNATURE = "decimal_division(DECIMAL, DECIMAL[, INTEGER])"


def decimal_division(args: Sequence[Expr], span: Span | None) -> Expr:
    """Return the quotient with all digits that its greatest value needs; raises `OutOfRange` where these are more than 38."""
    if any(a.type == ty.NULL for a in args):
        return Literal(None, ty.NULL, span)
    for arg in args[:2]:
        if not (arg.type.is_integer or arg.type.is_decimal):
            raise TypeMismatch(f"{SIGNATURE} does not take {arg.type}.", arg.span or span)
    left, right = (as_decimal(a.type) for a in args[:2])
    scale = _given_scale(args[2]) if len(args) > 2 else None
    if scale is None:
        scale = max(LEAST_SCALE, left.scale + right.precision + 1)
    digits = left.precision - left.scale + right.scale + scale
    if max(digits, scale) > ty.MAX_DECIMAL_DIGITS:
        raise OutOfRange(
            f"The quotient of {left} and {right} has {max(digits, scale)} digits, and a DECIMAL at most {ty.MAX_DECIMAL_DIGITS}: "
            "give it a scale as third argument, or cast an argument to one with fewer digits.",
            span,
        )
    made = (coerce(args[0], left), coerce(args[1], right))
    return Call("decimal_division", made, ty.decimal(digits, scale), span)


def _given_scale(arg: Expr) -> int:
    found = constant(arg)
    if not isinstance(found, Literal) or not isinstance(found.value, int):
        raise InvalidQuery("The scale of decimal_division is a constant integer.", arg.span)
    if not 0 <= found.value <= ty.MAX_DECIMAL_DIGITS:
        raise OutOfRange(
            f"The scale of decimal_division is between 0 and {ty.MAX_DECIMAL_DIGITS}.", arg.span
        )
    return found.value
