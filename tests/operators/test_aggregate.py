"""GROUP BY, DISTINCT and each aggregate against DuckDB."""

from __future__ import annotations

import statistics
from datetime import date, datetime
from fractions import Fraction
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pytest
from hypothesis import given, settings, strategies as st

from fuseline.errors import OutOfRange
from fuseline.plan import physical as p
from fuseline.plan.expr import AggregateCall, Column, Literal
from fuseline.plan.types import (
    BIGINT,
    BOOLEAN,
    DOUBLE,
    HUGEINT,
    INTEGER,
    VARCHAR,
    DataType,
    decimal,
)
from tests.operators.relations import (
    Relation,
    assert_node,
    call,
    decimals,
    dictionary,
    query,
    relation,
    run,
    text,
)

NAN, INF = float("nan"), float("inf")

COLUMNS: dict[str, tuple[Any, list[Any]]] = {
    "INTEGER": (lambda v: pa.array(v, pa.int32()), [1, 2, -(2**31), 2**31 - 1]),
    "BIGINT": (lambda v: pa.array(v, pa.int64()), [0, 7, -(2**63), 2**63 - 1]),
    "UBIGINT": (lambda v: pa.array(v, pa.uint64()), [0, 7, 2**63, 2**64 - 1]),
    "BOOLEAN": (lambda v: pa.array(v, pa.bool_()), [True, False]),
    "DOUBLE": (lambda v: pa.array(v, pa.float64()), [0.0, -0.0, 1.5, NAN, INF]),
    "DATE": (lambda v: pa.array(v, pa.date32()), [date(1, 1, 1), date(2020, 1, 1)]),
    "TIMESTAMP": (lambda v: pa.array(v, pa.timestamp("us")), [datetime(1960, 1, 1, 0, 0, 1)]),
    "DECIMAL": (lambda v: decimals(v, 18, 2), ["1.00", "-0.01", "9" * 16, "-" + "9" * 16]),
    "WIDE": (lambda v: decimals(v, 38, 2), ["1.00", "-1.00", "9" * 35, "-" + "9" * 35]),
    "VARCHAR": (lambda v: pa.array(v, pa.string()), ["", "a", "b", "ä"]),
    "LARGE": (lambda v: pa.array(v, pa.large_string()), ["", "a", "b", "ä"]),
    "DICTIONARY": (dictionary, ["", "b", "ä", "a"]),
}
NUMBERS = ["INTEGER", "BIGINT", "UBIGINT", "DECIMAL", "WIDE", "DOUBLE"]


@st.composite
def relations(draw: st.DrawFn, types: list[str]) -> Relation:
    rows = draw(st.integers(0, 10))
    columns: dict[str, Any] = {"g": pa.array([i % 3 for i in range(rows)], pa.int32())}
    for i, name in enumerate(types):
        make, values = COLUMNS[name]
        cells = st.lists(st.sampled_from([None, *values]), min_size=rows, max_size=rows)
        columns[f"x{i}"] = make(draw(cells))
    flags = st.lists(st.sampled_from([None, True, False]), min_size=rows, max_size=rows)
    columns["f"] = pa.array(draw(flags), pa.bool_())
    columns["n"] = pa.array(range(rows), pa.int32())
    return relation(columns)


def aggregate(
    source: Relation, keys: list[str], *aggregates: tuple[Column, AggregateCall]
) -> p.HashAggregate:
    return p.HashAggregate(
        input=source.scan, keys=tuple(source[k] for k in keys), aggregates=aggregates
    )


def sum_type(argument: DataType) -> DataType:
    if argument.is_float:
        return DOUBLE
    return decimal(38, argument.scale if argument.is_decimal else 0)


def assert_both(
    backend: str,
    source: Relation,
    *aggregates: tuple[str, tuple[Column, AggregateCall]],
    **options: Any,
) -> None:
    """With a key and without: each aggregate as SQL and as a call."""
    names = ", ".join(expression for expression, _ in aggregates)
    calls = [one for _, one in aggregates]
    grouped = f"select g, {names} from t group by g"
    assert_node(backend, aggregate(source, ["g"], *calls), grouped, t=source, **options)
    whole = f"select {names} from t"
    assert_node(backend, aggregate(source, [], *calls), whole, t=source, **options)


@settings(max_examples=150)
@given(data=st.data())
def test_group_by(backend: str, data: st.DataObject) -> None:
    types = data.draw(st.lists(st.sampled_from(sorted(COLUMNS)), min_size=1, max_size=4))
    source = data.draw(relations(types))
    keys = [f"x{i}" for i in range(len(types))]
    node = aggregate(source, keys, call("count_star", type=BIGINT))
    assert_node(backend, node, f"select {', '.join(keys)}, count(*) from t group by all", t=source)
    distinct = f"select distinct {', '.join(keys)} from t"
    assert_node(backend, aggregate(source, keys), distinct, t=source)


