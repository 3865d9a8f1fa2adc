"""Physical plans by hand over random tables, run on both backends, and the comparison of their answers."""

from __future__ import annotations

import math
from collections.abc import Callable
from datetime import date, timedelta
from decimal import Decimal
from typing import Any

import numpy as np
import pyarrow as pa

from fuseline.operators.context import Context
from fuseline.plan import physical as p
from fuseline.plan.expr import AggregateCall, Column, ColumnRef, Expr, Literal, new_column
from fuseline.plan.functions import AGGREGATE
from fuseline.plan.types import (
    BIGINT,
    BOOLEAN,
    DATE,
    DOUBLE,
    FLOAT,
    HUGEINT,
    INTEGER,
    SMALLINT,
    TICKS,
    TIME,
    TIMESTAMP,
    TIMESTAMP_MS,
    TIMESTAMP_NS,
    TIMESTAMP_S,
    TIMESTAMPTZ,
    TINYINT,
    UBIGINT,
    UTINYINT,
    VARCHAR,
    DataType,
    Kind,
    decimal,
    to_arrow,
)
from fuseline.storage.columns.cache import ColumnCache
from fuseline.storage.tables.memory_table import MemoryTable
from tests.compare import assert_same

TYPES: dict[str, DataType] = {
    "boolean": BOOLEAN, "tinyint": TINYINT, "smallint": SMALLINT, "integer": INTEGER, "bigint": BIGINT,
    "utinyint": UTINYINT, "ubigint": UBIGINT, "float": FLOAT, "double": DOUBLE, "decimal": decimal(15, 2),
    "decimal18": decimal(18, 4), "wide": decimal(31, 4), "hugeint": HUGEINT, "date": DATE, "timestamp": TIMESTAMP,
    "time": TIME, "seconds": TIMESTAMP_S, "millis": TIMESTAMP_MS, "nanos": TIMESTAMP_NS, "zoned": TIMESTAMPTZ,
    "varchar": VARCHAR,
}  # fmt: skip
_WORDS = ("", "a", "b", "ab", "Ärger", "a b", "%", "naïve", "zz", "日本", "x" * 40)


def column(name: str, kind: str) -> Column:
    return new_column(name, TYPES[kind])


def scan(
    rng: np.random.Generator,
    rows: int,
    columns: list[Column],
    *,
    values: int = 7,
    nulls: float = 0.2,
) -> p.MemoryScan:
    """Return a scan of random rows, with about `values` different values in a column."""
    arrays = []
    for c in columns:
        pool = [value(rng, c.type) for _ in range(values)]
        picked = [None if rng.random() < nulls else pool[rng.integers(values)] for _ in range(rows)]
        arrays.append(pa.array(picked, to_arrow(c.type)))
    return scan_of(dict(zip([c.name for c in columns], arrays, strict=True)), columns)


def scan_of(arrays: dict[str, Any], columns: list[Column]) -> p.MemoryScan:
    table = MemoryTable("t", pa.table(arrays))
    return p.MemoryScan(table, tuple(columns), tuple(c.name for c in columns))


def value(rng: np.random.Generator, data_type: DataType) -> Any:
    """Return a random value; extremes, NaN and -0.0 are among them."""
    if data_type.is_decimal or data_type.is_integer:
        low, high = data_type.integer_range
        edges = [low, high, 0, 1, 2, 3, 100, high // 3]
        number = (
            edges[rng.integers(len(edges))] if rng.random() < 0.4 else int(rng.integers(0, 100))
        )
        if data_type.is_decimal:
            digits = tuple(int(d) for d in str(abs(number)))
            return Decimal((int(number < 0), digits, -data_type.scale))
        return number
    match data_type.kind:
        case Kind.BOOLEAN:
            return bool(rng.integers(2))
        case Kind.FLOAT | Kind.DOUBLE:
            edges = [0.0, -0.0, math.nan, 1.5, -2.25, math.inf, -math.inf]
            return edges[rng.integers(7)] if rng.random() < 0.4 else float(rng.integers(-50, 50))
        case Kind.DATE:
            return date(1992, 1, 1) + timedelta(days=int(rng.integers(-40000, 3000)))
        case Kind.TIME:
            return int(rng.integers(0, 86_400 * 10**6))
        case _ if data_type.is_ticks:
            ticks = TICKS[data_type.kind]
            return int(rng.integers(-(10**9), 10**9)) * ticks + int(rng.integers(ticks))
        case _:
            return _WORDS[rng.integers(len(_WORDS))]


def run(node: p.Physical, backend: Any, deterministic: bool = False) -> pa.Table:
    """Run a plan on one backend."""
    context = Context(ColumnCache(1 << 30), lambda: None, 1, deterministic=deterministic)
    return backend.to_arrow(_run(node, backend, context), node.columns)


def _run(node: p.Physical, backend: Any, context: Context) -> Any:
    inputs = tuple(_run(child, backend, context) for child in node.children)
    return backend.OPERATORS[type(node)](node, inputs, context)


def assert_agree(node: p.Physical, *, ordered: bool = False) -> pa.Table:
    """Run a plan on both backends; types, NULLs and values must be the same.  Returns the CPU's answer."""
    from fuseline.operators import cpu, gpu

    reason = gpu.unsupported(node)
    assert reason is None, reason
    expected = run(node, cpu)
    assert_same(expected, run(node, gpu), ordered=ordered, near=1e-12)
    return expected


def text(value: str | None) -> Literal:
    return Literal(value, VARCHAR)


def number(value: int | None) -> Literal:
    return Literal(value, INTEGER)


def computed(expr: Expr, child: Any) -> p.ComputeColumns:
    return p.ComputeColumns(child, ((new_column("x", expr.type), expr),))


def call(function: str, *args: Any, **options: Any) -> tuple[Column, AggregateCall]:
    """An aggregate of columns and literals, with the result type that the function table gives."""
    resolved = AGGREGATE[function].resolve([a.type for a in args])
    assert resolved is not None
    exprs = tuple(a if isinstance(a, Literal) else ColumnRef(a) for a in args)
    made = AggregateCall(function, exprs, resolved[1], **options)
    return new_column(function, made.type), made


def check(
    make: Callable[..., Expr], *kinds: str, seed: int = 1, rows: int = 120, **options: Any
) -> None:
    """Compute an expression of columns of these kinds, with NULLs, without, and over no rows."""
    columns = [column(f"c{i}", kind) for i, kind in enumerate(kinds)]
    expr = make(*(ColumnRef(c) for c in columns))
    for nulls in (0.25, 0.0):
        child = scan(np.random.default_rng(seed), rows, columns, nulls=nulls, **options)
        assert_agree(computed(expr, child), ordered=True)
        assert_agree(p.LimitRows(computed(expr, p.LimitRows(child, 0)), 5))
        if expr.type == BOOLEAN:
            assert_agree(p.FilterRows(child, expr), ordered=True)


def both_raise(node: p.Physical, error: type[Exception]) -> None:
    """The plan fails on both backends in the same way."""
    import pytest

    from fuseline.operators import cpu, gpu

    for backend in (cpu, gpu):
        with pytest.raises(error):
            run(node, backend)
