"""Runs of a plan after its first: what was laid out then serves again, where it still holds."""

from __future__ import annotations

import gc
from typing import Any

import pyarrow as pa
import pytest

from tests.compare import assert_same_as_duckdb
from tests.limits import SetLimits

pytestmark = pytest.mark.gpu

TABLES = {
    "t": pa.table({"k": [1, 2, 2, 3, None], "v": [10, None, -7, 2**40, 5]}),
    "u": pa.table({"k": [1, 2, 3], "w": ["a", "b", "a"]}),
}
JOINED = "select w, sum(v), count(*) from t join u on t.k = u.k group by w"
LATE = "select v, w from t join u on t.k = u.k where v > 0"
GROUPS = "select k, sum(v), count(*) from t group by k"


SETTINGS = {"device": "gpu", "fuse": "always"}


def test_launches_hold_the_places_of_cached_columns_only_while_these_are_there(
    connection: Any,
) -> None:
    prepared = []
    for forget in (False, True, False):
        assert_same_as_duckdb(JOINED, TABLES, connection=connection)
        frame = connection.sql(JOINED)
        frame.to_arrow()
        (node,) = [n.node for n in frame.profile.nodes if n.name == "Pipeline"]
        prepared.append(connection._runner.memory.pipeline(node).kernels)
        if forget:
            kept = [entry.value for entry in connection.cache.stats()]
            connection.cache.clear()  # others will lie elsewhere, since these are still in use
    assert kept
    assert prepared[0] is prepared[1]
    assert prepared[2] is not prepared[1]


def test_what_fetches_cached_columns_goes_with_them(connection: Any) -> None:
    from fuseline.operators.gpu.pipeline import gather

    before = set(map(id, gather._kept.values()))
    fetched = []
    for _ in range(2):
        connection.sql(LATE).to_arrow()
        fetched.append([f for f in gather._kept.values() if id(f) not in before])
    assert fetched[0]
    assert [*map(id, fetched[0])] == [*map(id, fetched[1])]
    assert_same_as_duckdb(LATE, TABLES, connection=connection)
    before_clearing = len(gather._kept)
    connection.cache.clear()
    gc.collect()
    assert len(gather._kept) < before_clearing


def test_what_another_run_lays_out_anew_serves_this_one_still(
    connection: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    from fuseline.operators.gpu.pipeline import pipeline

    load = pipeline.Attempt.load

    def loaded(attempt: Any, kernels: Any) -> None:
        load(attempt, kernels)
        kernels.ready = None  # as a run of another thread does that has learnt something

    monkeypatch.setattr(pipeline.Attempt, "load", loaded)
    frame = connection.sql(JOINED)
    frame.to_arrow()
    assert all(p.receipt.fused for p in frame.profile.pipelines)
    assert_same_as_duckdb(JOINED, TABLES, connection=connection)


def test_groups_of_each_run_go_into_memory_of_its_own(connection: Any, limits: SetLimits) -> None:
    """The launch that picks groups is prepared once; what an earlier run gave is not written to."""
    limits(compiled_pipeline__GROUP_LIMIT=1)
    results = []
    for _ in range(3):
        frame = connection.sql(GROUPS)
        results.append(connection.run(frame._plan, frame._key))
    order = [("k", "ascending")]
    first, *others = [result.to_arrow().sort_by(order) for result in results]
    assert first.num_rows == 4
    assert all(other.equals(first) for other in others)
    assert_same_as_duckdb(GROUPS, TABLES, connection=connection)
