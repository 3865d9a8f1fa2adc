"""Groups: keys of every type, every aggregate, DISTINCT, FILTER, ORDER BY, empty and all-NULL input, exact sums."""

from __future__ import annotations

import math
from collections.abc import Sequence
from fractions import Fraction
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

pytest.importorskip("pylibcudf", reason="the cuda13 extra is not installed")

from fuseline.errors import OutOfRange
from fuseline.operators import cpu, gpu
from fuseline.plan import physical as p
from fuseline.plan.expr import AggregateCall, Column, ColumnRef, Literal, SortKey, new_column
from fuseline.plan.types import DOUBLE, VARCHAR, decimal, to_arrow
from tests.limits import SetLimits

from .plans import TYPES, assert_agree, both_raise, call, column, run, scan, scan_of

pytestmark = pytest.mark.gpu


def both_ways(child: Any, keys: Sequence[Column], *calls: tuple[Column, AggregateCall]) -> None:
    """With keys, without keys, and over no rows."""
    empty = p.LimitRows(child, 0)
    for source in (child, empty):
        assert_agree(p.HashAggregate(source, tuple(keys), calls))
        assert_agree(p.HashAggregate(source, (), calls))


@pytest.mark.parametrize("kind", TYPES)
def test_group_keys(kind: str) -> None:
    key, number = column("k", kind), column("n", "integer")
    child = scan(np.random.default_rng(1), 100, [key, number])
    assert_agree(p.HashAggregate(child, (key,), (call("count_star"), call("sum", number))))


@pytest.mark.parametrize("keys", [("integer", "varchar"), ("double", "date", "decimal")], ids=str)
def test_distinct(keys: tuple[str, ...]) -> None:
    columns = [column(f"k{i}", kind) for i, kind in enumerate(keys)]
    child = scan(np.random.default_rng(2), 200, columns, values=3)
    assert_agree(p.HashAggregate(child, tuple(columns), ()))
    assert_agree(p.HashAggregate(p.LimitRows(child, 0), tuple(columns), ()))


NUMBERS = (
    "tinyint", "smallint", "integer", "bigint", "utinyint", "ubigint", "float", "decimal", "decimal18",
)  # fmt: skip


@pytest.mark.parametrize("nulls", [0.0, 0.3])
@pytest.mark.parametrize("kind", NUMBERS)
@pytest.mark.parametrize("function", ["sum", "avg"])
def test_sums(function: str, kind: str, nulls: float) -> None:
    key, number = column("k", "integer"), column("n", kind)
    child = scan(np.random.default_rng(3), 200, [key, number], nulls=nulls)
    both_ways(child, (key,), call(function, number))


WIDE = pytest.mark.parametrize("precision", [19, 28, 36, 38])


