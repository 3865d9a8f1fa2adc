"""Aggregates that are functions of the list of a group's values: histograms, the most frequent values, quantiles as of a sample."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from .. import types as ty
from ..coercion import common_pair
from .lists import element_type
from .row import FunctionRow, Means, Resolved, of_any

if TYPE_CHECKING:
    from ..expr import Expr


def _counts(types: Sequence[ty.DataType]) -> Resolved:
    """Values, or values and the bins that they are counted in: of one type, DECIMALs of which are DOUBLE."""
    if len(types) == 1:
        return tuple(types), ty.map_of(types[0], ty.UBIGINT)
    return _binned(types)


def _binned(types: Sequence[ty.DataType]) -> Resolved:
    bins = element_type(types[1]) if len(types) == 2 else None
    shared = None if bins is None else common_pair(types[0], bins)
    if shared is None or shared == ty.NULL:
        return None
    if shared.is_decimal and not shared.is_whole:
        shared = ty.DOUBLE
    return (shared, ty.list_of(shared)), ty.map_of(shared, ty.UBIGINT)


def _histogram(of: Means, value: Expr, bins: Expr | None = None) -> Expr:
    values = of("list", value)
    if bins is None:
        return of("histogram_of_list", values)
    return of("histogram_of_bins", values, bins)


def _top(types: Sequence[ty.DataType]) -> Resolved:
    whole = len(types) == 2 and (types[1].is_whole or types[1] == ty.NULL)
    return ((types[0], ty.BIGINT), ty.list_of(types[0])) if whole else None


def _sampled(types: Sequence[ty.DataType]) -> Resolved:
    """A number, a fraction, and how many values the sample has."""
    if not 2 <= len(types) <= 3 or not all(t.is_numeric for t in types[:2]):
        return None
    size = (ty.INTEGER,) if len(types) == 3 and types[2].is_whole else ()
    return ((types[0], ty.DOUBLE, *size), types[0]) if len(size) == len(types) - 2 else None


def _reservoir(of: Means, value: Expr, fraction: Expr, size: Expr | None = None) -> Expr:
    """As of a sample of all values: exact, whatever its size."""
    return of("quantile_of_list", of("list", value), fraction)


def _decimals(types: Sequence[ty.DataType]) -> Resolved:
    known = len(types) == 1 and types[0].is_decimal and not types[0].is_whole
    return (tuple(types), types[0]) if known else None


def _decimal_mean(of: Means, value: Expr) -> Expr:
    mean = of("decimal_mean", of("sum", value), of("count", value))
    return of(f"as {value.type}", mean)


def _late_extreme(extreme: str) -> Means:
    """Rows whose key is NULL come behind all others."""

    def means(of: Means, value: Expr, key: Expr) -> Expr:
        known = of("gt", of("count", key), 0)
        return of("case", known, of(f"{extreme}_null", value, key), of("first", value))

    return means


def _row(name: str, resolve: object, means: Callable[..., Expr], signature: str) -> FunctionRow:
    return FunctionRow(name, resolve, signature, (), "aggregate", means=means)  # type: ignore[arg-type]


def _members(types: Sequence[ty.DataType]) -> Resolved:
    """Whole numbers, and the least and the most of them."""
    whole = len(types) == 3 and all(t.is_whole for t in types)
    return (tuple(types), ty.BIT) if whole else None


LISTED = (
    # Without the least and the most DuckDB takes those of statistics
    _row(
        "bitstring_agg",
        _members,
        lambda of, x, low, high: of("bits_of_members", of("list", x, distinct=True), low, high),
        "bitstring_agg(integer, min, max)",
    ),
    _row("histogram", _counts, _histogram, "histogram(any[, bins])"),
    # Bins are values, and what is none of them is counted in a bin of its own
    _row(
        "histogram_exact",
        _binned,
        lambda of, x, bins: of("counts_of_bins", of("list", x), bins),
        "histogram_exact(any, bins)",
    ),
    _row(
        "approx_top_k",
        _top,
        lambda of, x, k: of("most_frequent", of("list", x), k),
        "approx_top_k(any, BIGINT)",
    ),
    _row(
        "reservoir_quantile",
        _sampled,
        _reservoir,
        "reservoir_quantile(number, fraction[, INTEGER])",
    ),
    _row("decimal_average", _decimals, _decimal_mean, "decimal_average(DECIMAL)"),
    *(
        _row(
            f"arg_{m}_nulls_last",
            of_any(2),
            _late_extreme(f"arg_{m}"),
            f"arg_{m}_nulls_last(any, any)",
        )
        for m in ("min", "max")
    ),
)


def _of_values(types: Sequence[ty.DataType]) -> Resolved:
    kind = element_type(types[0]) if len(types) == 1 else None
    return None if kind is None else (tuple(types), ty.map_of(kind, ty.UBIGINT))


def _of_bins(types: Sequence[ty.DataType]) -> Resolved:
    kind = element_type(types[0]) if len(types) == 2 else None
    return None if kind is None else (tuple(types), ty.map_of(kind, ty.UBIGINT))


def _quantile(types: Sequence[ty.DataType]) -> Resolved:
    kind = element_type(types[0]) if len(types) == 2 else None
    return None if kind is None else (tuple(types), kind)


def _mean(types: Sequence[ty.DataType]) -> Resolved:
    if len(types) != 2 or not types[0].is_decimal:
        return None
    return (types[0], ty.BIGINT), ty.decimal(types[0].precision, types[0].scale)


# What they are made of, which SQL does not name
OF_LISTS = (
    FunctionRow("histogram_of_list", _of_values, "histogram(any)"),
    FunctionRow("histogram_of_bins", _of_bins, "histogram(any, any[])"),
    FunctionRow("counts_of_bins", _of_bins, "histogram_exact(any, any[])"),
    FunctionRow(
        "most_frequent",
        lambda types: (tuple(types), types[0]) if len(types) == 2 else None,
        "approx_top_k(any, BIGINT)",
    ),
    FunctionRow("quantile_of_list", _quantile, "reservoir_quantile(number, fraction)"),
    FunctionRow("decimal_mean", _mean, "decimal_average(DECIMAL)"),
)
