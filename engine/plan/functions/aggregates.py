"""Aggregate functions.  All but count and count(*) are NULL for no (non-NULL) input; NULL arguments do not count."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from .. import types as ty
from .row import FunctionRow, Resolve, fixed, of_any, unary

_PICKS = {"idempotent": True, "ordered": True}  # the value of one row
_CONTINUOUS = (ty.Kind.TIMESTAMP, ty.Kind.TIMESTAMPTZ, ty.Kind.TIME, ty.Kind.INTERVAL)
_COUNT = {"counts": True, "merge": "sum", "fold": "add"}
_MOMENTS = {"moments": True, "fold": "add"}
Resolved = tuple[tuple[ty.DataType, ...], ty.DataType] | None


def _row(name: str, resolve: Resolve, signature: str, *aliases: str, **traits: Any) -> FunctionRow:
    """One that has a value of a row with values, but for those that deviations make."""
    traits |= {"total": not traits.get("moments")}
    return FunctionRow(name, resolve, signature, aliases, "aggregate", **traits)


def _lattice(name: str, resolve: Resolve, signature: str, fold: str, **traits: Any) -> FunctionRow:
    """One that parts and repeated values do not change: the best of all values, or the bits that any or all have."""
    return _row(name, resolve, signature, merge=name, fold=fold, idempotent=True, **traits)


def _sum(types: Sequence[ty.DataType]) -> Resolved:
    if len(types) != 1:
        return None
    argument = types[0]
    if argument.kind in (ty.Kind.NULL, ty.Kind.BOOLEAN):
        return (ty.INTEGER,), ty.HUGEINT
    if argument.is_whole:
        return (argument,), ty.HUGEINT
    if argument.is_decimal:
        return (argument,), ty.decimal(38, argument.scale)
    return ((argument,), ty.DOUBLE) if argument.is_float else None


def _between(types: Sequence[ty.DataType]) -> Resolved:
    """What has values between two of its own."""
    if len(types) != 1:
        return None
    argument = types[0]
    if argument.is_whole or argument == ty.NULL:
        argument = ty.DOUBLE
    elif argument.kind is ty.Kind.DATE:
        argument = ty.TIMESTAMP
    known = argument.is_numeric or argument.kind in _CONTINUOUS
    return ((argument,), argument) if known else None


def _median(types: Sequence[ty.DataType]) -> Resolved:
    """Of what has no values between two the lower one of the two in the middle."""
    return _between(types) or (((types[0],), types[0]) if len(types) == 1 else None)


def _quantile_cont(types: Sequence[ty.DataType]) -> Resolved:
    found = _between(types[:1]) if len(types) == 2 and types[1].is_numeric else None
    return None if found is None else ((*found[0], ty.DOUBLE), found[1])


def _quantile_disc(types: Sequence[ty.DataType]) -> Resolved:
    if len(types) != 2 or not types[1].is_numeric:
        return None
    return (types[0], ty.DOUBLE), types[0]


def _list(types: Sequence[ty.DataType]) -> Resolved:
    return None if len(types) != 1 else (tuple(types), ty.list_of(types[0]))


def _mad(types: Sequence[ty.DataType]) -> Resolved:
    found = _between(types)
    return found if found is not None and found[1].is_numeric else None


_SPREAD = fixed(ty.DOUBLE, result=ty.DOUBLE)
_PAIR = fixed(ty.DOUBLE, ty.DOUBLE, result=ty.DOUBLE)
_TRUTH = unary(lambda t: t == ty.BOOLEAN, null=ty.BOOLEAN)
_BITS = unary(lambda t: t.is_integer)

AGGREGATES = (
    _row(
        "count_star",
        lambda types: ((), ty.BIGINT) if not types else None,
        "count(*)",
        **_COUNT,
        nulls="own",
    ),
    _row("count", of_any(result=ty.BIGINT), "count(any)", **_COUNT),
    # Integers -> HUGEINT, DECIMAL(p,s) -> DECIMAL(38,s), FLOAT and DOUBLE -> DOUBLE.  OutOfRange, never wraps.
    _row("sum", _sum, "sum(number)", merge="sum", fold="add"),
    # Integers, decimals and floats arrive as they are; DOUBLE: the exact sum (of integers and decimals) over the count.
    _row("avg", unary(lambda t: t.is_numeric, ty.DOUBLE), "avg(number)", "mean", fold="add"),
    # NaN is the greatest
    *(_lattice(name, of_any(), f"{name}(any)", name) for name in ("min", "max")),
    # The first that is not NULL; of the first and of the last row, NULL included
    _row("any_value", of_any(), "any_value(any)", merge="any_value", in_order=True, **_PICKS),
    _row("first", of_any(), "first(any)", "arbitrary", nulls="own", **_PICKS),
    _row("last", of_any(), "last(any)", nulls="own", **_PICKS),
    _row("bool_and", _TRUTH, "bool_and(BOOLEAN)", means=lambda of, x: of("min", x)),
    _row("bool_or", _TRUTH, "bool_or(BOOLEAN)", means=lambda of, x: of("max", x)),
    # The same type
    _lattice("bit_and", _BITS, "bit_and(integer)", "and"),
    _lattice("bit_or", _BITS, "bit_or(integer)", "or"),
    _row("bit_xor", _BITS, "bit_xor(integer)", merge="bit_xor", fold="xor"),
    # DOUBLE -> DOUBLE; of one value the samp ones are NULL and the pop ones 0.  Inf or NaN among several: NaN.
    _row("var_samp", _SPREAD, "var_samp(DOUBLE)", "variance", **_MOMENTS, ddof=1),
    _row("var_pop", _SPREAD, "var_pop(DOUBLE)", **_MOMENTS),
    _row("stddev_samp", _SPREAD, "stddev_samp(DOUBLE)", "stddev", **_MOMENTS, ddof=1, root=True),
    _row("stddev_pop", _SPREAD, "stddev_pop(DOUBLE)", **_MOMENTS, root=True),
    _row("product", _SPREAD, "product(DOUBLE)", merge="product", in_order=True),
    # BOOLEAN -> HUGEINT; NULL, not 0, when no value is known.
    _row(
        "count_if",
        unary(lambda t: t == ty.BOOLEAN, ty.HUGEINT, ty.BOOLEAN),
        "count_if(BOOLEAN)",
        "countif",
        means=lambda of, x: of("sum", x),
    ),
    # (VARCHAR, separator Literal): always both; ORDER BY inside counts.
    _row(
        "string_agg",
        fixed(ty.VARCHAR, ty.VARCHAR, result=ty.VARCHAR),
        "string_agg(VARCHAR, separator)",
        "group_concat",
        "listagg",
        merge="string_agg",
        in_order=True,
        ordered=True,
        keeps_values=True,
    ),
    # Of DOUBLE, FLOAT, DECIMAL or TIMESTAMP interpolated.
    _row(
        "median",
        _median,
        "median(any)",
        means=lambda of, x: of(f"quantile_{'cont' if _between((x.type,)) else 'disc'}", x, 0.5),
    ),
    # (x, fraction Literal DOUBLE in [0, 1]), x as for median.
    _row(
        "quantile_cont",
        _quantile_cont,
        "quantile_cont(number | TIMESTAMP | INTERVAL, fraction)",
        keeps_values=True,
    ),
    # (x of any type, fraction Literal DOUBLE) -> a value that occurs: the ceil(n * fraction)-th, the first for 0.
    _row(
        "quantile_disc",
        _quantile_disc,
        "quantile_disc(any, fraction)",
        "quantile",
        keeps_values=True,
    ),
    # The first to reach the highest count
    # NULLs too; NULL of no rows
    _row("list", _list, "list(any)", "array_agg", nulls="own", ordered=True, keeps_values=True),
    _row("mode", of_any(), "mode(any)", ordered=True, keeps_values=True),
    # arg_min(value, key): the value of the first row with the extreme key; rows with NULL in either do not count.
    *(
        _row(f"arg_{m}", of_any(2), f"arg_{m}(any, any)", f"{m}_by", f"arg{m}", **_PICKS)
        for m in ("min", "max")
    ),
    # As those, but a NULL value is one; rows with a NULL key do not count.
    *(
        _row(f"arg_{m}_null", of_any(2), f"arg_{m}_null(any, any)", nulls="own", **_PICKS)
        for m in ("min", "max")
    ),
    # In bits, of how often values are there; 0 for none.
    _row("entropy", of_any(result=ty.DOUBLE), "entropy(any)", keeps_values=True, counts=True),
    # The median of the distances from the median.
    _row("mad", _mad, "mad(number)", keeps_values=True),
    # (y DOUBLE, x DOUBLE); rows with NULL in either do not count.
    _row("covar_samp", _PAIR, "covar_samp(DOUBLE, DOUBLE)", **_MOMENTS, ddof=1),
    _row("covar_pop", _PAIR, "covar_pop(DOUBLE, DOUBLE)", **_MOMENTS),
    _row("corr", _PAIR, "corr(DOUBLE, DOUBLE)", **_MOMENTS),
    # Exact is allowed
    _row(
        "approx_count_distinct",
        of_any(result=ty.BIGINT),
        "approx_count_distinct(any)",
        means=lambda of, x: of("count", x, distinct=True),
    ),
)
