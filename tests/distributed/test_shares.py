"""TPC-H and random queries over shares of three workers, cut where row groups of different tables do not line up."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import fuseline
from benchmarks import tpch
from benchmarks.data import tpch_tables
from tests.compare import difference, duckdb_answer, fuseline_answer, ordering
from tests.random_queries.cases import Engines, Tables, assert_sound, run_shape

SCALE = 0.01
QUERIES = tpch.queries(SCALE)
WINDOWS = (
    "select o_orderkey, row_number() over (partition by o_custkey order by o_orderkey) as n from orders",
    "select o_orderkey, sum(o_totalprice) over (order by o_orderkey rows 3 preceding) as s from orders",
    "select l_suppkey, max(total) over () as best from (select l_suppkey, sum(l_quantity) as total from lineitem group by all)",
    "select c_custkey, avg(c_acctbal) over (partition by c_nationkey) as a from customer qualify c_acctbal > a",
)


@pytest.fixture(scope="module")
def both(
    client: Any, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[tuple[Any, duckdb.DuckDBPyConnection]]:
    folder = tmp_path_factory.mktemp("tpch")
    with (
        fuseline.connect("cpu", cluster=client, replicate_below=0) as ours,
        duckdb.connect() as duck,
    ):
        for name, source in tpch_tables(SCALE).items():
            path = folder / f"{name}.parquet"
            pq.write_table(pq.read_table(source), path, row_group_size=5000)
            ours.read_parquet(path, name)
            duck.execute(f"create view {name} as from '{path}'")
        yield ours, duck


@pytest.mark.by_day(3)
@pytest.mark.parametrize("name", QUERIES)
def test_tpch(name: str, both: tuple[Any, duckdb.DuckDBPyConnection]) -> None:
    ours, duck = both
    expected, actual = duckdb_answer(duck, QUERIES[name]), fuseline_answer(ours, QUERIES[name])
    problem = difference(expected, actual, ordering(QUERIES[name], expected.column_names))
    assert problem is None, problem


@pytest.mark.parametrize("query", WINDOWS)
def test_windows(query: str, both: tuple[Any, duckdb.DuckDBPyConnection]) -> None:
    ours, duck = both
    expected, actual = duckdb_answer(duck, query), fuseline_answer(ours, query)
    assert difference(expected, actual, ordering(query, expected.column_names)) is None


class Shared(Engines):
    """Ours read files of small row groups, a share each, cut at keys where there is one."""

    def __init__(self, client: Any, folder: Path) -> None:
        super().__init__("cpu", None, ("never",), cluster=client, replicate_below=0)
        self._folder, self._loaded = folder, 0

    def load(self, data: Tables) -> None:
        self._loaded += 1
        for name, given in data.items():
            table = ascending(given)
            path = self._folder / f"{name}{self._loaded}.parquet"
            pq.write_table(table, path, row_group_size=max(1, table.num_rows // 5))
            for engine in (self.duck, self.unoptimized):
                engine.register(name, table)
            for ours in self.ours.values():
                ours.read_parquet(path, name)


def ascending(table: pa.Table) -> pa.Table:
    """Sort the rows by the first integer that is never NULL, by which they are then cut."""
    keys = (f.name for f in table.schema if pa.types.is_integer(f.type) and not table[f.name].null_count)  # fmt: skip
    key = next(keys, None)
    return table if key is None else table.sort_by(key)


@pytest.mark.parametrize(
    "seeds", [range(12), pytest.param(range(12, 200), marks=pytest.mark.nightly)]
)
def test_random_shapes(seeds: range, client: Any, tmp_path: Path) -> None:
    engines = Shared(client, tmp_path)
    with engines.stack:
        assert_sound([run_shape(engines, seed, draws=3) for seed in seeds])


def test_a_share_of_too_few_rows_for_a_kernel_agrees_with_the_others(
    client: Any, tmp_path: Path
) -> None:
    """Workers with a kernel waited for ever for the one without: rows of two row groups, as DuckDB writes them, on three workers."""
    path = tmp_path / "t.parquet"
    numbers = range(150_000)
    table = pa.table({"k": [n * 7919 % 5000 for n in numbers], "v": numbers})
    pq.write_table(table, path, row_group_size=122_880)
    settings = {"replicate_below": 0, "one_worker_below": 0}
    text = "select k, count(*) as n, sum(v) as s from t where v % 3 = 0 group by k order by k"
    with fuseline.connect("cpu", cluster=client, **settings) as ours, duckdb.connect() as duck:
        ours.read_parquet(path, "t")
        duck.execute(f"create view t as from '{path}'")
        expected, actual = duckdb_answer(duck, text), fuseline_answer(ours, text)
    assert difference(expected, actual, ordering(text, expected.column_names)) is None
