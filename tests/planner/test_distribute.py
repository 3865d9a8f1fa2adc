"""Where the workers of a cluster meet: as late as an operator allows, and nowhere for what each has whole."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from fuseline.plan.exchange import Exchange
from fuseline.plan.node import walk_once
from fuseline.plan.physical import HashAggregate, ParquetScan, Physical, Transfer
from fuseline.planner.distribute import Distribution
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
    "select count(*) from small left join big using (g)": ["broadcast of ParquetScan"],
    "select count(*) from big a join big b on a.x = b.g": ["gather of HashAggregate", "broadcast of ParquetScan"],
    "select count(*) from big where x in (select g from big)": ["gather of HashAggregate", "broadcast of ParquetScan"],
    "select count(*) from big a full join big b on a.x = b.g":
        ["gather of HashAggregate", "hash x of ParquetScan", "hash g of ParquetScan"],
    "select g from big intersect select g from small": [
        "gather of HashSetOperation", "hash g of ParquetScan", "pick g of ParquetScan"],
    "select x from big union all select g from big": ["gather of ConcatRows"],
    "select x from big union all select g from small": ["gather of ConcatRows", "pick of ParquetScan"],
    "select x from big where x > (select avg(x) from big)":
        ["gather of NestedLoopJoin", "broadcast of HashAggregate"],
    "select x from big where x > (select avg(s) + 1 from (select g, sum(x) as s from big group by g having sum(x) > 2))":
        ["gather of NestedLoopJoin", "broadcast of HashAggregate"],
    "select x from big where x > (select max(x) from (select x from big order by x limit 3))":
        ["gather of NestedLoopJoin", "broadcast of TopK"],
    "select a.x from big a join (select g, s from (select g, avg(x) as s from big group by g) join small using (g)) b on a.x < b.s":
        ["gather of HashJoin", "broadcast of HashAggregate"],
    "with few as materialized (select g from big where x < 5) "
    "select count(*) from big where g in (select g from few) and x in (select g from few)":
        ["gather of HashAggregate", "broadcast of FilterRows"],
    "select s.g from small s where s.g in (select x from big where x > 1) order by 1":
        ["broadcast of FilterRows"],
}  # fmt: skip

# Where nothing is small enough to be sent to all without a comparison
LARGE = {
    "select g, avg(x) from big group by g": ["gather of FinishAverages", "hash g of HashAggregate"],
    "select sum(x) from big": ["gather of HashAggregate"],
    "select g, median(x) from big group by g": ["gather of HashAggregate", "hash g of ComputeColumns"],
    "select x from big order by x": ["gather of SortRows", "sort of SortRows"],
    "select distinct on (g) x from big order by g": ["gather of ComputeColumns", "sort of SortRows", "hash g of ParquetScan"],
    "select a.x, b.g from big a join big b on a.x = b.g": [
        "gather of ComputeColumns", "hash g of ParquetScan", "hash x of ParquetScan"],
    "select a.x, count(*) from big a left join big b on a.x = b.g group by a.x": [
        "gather of HashAggregate", "hash x of ParquetScan", "hash g of ParquetScan"],
    "select a.x, b.x from big a full join big b on a.x = b.g": [
        "gather of HashJoin", "hash x of ParquetScan", "hash g of ParquetScan"],
    "select x from big where x not in (select g from big)": [
        "gather of HashJoin", "hash x of ParquetScan", "hash g of ParquetScan"],
    "select g from big intersect select x from big": [
        "gather of HashSetOperation", "hash g of ParquetScan", "hash x of ParquetScan"],
    "select a.x from big a join small s on a.g = s.g": ["gather of HashJoin"],
    "select x, row_number() over (partition by g order by x) from big": [
        "gather of WindowRows", "hash g of ParquetScan"],
    "select x, row_number() over (order by x) from big": ["gather of ParquetScan"],
    "with c as materialized (select g, sum(x) as s from big group by g) select * from c a join c b on a.s = b.g": [
        "gather of ComputeColumns", "hash key of ComputeColumns", "hash g of HashAggregate", "hash s of ComputeColumns"],
}  # fmt: skip


@pytest.fixture
def connection(tmp_path: Path) -> Any:
    pq.write_table(pa.table({"x": range(9), "g": [1, 2, 3] * 3}), tmp_path / "big.parquet")
    pq.write_table(pa.table({"g": [1, 2]}), tmp_path / "small.parquet")
    with connected(
        {n: tmp_path / f"{n}.parquet" for n in ("big", "small")}, fuse="never"
    ) as opened:
        yield opened


class Halves:
    """Tables whose names begin with `big` are cut; those that have a column `key` are cut there at the same values."""

    workers = 3

    def is_whole(self, scan: ParquetScan) -> bool:
        return not scan.table.name.startswith("big")

    def is_clustered(self, scan: ParquetScan, source: str) -> bool:
        return source == "key"

    def may_be_key(self, scan: ParquetScan, source: str) -> bool:
        return True

    def usual_key(self, scan: ParquetScan) -> str | None:
        return None

    def cuts(self, scan: ParquetScan, source: str) -> tuple[int, ...]:
        return (3, 6)

    def skew(self, scan: ParquetScan, source: str, cuts: tuple[int, ...]) -> float:
        return 1.0

    def limits(self, cuts: tuple[int, ...]) -> tuple[int | None, int | None]:
        return None, cuts[0]

    def share(self, scan: ParquetScan, cut: Any) -> ParquetScan:
        return scan


def exchanges(query: str, connection: Any, small: float) -> list[str]:
    """Check that numbers tell exchanges apart, and return them from the root of the plan on."""
    placed = connection.physical(connection.sql(query)._plan)
    plan = Distribution(Halves(), placed, small).on_first()
    met = [node for node in walk_once(plan) if isinstance(node, Exchange)]
    assert len({node.number for node in met}) == len(met)
    return [
        f"{node.kind}{''.join(f' {c.name}' for c in node.keys)} of {type(node.input).__name__}"
        for node in met
    ]


@pytest.mark.parametrize("query", CASES)
def test_where_workers_meet(query: str, connection: Any) -> None:
    assert exchanges(query, connection, 1 << 40) == CASES[query]


@pytest.mark.parametrize("query", LARGE)
def test_what_is_not_small_goes_where_its_hash_says(query: str, connection: Any) -> None:
    assert exchanges(query, connection, 0) == LARGE[query]


def with_transfers(node: Physical) -> Physical:
    """A plan whose aggregates run on another device than what reads them."""
    made = node.with_children([with_transfers(child) for child in node.children])
    return Transfer(made, device="cpu") if isinstance(node, HashAggregate) else made


def test_the_hash_of_another_device_is_another_one(connection: Any) -> None:
    query = "select a.g, b.x from (select g, sum(x) as s from big group by g) a full join big b on a.g = b.x"
    placed = connection.physical(connection.sql(query)._plan)
    found = []
    for plan in (placed, with_transfers(placed)):
        made = Distribution(Halves(), plan, 0).on_first()
        met = [node for node in walk_once(made) if isinstance(node, Exchange)]
        found.append([type(node.input).__name__ for node in met if node.kind == "hash"])
    assert found == [["HashAggregate", "ParquetScan"], ["Transfer", "HashAggregate", "ParquetScan"]]
