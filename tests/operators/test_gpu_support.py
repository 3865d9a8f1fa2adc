"""What the GPU backend refuses, and why: asked while planning, on machines without a GPU too."""

from __future__ import annotations

from typing import Any

import pytest

pytest.importorskip("pylibcudf", reason="the cuda13 extra is not installed")

from fuseline.operators import gpu
from fuseline.plan import infer, physical as p
from fuseline.plan.expr import (
    AggregateCall,
    Column,
    ColumnRef,
    Expr,
    Interval,
    Literal,
    new_column,
)
from fuseline.plan.functions import AGGREGATE, SCALAR
from fuseline.plan.join_kinds import JoinKind
from fuseline.plan.temporal.ticks import castable
from fuseline.plan.types import (
    BIGINT,
    DATE,
    DOUBLE,
    INTEGER,
    INTERVAL,
    TIME,
    TIMESTAMP,
    TIMESTAMP_MS,
    TIMESTAMP_NS,
    TIMESTAMP_S,
    TIMESTAMPTZ,
    VARCHAR,
    DataType,
    decimal,
)

MOMENTS = [TIMESTAMP, TIMESTAMP_S, TIMESTAMP_MS, TIMESTAMP_NS, TIMESTAMPTZ]


def one_row(*columns: Column) -> p.ValuesScan:
    return p.ValuesScan(columns, (tuple(Literal(None, c.type) for c in columns),))


def computing(expr: Expr, *columns: Column) -> p.ComputeColumns:
    return p.ComputeColumns(one_row(*columns), ((new_column("x", expr.type), expr),))


def refusal(function: str, *types: DataType, extra: tuple[Expr, ...] = ()) -> str | None:
    columns = [new_column(f"c{i}", t) for i, t in enumerate(types)]
    expr = infer.call(function, [*(ColumnRef(c) for c in columns), *extra])
    return gpu.unsupported(computing(expr, *columns))


def test_supported_functions() -> None:
    assert refusal("add", INTEGER, BIGINT) is None
    assert refusal("year", DATE) is None
    assert refusal("like", VARCHAR, extra=(Literal("a%", VARCHAR),)) is None


def test_pattern_in_a_column() -> None:
    assert "with a column" in str(refusal("like", VARCHAR, VARCHAR))


def test_function_without_kernel() -> None:
    assert "the function gcd()" in str(refusal("gcd", BIGINT, BIGINT))


@pytest.mark.parametrize(("function", "layout", "computed"), [
    ("strftime", "%Y-%m-%d", True),
    ("strftime", "%d %b %H:%M:%S.%f", True),
    ("strftime", "%-d", False), ("strftime", "%f %g", False),
    ("strftime", "100%% %Y", False),
    ("strftime", "%Z", False), ("strptime", "%d.%m.%Y", True), ("strptime", "%Y-%m", False),
    ("strptime", "%y-%m-%d", False),
])  # fmt: skip
def test_formats(function: str, layout: str, computed: bool) -> None:
    source = TIMESTAMP if function == "strftime" else VARCHAR
    reason = refusal(function, source, extra=(Literal(layout, VARCHAR),))
    assert reason is None if computed else "with this format" in str(reason)


@pytest.mark.parametrize("pattern", ["(a)\\1", "\\p{L}", "(?m)a", "a{2000}", "(?=a)", "\\bx", "["])
def test_regular_expressions_without_an_automaton(pattern: str) -> None:
    reason = refusal("regexp_matches", VARCHAR, extra=(Literal(pattern, VARCHAR),))
    assert reason is not None
    assert pattern in reason


def test_interval_columns() -> None:
    reason = gpu.unsupported(one_row(new_column("i", INTERVAL)))
    assert reason == "the GPU has no INTERVAL columns"


@pytest.mark.parametrize("target", [DATE, INTEGER, DOUBLE, decimal(5, 2), TIMESTAMP])
def test_casts_of_text(target: DataType) -> None:
    column = new_column("s", VARCHAR)
    assert gpu.unsupported(computing(infer.cast(ColumnRef(column), target), column)) is None


@pytest.mark.parametrize("source", [TIME, *MOMENTS])
def test_times_and_timestamps(source: DataType) -> None:
    column = new_column("t", source)
    assert gpu.unsupported(one_row(column)) is None
    assert refusal("lt", source, source) is None
    assert refusal("coalesce", source, source) is None
    for target in (DATE, TIMESTAMP, TIMESTAMP_NS, *([VARCHAR] if source != TIMESTAMPTZ else [])):
        if castable(source, target) or target == VARCHAR:
            cast = infer.cast(ColumnRef(column), target)
            assert gpu.unsupported(computing(cast, column)) is None, target


def test_functions_of_zones_are_named() -> None:
    zone = Literal("Europe/Berlin", VARCHAR)
    column = new_column("t", TIMESTAMPTZ)
    shown = infer.call("timezone", [zone, ColumnRef(column)])
    assert gpu.unsupported(computing(shown, column)) is None
    named = new_column("zone", VARCHAR)
    shown = infer.call("timezone", [ColumnRef(named), ColumnRef(column)])
    assert "a column as its zone" in str(gpu.unsupported(computing(shown, column, named)))
    text = infer.cast(ColumnRef(column), VARCHAR)
    assert "the function timestamptz_text()" in str(gpu.unsupported(computing(text, column)))
    clock = infer.cast(ColumnRef(new_column("s", VARCHAR)), TIME)
    assert "CAST of VARCHAR to TIME" in str(gpu.unsupported(computing(clock)))


