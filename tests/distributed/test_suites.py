"""TPC-H and SSB over three workers, with row groups that line up nowhere, and with what is small whole on each worker."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import fuseline
from benchmarks import ssb, tpch
from benchmarks.data import ssb_tables, tpch_tables
from tests.compare import difference, duckdb_answer, fuseline_answer, ordering

GROUP_ROWS = 5000
SSB_SCALE, TPCH_SCALE = 0.01, 0.1
EXCHANGE = re.compile(r"Exchange (\w+)")
Both = tuple[Any, duckdb.DuckDBPyConnection]
Opened = Callable[[Mapping[str, Any], int], Both]


@pytest.fixture(scope="module")
def opened(client: Any, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Opened]:
    """Connect to workers and DuckDB, with tables written in small row groups; once for each setting."""
    made: dict[tuple[str, ...], Both] = {}

    def connect(tables: Mapping[str, Any], below: int) -> Both:
        key = (*map(str, tables.values()), str(below))
        if key not in made:
            folder = tmp_path_factory.mktemp("suite")
            ours = fuseline.connect(
                "cpu", cluster=client, replicate_below=below, one_worker_below=0
            )
            duck = duckdb.connect()
            for name, source in tables.items():
                path = folder / f"{name}.parquet"
                pq.write_table(pq.read_table(source), path, row_group_size=GROUP_ROWS)
                ours.read_parquet(path, name)
                duck.execute(f"create view {name} as from '{path}'")
            made[key] = ours, duck
        return made[key]

    yield connect
    for ours, duck in made.values():
        ours.close()
        duck.close()


def check(both: Both, queries: Mapping[str, str]) -> Counter[str]:
    """Compare answers, and count the exchanges of all queries by their kind."""
    ours, duck = both
    found: Counter[str] = Counter()
    for name, text in queries.items():
        expected, actual = duckdb_answer(duck, text), fuseline_answer(ours, text)
        problem = difference(expected, actual, ordering(text, expected.column_names))
        assert problem is None, f"{name}: {problem}"
        found.update(EXCHANGE.findall(ours.sql(text).explain()))
    return found


@pytest.mark.parametrize("below", [0, 20_000])
def test_ssb(below: int, opened: Opened) -> None:
    met = check(opened(ssb_tables(SSB_SCALE), below), ssb.queries(SSB_SCALE))
    assert met["gather"]


@pytest.mark.nightly
@pytest.mark.parametrize("below", [0, 100_000])
def test_tpch(below: int, opened: Opened) -> None:
    met = check(opened(tpch_tables(TPCH_SCALE), below), tpch.queries(TPCH_SCALE))
    assert {"gather", "broadcast", "hash", "range"} <= {*met}


def test_each_kind_of_exchange_is_met(opened: Opened) -> None:
    """What TPC-H leaves out are rows that each worker has, of which it picks its own."""
    both = opened(tpch_tables(0.01), 0)
    mine = pa.table({"k": range(700)})
    for connection in both:
        connection.register("mine", mine)
    met = check(
        both,
        {
            "pick": "select count(*), count(o_custkey) from mine left join orders on k = o_custkey",
            "range": "select count(*), sum(l_quantity) from lineitem join orders on l_orderkey = o_custkey",
            "hash": "select o_custkey, sum(o_totalprice) from orders group by o_custkey having count(*) > 20",
            "broadcast": "select count(*) from customer where c_acctbal > (select avg(c_acctbal) from customer)",
        },
    )
    assert {*met} == {"gather", "pick", "range", "hash", "broadcast"}
