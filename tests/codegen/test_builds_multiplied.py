"""Build sides whose joins multiply their rows: stored first, by kernels, and joined by kernels: the answers are DuckDB's."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from fuseline.codegen.typed_values import Multiplied, NotFusable
from fuseline.operators.context import PipelineReceipt
from fuseline.operators.run_pipeline import REMARK, apart, together
from fuseline.plan.node import walk
from fuseline.plan.physical import HashJoin, Pipeline, Stored
from fuseline.plan.pipeline_steps import steps_of
from tests.codegen.bodies import Tables, grouped, join, refusal
from tests.codegen.fused import assert_fused_joins, notes
from tests.compare import assert_same_as_duckdb, connected


def some_tables(rows: int) -> dict[str, pa.Table]:
    made = np.random.default_rng(rows)

    def some(most: int, count: int) -> pa.Array:
        return pa.array(made.integers(0, most, count), mask=made.random(count) < 0.2)

    few = rows // 5  # so that nobody expects that they multiply others
    t = {"k": some(20, rows), "j": some(9, rows), "v": some(30, rows)}
    u = {"k": some(15, few), "w": some(9, few), "s": made.choice([*"abc"], few)}
    x = {"i": np.arange(9), "z": some(9, 9)}
    return {"t": pa.table(t), "u": pa.table(u), "x": pa.table(x)}


INNER = "(select t.j, u.w, t.v, u.s from t join u on t.k = u.k)"
LEFT = "(select t.j, u.w, t.v, coalesce(u.w, 4) as c from t left join u on t.k = u.k and u.w > 2)"
TWICE = f"(select a.j, a.w, b.z, a.v from {INNER} a join (select x.z, t.j as i from x left join t on x.z = t.k) b on b.i = a.j)"
QUERIES = [
    f"select x.i, x.z, a.w, a.v, a.s from x left join {INNER} a on a.j = x.i",
    f"select x.i, x.z, a.w, a.c from x left join {LEFT} a on a.j = x.i and a.c > x.z",
    f"select x.z, a.w, count(*), sum(a.v), min(a.c) from x left join {LEFT} a on a.j = x.i group by all",
    f"select count(*), sum(i) from x where exists (select * from {INNER} a where a.j = x.i and a.w <> x.z)",
    f"select count(*), sum(i) from x where not exists (select * from {LEFT} a where a.j = x.i and a.c > x.z)",
    f"select i, exists (select * from {INNER} a where a.j = x.i and a.w < x.z) as found from x",
    f"select x.i, a.z, a.w from x left join {TWICE} a on a.v = x.i + 3",
    f"select x.i, count(*), sum(a.w), sum(b.v) from x left join {INNER} a on a.j = x.i left join {LEFT} b on b.j = x.z group by x.i",
]


@pytest.mark.by_day(2)
@pytest.mark.parametrize("query", QUERIES)
def test_rows_that_several_rows_are_found_for(query: str) -> None:
    tables = some_tables(60)
    assert_fused_joins(query, tables)
    assert any(REMARK in note for note in notes(query, tables))


@pytest.mark.by_day
@pytest.mark.parametrize("rows", [0, 7, 400])
@pytest.mark.parametrize("query", [QUERIES[1], QUERIES[2]])
def test_few_rows_and_many(query: str, rows: int) -> None:
    assert_same_as_duckdb(query, some_tables(rows), fuse=("always", "never"))


@pytest.mark.parametrize("keys", [[7] * 12, [None] * 12, [2**63 - 1, -(2**63), None, 0] * 3])
def test_keys_of_every_shape(keys: list[Any]) -> None:
    """All equal, all NULL, distinct, far apart; on both sides."""
    array = pa.array(keys, pa.int64())
    table = pa.table({"k": array, "n": [1, 2, 3] * 4})
    inner = "(select a.k, b.n from t a join t b on a.k = b.k and a.n <= b.n)"
    query = f"select c.n, d.n as m, d.k from t c left join {inner} d on c.k = d.k and c.n <> d.n"
    assert_same_as_duckdb(query, {"t": table}, fuse=("always", "never"))


def test_the_profile_says_so_and_later_runs_know() -> None:
    with connected(some_tables(60), fuse="always") as connection:
        frame = connection.sql(QUERIES[0])
        answers = []
        for _ in range(2):
            answers.append(sorted(map(str, frame.to_arrow().to_pylist())))
            (node,) = [n for n in frame.profile.nodes if isinstance(n.node, Pipeline)]
            assert node.remark == REMARK
            assert node.receipt is not None
            assert node.receipt.fused
            assert len(node.receipt.builds) == 2
        assert answers[0] == answers[1]
        assert isinstance(node.node, Pipeline)
        assert connection._runner.memory.pipeline(node.node).apart is not None


def _body() -> tuple[HashJoin, Tables]:
    tables = Tables()
    facts, more = tables.scan("facts", 100, f=(0, 9)), tables.scan("more", 50, m=(0, 9), n=(0, 9))
    side = join(tables.scan("side", 20, s=(0, 9), r=(0, 9)), more, "s = m")
    return join(facts, side, "f = r", "left"), tables


def test_a_side_is_stored_as_one_more_input() -> None:
    body, tables = _body()
    assert "found several times" in refusal(grouped(body, "f", "n"), tables)
    node = Pipeline(steps_of(body), (tables.stored(0, 5, a=(0, 1)),))
    parts = apart(node, Multiplied(body.build_side))
    assert parts is not None
    assert parts.side.body is body.build_side
    assert parts.rest.inputs == (*node.inputs, parts.side)
    (stored,) = [part for part in walk(parts.rest.body) if isinstance(part, Stored)]
    assert (stored.number, stored.columns) == (1, body.build_side.columns)
    assert apart(node, NotFusable("for another reason")) is None
    assert apart(node, Multiplied(tables.scan("elsewhere", 1, e=(0, 1)))) is None


def test_what_both_did_counts_together() -> None:
    receipt = together(PipelineReceipt("no kernel holds it", bytes=3), PipelineReceipt(bytes=4))
    assert (receipt.reason, receipt.bytes) == ("no kernel holds it", 7)
