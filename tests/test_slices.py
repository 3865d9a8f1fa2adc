"""Tests over slices: what lies around a column's rows, and that who reads it by mistake is seen."""

from __future__ import annotations

import importlib
from contextlib import nullcontext
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest

from fuseline.operators import cpu
from fuseline.operators.cpu.table import Table
from fuseline.plan import physical as p
from tests import slices
from tests.compare import assert_same_as_duckdb
from tests.operators.relations import dictionary, relation

COLUMNS = {
    "numbers": pa.array([1, None, 3], pa.int16()),
    "texts": pa.array(["a", None, "b"]),
    "coded": dictionary(["a", None, "b"]),
    "truths": pa.array([True, None, False]),
    "decimals": pa.array([Decimal("1.50"), None, Decimal(-2)], pa.decimal128(30, 2)),
    "days": pa.array([1, None, 3], pa.date32()),
    "nulls": pa.nulls(3),
    "all_null": pa.nulls(3, pa.int64()),
}
NESTED = {
    "lists": pa.array([[1], None, [2, None]]),
    "structs": pa.array([{"a": 1}, None, {"a": None}]),
    "ids": pa.array([bytes(16), None, bytes(range(16))], pa.uuid()),
}


@pytest.mark.parametrize("name", [*COLUMNS, *NESTED])
@pytest.mark.parametrize("count", [3, 0])
def test_an_array_keeps_its_values(name: str, count: int) -> None:
    whole = (COLUMNS | NESTED)[name][:count]
    part = slices.array(whole)
    part.validate(full=True)
    assert part.equals(whole)
    assert part.offset == slices.BEFORE


def test_rows_around_are_null_where_the_columns_are_not() -> None:
    part = slices.array(COLUMNS["numbers"])
    bits = part.buffers()[0]
    longer = pa.Array.from_buffers(part.type, part.offset + 3, [bits, part.buffers()[1]])
    assert longer.to_pylist()[:4] == [None, 1, None, None]


@pytest.mark.parametrize("count", [3, 0])
def test_tables_of_backends_keep_their_values(backend: str, count: int) -> None:
    module = importlib.import_module(f"fuseline.operators.{backend}")
    given = relation(pa.table(COLUMNS)[:count])
    table = module.from_arrow(given.data, given.columns)
    part = slices.held(backend, table)
    whole, found = (module.to_arrow(t, given.columns) for t in (table, part))
    assert found.equals(whole)
    if count and backend == "gpu":
        assert {part[c].offset() for c in given.columns} == {slices.BEFORE}


def test_who_reads_from_the_first_row_is_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    def forgetful(node: Any, inputs: Any, context: Any) -> Any:
        (table,) = inputs
        arrays = {i: _from_the_first_row(table.arrays[i]) for i in table.arrays}
        return whole(node, (Table(arrays, table.num_rows),), context)

    whole = cpu.OPERATORS[p.FilterRows]
    monkeypatch.setitem(cpu.OPERATORS, p.FilterRows, forgetful)
    queries = [f"select x from t where x > {least}" for least in range(8)]
    for query in queries:
        with (
            pytest.raises(AssertionError, match="over slices")
            if slices.wanted(query)
            else nullcontext()
        ):
            assert_same_as_duckdb(query, {"t": {"x": [3, None, 8]}}, backend="cpu", fuse=("never",))
    assert 0 < sum(map(slices.wanted, queries)) < len(queries)


def test_threads_leave_the_operators_as_they_were() -> None:
    """Whichever of them leaves first."""
    before = dict(cpu.OPERATORS)
    for first, second in ((0, 1), (1, 0)):
        entered = [slices.from_operators(["cpu"]) for _ in range(2)]
        for one in entered:
            one.__enter__()
        entered[first].__exit__(None, None, None)
        assert before != cpu.OPERATORS
        entered[second].__exit__(None, None, None)
        assert before == cpu.OPERATORS


def _from_the_first_row(array: pa.Array) -> pa.Array:
    return pa.Array.from_buffers(array.type, len(array), array.buffers())