@WIDE
@pytest.mark.parametrize("function", ["sum", "avg", "min", "max", "count"])
def test_wide_decimals(function: str, precision: int) -> None:
    key, number = column("k", "integer"), new_column("n", decimal(precision, 3))
    rng = np.random.default_rng(4)
    limit = 10**precision // 300
    values = [
        None if rng.random() < 0.2 else int(rng.integers(-9, 10)) * (limit // 10)
        for _ in range(200)
    ]
    array = _unscaled(values, pa.decimal128(precision, 3))
    keys = pa.array(rng.integers(0, 5, 200), pa.int32())
    child = scan_of({"k": keys, "n": array}, [key, number])
    both_ways(child, (key,), call(function, number))


def _unscaled(values: list[int | None], arrow: pa.DataType) -> pa.Array:
    whole = pa.array(values, pa.decimal128(38, 0))
    return pa.Array.from_buffers(arrow, len(whole), whole.buffers(), whole.null_count)


@pytest.mark.parametrize("keyed", [True, False])
def test_sum_beyond_38_digits_raises(keyed: bool) -> None:
    key, number = column("k", "integer"), column("n", "hugeint")
    values = pa.array([10**38 - 1, 5, None, 10**38 - 1, 7], pa.decimal128(38, 0))
    child = scan_of({"k": pa.array([1, 2, 1, 1, 2], pa.int32()), "n": values}, [key, number])
    both_raise(p.HashAggregate(child, (key,) if keyed else (), (call("sum", number),)), OutOfRange)


def test_sum_of_wide_values_that_cancel() -> None:
    number = column("n", "hugeint")
    values = pa.array([10**38 - 1, 5, -(10**38 - 1), 7, 10**38 - 1, -30], pa.decimal128(38, 0))
    child = scan_of({"n": values}, [number])
    assert_agree(p.HashAggregate(child, (), (call("sum", number), call("avg", number))))


PICKS = (
    "min", "max", "any_value", "first", "last", "count", "quantile_disc", "mode",
)  # fmt: skip


@pytest.mark.parametrize("kind", TYPES)
@pytest.mark.parametrize("function", PICKS)
def test_picks(function: str, kind: str) -> None:
    key, number = column("k", "varchar"), column("n", kind)
    child = scan(np.random.default_rng(5), 150, [key, number], values=5, nulls=0.4)
    extra = (Literal(0.3, DOUBLE),) if function == "quantile_disc" else ()
    both_ways(child, (key,), call(function, number, *extra))


@pytest.mark.parametrize("function", ["arg_min", "arg_max"])
@pytest.mark.parametrize("by", ["integer", "double", "varchar", "wide", "date"])
def test_value_at_extreme(function: str, by: str) -> None:
    key, value, order = column("k", "integer"), column("v", "varchar"), column("o", by)
    child = scan(np.random.default_rng(6), 150, [key, value, order], nulls=0.3)
    both_ways(child, (key,), call(function, value, order))


@pytest.mark.parametrize("function", ["min", "max"])
def test_truth(function: str) -> None:
    key, flag = column("k", "integer"), column("f", "boolean")
    both_ways(
        scan(np.random.default_rng(7), 60, [key, flag], nulls=0.4), (key,), call(function, flag)
    )


@pytest.mark.parametrize("kind", ["tinyint", "integer", "bigint", "ubigint"])
@pytest.mark.parametrize("function", ["bit_and", "bit_or", "bit_xor"])
def test_bits(function: str, kind: str) -> None:
    key, number = column("k", "integer"), column("n", kind)
    both_ways(
        scan(np.random.default_rng(8), 60, [key, number], nulls=0.4), (key,), call(function, number)
    )


SPREAD = ("var_samp", "var_pop", "stddev_samp", "stddev_pop", "product")


@pytest.mark.parametrize("function", SPREAD)
def test_moments(function: str) -> None:
    rng = np.random.default_rng(9)
    key, number = column("k", "integer"), column("n", "double")
    values = pa.array([None if rng.random() < 0.3 else float(rng.normal()) for _ in range(80)])
    keys = pa.array([int(rng.integers(0, 30)) for _ in range(80)], pa.int32())
    both_ways(scan_of({"k": keys, "n": values}, [key, number]), (key,), call(function, number))


@pytest.mark.parametrize("nulls", [0.0, 0.3])
@pytest.mark.parametrize("function", ["covar_samp", "covar_pop", "corr"])
def test_pairs(function: str, nulls: float) -> None:
    rng = np.random.default_rng(16)
    columns = [column("k", "varchar"), column("x", "double"), column("y", "double")]
    sides = [
        pa.array([None if rng.random() < nulls else 1e6 + float(rng.normal()) for _ in range(80)])
        for _ in range(2)
    ]
    keys = pa.array([[None, "a", "b", "cd"][rng.integers(4)] for _ in range(80)])
    child = scan_of({"k": keys, "x": sides[0], "y": sides[1]}, columns)
    both_ways(child, columns[:1], call(function, *columns[1:]))


@pytest.mark.parametrize("keyed", [True, False])
@pytest.mark.parametrize("function", ["sum", "avg", "var_samp", "stddev_pop", "corr"])
def test_repeatable_sums(function: str, keyed: bool) -> None:
    """The same values in another order add up to the same bits, and special values to what they should."""
    rng = np.random.default_rng(17)
    key, x, y = column("k", "integer"), column("x", "double"), column("y", "double")
    values = rng.normal(size=400) * 10.0 ** rng.integers(-30, 30, 400)
    table = pa.table(
        {"k": pa.array(rng.integers(0, 5, 400), pa.int32()), "x": values, "y": values[::-1]}
    )
    table = table.set_column(1, "x", pa.array(values, mask=rng.random(400) < 0.1))
    made = call(function, *((x, y) if function == "corr" else (x,)))
    answers = []
    for order in (rng.permutation(400), rng.permutation(400), np.arange(400)):
        shuffled = table.take(pa.array(order))
        node = p.HashAggregate(
            scan_of({n: shuffled[n] for n in table.column_names}, [key, x, y]),
            (key,) if keyed else (),
            (made,),
        )
        found = run(node, gpu, deterministic=True)
        answers.append(sorted(zip(*(c.to_pylist() for c in found.columns), strict=True)))
        assert_agree(node)
    assert answers[0] == answers[1] == answers[2]


@pytest.mark.parametrize(
    "values",
    [
        [1e308, 1e308, -1e308], [math.inf, 1.0, None], [math.inf, -math.inf], [math.nan, 1.0], [None, None], [],
        [5e-324, 5e-324, 1e-310], [0.0, -0.0], [1e308, 1e-308, 3.0], [0.1] * 10,
    ],
    ids=str,
)  # fmt: skip
def test_repeatable_sums_of_extremes(values: list[float | None]) -> None:
    key, number = column("k", "integer"), column("n", "double")
    arrays = {"k": pa.array([1] * len(values), pa.int32()), "n": pa.array(values, pa.float64())}
    for keys in ((key,), ()):
        node = p.HashAggregate(scan_of(arrays, [key, number]), keys, (call("sum", number),))
        expected = (
            float(sum(Fraction(v) for v in values if v is not None)) if _finite(values) else None
        )
        found = run(node, gpu, deterministic=True).columns[-1].to_pylist()
        reference = run(node, cpu).columns[-1].to_pylist()
        assert [f is None for f in found] == [r is None for r in reference]
        if found and found[0] is not None:
            exact = expected if expected is not None else reference[0]
            assert found[0] == exact or (found[0] != found[0] and exact != exact)


def _finite(values: list[float | None]) -> bool:
    return all(v is None or math.isfinite(v) for v in values) and any(v is not None for v in values)


@pytest.mark.parametrize("kind", ["integer", "bigint", "date"])
@pytest.mark.parametrize("is_sorted", [True, False])
def test_keys_in_order(kind: str, is_sorted: bool, limits: SetLimits) -> None:

    limits(SORTED_ROWS=64)
    key, number = column("k", kind), column("n", "decimal")
    numbers = [i // 3 for i in range(200)]
    if not is_sorted:
        numbers[100] = 0
    keys = pa.array(numbers, pa.int32())
    keys = keys.cast(pa.date32()) if kind == "date" else keys.cast(to_arrow(key.type))
    values = scan(np.random.default_rng(20), 200, [number]).table.data.column(0)  # type: ignore[attr-defined]
    child = scan_of({"k": keys, "n": values}, [key, number])
    calls = [call(f, number) for f in ("sum", "avg", "min", "max", "count")]
    both_ways(child, (key,), *calls, call("count_star"), call("count", number, distinct=True))


@pytest.mark.parametrize("precision", [24, 38])
def test_wide_sums_of_many_rows(precision: int, limits: SetLimits) -> None:
    """128-bit values that fit 64 bits are summed there, whatever their sum."""

    limits(NARROWED_ROWS=1)
    key, number = column("k", "varchar"), new_column("n", decimal(precision, 4))
    rng = np.random.default_rng(18)
    for limit in (10**6, 2**63 - 1, 10**23):
        values = [
            None if rng.random() < 0.2 else int(rng.integers(-9, 10)) * (limit // 9)
            for _ in range(200)
        ]
        keys = pa.array([f"group {i}" for i in rng.integers(0, 9, 200)])
        child = scan_of(
            {"k": keys, "n": _unscaled(values, pa.decimal128(precision, 4))}, [key, number]
        )
        both_ways(child, (key,), call("sum", number), call("avg", number))


@pytest.mark.parametrize("fraction", [0.0, 0.3, 0.5, 1.0])
@pytest.mark.parametrize("kind", ["decimal", "timestamp"])
def test_quantiles_between_integers(kind: str, fraction: float) -> None:
    key, number = column("k", "integer"), column("n", kind)
    rng = np.random.default_rng(19)
    values = pa.array(
        [None if rng.random() < 0.2 else int(v) for v in rng.integers(-999, 999, 90)], pa.int64()
    )
    if kind == "decimal":
        values = (
            values.cast(pa.decimal128(19, 0)).cast(pa.decimal128(21, 2)).cast(pa.decimal128(15, 2))
        )
    else:
        values = values.cast(pa.timestamp("us"))
    child = scan_of({"k": pa.array(rng.integers(0, 9, 90), pa.int32()), "n": values}, [key, number])
    literal = Literal(fraction, DOUBLE)
    both_ways(child, (key,), call("quantile_cont", number, literal))


def test_spread_of_infinity() -> None:
    number = column("n", "double")
    child = scan_of({"n": pa.array([1.0, float("inf"), 2.0])}, [number])
    assert_agree(p.HashAggregate(child, (), (call("var_samp", number), call("stddev_pop", number))))


@pytest.mark.parametrize("fraction", [0.0, 0.25, 0.5, 0.99, 1.0])
@pytest.mark.parametrize("function", ["quantile_cont", "quantile_disc"])
def test_quantiles(function: str, fraction: float) -> None:
    key, number = column("k", "integer"), column("n", "double")
    child = scan(np.random.default_rng(10), 90, [key, number], values=40)
    both_ways(child, (key,), call(function, number, Literal(fraction, DOUBLE)))


@pytest.mark.parametrize("descending", [False, True])
@pytest.mark.parametrize("function", ["first", "last", "any_value", "string_agg"])
def test_ordered(function: str, descending: bool) -> None:
    key, value = column("k", "integer"), column("v", "varchar")
    order, tie = column("o", "integer"), column("t", "bigint")
    child = scan(np.random.default_rng(11), 90, [key, value, order], values=30)
    data = child.table.data.append_column("t", pa.array(range(90)))  # type: ignore[attr-defined]
    child = scan_of({n: data.column(n) for n in data.column_names}, [key, value, order, tie])
    keys = (SortKey(ColumnRef(order), descending), SortKey(ColumnRef(tie)))
    extra = (Literal(", ", VARCHAR),) if function == "string_agg" else ()
    both_ways(child, (key,), call(function, value, *extra, order=keys))


FILTERED = (
    "count", "sum", "avg", "min", "max", "first", "last", "any_value", "count_star", "string_agg",
)  # fmt: skip


@pytest.mark.parametrize("distinct", [False, True])
@pytest.mark.parametrize("function", FILTERED)
def test_filter(function: str, distinct: bool) -> None:
    key, flag = column("k", "integer"), column("f", "boolean")
    value = column("v", "varchar" if function == "string_agg" else "decimal")
    child = scan(np.random.default_rng(12), 120, [key, value, flag], values=6)
    if distinct and function in ("string_agg", "last"):
        return  # the order of distinct values is free
    args: tuple[Any, ...] = () if function == "count_star" else (value,)
    if function == "string_agg":
        args = (value, Literal("-", VARCHAR))
    options = {"filter": ColumnRef(flag), "distinct": distinct and bool(args)}
    both_ways(child, (key,), call(function, *args, **options))


@pytest.mark.parametrize("kind", ["integer", "varchar", "double", "wide", "date"])
def test_distinct_beside_others(kind: str) -> None:
    key, value, other = column("k", "varchar"), column("v", kind), column("o", "integer")
    child = scan(np.random.default_rng(13), 150, [key, value, other])
    counts = call("count", value, distinct=True), call("count", other, distinct=True)
    both_ways(child, (key,), *counts)
    both_ways(child, (key,), *counts, call("count_star"), call("sum", other), call("max", value))
    both_ways(child, (key,), call("sum", other, distinct=True), call("avg", other, distinct=True))


def test_all_null_arguments() -> None:
    key, value, text = column("k", "integer"), column("v", "decimal"), column("s", "varchar")
    child = scan(np.random.default_rng(14), 40, [key, value, text], nulls=1.0)
    names = ("count", "sum", "avg", "min", "first", "mode")
    calls = [call(name, value) for name in names]
    both_ways(child, (key,), *calls, call("string_agg", text, Literal(",", VARCHAR)))


@pytest.mark.parametrize("kind", TYPES)
def test_distinct_on(kind: str) -> None:
    key, value = column("k", kind), column("v", "bigint")
    child = scan(np.random.default_rng(15), 100, [key, value], values=9)
    assert_agree(p.DistinctOn(child, (key,)))
    assert_agree(p.DistinctOn(p.LimitRows(child, 0), (key,)))
