"""SQL functions that are other functions, put together: they have no row in the table and no kernels."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from datetime import date
from functools import cache

from ..errors import InvalidQuery, Located, Span, TypeMismatch, UnknownName, nearest
from . import infer
from .all_values import is_null_constant
from .composed.arrays import ARRAYS
from .composed.defined_functions import (
    DEFINED_FUNCTIONS,
    DERIVED_TEXTS,
    ENUM_VALUES,
    SIGNATURE,
    decimal_division,
)
from .composed.derived_dates import DERIVED_DATES, OFFSETS, ZONED_FUNCTIONS
from .composed.json_calls import JSON_CALLS
from .composed.nested_values import (
    NESTED_VALUES,
    list_aggregate,
    listed_constants,
    named_aggregate,
    struct_pack,
)
from .expr import Call, Case, Cast, Expr, Literal
from .functions import SCALAR, scalar_name
from .functions.dates import CLOCK_UNITS, PARTS, UNITS
from .functions.lists import LISTS, SERIES
from .functions.maps import MAPS
from .functions.strptime import layout, specifiers
from .temporal.ticks import PLAIN
from .types import DATE, DOUBLE, FLOAT, INTERVAL, NULL, TIME, TIMESTAMP, TIMESTAMPTZ, VARCHAR, Kind

Build = Callable[[Sequence[Expr], Span | None], Expr]


def function(name: str, args: Sequence[Expr], span: Span | None = None) -> Expr:
    """Return the call of any scalar function by its SQL name; raises `UnknownName` and `TypeMismatch`."""
    known = DERIVED.get(name.lower())
    of_elements = named_aggregate(name)
    if known is None and of_elements is not None and scalar_name(name) is None:
        named = Literal(of_elements, VARCHAR)
        return list_aggregate([*args[:1], named, *args[1:]], span)
    if known is None:
        if not is_known(name):
            raise infer.unknown_function(name, span, DERIVED)
        return infer.call(name, args, span)
    build, least, most, signature = known
    if not least <= len(args) <= most:
        raise TypeMismatch(f"{signature} does not take {len(args)} arguments.", span)
    found = build(args, span)
    if isinstance(found, Literal):  # typeof(sum(x)) is one row still
        read = [infer.call("is_null", [a], span) for a in args if not isinstance(a, Literal)]
        return infer.case(read, [found] * len(read), found, span) if read else found
    return found


def signature(name: str) -> str:
    """Return the parameters of a scalar function, as messages show them; without any where there is no such function."""
    known = DERIVED.get(name.lower())
    if known is not None:
        return known[3]
    row = SCALAR.get(scalar_name(name) or name)
    return "" if row is None else row.signature


def is_function(name: str) -> bool:
    """Whether SQL calls something here by `name`."""
    return name.lower() in DERIVED or named_aggregate(name) is not None


def is_known(name: str) -> bool:
    """Whether `function` has a call of this name."""
    return name in SCALAR or is_spelled(name)


def is_spelled(name: str) -> bool:
    """Whether SQL has a function of this name; plans have names of their own, such as is_nan."""
    return scalar_name(name) is not None or is_function(name)


def _nullif(args: Sequence[Expr], span: Span | None) -> Expr:
    """nullif(a, b) -> CASE WHEN a = b THEN NULL ELSE a END; the type is that of a."""
    value, other = args
    null = Literal(None, value.type)
    return Case((infer.compare("eq", value, other, span),), (null,), value, value.type, span)


def _if(args: Sequence[Expr], span: Span | None) -> Expr:
    return infer.case([args[0]], [args[1]], args[2], span)


def _log(args: Sequence[Expr], span: Span | None) -> Expr:
    """log(x) has base 10; log(b, x) is log(x) / log(b)."""
    if len(args) == 1:
        return infer.call("log10", args, span)
    base, value = args
    if isinstance(base, Literal) and base.value in (2, 10):
        return infer.call(f"log{base.value}", [value], span)
    return infer.call("div", [infer.call("log10", [a], a.span) for a in (value, base)], span)


def _cot(args: Sequence[Expr], span: Span | None) -> Expr:
    return infer.call("div", [infer.literal(1), infer.call("tan", args, span)], span)


def _fmod(args: Sequence[Expr], span: Span | None) -> Expr:
    """fmod(a, b) -> a % b, and b more where that has another sign than b: of the sign of b, and exact but for that sum."""
    given = {a.type for a in args}
    common = FLOAT if FLOAT in given and DOUBLE not in given else DOUBLE
    value, divisor = (infer.cast(a, common) for a in args)
    rest = infer.call("mod", [value, divisor], span)
    zero = Literal(0.0, rest.type, span)
    below, sign = (infer.compare("lt", each, zero, span) for each in (rest, divisor))
    differ = infer.compare("ne", below, sign, span)
    other = infer.call("and", [infer.compare("ne", rest, zero, span), differ], span)
    return Case((other,), (infer.call("add", [rest, divisor], span),), rest, rest.type, span)


def _strftime(args: Sequence[Expr], span: Span | None) -> Expr:
    """The format may come first; a text is no date here, as in DuckDB."""
    first, second = args
    if first.type.kind is Kind.VARCHAR and second.type == TIMESTAMPTZ:
        first, second = Cast(second, TIMESTAMP), first
    elif first.type.kind is Kind.VARCHAR and second.type.kind in (Kind.DATE, *PLAIN):
        first, second = second, first
    if first.type.kind is Kind.VARCHAR:
        raise TypeMismatch(
            "strftime takes a DATE or TIMESTAMP: cast the text to one.", first.span or span
        )
    is_null = isinstance(first, Literal) and first.value is None
    if isinstance(second, Literal) and isinstance(second.value, str) and not is_null:
        with Located(second.span or span):
            list(specifiers(second.value))  # raises for what is no specifier
    return infer.call("strftime", (first, second), span)


def _strptime(name: str) -> Build:
    """Build strptime or try_strptime; the format is read when the query is bound, as in DuckDB."""

    def build(args: Sequence[Expr], span: Span | None) -> Expr:
        form = args[1]
        if isinstance(form, Call) and form.function == "list_value" and form.args:
            return _first_that_fits(name, args[0], form.args, span)
        if isinstance(form, Literal) and isinstance(form.value, str):
            with Located(form.span or span):
                zoned = layout(form.value).zoned
            read = infer.call(name, args, span)
            return Cast(read, TIMESTAMPTZ, span=span) if zoned else read
        return infer.call(name, args, span)

    return build


def _first_that_fits(name: str, text: Expr, forms: Sequence[Expr], span: Span | None) -> Expr:
    """Read a text by the first of several formats that fits; the last one says what is wrong with others."""
    attempt, last = _strptime("try_strptime"), _strptime(name)
    tried = [attempt((text, form), span) for form in forms[:-1]]
    return infer.call("coalesce", [*tried, last((text, forms[-1]), span)], span)


def _unicode(args: Sequence[Expr], span: Span | None) -> Expr:
    """As ascii, but -1 for the empty string."""
    empty = infer.compare("eq", args[0], Literal("", VARCHAR), span)
    return infer.case([empty], [infer.literal(-1)], infer.call("ascii", args, span), span)


def _text(expr: Expr, what: str) -> str:
    if isinstance(expr, Literal) and isinstance(expr.value, str):
        return expr.value
    raise InvalidQuery(f"{what} has to be a constant string.", expr.span)


def _is_text(expr: Expr) -> bool:
    """Whether an expression is a text that each row may have another one of."""
    return expr.type == VARCHAR and not isinstance(expr, Literal)


# Each spelling of a part of a moment, and of a unit, to the name of it
_PARTS_ALONE = ("era", "julian")
_SPELLED_PARTS = {**PARTS, **{name: name for name in ("yearweek", *_PARTS_ALONE, *OFFSETS)}}
_DAYS = ("dayofweek", "dayofyear", "isodow")
_PARTS_OF_UNITS = {  # which stand for the unit that they are of
    **dict.fromkeys(_DAYS, "day"),
    "julian": "day",
    "yearweek": "week",
    "epoch": "second",
    "isoyear": "isoyear",
}
_SPELLED_UNITS = {
    spelling: _PARTS_OF_UNITS.get(part, part)
    for spelling, part in _SPELLED_PARTS.items()
    if part in UNITS or part in _PARTS_OF_UNITS
}


def _parts(names: Sequence[Expr], moment: Expr, span: Span | None) -> Expr:
    """date_part(['year', 'day'], x) -> {'year': year(x), 'day': day(x)}, NULL where x is."""
    if not names:
        raise InvalidQuery("date_part takes at least one part.", span)
    values = [_part([name, moment], span) for name in names]
    found = struct_pack([_text(name, "The part of date_part") for name in names], values, span)
    missing = infer.call("is_null", [moment], span)
    return infer.case([missing], [Literal(None, found.type)], found, span)


def _part(args: Sequence[Expr], span: Span | None) -> Expr:
    """date_part('year', x) -> year(x); where an argument is a constant NULL, as of no part yet: a DOUBLE."""
    if is_null_constant(args[0]):
        return Literal(None, DOUBLE, span)
    names = listed_constants(args[0])
    if names is not None:
        return _parts(names, args[1], span)
    if _is_text(args[0]):
        found = by_unit(_SPELLED_PARTS, args[0], lambda n: _as_double([n, args[1]], span), span)
        return Literal(None, DOUBLE, span) if is_null_constant(args[1]) else found
    name = _text(args[0], "The part of date_part").lower()
    if name == "yearweek":
        found = _yearweek(args[1:], span)
        return Literal(None, DOUBLE, span) if is_null_constant(args[1]) else found
    if name in OFFSETS:
        return ZONED_FUNCTIONS[name][0](args[1:], span)
    known = name if name in _PARTS_ALONE else PARTS.get(name)
    if known is None:
        hint = nearest(name, _SPELLED_PARTS)
        raise UnknownName(f'Dates have no part "{name}".{hint}', args[0].span or span)
    found = function(known, args[1:], span)
    return Literal(None, DOUBLE, span) if is_null_constant(args[1]) else found


def _as_double(args: Sequence[Expr], span: Span | None) -> Expr:
    return infer.cast(_part(args, span), DOUBLE)


def _yearweek(args: Sequence[Expr], span: Span | None) -> Expr:
    """Years and weeks as one number: 202405, and -4311 for the 11th week of 44 BC."""
    year, week = (infer.call(name, args, span) for name in ("isoyear", "week"))
    before = infer.compare("lt", year, infer.literal(0), span)
    week = infer.case([before], [infer.call("neg", [week], span)], week, span)
    return infer.call("add", [infer.call("mul", [year, infer.literal(100)], span), week], span)


def _with_unit(name: str) -> tuple[Build, int, int, str]:
    """A function whose first argument is a unit, in the spelling of `UNITS`."""

    def build(args: Sequence[Expr], span: Span | None) -> Expr:
        if _is_text(args[0]):
            return by_unit(_SPELLED_UNITS, args[0], lambda n: build([n, *args[1:]], span), span)
        if is_null_constant(args[0]):
            return Literal(None, build([Literal("day", VARCHAR), *args[1:]], span).type, span)
        written = _text(args[0], f"The unit of {name}").lower()
        unit = _SPELLED_UNITS.get(written)
        if unit is None:
            place = args[0].span or span
            raise UnknownName(f'There is no unit "{written}".{nearest(written, UNITS)}', place)
        if {arg.type for arg in args[1:]} in ({TIME}, {TIME, NULL}) and name != "date_trunc":
            args = [args[0], *_on_one_day(unit, args[1:], args[0].span or span)]
        of_interval = name == "date_trunc" and args[1].type == INTERVAL
        own = "interval_trunc" if of_interval else name
        if unit == "isoyear":
            if not of_interval and name != "date_sub":
                return _iso_years(name, args[1:], span)
            unit = "year"
        return infer.call(own, [Literal(unit, VARCHAR, args[0].span), *args[1:]], span)

    count = 2 if name == "date_trunc" else 3
    return build, count, count, f"{name}(unit, {'date' if count == 2 else 'start, end'})"


def _iso_years(name: str, moments: Sequence[Expr], span: Span | None) -> Expr:
    """The difference of years of weeks, or the begin of one, which is the Monday of the week with January 4."""
    years = [infer.call("isoyear", [moment], span) for moment in moments]
    if name == "date_diff":
        return infer.call("sub", list(reversed(years)), span)
    (moment,) = moments
    day = infer.call("make_date", [years[0], infer.literal(1), infer.literal(4)], span)
    begin = infer.call("date_trunc", [Literal("week", VARCHAR), infer.cast(day, TIMESTAMP)], span)
    return infer.cast(begin, TIMESTAMPTZ if moment.type == TIMESTAMPTZ else TIMESTAMP, span=span)


def _on_one_day(unit: str, times: Sequence[Expr], place: Span | None) -> list[Expr]:
    """Return times as moments of the same day, of which units of a clock are counted; raises `InvalidQuery` for others."""
    if unit not in CLOCK_UNITS:
        raise InvalidQuery(f'Two times differ by no "{unit}": ask for hours or less.', place)
    day = Literal(date(1970, 1, 1), DATE)
    return [infer.call("add", [day, infer.cast(time, TIME)], place) for time in times]


def _escaped(function_name: str, negate: bool) -> Build:
    def build(args: Sequence[Expr], span: Span | None) -> Expr:
        matched = infer.call(function_name, args, span)
        return infer.call("not", [matched], span) if negate else matched

    return build


def _renamed(name: str) -> Build:
    return lambda args, span: infer.call(name, args, span)


# SQL name -> how it is built, fewest and most arguments, signature.
DERIVED: dict[str, tuple[Build, int, int, str]] = {
    **DERIVED_DATES,
    **DERIVED_TEXTS,
    **DEFINED_FUNCTIONS,
    **NESTED_VALUES,
    **ARRAYS,
    **ENUM_VALUES,
    **JSON_CALLS,
    **ZONED_FUNCTIONS,
    **{
        row.name.removeprefix("list_of_"): (_renamed(row.name), 1, 3, row.signature)
        for row in SERIES
    },
    "map": (_renamed("map_of_lists"), 0, 2, "map(any[], any[])"),
    "nullif": (_nullif, 2, 2, "nullif(any, any)"),
    "if": (_if, 3, 3, "if(BOOLEAN, any, any)"),
    "ifnull": (_renamed("coalesce"), 2, 2, "ifnull(any, any)"),
    "log": (_log, 1, 2, "log([base,] DOUBLE)"),
    "fmod": (_fmod, 2, 2, "fmod(number, number)"),
    "strftime": (_strftime, 2, 2, "strftime(TIMESTAMP, format)"),
    "strptime": (_strptime("strptime"), 2, 2, "strptime(VARCHAR, format)"),
    "try_strptime": (_strptime("try_strptime"), 2, 2, "try_strptime(VARCHAR, format)"),
    "decimal_division": (decimal_division, 2, 3, SIGNATURE),
    "cot": (_cot, 1, 1, "cot(DOUBLE)"),
    "pi": (lambda _, span: Literal(math.pi, DOUBLE, span), 0, 0, "pi()"),
    **dict.fromkeys(("unicode", "ord"), (_unicode, 1, 1, "unicode(VARCHAR)")),
    **dict.fromkeys(("date_part", "datepart"), (_part, 2, 2, "date_part(part, date)")),
    "yearweek": (_yearweek, 1, 1, "yearweek(date)"),
    **dict.fromkeys(("date_trunc", "datetrunc"), _with_unit("date_trunc")),
    **dict.fromkeys(("date_diff", "datediff"), _with_unit("date_diff")),
    **dict.fromkeys(("date_sub", "datesub"), _with_unit("date_sub")),
    "date_add": (_renamed("add"), 2, 2, "date_add(date, INTERVAL)"),
    "add": (_renamed("add"), 2, 2, "add(number, number)"),
    "subtract": (_renamed("sub"), 2, 2, "subtract(number, number)"),
    "multiply": (_renamed("mul"), 2, 2, "multiply(number, number)"),
    "mod": (_renamed("mod"), 2, 2, "mod(number, number)"),
    "date": (lambda args, span: infer.cast(args[0], DATE, span=span), 1, 1, "date(any)"),
    "like_escape": (_escaped("like", False), 3, 3, "like_escape(VARCHAR, VARCHAR, VARCHAR)"),
    "ilike_escape": (_escaped("ilike", False), 3, 3, "ilike_escape(VARCHAR, VARCHAR, VARCHAR)"),
    "not_like_escape": (_escaped("like", True), 3, 3, "not_like_escape(VARCHAR, VARCHAR, VARCHAR)"),
    "not_ilike_escape": (
        _escaped("ilike", True),
        3,
        3,
        "not_ilike_escape(VARCHAR, VARCHAR, VARCHAR)",
    ),
}


@cache
def is_of_lists(name: str) -> bool:
    """Whether SQL calls a function of lists by `name`."""
    known = {*NESTED_VALUES, *(n for row in (*LISTS, *MAPS) for n in (row.name, *row.aliases))}
    return name.lower() in known or named_aggregate(name) is not None


def by_unit(
    units: Mapping[str, str], unit: Expr, build: Callable[[Expr], Expr], span: Span | None
) -> Expr:
    """Return CASE WHEN lower(unit) IN ('year', 'years', 'y') THEN build('year') ... END, which raises for other texts.

    `units` maps each spelling to the name of its unit.  What `build` refuses for the arguments at hand, as years of a TIME, is another text.
    """
    lowered = infer.call("lower", [unit], span)
    conditions: list[Expr] = [infer.call("is_null", [unit], span)]
    results: list[Expr] = [Literal(None, NULL)]
    for name in dict.fromkeys(units.values()):
        try:
            result = build(Literal(name, VARCHAR, unit.span))
        except (InvalidQuery, TypeMismatch):
            continue
        spelled = [Literal(spelling, VARCHAR) for spelling, known in units.items() if known == name]
        conditions.append(infer.in_list(lowered, spelled, span))
        results.append(result)
    parts = [Literal('There is no unit "', VARCHAR), unit, Literal('" of this type', VARCHAR)]
    return infer.case(conditions, results, infer.call("error", [infer.call("concat", parts)]), span)