@pytest.mark.parametrize("source", [DOUBLE, decimal(3, 3)])
def test_casts_to_text_that_libcudf_writes_otherwise(source: DataType) -> None:
    column = new_column("n", source)
    reason = gpu.unsupported(computing(infer.cast(ColumnRef(column), VARCHAR), column))
    assert f"CAST of {source} to VARCHAR" in str(reason)


@pytest.mark.parametrize("function", ["regexp_replace", "regexp_extract"])
@pytest.mark.parametrize("pattern", ["(a*)*b", "(?:a|b?)+", "(x?){2,}"])
def test_matches_by_loops_that_may_be_empty(function: str, pattern: str) -> None:
    extra: tuple[Expr, ...] = (Literal(pattern, VARCHAR),)
    extra += (Literal("x", VARCHAR),) if function == "regexp_replace" else ()
    assert pattern in str(refusal(function, VARCHAR, extra=extra))


def test_string_functions_in_part() -> None:
    comma, three, back = Literal(",", VARCHAR), Literal(3, BIGINT), Literal(-1, BIGINT)
    assert refusal("split_part", VARCHAR, extra=(comma, three)) is None
    assert "from the end" in str(refusal("split_part", VARCHAR, extra=(comma, back)))
    empty = Literal("", VARCHAR)
    assert "an empty string" in str(refusal("split_part", VARCHAR, extra=(empty, three)))
    group = (Literal("([a-z]+)", VARCHAR), Literal(2, INTEGER))
    assert "([a-z]+)" in str(refusal("regexp_extract", VARCHAR, extra=group))


def test_interval_literals() -> None:
    """They are added to dates; what else is done with them is the CPU's."""
    month = Literal(Interval(1, 0, 0), INTERVAL)
    assert refusal("add", DATE, extra=(month,)) is None
    for expr in (infer.call("eq", [month, month]), infer.in_list(month, [month])):
        assert "INTERVAL" in str(gpu.unsupported(computing(expr)))


def aggregating(function: str, *args: Any) -> p.HashAggregate:
    columns = tuple(a for a in args if isinstance(a, Column))
    resolved = AGGREGATE[function].resolve([a.type for a in args])
    assert resolved is not None
    exprs = tuple(ColumnRef(a) if isinstance(a, Column) else a for a in args)
    made = AggregateCall(function, exprs, resolved[1])
    return p.HashAggregate(one_row(*columns), (), ((new_column("x", made.type), made),))


def test_aggregates() -> None:
    number, price = new_column("n", DOUBLE), new_column("p", decimal(15, 2))
    assert gpu.unsupported(aggregating("sum", price)) is None
    half = Literal(0.5, DOUBLE)
    assert gpu.unsupported(aggregating("quantile_cont", number, half)) is None
    assert gpu.unsupported(aggregating("quantile_cont", price, half)) is None
    assert gpu.unsupported(aggregating("corr", number, number)) is None
    wide = new_column("w", decimal(38, 2))
    assert "interpolate exactly" in str(gpu.unsupported(aggregating("quantile_cont", wide, half)))


def test_residuals_are_looked_at() -> None:
    left, right = new_column("l", VARCHAR), new_column("r", VARCHAR)
    condition = infer.call("like", [ColumnRef(left), ColumnRef(right)])
    node = p.NestedLoopJoin(one_row(left), one_row(right), JoinKind.INNER, condition)
    assert "like()" in str(gpu.unsupported(node))


def test_each_kernel_has_a_function() -> None:
    from fuseline.operators.gpu.aggregate.aggregate import AGGREGATES
    from fuseline.operators.gpu.functions.expressions import KERNELS, REFUSALS

    assert set(KERNELS) <= set(SCALAR)
    assert set(REFUSALS) <= set(KERNELS)
    assert set(AGGREGATES) <= set(AGGREGATE)


def test_capabilities_that_the_backend_relies_on() -> None:
    """The tables that libcudf gives out without a GPU; they change from release to release."""
    import pylibcudf as plc

    ids, make = plc.TypeId, plc.DataType
    huge, number = make(ids.DECIMAL128, 0), make(ids.INT64)
    operator = plc.binaryop.BinaryOperator
    for op in (operator.ADD, operator.SUB, operator.MUL, operator.DIV, operator.MOD):
        assert plc.binaryop.is_supported_operation(huge, huge, huge, op)
        assert plc.binaryop.is_supported_operation(number, number, number, op)
    for source, target in ((number, huge), (huge, number), (huge, make(ids.FLOAT64))):
        assert plc.unary.is_supported_cast(source, target)
    total = plc.aggregation.sum()
    for data_type in (huge, number, make(ids.BOOL8), make(ids.FLOAT64)):
        assert plc.reduce.is_valid_reduce_aggregation(data_type, total)
        assert plc.aggregation.is_valid_aggregation(data_type, total)
