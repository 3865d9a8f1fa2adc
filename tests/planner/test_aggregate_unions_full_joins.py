"""Full joins as two pipelines: the rows of one side with their matches, and those of the other without."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pyarrow as pa
import pytest

import fuseline
from fuseline.plan.expr import conjuncts
from fuseline.plan.node import walk
from fuseline.plan.physical import (
    ConcatRows,
    Device,
    FilterRows,
    HashJoin,
    MemoryScan,
    Pipeline,
)
from fuseline.planner.pipelines import aggregate_unions, fuse
from fuseline.planner.pipelines.aggregate_unions import halves
from fuseline.planner.pipelines.pipeline_shape import exchanged
from tests.compare import assert_same_as_duckdb, connected

NAN = float("nan")
TABLES: dict[str, Any] = {
    "a": pa.table(
        {
            "k": [1, 1, 2, 3, None, None, 5, 7],
            "f": [0.0, -0.0, NAN, None, 1.0, 2.0, NAN, 1.5],
            "v": [1, 2, 3, None, 5, 6, 9, 8],
            "s": ["x", "y", None, "x", "z", "", "x", "w"],
        }
    ),
    "b": pa.table(
        {
            "k": [1, 1, 2, 2, None, 9, 3],
            "f": [-0.0, NAN, 1.0, None, 1.5, 9.0, 0.0],
            "w": [1, 2, 3, None, 4, 5, 9],
            "s": ["x", "x", None, "y", "q", "", "w"],
        }
    ),
    "c": pa.table({"k": [1, 2, 9, 11, None], "n": ["a", "b", "c", None, "e"]}),
    "one": pa.table({"k": [2], "x": [7]}),
    "equal": pa.table({"k": [2, 2, 2], "x": [7, 8, 9]}),
    "empty": pa.table({"k": pa.array([], pa.int64()), "x": pa.array([], pa.int64())}),
}
QUERIES = [
    "select * from a full join b on a.k = b.k",
    "select k, v, w from a full join b using (k)",
    "select * from (select k, v from a) natural full join (select k, w from b)",
    "select a.k, v, b.k as bk, w from a full join b on a.k is not distinct from b.k",
    "select v, w from a full join b on a.k = b.k and v <> w",
    "select v, w from a full join b on a.f = b.f",
    "select v, w from a full join b on a.k = b.k and a.v = b.w",
    "select v, w from a full join b on a.s = b.s",
    "select k, v, w, n from a full join b using (k) full join c using (k)",
    "select a.v, b.w, c.n from a full join b on a.k = b.k full join c on b.k = c.k where n is null or v > 1",
    "select count(*) from a full join b using (k)",
    "select count(*), sum(v), sum(w), count(a.k), count(b.k) from a full join b on a.k = b.k",
    "select k, count(*), sum(v) from a full join b using (k) group by k",
    "select v, w from (select * from a where v > 1) a full join (select * from b where w < 5) b on a.k = b.k",
    "select v, w, n from (select v, a.k, n from a join c using (k)) x full join b on x.k = b.k",
    "select v, w from a full join b on a.k = b.k where a.k is null or b.k is null",
    "select v, x from a full join empty on a.k = empty.k",
    "select v, x from empty full join a on a.k = empty.k",
    "select * from empty full join (select k as j from empty) e on empty.k = e.j",
    "select x, v from one full join a using (k)",
    "select v, x from a full join equal using (k)",
    "select o.x, e.x as y from one o full join equal e on o.k = e.k and o.x = e.x",
    "select v, w from a full join b on a.k = b.k order by v, w limit 3",
    "select v, w from a full join b on a.k = b.k and w > 1",
    "select v, w from a full join b on a.k = b.k and v > 1",
    "select v, w from a full join b on a.k = b.k and v > 1 and w < 3 and v < w + 2",
    "select v, w from a full join b on a.k = b.k and a.s = 'x' and b.s is null",
    "select v, w from a full join b on a.k = b.k and w is null",
    "select v, w from a full join b on a.k = b.k and w in (2, 5) and not v > 2",
    "select v, n from a full join c on a.k = c.k and (case when c.k = 11 then 'x' else '3' end)::int > 2",
    "select v, w from a full join b on a.k is not distinct from b.k and v > 5 and w < 5",
    "select v, w from a full join b on a.k = b.k and 1 = 2",
    "select count(*), sum(v), sum(w) from a full join b on a.k = b.k and w > 1 and v > 1",
]


@pytest.mark.by_day(3)
@pytest.mark.parametrize("query", QUERIES)
def test_answers(query: str) -> None:
    assert_same_as_duckdb(query, TABLES, fuse=("always", "never"), ordered="order by" in query)


def _plan(query: str) -> list[Any]:
    with connected(TABLES, fuse="always") as connection:
        return list(walk(connection.physical(connection.sql(query).plan)))


@pytest.fixture
def large() -> Iterator[fuseline.Connection]:
    with fuseline.connect(device="cpu", fuse="always") as connection:
        rows = pa.array(range(60_000), pa.int64())
        connection.register("large", pa.table({"k": rows, "v": rows}))
        yield connection


def _pipelines(connection: fuseline.Connection, query: str) -> list[Pipeline]:
    plan = connection.physical(connection.sql(query).plan)
    return list({id(n): n for n in walk(plan) if isinstance(n, Pipeline)}.values())


def _joins(pipelines: list[Pipeline]) -> list[str]:
    return sorted(n.kind for p in pipelines for n in walk(p.body) if isinstance(n, HashJoin))


def test_both_halves_are_pipelines() -> None:
    nodes = _plan(QUERIES[0])
    (both,) = [node for node in nodes if isinstance(node, ConcatRows)]
    assert all(isinstance(half, Pipeline) for half in both.inputs)
    assert not [n for n in nodes if isinstance(n, HashJoin)]


def test_one_full_join_after_the_other(large: fuseline.Connection) -> None:
    query = "select k, a.v, b.v, c.v from large a full join large b using (k) full join large c using (k)"
    assert _joins(_pipelines(large, query)) == ["anti", "anti", "left", "left"]


def test_sides_with_joins_run_once(large: fuseline.Connection) -> None:
    """A side that takes much work is stored for both halves."""
    query = "select t.v, u.k from large t join large s using (k) full join large u on u.k = s.v"
    assert _joins(_pipelines(large, query)) == ["anti", "inner", "left"]


def test_texts_stay_with_the_operator() -> None:
    """No kernel may hold them, and two joins by operators take longer than one."""
    assert [n.kind for n in _plan(QUERIES[8]) if isinstance(n, HashJoin)] == ["full"]


def test_a_condition_on_one_side_filters_it_before_it_is_put_into_an_index() -> None:
    query = "select v, w from a full join b on a.k = b.k and w > 1 and v > 2 and v < w"
    bodies = [n.body for n in _plan(query) if isinstance(n, Pipeline)]
    joins = [n for body in bodies for n in walk(body) if isinstance(n, HashJoin)]
    assert [type(join.right) for join in joins] == [FilterRows, FilterRows]
    # What asks something of the probe side stays, with what asks something of pairs
    assert [len(list(conjuncts(join.residual))) for join in joins] == [2, 2]


@pytest.mark.by_day(2)
@pytest.mark.parametrize("query", QUERIES[::4])
def test_halves_of_exchanged_sides(query: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Those of a GPU, which goes through the side of more rows."""
    for module in (fuse, aggregate_unions):
        monkeypatch.setattr(module, "halves", lambda node: halves(exchanged(node)))
    assert_same_as_duckdb(query, TABLES, fuse=("always",), ordered="order by" in query)