@pytest.mark.parametrize("name", NUMBERS)
@settings(max_examples=30)
@given(data=st.data())
def test_sum(backend: str, name: str, data: st.DataObject) -> None:
    source = data.draw(relations([name]))
    column = source["x0"]
    type_ = sum_type(column.type)
    # As DECIMAL(38, s): DuckDB's HUGEINT comes to Arrow as a DOUBLE otherwise.
    exact = "sum(x0)" if column.type.is_float else f"sum(x0)::{type_}"
    assert_both(backend, source, (exact, call("sum", column, type=type_)))


@pytest.mark.parametrize("name", NUMBERS)
@settings(max_examples=30)
@given(data=st.data())
def test_avg(backend: str, name: str, data: st.DataObject) -> None:
    source = data.draw(relations([name]))
    assert_both(backend, source, ("avg(x0)", call("avg", source["x0"], type=DOUBLE)))


@pytest.mark.parametrize("name", COLUMNS)
@settings(max_examples=20)
@given(data=st.data())
def test_functions_of_any_type(backend: str, name: str, data: st.DataObject) -> None:
    source = data.draw(relations([name]))
    x = source["x0"]
    picks = ["min", "max", "first", "last", "any_value", "mode"]
    half = Literal(0.5, DOUBLE)
    assert_both(
        backend,
        source,
        *[(f"{function}(x0)", call(function, x, type=x.type)) for function in picks],
        ("count(x0)", call("count", x, type=BIGINT)),
        ("quantile_disc(x0, 0.5)", call("quantile_disc", x, half, type=x.type)),
        ("count(distinct x0)", call("count", x, type=BIGINT, distinct=True)),
    )


@settings(max_examples=60)
@given(data=st.data())
def test_filter_distinct_and_order(backend: str, data: st.DataObject) -> None:
    name = data.draw(st.sampled_from(["INTEGER", "DECIMAL", "BIGINT"]))
    source = data.draw(relations([name]))
    x, n, type_ = source["x0"], source["n"], sum_type(source["x0"].type)
    backwards = [source.order("n", descending=True)]
    nulls_first = [source.order("x0", nulls_first=True), source.order("n")]
    f = source["f"]
    assert_both(
        backend,
        source,
        (
            f"sum(distinct x0) filter (where f)::{type_}",
            call("sum", x, type=type_, distinct=True, filter=f),
        ),
        ("first(x0 order by n desc)", call("first", x, type=x.type, order=backwards)),
        (
            "last(n order by x0 nulls first, n) filter (where f)",
            call("last", n, type=INTEGER, filter=f, order=nulls_first),
        ),
    )


@pytest.mark.parametrize("name", ["VARCHAR", "LARGE", "DICTIONARY"])
@settings(max_examples=30)
@given(data=st.data())
def test_string_agg(backend: str, name: str, data: st.DataObject) -> None:
    source = data.draw(relations([name]))
    x, comma = source["x0"], text(", ")
    backwards = [source.order("n", descending=True)]
    joined = call("string_agg", x, comma, type=VARCHAR, order=backwards)
    by_value = [source.order("x0", descending=True)]
    distinct = call("string_agg", x, comma, type=VARCHAR, distinct=True, order=by_value)
    assert_both(
        backend,
        source,
        ("string_agg(x0, ', ' order by n desc)", joined),
        ("string_agg(distinct x0, ', ' order by x0 desc)", distinct),
        ("string_agg(x0, ', ')", call("string_agg", x, comma, type=VARCHAR)),
    )


@settings(max_examples=40)
@given(data=st.data())
def test_booleans(backend: str, data: st.DataObject) -> None:
    source = data.draw(relations([]))
    f = source["f"]
    assert_both(
        backend,
        source,
        ("bool_and(f)", call("min", f, type=BOOLEAN)),
        ("bool_or(f)", call("max", f, type=BOOLEAN)),
    )


@settings(max_examples=40)
@given(data=st.data())
def test_bits(backend: str, data: st.DataObject) -> None:
    source = data.draw(relations([data.draw(st.sampled_from(["INTEGER", "BIGINT", "UBIGINT"]))]))
    x = source["x0"]
    bits = ["bit_and", "bit_or", "bit_xor"]
    assert_both(backend, source, *[(f"{b}(x0)", call(b, x, type=x.type)) for b in bits])


MOMENTS = ["var_samp", "var_pop", "stddev_samp", "stddev_pop", "product"]


