"""What two workers run of TPC-H at SF10, where all tables but small ones are cut, beside what one runs alone."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest

import fuseline
from benchmarks import tpch
from benchmarks.data import tpch_tables
from fuseline.distributed.own_plans import Form, own_plan, placement_for, whole_plan
from fuseline.plan.exchange import Exchange
from fuseline.plan.node import transform_up, walk_once
from fuseline.plan.physical import Physical, Pipeline
from fuseline.plan.text.plan_text import tree
from fuseline.planner.pipelines.fuse import fuse
from fuseline.storage.shards import Placement, Shards
from fuseline.storage.tables.memory_table import ShardedTable
from tests.compare import assert_same_as_duckdb, connected
from tests.distributed.conftest import Opened
from tests.planner.scaled_tables import scaled_table

SCALE, ROOM = 10, 70 << 30  # bytes of columns on a GPU of 141 GB
Placed = tuple[Any, dict[str, Physical]]


class Work(NamedTuple):
    """How many kernels' pipelines, operators beside them, and exchanges a plan has."""

    pipelines: int
    operators: int
    exchanges: int = 0

    @classmethod
    def of(cls, plan: Physical) -> Work:
        nodes = list(walk_once(plan))
        pipelines = sum(isinstance(node, Pipeline) for node in nodes)
        exchanges = sum(isinstance(node, Exchange) for node in nodes)
        return cls(pipelines, len(nodes) - pipelines - exchanges, exchanges)


# Alone, and of two, with what the client does of it
WORK = {
    "q01": (Work(1, 1), Work(1, 4, 1)),
    "q02": (Work(3, 2), Work(3, 3, 1)),
    "q03": (Work(1, 2), Work(1, 3, 1)),
    "q04": (Work(1, 1), Work(1, 3, 1)),
    "q05": (Work(1, 1), Work(1, 3, 1)),
    "q06": (Work(1, 0), Work(1, 2, 1)),
    "q07": (Work(1, 1), Work(1, 3, 1)),
    "q08": (Work(1, 2), Work(1, 4, 1)),
    "q09": (Work(1, 1), Work(1, 3, 1)),
    "q10": (Work(1, 2), Work(3, 4, 2)),
    "q11": (Work(3, 2), Work(3, 4, 2)),
    "q12": (Work(1, 1), Work(1, 3, 1)),
    "q13": (Work(3, 1), Work(4, 1, 1)),
    "q14": (Work(1, 1), Work(1, 3, 1)),
    "q15": (Work(2, 3), Work(2, 5, 1)),
    "q16": (Work(2, 1), Work(3, 1, 2)),
    "q17": (Work(2, 1), Work(2, 6, 2)),
    "q18": (Work(2, 1), Work(2, 2, 1)),
    "q19": (Work(1, 0), Work(1, 2, 1)),
    "q20": (Work(2, 1), Work(3, 1, 1)),
    "q21": (Work(1, 1), Work(1, 3, 1)),
    "q22": (Work(2, 1), Work(4, 1, 1)),
}


# Of four, at SF100: of the others the client takes in what each has made
MOVED_AT_SF100 = {
    "q10": ["gather", "hash"],
    "q11": [],  # which one runs sooner than they meet
    "q13": ["gather", "pick", "hash"],
    "q16": [],
    "q17": ["gather", "broadcast"],
    "q20": ["gather"],  # of more than is small, since what comes of it would be sent to all
    "q22": [],
}


@pytest.fixture(scope="module")
def placed() -> Iterator[Placed]:
    """Plans without pipelines, and the settings for them."""
    yield from _placed(SCALE)


@pytest.fixture(scope="module")
def placed_at_sf100() -> Iterator[Placed]:
    yield from _placed(10 * SCALE)


def _placed(scale: int) -> Iterator[Placed]:
    with connected(fuse="never") as connection:
        for name, path in tpch_tables(0.01).items():
            connection.catalog.put(scaled_table(Path(path), name, scale * 100))
        found = {
            name: connection.physical(connection.sql(text)._plan)
            for name, text in tpch.queries(scale).items()
        }
        yield replace(connection.settings, fuse="always", placement="sharded"), found


def test_few_pipelines_fall_apart(placed: Placed, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Shards, "share", lambda shards, scan, cut: scan)  # there are no such rows
    settings, plans = placed
    placement = Placement.of(settings, ROOM, frozenset())
    found = {
        name: (
            Work.of(fuse(plan, "always")),
            Work.of(whole_plan(plan, settings, placement, 0, 2).plan),
        )
        for name, plan in plans.items()
    }
    assert {name: work for name, work in found.items() if work != WORK[name]} == {}


