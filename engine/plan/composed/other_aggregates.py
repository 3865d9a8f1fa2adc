"""Aggregates as others of the same rows: of moments as of integers, of several fractions as one for each, the n best values as a list."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

from ...errors import InvalidQuery, Span, Unsupported
from ..casts import cast
from ..expr import Call, Cast, Expr, Literal, SortKey, columns_of
from ..functions import AGGREGATE, constants
from ..functions.constant_arguments import constant
from ..types import BIGINT, DOUBLE, Kind, list_of
from .moment_aggregates import Aggregate, of_moments
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
    if at_fraction and args[1].type.kind is Kind.LIST:
        return _at_each_fraction(make, name, args, again, clauses.span)
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
    return of_moments(make, name, args, again, clauses.span)


def _at_each_fraction(
    make: Make, name: str, args: Sequence[Expr], again: Aggregate, span: Span | None
) -> Expr:
    """quantile_cont(x, [0.25, 0.5]) -> [quantile_cont(x, 0.25), quantile_cont(x, 0.5)]; NULL of no values."""
    value, fractions, *rest = args
    found = [again(name, [value, each, *rest]) for each in _constants(fractions)]
    kind = again(name, [value, Literal(0.5, DOUBLE), *rest]).type
    made = Call("list_value", tuple(found), list_of(kind), span)
    known = make.compare("gt", again("count", [value], order=()), Literal(0, BIGINT), span)
    return make.case([known], [made], None, span)


def _constants(fractions: Expr) -> list[Expr]:
    written = fractions
    while isinstance(written, Cast):
        written = written.operand
    if not isinstance(written, Call) or written.function != "list_value":
        raise InvalidQuery("Several fractions are a list of constants.", fractions.span)
    return [constant(cast(each, DOUBLE)) for each in written.args]


def _number(count: Expr, name: str) -> int:
    """Return how many values an aggregate is asked for; raises `InvalidQuery` for what is no such constant."""
    found = constant(cast(count, BIGINT))
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
        found = constant(cast(arg, BIGINT if place else DOUBLE))
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
    ends = (Literal(1, BIGINT), Literal(number, BIGINT))
    return make.call("list_cut", [values, *ends], clauses.span)