def floats(rows: int, offset: float) -> Relation:
    x = [None if i % 7 == 0 else offset + (i * 7919 % 101) / 8 for i in range(rows)]
    y = [None if i % 5 == 0 else offset - (i * 104729 % 97) / 4 for i in range(rows)]
    g = pa.array([i % 4 for i in range(rows)], pa.int32())
    return relation({"g": g, "x": pa.array(x, pa.float64()), "y": pa.array(y, pa.float64())})


@pytest.mark.parametrize("rows", [0, 1, 2, 9, 60])
def test_moments(backend: str, rows: int) -> None:
    source = floats(rows, offset=1000.0)
    x, y = source["x"], source["y"]
    pairs = ["covar_samp", "covar_pop", "corr"]
    assert_both(
        backend,
        source,
        *[(f"{m}(x)", call(m, x, type=DOUBLE)) for m in MOMENTS],
        *[(f"{m}(y, x)", call(m, y, x, type=DOUBLE)) for m in pairs],
    )


def test_variance_keeps_the_digits_that_a_large_mean_would_cost(backend: str) -> None:
    source = floats(60, offset=1e9)
    node = aggregate(source, [], call("var_samp", source["x"], type=DOUBLE))
    exact = statistics.variance(Fraction(v) for v in source.data["x"].drop_null().to_pylist())
    assert run(backend, node, source)["c0"][0].as_py() == pytest.approx(float(exact), rel=1e-13)


@pytest.mark.parametrize("special", [NAN, INF, 1e200])
def test_variance_of_special_values(backend: str, special: float) -> None:
    source = relation({"g": [1, 1, 2], "x": [special, 1.0, 2.0]})
    assert_both(backend, source, ("var_pop(x)", call("var_pop", source["x"], type=DOUBLE)))
    alone = relation({"g": [1, 2], "x": [special, None]})
    for name in ("var_pop", "stddev_pop", "var_samp", "covar_pop"):
        columns = [alone["x"]] * (2 if name == "covar_pop" else 1)
        written = ", ".join("x" for _ in columns)
        assert_both(backend, alone, (f"{name}({written})", call(name, *columns, type=DOUBLE)))


QUANTILES = ["DOUBLE", "DECIMAL", "WIDE", "TIMESTAMP"]


@pytest.mark.parametrize("name", QUANTILES)
@settings(max_examples=40)
@given(data=st.data())
def test_quantiles(backend: str, name: str, data: st.DataObject) -> None:
    if backend == "gpu" and name == "WIDE":
        pytest.skip("128-bit decimals are interpolated on the CPU")
    source = small_numbers(name, data.draw(st.lists(st.one_of(st.none(), st.integers(-99, 99)))))
    fraction = data.draw(st.sampled_from([0.0, 0.3, 0.5, 1.0]))
    x, literal = source["x"], Literal(fraction, DOUBLE)
    assert_both(
        backend,
        source,
        (f"quantile_cont(x, {fraction})", call("quantile_cont", x, literal, type=x.type)),
        (f"quantile_disc(x, {fraction})", call("quantile_disc", x, literal, type=x.type)),
    )


def small_numbers(name: str, values: list[int | None]) -> Relation:
    array = pa.array(values, pa.int64())
    columns: dict[str, Any] = {
        # All positive: an interpolation that cancels out is left with rounding errors alone.
        "DOUBLE": lambda: pc.add(array.cast(pa.float64()), 100.0),
        "DECIMAL": lambda: array.cast(pa.decimal128(19, 0)).cast(pa.decimal128(18, 0)),
        "WIDE": lambda: array.cast(pa.decimal128(38, 0)),
        "TIMESTAMP": lambda: array.cast(pa.timestamp("us")),
    }
    g = pa.array([i % 2 for i in range(len(values))], pa.int32())
    return relation({"g": g, "x": columns[name]()})


@settings(max_examples=60)
@given(data=st.data())
def test_value_at_the_extreme(backend: str, data: st.DataObject) -> None:
    types = data.draw(st.lists(st.sampled_from(sorted(COLUMNS)), min_size=2, max_size=2))
    source = data.draw(relations(types))
    value, key = source["x0"], source["x1"]
    assert_both(
        backend,
        source,
        ("arg_min(x0, x1)", call("arg_min", value, key, type=value.type)),
        ("arg_max(x0, x1)", call("arg_max", value, key, type=value.type)),
    )


@pytest.mark.parametrize("rows", [1, 3])
def test_sum_at_the_edge_of_int64(backend: str, rows: int) -> None:
    source = relation({"g": [1] * rows, "x": pa.array([2**63 - 1] * rows, pa.int64())})
    node = call("sum", source["x"], type=HUGEINT)
    assert_both(backend, source, ("sum(x)::decimal(38,0)", node))


