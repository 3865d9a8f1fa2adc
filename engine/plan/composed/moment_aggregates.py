"""Aggregates of dates, times and moments as those of the integers that they are."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial, reduce

from ...errors import Span
from ..calendar import DAYS_A_MONTH, INFINITE_MICROS, MICROS_A_DAY
from ..casts import cast
from ..expr import Call, Cast, Expr, Literal
from ..literals import literal
from ..temporal.ticks import PLAIN
from ..types import (
    BIGINT,
    DATE,
    DOUBLE,
    INTEGER,
    INTERVAL,
    TIME,
    TIMESTAMP,
    TIMESTAMP_NS,
    TIMESTAMPTZ,
    VARCHAR,
    DataType,
)
from .zoned_moments import Make

Aggregate = Callable[..., Expr]  # of a name and arguments


def of_moments(
    make: Make, name: str, args: Sequence[Expr], aggregate: Aggregate, span: Span | None
) -> Expr | None:
    """Return the aggregate of dates, times or moments; None for one that takes them as they are."""
    if name == "avg" and len(args) == 1 and args[0].type == INTERVAL:
        return _mean_of_intervals(make, args[0], aggregate, span)
    if not args or not args[0].type.is_temporal:
        return None
    rule = _RULES.get(name)
    return None if rule is None else rule(make, name, args, aggregate, span)


def _mean(
    make: Make, _: str, args: Sequence[Expr], aggregate: Aggregate, span: Span | None
) -> Expr | None:
    value, kind = args[0], args[0].type
    if len(args) > 1:
        return None
    if kind == DATE or (kind.kind in PLAIN and kind != TIMESTAMP):
        value = cast(value, TIMESTAMP_NS, span=span)
    return _average(make, value, aggregate, span)


def _deviation(
    make: Make, name: str, args: Sequence[Expr], aggregate: Aggregate, span: Span | None
) -> Expr | None:
    if len(args) > 1:
        return None
    value = cast(args[0], TIMESTAMP, span=span) if args[0].type == DATE else args[0]
    distance = aggregate(name, [cast(_count(value), DOUBLE)])
    above = make.call("add", [distance, Literal(0.5, DOUBLE)], span)  # halves upwards
    return _interval(make, cast(make.call("floor", [above], span), BIGINT), span)


def _quantile(
    make: Make, name: str, args: Sequence[Expr], aggregate: Aggregate, span: Span | None
) -> Expr | None:
    value, *rest = args
    if value.type == TIMESTAMPTZ:
        return Cast(aggregate(name, [Cast(value, TIMESTAMP), *rest]), TIMESTAMPTZ, span=span)
    if value.type == TIME:
        moment = make.call("make_timestamp", [_count(value)], span)
        return _of_count(make, _count(aggregate(name, [moment, *rest])), TIME, span)
    return None


def _near_quantile(
    make: Make, name: str, args: Sequence[Expr], aggregate: Aggregate, span: Span | None
) -> Expr | None:
    if args[0].type == TIMESTAMP_NS:
        return aggregate("quantile_disc", args)
    return _quantile(make, name, args, aggregate, span)


_RULES: dict[str, Callable[..., Expr | None]] = {
    "avg": _mean,
    "mad": _deviation,
    "quantile_cont": _quantile,
    "approx_quantile": _near_quantile,
}


def _count(value: Expr) -> Expr:
    """Return the integer that a moment or a time is."""
    return Call("ticks", (value,), BIGINT)


def _of_count(make: Make, count: Expr, target: DataType, span: Span | None) -> Expr:
    if target == TIME:
        return Call("time_of_ticks", (count,), TIME, span)
    if target == TIMESTAMP_NS:
        return make.call("make_timestamp_ns", [count], span)
    made = make.call("make_timestamp", [count], span)
    return made if target == TIMESTAMP else Cast(made, TIMESTAMPTZ, span=span)


def _average(make: Make, value: Expr, aggregate: Aggregate, span: Span | None) -> Expr:
    """The exact mean, rounded to the nearest, and halves downwards; an infinite one where a value is, NULL of both."""
    count = _count(value)
    total, rows = aggregate("sum", [count]), aggregate("count", [count])
    whole = make.call("int_div", [total, rows], span)
    rest = make.call("mod", [total, rows], span)
    doubled = make.call("mul", [rest, literal(2)], span)
    above = cast(make.compare("gt", doubled, rows, span), INTEGER, span=span)
    mean = cast(make.call("add", [whole, above], span), BIGINT, span=span)
    found = _of_count(make, mean, value.type, span)
    if value.type == TIME:
        return found
    infinite = [Literal(sign * INFINITE_MICROS, BIGINT) for sign in (1, -1)]
    high, low = (
        make.compare("eq", aggregate(end, [count]), limit, span)
        for end, limit in zip(("max", "min"), infinite, strict=True)
    )
    values = [cast(Literal(t, VARCHAR), value.type) for t in ("infinity", "-infinity")]
    return make.case(
        [make.call("and", [high, low], span), high, low],
        [Literal(None, value.type), *values],
        found,
        span,
    )


def _interval(make: Make, micros: Expr, span: Span | None) -> Expr:
    day = literal(MICROS_A_DAY)
    days = cast(make.call("int_div", [micros, day], span), INTEGER, span=span)
    rest = make.call("mod", [micros, day], span)
    parts = [make.call("to_days", [days], span), make.call("to_microseconds", [rest], span)]
    return make.call("add", parts, span)


def _mean_of_intervals(make: Make, value: Expr, aggregate: Aggregate, span: Span | None) -> Expr:
    """Months, days and microseconds each by the number of rows; what is left of a month or day counts as 30 days, or 24 hours.

    The microseconds that are left are added, as in DuckDB.
    """

    def call(name: str, *args: Expr | int) -> Expr:
        given = [literal(a) if isinstance(a, int) else a for a in args]
        return make.call(name, given, span)

    def total(*parts: tuple[str, int]) -> Expr:
        scaled = [call("mul", cast(call(part, value), BIGINT), scale) for part, scale in parts]
        return cast(aggregate("sum", [reduce(partial(call, "add"), scaled)]), BIGINT)

    def divided(number: Expr) -> tuple[Expr, Expr]:
        return call("int_div", number, rows), call("mod", number, rows)

    rows = aggregate("count", [value])
    months, of_month = divided(total(("year", 12), ("month", 1)))
    more_days, of_more = divided(call("mul", of_month, DAYS_A_MONTH))
    days, of_day = divided(total(("day", 1)))
    micros, left = divided(
        total(("hour", 3_600_000_000), ("minute", 60_000_000), ("microsecond", 1))
    )
    rest = call("mul", call("add", of_more, of_day), MICROS_A_DAY)
    micros = call("add", micros, divided(rest)[0])
    parts = (
        call("to_months", cast(months, INTEGER)),
        call("to_days", cast(call("add", days, more_days), INTEGER)),
        call("to_microseconds", cast(call("add", micros, left), BIGINT)),
    )
    return reduce(partial(call, "add"), parts)
