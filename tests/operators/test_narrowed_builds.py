"""Build sides of which a chunk of the probe side reads some row groups alone: each is read about once, and answers stay the same."""

from __future__ import annotations

import importlib
from collections import Counter
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from fuseline.plan.physical import ParquetScan
from tests.compare import assert_same_as_duckdb, connected

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

ROWS, GROUP = 40_000, 500
LIMITS: dict[str, Any] = {"column_cache_limit": "60kB"}
Read = dict[str, Counter[int]]  # how often each row group of a table was read


@pytest.fixture(scope="module")
def tables(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """Orders of four lines each, both in the order of their keys; `shuffled` is not, `gaps` lacks keys and has NULLs."""
    random, folder = np.random.default_rng(5), tmp_path_factory.mktemp("narrowed")
    keys = np.arange(ROWS) // 4
    lines = pa.table({"k": keys, "n": random.integers(0, 9, ROWS), "v": random.integers(0, 10**6, ROWS), "w": random.integers(0, 10**6, ROWS)})  # fmt: skip
    orders = pa.table({"k": np.arange(ROWS // 4), "c": random.integers(0, 50, ROWS // 4), "x": random.integers(0, 10**6, ROWS // 4)})  # fmt: skip
    few = pa.table({"c": np.arange(50), "s": [f"name {i}" for i in range(50)]})
    gaps = orders.filter(pa.array(np.arange(ROWS // 4) % 3 == 0))
    nulls = pa.table({"k": pa.array([None if i % 11 == 0 else i for i in range(ROWS // 4)], pa.int64()), "y": orders["x"]})  # fmt: skip
    made = {"lines": lines, "orders": orders, "few": few, "gaps": gaps, "nulls": nulls}
    made["shuffled"] = orders.take(pa.array(random.permutation(ROWS // 4)))
    for name, table in made.items():
        rows = GROUP if name == "lines" else GROUP // 4
        pq.write_table(table, folder / f"{name}.parquet", row_group_size=rows)
    return {name: folder / f"{name}.parquet" for name in made}


@pytest.fixture
def run(
    backend: str, tables: dict[str, Path], monkeypatch: pytest.MonkeyPatch
) -> Callable[[str], tuple[Read, list[int]]]:
    """Compare a query's answer under limits with DuckDB's; return what of it was read, and the chunks of its pipelines."""
    operators = importlib.import_module(f"fuseline.operators.{backend}").OPERATORS
    scan = operators[ParquetScan]

    def check(query: str) -> tuple[Read, list[int]]:
        read: Read = {}

        def noted(node: ParquetScan, inputs: Any, context: Any) -> Any:
            table: Any = node.table
            for part in node.selection or table.all_row_groups:
                read.setdefault(table.name, Counter()).update(part.groups)
            return scan(node, inputs, context)

        settings = {"fuse": "always", "host_cache_limit": 0, **LIMITS}
        with connected(tables, backend, **settings) as connection:
            monkeypatch.setitem(operators, ParquetScan, noted)
            frame = connection.sql(query)
            frame.to_arrow()
            monkeypatch.undo()
            assert_same_as_duckdb(query, tables, connection=connection)
            return read, [node.receipt.chunks for node in frame.profile.pipelines]

    return check


@pytest.mark.by_day(2)
@pytest.mark.parametrize(
    "join",
    [
        "l join orders o on l.k = o.k and o.c < 40",
        "l left join (select * from gaps where c > 5) o on l.k = o.k",
        "l left join gaps o on l.k = o.k and o.x > l.v",
        "l join orders o on l.k = o.k join few f on o.c = f.c and f.s <> 'name 3'",
        "l join (select o.k, o.c, o.x from orders o join few f on o.c = f.c where f.s < 'name 3') o on l.k = o.k",
    ],
)
def test_both_sides_come_in_chunks(run: Callable[..., Any], join: str) -> None:
    query = f"select n, count(*), sum(v), sum(w), sum(o.x), count(o.c) from lines {join} group by n"
    read, chunks = run(query)
    assert max(chunks) > 2
    table = "gaps" if "gaps" in join else "orders"
    groups = (ROWS // 4 if table == "orders" else len(range(0, ROWS // 4, 3))) // (GROUP // 4)
    assert set(range(groups)) <= set(read[table])
    assert read["lines"].total() == ROWS // GROUP
    assert read[table].total() <= 2 * (groups + 1)


@pytest.mark.by_day(2)
@pytest.mark.parametrize(
    "condition",
    [
        "exists (select 1 from lines o where o.k = l.k and o.n <> l.n)",
        "not exists (select 1 from lines o where o.k = l.k and o.n > l.n and o.v < l.v)",
        "l.k in (select k from gaps)",
        "l.k not in (select k from gaps)",
        "not exists (select 1 from nulls o where o.k = l.k)",
        "l.k not in (select k from nulls where k is not null)",
        "l.k not in (select k from nulls)",
        "(l.k in (select k from nulls)) is null",
        "exists (select 1 from nulls o where o.k is not distinct from l.k)",
        "l.v > (select max(x) from orders o where o.k = l.k)",
    ],
)
def test_conditions_on_other_rows(run: Callable[..., Any], condition: str) -> None:
    run(f"select n, count(*), sum(v), sum(w) from lines l where {condition} group by n")


def test_rows_that_are_joined_with_themselves_are_read_once(run: Callable[..., Any]) -> None:
    query = "select n, count(*), sum(v), sum(w) from lines l where exists (select 1 from lines o where o.k = l.k and o.n <> l.n) group by n"
    read, chunks = run(query)
    assert max(chunks) > 2
    # By the scan of each side, though the rows of the second one are there already
    assert max(read["lines"].values()) <= 2


@pytest.mark.parametrize("side", ["shuffled", "orders"])
def test_rows_that_do_not_ascend_are_made_once(run: Callable[..., Any], side: str) -> None:
    key = "k" if side == "shuffled" else "x"
    read, chunks = run(
        f"select n, sum(v), sum(w), sum(o.c) from lines l join {side} o on l.k = o.{key} group by n"
    )
    assert max(chunks) > 2
    assert set(read[side].values()) == {1}


def test_rows_of_joins_come_out(run: Callable[..., Any]) -> None:
    query = "select l.k, l.n, l.v, l.w, o.x from lines l join gaps o on l.k = o.k where l.v < 20000 and o.c = 7"
    run(query)
