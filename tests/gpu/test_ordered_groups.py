"""Groups in the order of their rows: the operators' answers, and whether kernels gave them without a table."""

from __future__ import annotations

from decimal import Decimal
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import fuseline
from tests.compare import assert_same, connected
from tests.gpu.test_fused_joins import run
from tests.limits import SetLimits

pytestmark = pytest.mark.gpu

ROWS = 600
QUERIES = [
    "select k from t group by k having sum(price) > 1",
    "select k, count(*), sum(price), avg(v), min(f), max(price) from t group by k",
    "select k, sum(v), count(v) from t where f > 0 group by k having count(*) > 1",
    "select day, sum(n) from t group by day having sum(n) > 3 and avg(v) > -5",
    "select k, sum(price) from t where f > 100 group by k having count(*) >= 0",
    "select k, sum(v) from t group by k having min(n) % 7 = 1",
    "select count(*), sum(total) from (select k, sum(price) as total from t group by k) z",
    "select k, sum(n) as total from t group by k having sum(n) > 3 order by total desc, k limit 5",
    "select t.k, total, n from t join (select k, sum(n) as total from t group by k having sum(n) > 8) z"
    " on t.k = z.k where n > 3",
    "select k, sum(w) from t join u on t.n = u.n group by k having sum(w) > 20",
]
TOGETHER = "groups are made in the order of"


@pytest.fixture(autouse=True)
def of_any_size(limits: SetLimits) -> None:
    """Few rows have an order worth using as well, and more groups than expected come out."""

    limits(
        compiled_pipeline__GROUP_LIMIT=4,
        TABLE_BYTES=0,
        PRIVATE_BYTES=0,
        ready_pipeline__LEAST_ROWS=1,
        LEAST_ROOM=4,
    )


def tables(keys: Any) -> dict[str, pa.Table]:
    made, rows = np.random.default_rng(5), len(keys)
    values = made.integers(-100, 100, rows)
    prices = [Decimal(int(v)).scaleb(-2) for v in values]
    facts = {
        "k": keys,
        "day": pa.array(keys % 30000, pa.int32()).cast(pa.date32()),
        "v": pa.array(values, mask=made.random(rows) < 0.3),
        "price": pa.array(prices, pa.decimal128(12, 2)),
        "f": made.normal(size=rows),
        "n": values % 7,
    }
    return {"t": pa.table(facts), "u": pa.table({"n": np.arange(1, 6), "w": np.arange(5) * 3})}


def remarks(query: str, given: dict[str, pa.Table]) -> list[str]:
    with connected(given, "gpu", fuse="always") as connection:
        frame = connection.sql(query)
        frame.to_arrow()
        return [n.remark for n in frame.profile.nodes if n.remark is not None]


@pytest.mark.parametrize("query", QUERIES)
def test_groups_of_a_sorted_key(query: str) -> None:
    given = tables(np.sort(np.random.default_rng(1).integers(0, 300, ROWS)) * 97)
    fused, _ = run(query, given, fuse="always")
    unfused, _ = run(query, given, fuse="never")
    assert_same(fused, unfused)
    assert any(TOGETHER in remark for remark in remarks(query, given))


@pytest.mark.parametrize("query", QUERIES[:3])
@pytest.mark.parametrize(("keys", "together"), [
    (np.arange(ROWS) * 10**12, True),
    (np.repeat(np.arange(0, 3000, 30), 1 + (np.arange(100) == 50) * 1100), False),
    (np.full(ROWS, 7), False),
    (np.arange(ROWS) * 101 % 5000, False),
    (np.arange(ROWS) // 40 * 500, False),
    (np.array([5]), None), (np.arange(0), None),
])  # fmt: skip
def test_other_keys(keys: Any, together: bool | None, query: str) -> None:
    """Far apart, one of many rows, one alone, in no order, with long groups; of one row and of none."""
    given = tables(keys)
    fused, _ = run(query, given, fuse="always")
    unfused, _ = run(query, given, fuse="never")
    assert_same(fused, unfused)
    if together is not None:
        assert any(TOGETHER in remark for remark in remarks(query, given)) == together


def test_another_version_of_a_table_need_not_have_the_order() -> None:
    given = tables(np.sort(np.random.default_rng(1).integers(0, 300, ROWS)) * 97)
    with fuseline.connect(device="gpu", fuse="always") as connection:
        for keys in (given["t"], given["t"].take(np.random.default_rng(2).permutation(ROWS))):
            connection.register("t", keys)
            found = connection.sql("select k, sum(n) from t group by k order by k").to_arrow()
            assert found["k"].to_pylist() == sorted(set(given["t"]["k"].to_pylist()))