@pytest.mark.parametrize("device", ["cpu", "gpu"])
@pytest.mark.parametrize("sides", ["one full join equal", "equal full join one"])
def test_the_side_of_more_rows(device: Device, sides: str) -> None:
    with connected(TABLES, fuse="never") as connection:
        plan = connection.physical(connection.sql(f"select * from {sides} using (k)").plan)
    (join,) = (node for node in walk(plan) if isinstance(node, HashJoin))
    found = halves(replace(join, device=device))
    assert found is not None
    matched, alone = found
    assert isinstance(matched, HashJoin)
    first = sides.split(maxsplit=1)[0] if device == "cpu" else "equal"
    (probed,) = (node for node in walk(matched.left) if isinstance(node, MemoryScan))
    assert probed.table.name == first
    assert matched.columns == join.columns
    assert [c.type for c in alone.columns] == [c.type for c in join.columns]


@pytest.mark.parametrize(("sides", "split"), [
    ("(select k, count(*) as n from a group by k) x full join (select k, sum(w) as w from b group by k) y", False),
    ("(select k, count(*) as n from a group by k) x full join b y", True),
])  # fmt: skip
def test_few_groups_are_joined_by_the_host_of_a_gpu(sides: str, split: bool) -> None:
    with connected(TABLES, fuse="never") as connection:
        plan = connection.physical(connection.sql(f"select n, w from {sides} using (k)").plan)
    (join,) = (node for node in walk(plan) if isinstance(node, HashJoin))
    assert (halves(replace(join, device="gpu")) is not None) == split
    assert halves(join) is not None
