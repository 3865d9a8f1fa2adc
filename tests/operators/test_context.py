"""What runs of a plan leave: by the identity of its nodes, as long as these live, and nowhere in the plan."""

from __future__ import annotations

import gc
from concurrent.futures import ThreadPoolExecutor

import pyarrow as pa

import fuseline
from fuseline.operators.context import PlanMemory
from fuseline.plan import physical as p
from fuseline.plan.expr import new_column
from fuseline.plan.pipeline_steps import steps_of
from fuseline.plan.types import BIGINT
from tests.compare import connected


def pipeline() -> p.Pipeline:
    return p.Pipeline(steps_of(p.Stored(0, (new_column("x", BIGINT),))))


def test_a_node_that_is_gone_is_forgotten() -> None:
    memory, node = PlanMemory(), pipeline()
    memory.pipeline(node).short_of_memory = True
    assert memory.pipeline(node).short_of_memory
    assert len(memory.pipeline) == 1
    del node
    assert len(memory.pipeline) == 0


def test_equal_nodes_are_two() -> None:
    memory, node = PlanMemory(), pipeline()
    same = p.Pipeline(node.steps)
    assert node == same
    assert memory.pipeline(node) is not memory.pipeline(same)


def test_threads_that_ask_at_once_get_the_same() -> None:
    memory = PlanMemory()
    with ThreadPoolExecutor(8) as pool:
        for _ in range(200):
            node = pipeline()
            found = list(pool.map(memory.pipeline, [node] * 8))
            assert all(each is memory.pipeline(node) for each in found)
    del node
    gc.collect()
    assert len(memory.pipeline) == 0


def test_what_a_connection_remembers_goes_with_its_plans() -> None:
    t = pa.table({"k": [1, 2, 2], "v": [1, 2, 3]})
    queries = [
        "select k, sum(v) from t group by k",
        "select b.v, a.k from t a join (select x.k, y.v from t x join t y on x.k = y.k) b on a.k = b.k",
        "select string_agg(a.v::text, ',') from t a join t b using (k)",
    ]
    with connected({"t": t}, fuse="always") as connection:
        for query in queries * 2:
            connection.sql(query).to_arrow()
        memory = connection._runner.memory
        assert len(memory.pipeline) >= len(queries) - 1
        connection._runner.plans.clear()
        gc.collect()
        assert len(memory.pipeline) == 0


def test_a_connection_does_not_know_what_another_has_made() -> None:
    with fuseline.connect("cpu", fuse="always") as one, fuseline.connect("cpu") as other:
        one.register("t", pa.table({"v": [1, 2, 3]}))
        frame = one.sql("select sum(v) from t where v > 1")
        frame.to_arrow()
        (node,) = [n.node for n in frame.profile.nodes if isinstance(n.node, p.Pipeline)]
        assert one._runner.memory.pipeline(node).kernels is not None
        assert other._runner.memory.pipeline(node).kernels is None
