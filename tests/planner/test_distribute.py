"""Where the workers of a cluster meet: as late as an operator allows, and nowhere for what each has whole."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from fuseline.plan.node import walk_once
from fuseline.plan.partial import Exchange
from fuseline.plan.physical import HashJoin, ParquetScan
from fuseline.planner.distribute import distribute
from tests.compare import connected

# What is exchanged in a plan, from its root on, where `big` is cut into shares and `small` is on each worker
CASES = {
    "select x from big where x > 3": ["gather of FilterRows"],
    "select x + 1 from big": ["gather of ComputeColumns"],
    "select sum(x) from big": ["gather of HashAggregate"],
    "select g, avg(x) from big group by g having sum(x) > 3": ["gather of HashAggregate"],
    "select count(*) from big": [], "select sum(g) from small": [],
    "select median(x) from big": ["gather of ComputeColumns"],
    "select x from big order by x": ["gather of ParquetScan"],
    "select x from big order by x limit 3": ["gather of TopK"],
    "select x from big limit 3 offset 2": ["gather of LimitRows"],
    "select sum(x) from big join small using (g)": ["gather of HashAggregate"],
    "select count(*) from small left join big using (g)": ["gather of ParquetScan"],
    "select count(*) from big a join big b on a.x = b.g": ["gather of HashAggregate", "broadcast of ParquetScan"],
    "select count(*) from big where x in (select g from big)": ["gather of HashAggregate", "broadcast of ParquetScan"],
    "select count(*) from big a full join big b on a.x = b.g": ["gather of ParquetScan", "gather of ParquetScan"],
    "select g from big intersect select g from small": ["gather of ParquetScan"],
    "select x from big union all select g from big": ["gather of ConcatRows"],
    "select x from big union all select g from small": ["gather of ParquetScan"],
    "select x from big where x > (select avg(x) from big)":
        ["gather of NestedLoopJoin", "broadcast of ComputeColumns", "gather of HashAggregate"],
}  # fmt: skip


@pytest.fixture
def connection(tmp_path: Path) -> Any:
    pq.write_table(pa.table({"x": range(9), "g": [1, 2, 3] * 3}), tmp_path / "big.parquet")
    pq.write_table(pa.table({"g": [1, 2]}), tmp_path / "small.parquet")
    with connected(
        {n: tmp_path / f"{n}.parquet" for n in ("big", "small")}, fuse="never"
    ) as opened:
        yield opened


def share_of(scan: ParquetScan) -> ParquetScan | None:
    return scan if scan.table.name == "big" else None


@pytest.mark.parametrize("query", CASES)
def test_where_workers_meet(query: str, connection: Any) -> None:
    plan = distribute(connection.physical(connection.sql(query)._plan), share_of)
    met = [node for node in walk_once(plan) if isinstance(node, Exchange)]
    assert [f"{node.kind} of {type(node.input).__name__}" for node in met] == CASES[query]
    assert len({node.number for node in met}) == len(met)


def test_what_several_nodes_read_is_exchanged_once(connection: Any) -> None:
    query = "with c as materialized (select g, sum(x) as s from big group by g) select * from c a join c b on a.s = b.g"
    plan = distribute(connection.physical(connection.sql(query)._plan), share_of)
    (join,) = [node for node in walk_once(plan) if isinstance(node, HashJoin)]
    assert len([node for node in walk_once(join) if isinstance(node, Exchange)]) == 1
