"""Aggregates as others of the same rows: of moments as of integers, of several fractions as one for each, the n best values as a list.

Aggregates of dates, times and moments as those of the integers that they are.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Sequence
from decimal import Decimal
from functools import partial, reduce
from typing import NamedTuple

from ...errors import InvalidQuery, Span, Unsupported
from .. import types as ty
from ..calendar import DAYS_A_MONTH, INFINITE_MICROS, MICROS_A_DAY
from ..casts import cast
from ..expr import Call, Cast, Expr, Literal, SortKey, columns_of
from ..functions import AGGREGATE, constants
from ..functions.constant_arguments import constant
from ..literals import literal
from ..temporal.ticks import PLAIN
from .nanoseconds import ticks
from .zoned_moments import Make

MOST_VALUES = 1_000_000  # that an aggregate is asked for, and one more


class AggregateClauses(NamedTuple):
    """What stands in and behind the parentheses of an aggregate."""

    distinct: bool
    filter: Expr | None
    order: Sequence[SortKey]
    span: Span | None


def by_others(
    make: Make, name: str, args: Sequence[Expr], again: Aggregate, clauses: AggregateClauses
) -> Expr | None:
    """Return the expression over other aggregates that a call is; None for one that is itself."""
    row = AGGREGATE[name]
    at_fraction = constants(row.signature).get(1) == "fraction" and len(args) > 1
    if at_fraction and args[1].type.kind is ty.Kind.LIST:
        return _at_each_fraction(make, name, args, again, clauses.span)
    if at_fraction and (share := _share_from_the_end(args[1])):
        return _from_the_end(make, name, (args[0], share), again, clauses)
    if row.fold == name and len(args) == 2:  # the least or the greatest
        return _best(make, name, (args[0], *args), again, clauses)
    if name.startswith("arg_") and not name.endswith("_null") and len(args) == 3:
        if clauses.distinct:
            raise Unsupported(
                f"DISTINCT in {name} of several values is not supported.", clauses.span
            )
        return _best(make, name, args, again, clauses)
    if name in _CHECKS:
        _CHECKS[name](args[1:])
    if name.startswith("bit_") and len(args) == 1 and args[0].type == ty.BIT:
        return make.call(f"{name}_of_list", [again("list", args)], clauses.span)
    return of_moments(make, name, args, again, clauses.span)


def _at_each_fraction(
    make: Make, name: str, args: Sequence[Expr], again: Aggregate, span: Span | None
) -> Expr:
    """quantile_cont(x, [0.25, 0.5]) -> [quantile_cont(x, 0.25), quantile_cont(x, 0.5)]; NULL of no values."""
    value, fractions, *rest = args
    constants = _constants(fractions)
    if any(_share_from_the_end(each) for each in constants):  # 0 is then the greatest, as 1 is
        values = [e.value for e in constants if isinstance(e, Literal)]
        if any(isinstance(v, int | float | Decimal) and v > 0 for v in values):
            raise InvalidQuery(f"The fractions of {name} have one sign.", fractions.span)
        constants = [each if _share_from_the_end(each) else literal(1.0) for each in constants]
    found = [again(name, [value, each, *rest]) for each in constants]
    kind = again(name, [value, Literal(0.5, ty.DOUBLE), *rest]).type
    made = Call("list_value", tuple(found), ty.list_of(kind), span)
    known = make.compare("gt", again("count", [value], order=()), Literal(0, ty.BIGINT), span)
    return make.case([known], [made], None, span)


def _share_from_the_end(fraction: Expr) -> float | None:
    """The fraction that a negative one is, which counts from the greatest value on; None of others."""
    written = constant(cast(fraction, ty.DOUBLE))
    if not isinstance(written, Literal) or not isinstance(written.value, float):
        return None
    return -written.value if written.value < 0 else None


def of_order(name: str, fraction: Expr, descending: bool) -> Expr:
    """Return the fraction of values in an order: of a descending one minus it, and 1 for 0, or all that a list has."""
    match fraction:
        case Literal(value=int() | float() | Decimal() as share):
            if share < 0:
                raise InvalidQuery(
                    f"The fraction of {name} has to be between 0 and 1.", fraction.span
                )
            backwards = -share or type(share)(1)
            return dataclasses.replace(fraction, value=backwards) if descending else fraction
        case Cast():
            return dataclasses.replace(
                fraction, operand=of_order(name, fraction.operand, descending)
            )
        case Call(function="list_value", args=shares):
            ends = [of_order(name, share, descending) for share in shares]
            if any(map(_is_below_0, ends)):  # beside which 0 is the greatest value
                pairs = zip(ends, shares, strict=True)
                ends = [end if _is_below_0(end) else share for end, share in pairs]
            return dataclasses.replace(fraction, args=tuple(ends))
    return fraction


def _is_below_0(fraction: Expr) -> bool:
    while isinstance(fraction, Cast):
        fraction = fraction.operand
    value = fraction.value if isinstance(fraction, Literal) else None
    return isinstance(value, int | float | Decimal) and value < 0


def _from_the_end(
    make: Make, name: str, args: tuple[Expr, float], aggregate: Aggregate, clauses: AggregateClauses
) -> Expr:
    """quantile_cont(x, -f) -> -quantile_cont(-x, f), where -x has the order of x from its end and is exact.

    Doubles have NaN, which is greatest with either sign, and moments have no sign: these take the fraction 1 - f.
    """
    value, share = args
    counts_back = AGGREGATE[name].means is None  # not of approx_quantile
    if share > 1 or clauses.order or not counts_back:
        least = -1 if share > 1 and counts_back else 0
        raise InvalidQuery(f"The fraction of {name} has to be between {least} and 1.", clauses.span)
    if name == "quantile_disc":
        order = (SortKey(value, descending=True),)
        return aggregate(name, [value, literal(share)], order=order)
    if value.type.is_decimal:
        found = aggregate(name, [make.call("neg", [value], clauses.span), literal(share)])
        return make.call("neg", [found], clauses.span)
    if value.type.is_whole:
        opposite = make.call("neg", [cast(value, ty.DOUBLE)], clauses.span)
        return make.call("sub", [literal(0.0), aggregate(name, [opposite, literal(share)])], None)
    return aggregate(name, [value, literal(float(1 - Decimal(repr(share))))])


def _constants(fractions: Expr) -> list[Expr]:
    written = fractions
    while isinstance(written, Cast):
        written = written.operand
    if not isinstance(written, Call) or written.function != "list_value":
        raise InvalidQuery("Several fractions are a list of constants.", fractions.span)
    return [constant(cast(each, ty.DOUBLE)) for each in written.args]


def _number(count: Expr, name: str) -> int:
    """Return how many values an aggregate is asked for; raises `InvalidQuery` for what is no such constant."""
    found = constant(cast(count, ty.BIGINT))
    if not isinstance(found, Literal):
        raise InvalidQuery(f"How many values {name} gives is a constant.", count.span)
    if not isinstance(found.value, int) or not 0 < found.value < MOST_VALUES:
        raise InvalidQuery(
            f"{name} gives at least one and less than {MOST_VALUES:,} values.", count.span
        )
    return found.value


def _check_bins(rest: Sequence[Expr]) -> None:
    for bins in rest:
        if columns_of(bins):
            raise InvalidQuery("The bins of a histogram are constants.", bins.span)
        if isinstance(bins, Literal) and bins.value is None:
            raise InvalidQuery("The bins of a histogram are not NULL.", bins.span)


def _check_count(rest: Sequence[Expr]) -> None:
    for count in rest:
        _number(count, "approx_top_k")


def _check_sample(rest: Sequence[Expr]) -> None:
    """A fraction, and the size of the sample."""
    for place, arg in enumerate(rest):
        found = constant(cast(arg, ty.BIGINT if place else ty.DOUBLE))
        value = found.value if isinstance(found, Literal) else None
        if place == 0 and not (isinstance(value, float) and 0 <= value <= 1):
            raise InvalidQuery(
                "The fraction of reservoir_quantile is a constant from 0 to 1.", arg.span
            )
        if place and not (isinstance(value, int) and value > 0):
            raise InvalidQuery("The size of a sample is a constant above 0.", arg.span)


_CHECKS: dict[str, Callable[[Sequence[Expr]], None]] = {
    "histogram": _check_bins,
    "histogram_exact": _check_bins,
    "approx_top_k": _check_count,
    "reservoir_quantile": _check_sample,
}


def _best(
    make: Make, name: str, args: Sequence[Expr], again: Aggregate, clauses: AggregateClauses
) -> Expr:
    """arg_max(x, y, n) -> list(x ORDER BY y DESC)[:n] of the rows that have both."""
    value, key, count = args
    late = name.endswith("_nulls_last")
    number = _number(count, name)
    conditions = [] if clauses.filter is None else [clauses.filter]
    if not late:
        conditions += [make.call("is_not_null", [each]) for each in dict.fromkeys((value, key))]
    order = (SortKey(key, descending="max" in name), *clauses.order)
    filters = make.call("and", conditions) if conditions else None
    values = again("list", [value], filter=filters, order=order)
    ends = (Literal(1, ty.BIGINT), Literal(number, ty.BIGINT))
    return make.call("list_cut", [values, *ends], clauses.span)


Aggregate = Callable[..., Expr]  # of a name and arguments


def of_moments(
    make: Make, name: str, args: Sequence[Expr], aggregate: Aggregate, span: Span | None
) -> Expr | None:
    """Return the aggregate of dates, times or moments; None for one that takes them as they are."""
    if name == "avg" and len(args) == 1 and args[0].type == ty.INTERVAL:
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
    if kind == ty.DATE or (kind.kind in PLAIN and kind != ty.TIMESTAMP):
        value = cast(value, ty.TIMESTAMP_NS, span=span)
    return _average(make, value, aggregate, span)


def _deviation(
    make: Make, name: str, args: Sequence[Expr], aggregate: Aggregate, span: Span | None
) -> Expr | None:
    if len(args) > 1:
        return None
    value = cast(args[0], ty.TIMESTAMP, span=span) if args[0].type == ty.DATE else args[0]
    distance = aggregate(name, [cast(ticks(value), ty.DOUBLE)])
    above = make.call("add", [distance, Literal(0.5, ty.DOUBLE)], span)  # halves upwards
    return _interval(make, cast(make.call("floor", [above], span), ty.BIGINT), span)


def _quantile(
    make: Make, name: str, args: Sequence[Expr], aggregate: Aggregate, span: Span | None
) -> Expr | None:
    value, *rest = args
    if value.type == ty.TIMESTAMPTZ:
        return Cast(aggregate(name, [Cast(value, ty.TIMESTAMP), *rest]), ty.TIMESTAMPTZ, span=span)
    if value.type == ty.TIME:
        moment = make.call("make_timestamp", [ticks(value)], span)
        return _of_count(make, ticks(aggregate(name, [moment, *rest])), ty.TIME, span)
    return None


def _near_quantile(
    make: Make, name: str, args: Sequence[Expr], aggregate: Aggregate, span: Span | None
) -> Expr | None:
    if args[0].type == ty.TIMESTAMP_NS:
        return aggregate("quantile_disc", args)
    return _quantile(make, name, args, aggregate, span)


_RULES: dict[str, Callable[..., Expr | None]] = {
    "avg": _mean,
    "mad": _deviation,
    "quantile_cont": _quantile,
    "approx_quantile": _near_quantile,
}


def _of_count(make: Make, count: Expr, target: ty.DataType, span: Span | None) -> Expr:
    if target == ty.TIME:
        return Call("time_of_ticks", (count,), ty.TIME, span)
    if target == ty.TIMESTAMP_NS:
        return make.call("make_timestamp_ns", [count], span)
    made = make.call("make_timestamp", [count], span)
    return made if target == ty.TIMESTAMP else Cast(made, ty.TIMESTAMPTZ, span=span)


def _average(make: Make, value: Expr, aggregate: Aggregate, span: Span | None) -> Expr:
    """The exact mean, rounded to the nearest, and halves downwards; an infinite one where a value is, NULL of both."""
    count = ticks(value)
    total, rows = aggregate("sum", [count]), aggregate("count", [count])
    whole = make.call("int_div", [total, rows], span)
    rest = make.call("mod", [total, rows], span)
    doubled = make.call("mul", [rest, literal(2)], span)
    above = cast(make.compare("gt", doubled, rows, span), ty.INTEGER, span=span)
    mean = cast(make.call("add", [whole, above], span), ty.BIGINT, span=span)
    found = _of_count(make, mean, value.type, span)
    if value.type == ty.TIME:
        return found
    infinite = [Literal(sign * INFINITE_MICROS, ty.BIGINT) for sign in (1, -1)]
    high, low = (
        make.compare("eq", aggregate(end, [count]), limit, span)
        for end, limit in zip(("max", "min"), infinite, strict=True)
    )
    values = [cast(Literal(t, ty.VARCHAR), value.type) for t in ("infinity", "-infinity")]
    return make.case(
        [make.call("and", [high, low], span), high, low],
        [Literal(None, value.type), *values],
        found,
        span,
    )


def _interval(make: Make, micros: Expr, span: Span | None) -> Expr:
    day = literal(MICROS_A_DAY)
    days = cast(make.call("int_div", [micros, day], span), ty.INTEGER, span=span)
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
        scaled = [call("mul", cast(call(part, value), ty.BIGINT), scale) for part, scale in parts]
        return cast(aggregate("sum", [reduce(partial(call, "add"), scaled)]), ty.BIGINT)

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
        call("to_months", cast(months, ty.INTEGER)),
        call("to_days", cast(call("add", days, more_days), ty.INTEGER)),
        call("to_microseconds", cast(call("add", micros, left), ty.BIGINT)),
    )
    return reduce(partial(call, "add"), parts)
