"""Expressions of every kind over random columns, on both backends."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest

from fuseline.errors import ConversionError, ExecutionError, OutOfRange
from fuseline.plan import infer, physical as p
from fuseline.plan.expr import ColumnRef, Expr, Literal, new_column
from fuseline.plan.types import (
    BIGINT,
    BOOLEAN,
    DATE,
    DOUBLE,
    INTEGER,
    SMALLINT,
    TIMESTAMP,
    TINYINT,
    VARCHAR,
    DataType,
    decimal,
)
from tests.limits import SetLimits

from .plans import (
    TYPES,
    assert_agree,
    both_raise,
    check,
    column,
    computed,
    number,
    scan,
    scan_of,
    text,
)

pytestmark = pytest.mark.gpu

COMPARISONS = ("eq", "ne", "lt", "le", "gt", "ge", "is_distinct", "is_not_distinct")


@pytest.mark.parametrize("kind", TYPES)
@pytest.mark.parametrize("function", COMPARISONS)
def test_comparisons(function: str, kind: str) -> None:
    check(lambda a, b: infer.call(function, [a, b]), kind, kind, values=5)


CONSTANTS: dict[str, Literal] = {
    "integer": number(3), "bigint": Literal(100, BIGINT), "double": Literal(1.5, DOUBLE), "varchar": text("ab"),
    "boolean": Literal(True, BOOLEAN),
}  # fmt: skip


@pytest.mark.parametrize("kind", CONSTANTS)
@pytest.mark.parametrize("function", COMPARISONS)
def test_comparisons_with_a_constant(function: str, kind: str) -> None:
    check(lambda a: infer.call(function, [a, CONSTANTS[kind]]), kind)
    check(lambda a: infer.call(function, [CONSTANTS[kind], a]), kind)
    check(lambda a: infer.call(function, [a, Literal(None, TYPES[kind])]), kind)


@pytest.mark.parametrize("function", ["and", "or"])
def test_logic(function: str) -> None:
    check(lambda a, b, c: infer.call(function, [a, b, c]), "boolean", "boolean", "boolean")
    for value in (True, False, None):
        check(lambda a, v=value: infer.call(function, [a, Literal(v, BOOLEAN)]), "boolean")
    check(lambda a: infer.call("not", [a]), "boolean")


@pytest.mark.parametrize("function", ["is_null", "is_not_null"])
def test_null_tests(function: str) -> None:
    for kind in ("integer", "varchar", "wide"):
        check(lambda a: infer.call(function, [a]), kind)


@pytest.mark.parametrize("kind", TYPES)
@pytest.mark.parametrize("function", ["coalesce", "greatest", "least"])
def test_choices(function: str, kind: str) -> None:
    check(lambda a, b, c: infer.call(function, [a, b, c]), kind, kind, kind)


@pytest.mark.parametrize("kind", TYPES)
def test_case(kind: str) -> None:
    def make(a: Expr, b: Expr, flag: Expr, other: Expr) -> Expr:
        return infer.case([flag, other], [a, b], None)

    check(make, kind, kind, "boolean", "boolean")
    check(lambda a, b, f, o: infer.case([f, o], [a, b], a), kind, kind, "boolean", "boolean")


@pytest.mark.parametrize("size", [1, 2, 5])
@pytest.mark.parametrize("kind", ["integer", "varchar", "double", "decimal", "date", "wide"])
def test_in_list(kind: str, size: int) -> None:
    rng = np.random.default_rng(3)
    key = column("c0", kind)
    child = scan(rng, 100, [key], values=6)
    found = child.table.data.column(0).drop_null().to_pylist()  # type: ignore[attr-defined]
    values = [Literal(v, key.type) for v in dict.fromkeys(found[:size])]
    for extra in ([], [Literal(None, key.type)]):
        assert_agree(
            computed(infer.in_list(ColumnRef(key), [*values, *extra]), child), ordered=True
        )


ARITHMETIC = ("add", "sub", "mul", "div", "mod")


def small(rng: np.random.Generator, kind: DataType, rows: int) -> pa.Array:
    whole = [None if rng.random() < 0.2 else int(v) for v in rng.integers(1, 100, rows)]
    return pa.array(whole, pa.int64()).cast(pa.float64() if kind == DOUBLE else pa.int64())


@pytest.mark.parametrize(
    "kinds", [("integer", "integer"), ("bigint", "integer"), ("double", "integer")], ids=str
)
@pytest.mark.parametrize("function", [*ARITHMETIC, "int_div"])
def test_arithmetic(function: str, kinds: tuple[str, str]) -> None:
    rng = np.random.default_rng(4)
    columns = [column(f"c{i}", kind) for i, kind in enumerate(kinds)]
    arrays = {c.name: small(rng, c.type, 90).cast(to_arrow(c.type)) for c in columns}
    child = scan_of(arrays, columns)
    expr = infer.call(function, [ColumnRef(c) for c in columns])
    assert_agree(computed(expr, child), ordered=True)


def to_arrow(data_type: DataType) -> pa.DataType:
    from fuseline.plan.types import to_arrow as arrow

    return arrow(data_type)


DECIMALS = [(15, 2, 15, 2), (12, 4, 5, 1), (18, 4, 18, 0), (31, 4, 15, 2), (9, 0, 38, 0)]


@pytest.mark.parametrize("digits", DECIMALS, ids=str)
@pytest.mark.parametrize("function", ["add", "sub", "mul", "div", "mod", "eq", "lt"])
def test_decimal_arithmetic(function: str, digits: tuple[int, int, int, int]) -> None:
    rng = np.random.default_rng(5)
    columns = [new_column("a", decimal(*digits[:2])), new_column("b", decimal(*digits[2:]))]
    arrays = {}
    for c in columns:
        limit = min(10 ** (c.type.precision // 3), 10**5)
        values = [int(v) or 1 for v in rng.integers(-limit, limit, 80)]
        whole = pa.array(values, pa.decimal128(38, 0))
        arrays[c.name] = pa.Array.from_buffers(to_arrow(c.type), 80, whole.buffers())
    expr = infer.call(function, [ColumnRef(c) for c in columns])
    assert_agree(computed(expr, scan_of(arrays, columns)), ordered=True)


@pytest.mark.parametrize("function", ["add", "sub", "mul"])
@pytest.mark.parametrize(
    "kind", ["tinyint", "integer", "bigint", "ubigint", "hugeint", "decimal18"]
)
def test_overflow_raises(kind: str, function: str) -> None:
    key = column("c", kind)
    low, high = key.type.integer_range
    unscaled = pa.array(
        [high, low, 3], pa.decimal128(38, 0) if key.type.is_decimal else to_arrow(key.type)
    )
    if key.type.is_decimal:
        unscaled = pa.Array.from_buffers(to_arrow(key.type), 3, unscaled.buffers())
    child = scan_of({"c": unscaled}, [key])
    other = infer.cast(number(3), key.type)
    expr = infer.call(
        function, [ColumnRef(key), other] if function != "sub" else [other, ColumnRef(key)]
    )
    if expr.type.is_decimal and expr.type.precision > key.type.precision:
        assert_agree(computed(expr, child), ordered=True)
    else:
        both_raise(computed(expr, child), OutOfRange)
    guarded = infer.case(
        [infer.call("eq", [ColumnRef(key), other])], [expr], infer.cast(number(None), expr.type)
    )
    assert_agree(computed(guarded, child), ordered=True)


def test_division_by_zero() -> None:
    a, b = column("a", "integer"), column("b", "integer")
    child = scan_of(
        {"a": pa.array([1, None, 3], pa.int32()), "b": pa.array([2, 0, 0], pa.int32())}, [a, b]
    )
    refs = [ColumnRef(a), ColumnRef(b)]
    for function in ("int_div", "mod"):
        both_raise(computed(infer.call(function, refs), child), ExecutionError)
        assert_agree(computed(infer.call(function, refs), p.LimitRows(child, 2)), ordered=True)
    assert_agree(computed(infer.call("div", refs), child), ordered=True)


@pytest.mark.parametrize(
    "kind", ["smallint", "bigint", "float", "double", "decimal", "wide", "hugeint"]
)
@pytest.mark.parametrize("function", ["neg", "abs", "sign"])
def test_signs(function: str, kind: str) -> None:
    key = column("c", kind)
    values = pa.array([5, -7, 0, None, 99], pa.int16()).cast(to_arrow(key.type))
    assert_agree(
        computed(infer.call(function, [ColumnRef(key)]), scan_of({"c": values}, [key])),
        ordered=True,
    )


@pytest.mark.parametrize("function", ["neg", "abs"])
def test_smallest_integer_raises(function: str) -> None:
    key = column("c", "bigint")
    child = scan_of({"c": pa.array([1, -(2**63)])}, [key])
    both_raise(computed(infer.call(function, [ColumnRef(key)]), child), OutOfRange)


@pytest.mark.parametrize("function", ["bit_and", "bit_or", "bit_xor", "bit_not"])
def test_bits(function: str) -> None:
    count = 1 if function == "bit_not" else 2
    for kind in ("tinyint", "bigint", "ubigint"):
        check(lambda *a: infer.call(function, list(a)), *([kind] * count))


@pytest.mark.parametrize("digits", [None, 0, 1, 2, 5, -1, -30])
@pytest.mark.parametrize("kind", ["double", "decimal", "wide", "hugeint"])
@pytest.mark.parametrize("function", ["round", "trunc", "ceil", "floor"])
def test_rounding(function: str, kind: str, digits: int | None) -> None:
    extra = [] if digits is None else [number(digits)]
    if function in ("ceil", "floor") and extra:
        return
    key = column("c", kind)
    halves = [v * 0.5 + shift for v in range(-9, 9) for shift in (0.0, 0.05, 100.25)]
    values = (
        pa.array([None, *halves]).cast(to_arrow(key.type))
        if kind != "hugeint"
        else pa.array([None, *(int(v * 10) for v in halves)], to_arrow(key.type))
    )
    node = computed(infer.call(function, [ColumnRef(key), *extra]), scan_of({"c": values}, [key]))
    from fuseline.operators import gpu

    if (function, kind) == ("round", "hugeint") and digits is not None and digits < 0:
        assert "may have a digit more" in (gpu.unsupported(node) or "")
    else:
        assert_agree(node, ordered=True)


FLOATING = (
    "sqrt", "cbrt", "exp", "ln", "log10", "log2", "sin", "cos", "tan", "asin", "acos", "atan", "degrees", "radians",
)  # fmt: skip


@pytest.mark.parametrize("function", [*FLOATING, "is_nan", "is_inf", "is_finite"])
def test_floating(function: str) -> None:
    check(lambda a: infer.call(function, [a]), "double", values=30)


@pytest.mark.parametrize("function", ["power", "atan2"])
def test_floating_pairs(function: str) -> None:
    check(lambda a, b: infer.call(function, [a, b]), "double", "double", values=30)


# Casts between dates and timestamps of each unit, and to the time of the day
MOMENTS = ("date", "seconds", "millis", "timestamp", "nanos")
TEMPORAL = [
    *((a, b) for a in MOMENTS for b in MOMENTS if a != b and (a, b) != ("nanos", "seconds")),
    *((a, "time") for a in MOMENTS[1:]), ("timestamp", "zoned"), ("zoned", "timestamp"),
]  # fmt: skip
CASTS = [
    ("integer", TINYINT), ("bigint", SMALLINT), ("integer", BIGINT), ("integer", DOUBLE), ("boolean", INTEGER),
    ("bigint", BOOLEAN), ("integer", decimal(12, 2)), ("decimal", INTEGER), ("decimal", decimal(10, 1)),
    ("decimal", decimal(30, 8)), ("wide", decimal(12, 1)), ("hugeint", BIGINT), ("decimal", DOUBLE), ("wide", DOUBLE),
    ("double", INTEGER), ("double", decimal(9, 3)), ("float", DOUBLE), ("double", TYPES["float"]), ("date", TIMESTAMP),
    ("timestamp", DATE), ("bigint", VARCHAR), ("boolean", VARCHAR), ("boolean", decimal(5, 2)), ("decimal", BOOLEAN),
    ("ubigint", BIGINT), ("bigint", TYPES["ubigint"]), ("utinyint", TINYINT),
    *((kind, TYPES[to]) for kind, to in TEMPORAL),
]  # fmt: skip


@pytest.mark.parametrize(("kind", "target"), CASTS, ids=str)
def test_try_cast(kind: str, target: DataType) -> None:
    check(lambda a: infer.cast(a, target, safe=True), kind, values=40)


@pytest.mark.parametrize(("kind", "target"), [c for c in CASTS if not c[1].is_float], ids=str)
def test_cast(kind: str, target: DataType) -> None:
    key = column("c", kind)
    values = pa.array([0, 1, None, 1], pa.int8())
    if key.type.is_temporal:
        values = values.cast(pa.int32()).cast(pa.date32()).cast(pa.timestamp("us"))
    child = scan_of({"c": values.cast(to_arrow(key.type))}, [key])
    assert_agree(computed(infer.cast(ColumnRef(key), target), child), ordered=True)


@pytest.mark.parametrize(
    ("kind", "target"),
    [("integer", TINYINT), ("double", INTEGER), ("decimal", decimal(4, 2))],
    ids=str,
)
def test_cast_that_fails(kind: str, target: DataType) -> None:
    key = column("c", kind)
    child = scan_of({"c": pa.array([1, 1000, None], pa.int32()).cast(to_arrow(key.type))}, [key])
    if kind == "double":
        child = scan_of({"c": pa.array([1.0, 1e18])}, [key])
    both_raise(computed(infer.cast(ColumnRef(key), target), child), ConversionError)


@pytest.mark.parametrize("half", [0.5, 1.5, 2.5, -0.5, -1.5, 0.49999999999999994, 4.5])
def test_cast_of_halves(half: float) -> None:
    key, fixed = column("c", "double"), new_column("d", decimal(6, 1))
    child = scan_of({"c": pa.array([half])}, [key])
    for target in (INTEGER, decimal(9, 0)):
        assert_agree(computed(infer.cast(ColumnRef(key), target), child))
    child = scan_of({"d": pa.array([half]).cast(pa.decimal128(6, 1), safe=False)}, [fixed])
    for target in (INTEGER, decimal(9, 0), decimal(30, 0)):
        assert_agree(computed(infer.cast(ColumnRef(fixed), target), child))


def test_staged_filter(limits: SetLimits) -> None:
    """Text is searched only in the rows that the other conditions leave."""

    limits(STAGED_FILTER_ROWS=1)
    a, b, c = column("a", "integer"), column("b", "varchar"), column("c", "date")
    child = scan(np.random.default_rng(8), 200, [a, b, c])
    parts = [
        infer.call("gt", [ColumnRef(a), number(1)]),
        infer.call("like", [ColumnRef(b), text("%a%")]),
    ]
    both = infer.call("and", parts)
    assert_agree(p.FilterRows(child, both), ordered=True)
    assert_agree(p.FilterRows(child, both, (c,)), ordered=True)