def test_sum_of_38_digits(backend: str) -> None:
    source = relation({"g": [1, 1, 1], "x": decimals(["9" * 38, "-1", "1"], 38, 0)})
    node = call("sum", source["x"], type=HUGEINT)
    assert run(backend, aggregate(source, [], node), source)[0].to_pylist() == [10**38 - 1]


@pytest.mark.parametrize("more", ["1", "9" * 38])
def test_sum_beyond_38_digits_raises(backend: str, more: str) -> None:
    source = relation({"g": [1, 1], "x": decimals(["9" * 38, more], 38, 0)})
    with pytest.raises(OutOfRange, match="38 digits"):
        run(backend, aggregate(source, ["g"], call("sum", source["x"], type=HUGEINT)), source)


def test_average_divides_the_exact_sum(backend: str) -> None:
    source = relation({"x": pa.array([2**53, 1, 1, 1], pa.int64())})
    node = aggregate(source, [], call("avg", source["x"], type=DOUBLE))
    assert run(backend, node, source).equals(query("select avg(x) from t", t=source))


def test_many_groups_with_sparse_keys(backend: str) -> None:
    rows = 5000
    source = relation(
        {
            "a": pa.array([i * 7919 % 1237 * 10**12 for i in range(rows)]),
            "b": dictionary([f"k{i % 11}" for i in range(rows)]),
            "x": pa.array([i * 31 for i in range(rows)]),
        }
    )
    node = aggregate(source, ["a", "b"], call("sum", source["x"], type=HUGEINT))
    sql = "select a, b, sum(x)::decimal(38,0) from t group by a, b"
    assert_node(backend, node, sql, t=source)


@pytest.mark.parametrize("exceptions", [0, 1])
def test_strings_that_follow_from_the_other_keys(backend: str, exceptions: int) -> None:
    rows = 300
    names = [f"name {i % 100}" for i in range(rows)]
    names[:exceptions] = ["another"] * exceptions
    source = relation({"k": [i % 100 for i in range(rows)], "s": names, "t": names})
    node = aggregate(source, ["k", "s", "t"], call("count_star", type=BIGINT))
    assert_node(backend, node, "select k, s, t, count(*) from t group by all", t=source)


def test_more_rows_than_a_chunk(backend: str) -> None:
    rows = 140_000
    k = pa.array([i * 7919 % rows // 3 * 5 for i in range(rows)], pa.int64())
    source = relation({"k": k, "n": pa.array(range(rows), pa.int32())})
    node = aggregate(source, ["k"], call("max", source["n"], type=INTEGER))
    assert_node(backend, node, "select k, max(n) from t group by k", t=source)


def test_keys_that_no_packing_holds(backend: str) -> None:
    extremes = [-(2**63), 2**63 - 1, 0, -(2**63)]
    columns = {f"k{i}": pa.array(extremes, pa.int64()) for i in range(3)}
    source = relation(columns)
    node = aggregate(source, list(columns), call("count_star", type=BIGINT))
    assert_node(backend, node, "select *, count(*) from t group by all", t=source)


def test_interval_keys_compare_by_length(backend: str) -> None:
    if backend == "gpu":
        pytest.skip("intervals run on the CPU")
    spans = [(1, 0, 0), (0, 30, 0), (0, 29, 86_400_000_000_000), (0, 1, 0), None]
    source = relation({"k": pa.array(spans, pa.month_day_nano_interval())})
    node = aggregate(source, ["k"], call("count_star", type=BIGINT))
    assert sorted(run(backend, node, source)[1].to_pylist()) == [1, 1, 3]


def test_dictionary_that_repeats_values(backend: str) -> None:
    values = pa.DictionaryArray.from_arrays(pa.array([0, 1, 2, None], pa.int32()), ["a", "b", "a"])
    source = relation({"k": values})
    node = aggregate(source, ["k"], call("count_star", type=BIGINT))
    assert_node(backend, node, "select k, count(*) from t group by k", t=source)


@settings(max_examples=60)
@given(data=st.data())
def test_distinct_on_keeps_the_first_row(backend: str, data: st.DataObject) -> None:
    types = data.draw(st.lists(st.sampled_from(sorted(COLUMNS)), min_size=1, max_size=2))
    source = data.draw(relations(types))
    keys = [f"x{i}" for i in range(len(types))]
    node = p.DistinctOn(input=source.scan, keys=tuple(source[k] for k in keys))
    names = ", ".join(keys)
    sql = f"select * from t qualify row_number() over (partition by {names} order by n) = 1"
    assert_node(backend, node, sql, t=source)
