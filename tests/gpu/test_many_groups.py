"""Aggregates of more groups than travel to the host: picked on the device, kept as integers until somebody asks for values."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from tests.compare import assert_same
from tests.gpu.test_fused_joins import run
from tests.limits import SetLimits

pytestmark = pytest.mark.gpu

ROWS = 300
QUERIES = [
    "select i, count(*), sum(w), avg(w), min(w), max(d), sum(x), min(x), min(s), max(b), count(v),"
    " bool_and(b), bit_or(w), count(w) filter (where w > 0) from g group by i",
    "select a, s, sum(v), count(*) from g group by a, s",
    "select a, d, b, s, max(w), sum(w) from g group by a, d, b, s",
    "select t, a, d, b, s, z, i, count(*) from g group by t, a, d, b, s, z, i",
    "select z, b, z like '%3', min(z), count(*) from g group by z, b",
    "select s, z, t, sum(w) from g where i > 1000 group by s, z, t",
    "select s, z, a, max(w) from g where w = (select max(w) from g) group by s, z, a",
    "select s from g group by z, s, t having count(*) > 1",
    "select count(*) from (select z, s from g group by z, s having sum(w) > 100) y",
    "select b, n, count(*) from (select z, b, t, s, count(*) as n from g group by z, b, t, s) y group by b, n",
    "select d, sum(w) as total from g group by d order by total desc nulls first, d limit 3",
    "select i, sum(w) from g group by i having sum(w) > 100",
    "select i from g group by i having sum(w) > 100 and count(*) > 2 order by avg(x) desc nulls last, i limit 4",
    "select d, max(x) from g group by d having avg(w) < 0 or min(x) > -1 or bool_and(b)",
    "select i, sum(v) from g group by i having sum(v) > 0",
    "select d, a, i from g group by d, a, i having count(w) > 0 and sum(x) is null",
    "select d, a, i from g group by d, a, i having sum(w) > 100 or a > 20 and count(*) = 1 or a is null and i > 30",
    "select i, d, sum(v) from g group by i, d having sum(v) > 4611686018427387904 or i < 9 and max(b)",
    "select u.k, u.name from g join u on g.i = u.k group by u.k, u.name having sum(w) > 100",
    "select i from g group by i having sum(w) > (select avg(w) from g where x > 0)",
    "select n, count(*) from (select i, count(w) as n from g group by i) z group by n",
    "select i, stddev(w), var_pop(w), sum(v), avg(x) from g group by i",
    "select i, corr(w, i), covar_samp(w, a), covar_pop(i, t), stddev_pop(a), var_samp(t) from g group by i",
    "select i, d, stddev(w) / avg(w) from g group by i, d having count(w) > 1",
    "select t, i, sum(t), count(*) from g group by t, i",
    "select d, count(*) from g where i > 1000 group by d",
    "select i * 2, total * 2 from (select i, sum(w) as total from g group by i) z where total < 0",
    "select avg(total) from (select i, sum(w) as total from g group by i) z",
    "select i, sum(w) from g group by i union all select i, sum(v) from g group by i",
    "select count(*), sum(total), max(i) from"
    " (select i, sum(w) as total from g group by i having sum(w) > 100) z join u on u.k = z.i",
    "select g.d, z.total, z.most from g join"
    " (select d, sum(w) as total, max(x) as most from g group by d) z on g.d = z.d"
    " where z.total > 0 or z.total is null",
    "select z.d, u.name, sum(z.total) from"
    " (select d, i, sum(w) as total from g group by d, i) z join u on u.k = z.i group by z.d, u.name",
    "select u.k, u.name, sum(w), count(*) from g join u on g.i = u.k group by u.k, u.name"
    " order by 3 desc nulls last, 1 limit 5",
]


def _nullable(values: Any, made: np.random.Generator, share: float) -> pa.Array:
    return pa.array(values, mask=made.random(len(values)) < share)


@pytest.fixture(scope="module")
def tables() -> dict[str, pa.Table]:
    made = np.random.default_rng(7)
    days = made.integers(8000, 8030, ROWS).astype(np.int32)
    texts = np.array(["a", "bb", "c", "dd"])[made.integers(0, 4, ROWS)]
    facts = {
        "a": _nullable(made.integers(-20, 80, ROWS), made, 0.1),
        "i": pa.array(made.integers(5, 60, ROWS).astype(np.int32)),
        "s": _nullable(texts, made, 0.2),
        "d": pa.array(days).cast(pa.date32()),
        "b": _nullable(made.random(ROWS) < 0.5, made, 0.1),
        "v": _nullable(made.integers(-(2**62), 2**62, ROWS), made, 0.5),
        "w": _nullable(made.integers(-1000, 1000, ROWS), made, 0.5),
        "x": _nullable(made.normal(size=ROWS), made, 0.3),
        "z": _nullable([f"z{k}" for k in made.integers(0, 200, ROWS)], made, 0.1),
        "t": _nullable(made.integers(0, 5, ROWS).astype(np.int8), made, 0.2),
    }
    names = _nullable([f"n{k}" for k in range(80)], made, 0.1)
    return {"g": pa.table(facts), "u": pa.table({"k": made.permutation(80), "name": names})}


@pytest.mark.parametrize("dense", [True, False])
@pytest.mark.parametrize("query", QUERIES)
def test_groups_on_the_device(
    query: str, dense: bool, tables: dict[str, pa.Table], limits: SetLimits
) -> None:

    limits(compiled_pipeline__GROUP_LIMIT=4, LEAST_SLOTS=1 << 10)
    if not dense:
        limits(LEAST_DENSE=4, DENSE_A_ROW=0, MOST_PICKED=7)
    expected, _ = run(query, tables, fuse="never")
    found, done = run(query, tables, fuse="always")
    assert any(receipt.fused for receipt in done)
    assert_same(expected, found)


def test_deviations_stay_on_the_device(
    tables: dict[str, pa.Table], limits: SetLimits, monkeypatch: pytest.MonkeyPatch
) -> None:
    from fuseline.operators.gpu.pipeline import finish

    limits(compiled_pipeline__GROUP_LIMIT=4, LEAST_SLOTS=1 << 10, few_rows__MOST_ROWS=0)
    query = "select i, stddev(w), var_pop(a), covar_samp(w, t) from g group by i"
    expected, _ = run(query, tables, fuse="never")
    monkeypatch.setattr(finish, "finished", None)  # which is the host's
    found, done = run(query, tables, fuse="always")
    assert any(receipt.fused for receipt in done)
    assert_same(expected, found)


def test_codes_of_many_strings(tables: dict[str, pa.Table], limits: SetLimits) -> None:
    """They are of 32 bits, and become strings at once."""

    limits(compiled_pipeline__GROUP_LIMIT=4, dictionaries___FEW_KEYS=3, dictionaries__MOST_KEYS=100)
    query = "select z, s, b, sum(w) from g group by z, s, b"
    expected, _ = run(query, tables, fuse="never")
    found, done = run(query, tables, fuse="always")
    assert any(receipt.fused for receipt in done)
    assert_same(expected, found)
