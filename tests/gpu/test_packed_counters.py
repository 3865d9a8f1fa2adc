"""Counts that share words while kernels run: the answer is the same, and a run in which they outgrow their bits serves the next."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from fuseline.codegen.cuda import packed_counters
from tests.compare import assert_same, connected
from tests.gpu.test_fused_joins import run
from tests.limits import SetLimits

pytestmark = pytest.mark.gpu

QUERIES = [
    "select k, count(*) from t group by k",
    "select k, count(*), count(v), sum(v), count_if(v > 3), min(v) from t group by k",
    "select k, count(v) from t where v > 1 or v is null group by k",
    "select k, j, count(*), avg(v) from t group by k, j",
    "select k from t group by k having count(*) > 6 and count(v) < 6",
    "select k, count(v) filter (where v < 4) as n from t group by k having n > 1 order by n desc, k limit 5",
    "select n, count(*) from (select k, count(*) as n from t group by k) z group by n",
    "select t.k, count(*) from t join u on t.k = u.k where u.w > 20 group by t.k",
    "select k, count(*) from t where v > 100 group by k",
]


@pytest.fixture(autouse=True)
def always_packed(monkeypatch: pytest.MonkeyPatch, limits: SetLimits) -> list[int]:
    """Counts of few groups share words too; return the bits of those that are laid out."""
    from fuseline.operators.gpu.pipeline import (
        compiled_pipeline,  # which a machine without a GPU cannot import
    )

    limits(
        compiled_pipeline__GROUP_LIMIT=4,
        TABLE_BYTES=0,
        PRIVATE_BYTES=0,
        SHORT_GROUPS=1,
        packed_counters__CACHED_BYTES=0,
        packed_counters__LEAST_ROWS=0,
    )
    laid_out: list[int] = []
    original = compiled_pipeline.unpacking

    def note(*arguments: Any) -> Any:
        made = original(*arguments)
        laid_out.append(packed_counters.WHOLE_COUNT if made is None else made.bits)
        return made

    monkeypatch.setattr(compiled_pipeline, "unpacking", note)
    return laid_out


def tables(rows: int = 600) -> dict[str, pa.Table]:
    made = np.random.default_rng(3)
    keys = pa.array(made.integers(5, 70, rows), mask=made.random(rows) < 0.05)
    values = pa.array(made.integers(0, 9, rows), mask=made.random(rows) < 0.3)
    facts = {"k": keys, "j": made.integers(0, 3, rows), "v": values}
    return {"t": pa.table(facts), "u": pa.table({"k": np.arange(80), "w": np.arange(80)})}


@pytest.mark.parametrize("rows", [1, 600])
@pytest.mark.parametrize("query", QUERIES)
def test_packed_counts_are_the_same(query: str, rows: int, always_packed: list[int]) -> None:
    given = tables(rows)
    expected, _ = run(query, given, fuse="never")
    assert always_packed == []
    found, done = run(query, given, fuse="always")
    assert all(receipt.fused for receipt in done)
    assert rows == 1 or min(always_packed) < packed_counters.WHOLE_COUNT
    assert_same(expected, found)


@pytest.mark.parametrize(
    ("most", "bits"), [(255, [8]), (256, [8, 16]), (65535, [8, 16]), (65536, [8, 16, 32])]
)
def test_counts_get_more_bits_when_they_outgrow_them(
    most: int, bits: list[int], always_packed: list[int], limits: SetLimits
) -> None:
    """Once: the next run of the query begins with as many as are needed."""
    limits(packed_counters__ROOM=0)
    keys = np.concatenate([np.full(most - 1, 3), np.arange(101)])
    given = pa.table({"k": np.random.default_rng(1).permutation(keys)})
    with connected({"t": given}, "gpu", fuse="always") as connection:
        for _ in range(3):
            found = connection.sql(
                "select k, count(*) as n from t group by k order by k"
            ).to_arrow()
            assert found["n"].to_pylist() == np.bincount(keys).tolist()
    assert always_packed == bits
