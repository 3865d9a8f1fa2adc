"""ORDER BY and top-k against DuckDB, row by row."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given, settings, strategies as st

from fuseline.operators.cpu.sort.sort import SortColumn, first_rows, sorted_order
from fuseline.plan import physical as p
from tests.compare import assert_same_as_duckdb
from tests.limits import SetLimits
from tests.operators.relations import Relation, assert_node, dictionary, relation, run
from tests.operators.test_aggregate import COLUMNS


@st.composite
def relations(draw: st.DrawFn, types: list[str]) -> Relation:
    rows = draw(st.integers(0, 20))
    columns: dict[str, Any] = {"n": pa.array(range(rows), pa.int32())}
    for i, name in enumerate(types):
        make, values = COLUMNS[name]
        cells = st.lists(st.sampled_from([None, *values]), min_size=rows, max_size=rows)
        columns[f"x{i}"] = make(draw(cells))
    return relation(columns)


def order_by(source: Relation, flags: list[tuple[bool, bool]]) -> tuple[tuple[p.Order, ...], str]:
    """Keys x0, x1, ... and the same in SQL; the row number last, since DuckDB's sort is not stable."""
    keys, parts = [], []
    for i, (descending, nulls_first) in enumerate(flags):
        keys.append(source.order(f"x{i}", descending, nulls_first))
        direction = "desc" if descending else "asc"
        parts.append(f"x{i} {direction} nulls {'first' if nulls_first else 'last'}")
    return tuple(keys), ", ".join([*parts, "n"])


FLAGS = st.tuples(st.booleans(), st.booleans())


@pytest.mark.parametrize("name", COLUMNS)
@settings(max_examples=15)
@given(data=st.data())
def test_one_key(backend: str, name: str, data: st.DataObject) -> None:
    source = data.draw(relations([name]))
    keys, sql = order_by(source, [data.draw(FLAGS)])
    node = p.SortRows(input=source.scan, keys=keys)
    assert_node(backend, node, f"select * from t order by {sql}", ordered=True, t=source)


@settings(max_examples=100)
@given(data=st.data())
def test_several_keys(backend: str, data: st.DataObject) -> None:
    types = data.draw(st.lists(st.sampled_from(sorted(COLUMNS)), min_size=2, max_size=4))
    source = data.draw(relations(types))
    keys, sql = order_by(source, [data.draw(FLAGS) for _ in types])
    node = p.SortRows(input=source.scan, keys=keys)
    assert_node(backend, node, f"select * from t order by {sql}", ordered=True, t=source)


@settings(max_examples=100)
@given(data=st.data(), count=st.integers(0, 6), offset=st.integers(0, 6))
def test_top_k(backend: str, data: st.DataObject, count: int, offset: int) -> None:
    types = data.draw(st.lists(st.sampled_from(sorted(COLUMNS)), min_size=1, max_size=3))
    source = data.draw(relations(types))
    keys, sql = order_by(source, [data.draw(FLAGS) for _ in types])
    node = p.TopK(input=source.scan, keys=keys, count=count, offset=offset)
    sql = f"select * from t order by {sql} limit {count} offset {offset}"
    assert_node(backend, node, sql, ordered=True, t=source)


@pytest.mark.parametrize("offset", [0, 5, 2_999, 10_000])
def test_top_k_of_many_rows_with_ties(backend: str, offset: int) -> None:
    rows = 3000
    source = relation(
        {
            "n": pa.array(range(rows), pa.int32()),
            "x0": dictionary([f"v{i * 7919 % 40}" for i in range(rows)]),
            "x1": pa.array([None if i % 3 else i * 31 % 100 for i in range(rows)]),
        }
    )
    keys, sql = order_by(source, [(True, False), (False, True)])
    node = p.TopK(input=source.scan, keys=keys, count=10, offset=offset)
    sql = f"select * from t order by {sql} limit 10 offset {offset}"
    assert_node(backend, node, sql, ordered=True, t=source)


def test_equal_keys_keep_their_order(backend: str) -> None:
    rows = 70_000  # more than one pass of the radix sort
    source = relation({"n": pa.array(range(rows)), "x0": [i * 7919 % 9 for i in range(rows)]})
    node = p.SortRows(input=source.scan, keys=(source.order("x0"),))
    result = run(backend, node, source)
    pairs = list(zip(result["c1"].to_pylist(), result["c0"].to_pylist(), strict=True))
    assert pairs == sorted(pairs)


@pytest.mark.parametrize("spread", [1, 10**5, 10**14])
def test_many_rows_of_any_range(backend: str, spread: int) -> None:
    rows = 70_001
    values = [i * 7919 % rows * spread for i in range(rows)]
    source = relation({"x0": pa.array(values, pa.int64())})
    node = p.SortRows(input=source.scan, keys=(source.order("x0"),))
    assert run(backend, node, source)["c0"].to_pylist() == sorted(values)


@pytest.mark.parametrize("order", ["v", "v desc", "v nulls first", "v desc nulls first, n desc"])
@pytest.mark.parametrize("values", ["n * 7919 % 1009", "n % 3", "7", "null::integer", "n", "-n"])
def test_the_first_rows_by_the_bound_of_a_sample(
    values: str, order: str, limits: SetLimits
) -> None:
    limits(SAMPLED_ROWS=40, LEAST_SAMPLED=2)
    rows = (
        f"select n, case when n % 11 = 0 then null else {values} end as v from range(3000) as r(n)"
    )
    query = f"select n, v from ({rows}) as t order by {order}, n limit 15 offset 2"
    assert_same_as_duckdb(query, fuse=("never",))


WIDE = [-(2**63), 2**63 - 1, 0, None]
TIES = {
    "one value": pa.array([7] * 3000),
    "few": pa.array([i * 7 % 3 for i in range(3000)]),
    "wide with NULL": pa.array([WIDE[i * i % 4] for i in range(3000)], pa.int64()),
    "floats": pa.array([float(i * i % 5) for i in range(3000)]),
    "texts": pa.array([f"the same first bytes {i % 4}" for i in range(3000)]),
    "each its own": pa.array([i * 1009 % 3000 for i in range(3000)]),
}


@pytest.mark.parametrize("descending", [False, True])
@pytest.mark.parametrize("second", TIES)
@pytest.mark.parametrize("first", TIES)
def test_where_many_tie_in_a_key_the_next_one_chooses(
    first: str, second: str, descending: bool, limits: SetLimits
) -> None:
    limits(FEW_CANDIDATES=20)
    arrays = [TIES[first], TIES[second], TIES["few"]]
    keys = [SortColumn(array, descending, nulls_first=not descending) for array in arrays]
    assert first_rows(keys, 37).tolist() == sorted_order(keys)[:37].tolist()
