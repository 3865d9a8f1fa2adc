"""Aggregates that are expressions over sums, counts and moments: what is made of these is fused, streamed and merged as they are.

`of` calls an aggregate or scalar function by its name, of expressions and of constants; `of("case", condition, a, b)` chooses, and `of("as TYPE", x)` casts.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import reduce
from typing import TYPE_CHECKING

from ..types import DOUBLE, HUGEINT, JSON, UINTEGER, DataType, Kind, decimal
from .row import FunctionRow, Means, Resolve, Resolved, fixed

if TYPE_CHECKING:
    from ..expr import Expr

_ONE = fixed(DOUBLE, result=DOUBLE)
_TWO = fixed(DOUBLE, DOUBLE, result=DOUBLE)


def _beside(of: Means, value: Expr, other: Expr) -> Expr:
    """Return a value where the other argument is not NULL either."""
    return of("case", of("is_not_null", other), value, None)


def _total(of: Means, operation: str, *terms: Expr | float) -> Expr:
    return reduce(lambda a, b: of(operation, a, b), terms)  # type: ignore[return-value]


def _size(of: Means, x: Expr) -> Expr:
    return of("as DOUBLE", of("count", x))


def _sem(of: Means, x: Expr) -> Expr:
    """The standard error of the mean."""
    return of("div", of("stddev_pop", x), of("sqrt", _size(of, x)))


def _powers(of: Means, x: Expr) -> tuple[Expr, Expr, Expr, Expr, Expr]:
    """Return how many values there are, and the sums of their first four powers."""
    square = of("mul", x, x)
    powers = (x, square, of("mul", square, x), of("mul", square, square))
    sums = [of("sum", power) for power in powers]
    return (_size(of, x), *sums)


def _skewness(of: Means, x: Expr) -> Expr:
    """Of three values at least, with the correction for samples; NULL where all are equal."""
    n, one, two, three, _ = _powers(of, x)
    spread = of("sub", two, _total(of, "mul", one, of("div", one, n)))
    variance = of("div", of("case", of("gt", spread, 0.0), spread, 0.0), n)
    divisor = of("mul", variance, of("sqrt", variance))
    cubes = of("sub", three, of("div", _total(of, "mul", 3.0, two, one), n))
    cubes = of("add", cubes, of("div", _total(of, "mul", 2.0, one, one, one), of("mul", n, n)))
    factor = of("div", of("sqrt", of("mul", n, of("sub", n, 1.0))), of("sub", n, 2.0))
    found = of("div", of("mul", factor, of("div", cubes, n)), divisor)
    wanted = of("and", of("gt", n, 2.0), of("ne", divisor, 0.0))
    return of("case", wanted, found, None)


def _kurtosis(least: float) -> Means:
    """The excess over that of a normal distribution; with the correction for samples of more than three values."""

    def means(of: Means, x: Expr) -> Expr:
        n, one, two, three, four = _powers(of, x)
        mean = of("div", one, n)
        fourth = of("sub", four, _total(of, "mul", 4.0, three, mean))
        fourth = of("add", fourth, _total(of, "mul", 6.0, two, mean, mean))
        fourth = of("sub", fourth, _total(of, "mul", 3.0, one, mean, mean, mean))
        spread = of("sub", two, of("mul", one, mean))
        variance = of("div", spread, n)
        ratio = of("div", of("div", fourth, n), of("mul", variance, variance))
        if least == 1:
            found = of("sub", ratio, 3.0)
        else:
            less = of("sub", n, 1.0)
            found = of("sub", of("mul", of("add", n, 1.0), ratio), of("mul", 3.0, less))
            pairs = of("mul", of("sub", n, 2.0), of("sub", n, 3.0))
            found = of("div", of("mul", less, found), pairs)
        return of("case", of("and", of("gt", n, least), of("gt", spread, 0.0)), found, None)

    return means


def _squares(which: str) -> Means:
    """The sum of the squared deviations of y or x, or of their products, of the rows that have both."""

    def means(of: Means, y: Expr, x: Expr) -> Expr:
        known = _beside(of, y, x)
        one = known if which == "y" else _beside(of, x, y)
        moment = of("covar_pop", y, x) if which == "xy" else of("var_pop", one)
        return of("mul", _size(of, known), moment)

    return means


def _slope(of: Means, y: Expr, x: Expr) -> Expr:
    """NaN where all x are equal."""
    spread = of("var_pop", _beside(of, x, y))
    quotient = of("div", of("covar_pop", y, x), spread)
    return of("case", of("eq", spread, 0.0), float("nan"), quotient)


def _intercept(of: Means, y: Expr, x: Expr) -> Expr:
    slope = _slope(of, y, x)
    means = [of("avg", _beside(of, y, x)), of("avg", _beside(of, x, y))]
    found = of("sub", means[0], of("mul", slope, means[1]))
    return of("case", of("is_nan", slope), None, found)


def _r2(of: Means, y: Expr, x: Expr) -> Expr:
    """1 where all y are equal, NULL where all x are."""
    corr = of("corr", y, x)
    same = of("eq", of("var_pop", _beside(of, y, x)), 0.0)
    found = of("case", same, 1.0, of("mul", corr, corr))
    return of("case", of("eq", of("var_pop", _beside(of, x, y)), 0.0), None, found)


def _weighted(of: Means, value: Expr, weight: Expr) -> Expr:
    counted = of("case", of("is_not_null", value), weight, 0.0)
    return of("div", of("sum", of("mul", value, weight)), of("sum", counted))


def _member(of: Means, value: Expr) -> Expr:
    zoned = value.type.kind is Kind.TIMESTAMPTZ
    return of("json_member", of("as VARCHAR", value) if zoned else value)


def _group_array(of: Means, value: Expr) -> Expr:
    return _enclosed(of, _member(of, value), "[]")


def _group_object(of: Means, key: Expr, value: Expr) -> Expr:
    pair = of("json_pair", of("as VARCHAR", key), _member(of, value))
    return _enclosed(of, pair, "{}")


def _enclosed(of: Means, member: Expr, signs: str) -> Expr:
    listed = of("string_agg", member, ",")
    return of("json_enclosed", listed, signs)


def _group_structure(of: Means, value: Expr) -> Expr:
    structure = of("json_structure", _group_array(of, value))
    return of("json_extract", structure, "$[0]")


def _json_of(count: int) -> Resolve:
    """So many values of any types."""

    def resolve(types: Sequence[DataType]) -> Resolved:
        return (tuple(types), JSON) if len(types) == count else None

    return resolve


def _integers(types: Sequence[DataType]) -> Resolved:
    """A sum of integers or decimals alone."""
    if len(types) != 1 or not (types[0].is_whole or types[0].is_decimal):
        return None
    return (types[0],), decimal(38, types[0].scale) if types[0].is_decimal else HUGEINT


def _near_quantile(types: Sequence[DataType]) -> Resolved:
    if len(types) != 2 or not types[1].is_numeric:
        return None
    known = types[0].is_numeric or types[0].kind in (Kind.DATE, Kind.TIMESTAMP)
    return ((types[0], DOUBLE), types[0]) if known else None


def _row(
    name: str, means: Callable[..., Expr], signature: str, *aliases: str, resolve: object = _ONE
) -> FunctionRow:
    return FunctionRow(name, resolve, signature, aliases, "aggregate", total=False, means=means)  # type: ignore[arg-type]


def _pair(name: str, means: Callable[..., Expr], result: DataType = DOUBLE) -> FunctionRow:
    resolve = fixed(DOUBLE, DOUBLE, result=result)
    return _row(name, means, f"{name}(DOUBLE, DOUBLE)", resolve=resolve)


COMBINED = (
    _row(
        "sum_no_overflow",
        lambda of, x: of("sum", x),
        "sum_no_overflow(integer | DECIMAL)",
        resolve=_integers,
    ),
    _row("sem", _sem, "sem(DOUBLE)"),
    _row("fsum", lambda of, x: of("sum", x), "fsum(DOUBLE)", "kahan_sum", "sumkahan"),
    _row("favg", lambda of, x: of("div", of("sum", x), _size(of, x)), "favg(DOUBLE)"),
    _row("skewness", _skewness, "skewness(DOUBLE)"),
    _row("kurtosis", _kurtosis(3), "kurtosis(DOUBLE)"),
    _row("kurtosis_pop", _kurtosis(1), "kurtosis_pop(DOUBLE)"),
    _row(
        "geomean",
        lambda of, x: of("exp", of("avg", of("ln", x))),
        "geomean(DOUBLE)",
        "geometric_mean",
    ),
    _row("weighted_avg", _weighted, "weighted_avg(DOUBLE, DOUBLE)", "wavg", resolve=_TWO),
    # (y, x): of the rows that have both
    _pair("regr_avgx", lambda of, y, x: of("avg", _beside(of, x, y))),
    _pair("regr_avgy", lambda of, y, x: of("avg", _beside(of, y, x))),
    _pair(
        "regr_count", lambda of, y, x: of("as UINTEGER", of("count", _beside(of, y, x))), UINTEGER
    ),
    _pair("regr_sxx", _squares("x")),
    _pair("regr_syy", _squares("y")),
    _pair("regr_sxy", _squares("xy")),
    _pair("regr_slope", _slope),
    _pair("regr_intercept", _intercept),
    _pair("regr_r2", _r2),
    # As macros of DuckDB: of no rows NULL
    _row("json_group_array", _group_array, "json_group_array(any)", resolve=_json_of(1)),
    _row("json_group_object", _group_object, "json_group_object(any, any)", resolve=_json_of(2)),
    _row(
        "json_group_structure", _group_structure, "json_group_structure(JSON)", resolve=_json_of(1)
    ),
    # Exact is allowed
    _row(
        "approx_quantile",
        lambda of, x, fraction: of(f"as {x.type}", of("quantile_cont", x, fraction)),
        "approx_quantile(number | TIMESTAMP, fraction)",
        resolve=_near_quantile,
    ),
)
