"""Build sides that keep only rows whose keys the probe side has."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pyarrow as pa
import pytest

import fuseline
from fuseline.plan.logical import TableStatistics
from fuseline.plan.node import walk
from fuseline.plan.physical import HashJoin, Pipeline
from fuseline.plan.types import BIGINT, INTEGER
from fuseline.planner.pipelines import reduce_builds
from tests.compare import assert_same_as_duckdb, connected
from tests.planner.build import Tables, physical, table
from tests.random_queries.cases import Engines, assert_sound, run_shape
from tests.random_queries.deep import keyed

OTHER_SHOPS = """
    select count(*) from sales s where s.shop = 5
    and exists (select * from sales o where o.item = s.item and o.shop <> s.shop)
"""


ONE_DAY = "select sum(price) from lines join orders on id = owner where day = 7"


def _shop(rows: int, in_order: bool, dense: bool = False) -> Tables:
    """Orders, and four times as many lines of one in 100 days each."""
    key = (BIGINT, 1, rows if dense else 4 * rows)
    orders = table("orders", rows, id=key, price=(BIGINT, 1, 10**6))
    lines = table("lines", 4 * rows, owner=key, day=(INTEGER, 1, 100))
    if in_order:
        known = {**orders.known.columns}
        known["id"] = replace(known["id"], likely_sorted=True)
        orders = replace(orders, known=TableStatistics(rows, known))
    return Tables({"orders": orders, "lines": lines})


def _reduced(query: str, device: str = "gpu", tables: Tables | None = None) -> list[HashJoin]:
    """The joins whose build side is reduced, in the pipelines of a query."""
    plan = physical(query, device=device, tables=tables, fuse="always")
    bodies = [node.body for node in walk(plan) if isinstance(node, Pipeline)]
    found = {id(n): n for body in bodies for n in walk(body) if isinstance(n, HashJoin)}
    sides = ((join, join.build_side) for join in found.values())
    return [j for j, side in sides if isinstance(side, HashJoin) and side.kind == "semi"]


def test_a_large_build_side_of_a_filtered_probe_side() -> None:
    (join,) = _reduced(OTHER_SHOPS)
    reduction = join.build_side
    assert isinstance(reduction, HashJoin)
    assert reduction.left_keys == join.right_keys
    assert (reduction.estimate or 0.0) < 0.01 * (reduction.left.estimate or 0.0)


@pytest.mark.parametrize(
    "query",
    [
        # all rows of the probe side remain
        OTHER_SHOPS.replace("s.shop = 5", "s.shop > 0"),
        # the build side is small
        "select count(*) from sales join items using (item) where shop = 5 and kind = 'a'",
        # a NULL of the build side decides
        "select count(*) from stock where shop = 5 and item not in (select nullif(item, 3) from sales)",
        # bits are as fast to set as to ask for
        "select count(*) from stock where shop = 5 and item in (select item from sales)",
    ],
)
def test_where_it_does_not_pay(query: str) -> None:
    assert _reduced(query) == []


@pytest.mark.parametrize("rows", [15_000_000, 150_000_000])
def test_rows_in_the_order_of_their_keys_are_ranked_for_less(rows: int) -> None:
    """The set takes a pass over the lines, an index of orders in any order a random access to memory for each."""
    (join,) = _reduced(ONE_DAY, tables=_shop(rows, in_order=False))
    assert (join.build_side.estimate or 0.0) < 0.05 * rows
    assert _reduced(ONE_DAY, tables=_shop(rows, in_order=True)) == []
    assert _reduced(ONE_DAY, tables=_shop(rows, in_order=True, dense=True)) == []


def test_a_filtered_table_in_the_order_of_its_keys_is_ranked_as_a_whole() -> None:
    query = f"{ONE_DAY} and price < 600000"
    assert len(_reduced(query, tables=_shop(150_000_000, in_order=False))) == 1
    assert _reduced(query, tables=_shop(150_000_000, in_order=True)) == []


@pytest.mark.parametrize("in_order", [False, True])
def test_rows_that_are_found_without_an_index(in_order: bool) -> None:
    """A table in the order of a key that repeats is joined with itself by that; other keys have an index."""
    rows = 600_000_000
    made = table("sales", rows, item=(BIGINT, 1, rows // 4), shop=(BIGINT, 1, 1_000_000))
    known = {**made.known.columns}
    known["item"] = replace(known["item"], likely_sorted=in_order)
    tables = Tables({"sales": replace(made, known=TableStatistics(rows, known))})
    assert len(_reduced(OTHER_SHOPS, tables=tables)) == (not in_order)
    other = OTHER_SHOPS.replace("o.item = s.item", "o.item = s.item + 1")
    assert len(_reduced(other, tables=tables)) == 1


def test_two_joins_share_the_set() -> None:
    query = OTHER_SHOPS + (
        "and not exists (select * from sales p where p.item = s.item and p.amount < s.amount)"
    )
    one, other = (join.build_side for join in _reduced(query))
    assert isinstance(one, HashJoin)
    assert isinstance(other, HashJoin)
    assert one.right is other.right


def test_a_set_that_the_main_kernel_probes_costs_nothing() -> None:
    """Rows of the few items go into no other index than that of the items."""
    query = """
        select count(*) from stock s join items using (item)
        where kind = 'a'
        and exists (select * from sales o where o.item = s.item and o.shop <> s.shop)
    """
    (join,) = _reduced(query)
    reduction = join.build_side
    assert isinstance(reduction, HashJoin)
    sides = [n.build_side for n in walk(join.left) if isinstance(n, HashJoin)]
    assert any(reduction.right is side for side in sides)


@pytest.fixture
def always(monkeypatch: pytest.MonkeyPatch) -> None:
    """Every build side that can be reduced is."""
    monkeypatch.setattr(reduce_builds._Costs, "spared", lambda *_: (1.0, 0.5))
    monkeypatch.setattr(reduce_builds._Costs, "source", lambda *_: 0.0)


A = {
    "id": list(range(12)),
    "k": [1, 1, 2, 3, None, None, 5, 7, 7, 8, 2, 3],
    "f": [0.0, -0.0, float("nan"), None, 1.0, 2.0, 0.0, 1.5, None, 2.0, 1.0, float("nan")],
    "v": [1, 2, 3, 4, 5, 6, None, 8, 9, 1, 2, 3],
}
B = {
    "k": [1, 1, 2, 2, None, 9, 7, 3, 11, None],
    "f": [-0.0, float("nan"), 1.0, None, 1.5, 9.0, 0.0, 2.0, 2.0, 1.0],
    "w": [1, 2, 3, None, 4, 5, 9, 4, 1, 7],
}
C = {"k": [1, 2, 7, 8, None], "n": ["a", "b", "c", "d", "e"]}
EMPTY = {
    name: pa.array([], pa.int64() if name != "f" else pa.float64()) for name in ("k", "f", "w")
}
TABLES: dict[str, Any] = {
    "a": pa.table(A), "b": pa.table(B), "c": pa.table(C), "empty": pa.table(EMPTY),
}  # fmt: skip
QUERIES = [
    "select count(*), sum(v) from a where v > 1 and exists (select * from b where b.k = a.k)",
    "select count(*), sum(v) from a where v > 1 and not exists (select * from b where b.k = a.k)",
    "select count(*), sum(v) from a where exists (select * from b where b.k = a.k and w <> v)",
    "select count(*), sum(v) from a where not exists (select * from b where b.k = a.k and w <> v)",
    "select count(*), sum(v) from a where k not in (select k from b)",
    "select count(*), sum(v) from a where k not in (select k from b where k is not null)",
    "select sum(v), sum(w) from a left join b on a.k = b.k and w < 5 where v < 9",
    "select sum(v), sum(w) from a left join b on a.k is not distinct from b.k where v < 9",
    "select sum(v), sum(w) from a join b on a.f = b.f where v < 9",
    "select n, sum(v), sum(w) from a join c on a.k = c.k left join b on b.k = c.k where v > 1 group by n",
    "select count(*) from a where v > 2 and (k in (select k from b) or v = 3)",
    "select id, (select w from b where b.k = a.k and w = 9) as w from a where v > 7",
    "select sum(v) from a join c using (k) where exists (select * from b where b.k = c.k and w <> v)"
    " and not exists (select * from b where b.k = a.k and w = v)",
    "select count(*), sum(v) from a where not exists (select * from empty where empty.k = a.k)",
    "select sum(b.w) from empty left join b on b.k = empty.k",
    "select sum(v), sum(w) from a join b on a.k = b.k and a.v = b.w where v < 9",
]


@pytest.mark.by_day(2)
@pytest.mark.usefixtures("always")
@pytest.mark.parametrize("query", QUERIES)
def test_answers(query: str) -> None:
    assert_same_as_duckdb(query, TABLES, fuse=("always",), ordered=False)


@pytest.mark.usefixtures("always")
def test_queries_are_reduced() -> None:
    """What the test of answers is worth."""
    with connected(TABLES, fuse="always") as connection:
        text = "\n".join(connection.sql(query).explain() for query in QUERIES)
    with pytest.MonkeyPatch.context() as patch, fuseline.connect(device="cpu", fuse="always") as c:
        patch.setattr(reduce_builds._Costs, "spared", lambda *_: (0.0, 1.0))
        for name, table in TABLES.items():
            c.register(name, table)
        plain = "\n".join(c.sql(query).explain() for query in QUERIES)
    assert text.count("HashJoin semi") > plain.count("HashJoin semi") + len(QUERIES) // 2


@pytest.mark.usefixtures("always")
@pytest.mark.parametrize("cases", [3, pytest.param(100, marks=pytest.mark.nightly)])
def test_random_joins(cases: int) -> None:
    engines = Engines("cpu", check=True)
    with engines.stack:
        seeds = range(3000, 3000 + cases)
        assert_sound([run_shape(engines, seed, 1, maker=keyed) for seed in seeds])
    assert engines.fused_share > 0.6, engines.notes.most_common(9)