def test_few_rows_move_at_sf100(placed_at_sf100: Placed, monkeypatch: pytest.MonkeyPatch) -> None:
    """What a GPU reads sooner than workers meet is whole on each, and what the first merges sooner goes there at once."""
    monkeypatch.setattr(Shards, "share", lambda shards, scan, cut: scan)
    settings, plans = placed_at_sf100
    usual, found = Placement.of(settings, ROOM, frozenset()), {}
    for name, plan in plans.items():
        placement, _ = placement_for(plan, settings, usual, 4)
        own = whole_plan(plan, settings, placement, 0, 4).plan
        found[name] = [node.kind for node in walk_once(own) if isinstance(node, Exchange)]
    assert {
        n: kinds for n, kinds in found.items() if kinds != ["gather"] or n == "q20"
    } == MOVED_AT_SF100


@pytest.mark.parametrize("few", [False, True])
def test_groups_that_turned_out_to_be_many_go_by_their_hash(
    few: bool, placed: Placed, monkeypatch: pytest.MonkeyPatch
) -> None:
    """On the device on which a worker has them; few are merged by the client."""
    monkeypatch.setattr(Shards, "share", lambda shards, scan, cut: scan)
    settings, plans = placed[0], placed[1]
    plan = transform_up(plans["q01"], lambda node: node.replaced(device="gpu"))
    placement = replace(Placement.of(settings, ROOM, frozenset()), few_groups=few)
    own, _, form = own_plan(plan, replace(settings, fuse="never"), placement, 0, 2)
    kinds = [node.kind for node in walk_once(own) if isinstance(node, Exchange)]
    assert (form.meets, form.rest is None, kinds) == (
        not few,
        not few,
        [] if few else ["sort", "hash"],
    )
    assert {node.device for node in walk_once(own)} == {"gpu"}


def test_one_worker_runs_the_plan_as_it_is(placed: Placed) -> None:
    settings, plans = placed
    placement = Placement.of(settings, ROOM, frozenset())
    for plan in plans.values():
        own, claims, form = own_plan(plan, settings, placement, 0, 1)
        assert (claims, form) == ((), Form(meets=False, spread=True, rest=None))
        assert tree(own) == tree(fuse(plan, "always"))


LINES = pa.table({"k": [n % 90 for n in range(2000)], "n": [n * 7 % 1001 for n in range(2000)]})
SMALL = pa.table({"k": range(120), "name": [f"name {n % 9}" for n in range(120)]})
TABLES = {"lines": LINES, "small": SMALL}
QUERIES = (
    "select name, sum(n), count(distinct n) from lines join small using (k) group by name",
    "select count(*), sum(n) from small left join lines using (k)",
    "select k from small where k not in (select k from lines) order by k",
    "select n, k from lines order by n, k limit 5 offset 2",
    "select k from small except select k from lines where n > 500",
    "select name, n from lines join small using (k) order by n desc, name",
    "select median(n) from lines", "select n from lines where n > (select avg(n) from lines) order by 1 limit 3",
)  # fmt: skip


def test_a_table_much_smaller_than_another_is_whole_on_each(opened: Opened) -> None:
    connection = opened(TABLES, placement="sharded", replicate_below="1MB", one_worker_below=0)
    text = connection.sql(QUERIES[0]).explain()
    found = dict(re.findall(r"ParquetScan  (\w+) .*, (\w+)", text))
    assert found == {"lines": "arbitrary", "small": "replicated"}
    for query in QUERIES:
        assert_same_as_duckdb(query, TABLES, connection=connection)


def test_all_scans_of_a_table_are_whole_or_none_is(opened: Opened) -> None:
    """Its texts alone would take too much on average, with its numbers they do not."""
    connection = opened(TABLES, placement="sharded", replicate_below=800, one_worker_below=0)
    query = "select count(*), max(k) from lines join small using (k) where name > (select min(name) from small)"
    text = connection.sql(query).explain()
    assert re.findall(r"ParquetScan  small .*, (\w+)", text) == ["replicated"] * 2
    assert_same_as_duckdb(query, TABLES, connection=connection)


def test_a_crew_of_one(tmp_path: Path) -> None:
    """It meets nobody, and rows that it keeps stay there."""
    distributed = pytest.importorskip("distributed", reason="the extra dask is not installed")
    with (
        distributed.LocalCluster(
            n_workers=1, processes=False, dashboard_address="127.0.0.1:0"
        ) as cluster,
        distributed.Client(cluster, direct_to_workers=True) as client,
        fuseline.connect("cpu", cluster=client, replicate_below=0) as connection,
    ):
        for name, table in TABLES.items():
            pq.write_table(table, tmp_path / f"{name}.parquet", row_group_size=50)
            connection.read_parquet(tmp_path / f"{name}.parquet", name)
        for query in QUERIES:
            assert "Exchange" not in connection.sql(query).explain()
            assert_same_as_duckdb(query, TABLES, connection=connection)
        connection.execute("create table made as select k, n + 1 as m from lines")
        assert isinstance(connection.catalog.table("made"), ShardedTable)
        tables = {"made": pa.table({"k": LINES["k"], "m": pc.add(LINES["n"], 1)}), **TABLES}
        query = "select sum(m), count(*) from made join small using (k)"
        assert_same_as_duckdb(query, tables, connection=connection)
