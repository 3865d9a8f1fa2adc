"""Fused pipelines on the GPU: a kernel ran, and its answer is that of the operators."""

from __future__ import annotations

import math
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import fuseline
from fuseline.errors import OutOfRange
from tests.codegen.test_pipelines import FUSED, NOT_FUSED, TABLES
from tests.compare import assert_same, connected

pytestmark = pytest.mark.gpu


def answer(query: str, tables: Mapping[str, Any], **settings: Any) -> tuple[pa.Table, list[str]]:
    """Run a query twice, cold and hot; return the hot answer and what its pipelines say of their run."""
    with connected(tables, "gpu", **settings) as connection:
        cold = connection.sql(query).to_arrow()
        frame = connection.sql(query)
        hot = frame.to_arrow()
        assert_same(cold, hot)
        return hot, [n.note for n in frame.profile.nodes if n.name == "Pipeline" and n.note]


def assert_fused(query: str, tables: Mapping[str, Any]) -> None:
    expected, none = answer(query, tables, fuse="never")
    found, notes = answer(query, tables, fuse="always")
    assert none == []
    assert notes, "no pipeline in the plan"
    assert all(note.startswith("kernel ") for note in notes), notes
    assert_same(expected, found)


@pytest.mark.parametrize("query", FUSED)
def test_a_kernel_gives_the_answer(query: str) -> None:
    assert_fused(query, TABLES)


@pytest.mark.parametrize("rows", [0, 1])
@pytest.mark.parametrize("query", FUSED[1:8])
def test_few_rows(query: str, rows: int) -> None:
    assert_fused(query, {"t": TABLES["t"].slice(3, rows)})


@pytest.mark.parametrize(
    "rows", [2, 3, 4, 5, 7, 8, 9, 15, 16, 17, 31, 33, 127, 128, 129, 4095, 4097]
)
def test_the_rows_after_the_last_word(rows: int) -> None:
    values = np.arange(rows)
    table = {"v": values % 100, "w": pa.array(values % 7, mask=values % 3 == 0), "x": values * 3}
    query = "select count(*), sum(v), sum(w), max(w), min(x), sum(x) from t where v < 90"
    assert_fused(query, {"t": pa.table(table)})


def _many(rows: int) -> pa.Table:
    random = np.random.default_rng(rows)

    def missing(share: float) -> Any:
        return random.random(rows) < share

    return pa.table(
        {
            "one": random.integers(0, 50, rows).astype(np.int32),
            "two": pa.array(random.integers(-30_000, 30_000, rows), mask=missing(0.1)),
            "four": random.integers(0, 2**31, rows),
            "eight": random.integers(-(2**62), 2**62, rows),
            "real": pa.array(random.normal(size=rows), mask=missing(0.3)),
            "half": random.normal(size=rows).astype(np.float32),
            "flag": pa.array(random.random(rows) < 0.7, mask=missing(0.5)),
            "word": pa.array(random.choice(["a", "bb", "ccc", "dddd"], rows), mask=missing(0.2)),
            "group_500": random.integers(0, 500, rows),
            "group_1500": random.integers(0, 1500, rows),
            "group_60000": random.integers(0, 60_000, rows),
        }
    )


MANY = [
    "select count(*), sum(one), min(two), max(two), sum(four), sum(eight), avg(eight) from t",
    "select sum(one) from t where one < 40 and two > -20000",
    "select sum(one * four), sum(two) filter (where flag), count(two) from t where word <> 'bb'",
    "select sum(real), sum(half), min(real), max(half), avg(real) from t where half > -1 or flag",
    "select word, flag, count(*), sum(one), sum(two), sum(four), min(eight) from t group by word, flag",
    "select one, count(*), sum(four), max(real) from t where two is not null group by one",
    "select group_500, count(*), sum(four), sum(two), min(two), sum(real) from t group by 1",
    "select group_1500, sum(eight), count(real) from t where one % 2 = 0 group by 1",
    "select group_60000, count(*), sum(one), max(four) from t group by 1",
    "select bit_xor(eight), bit_and(four), bit_or(one), bool_or(flag) from t where four > 100000",
    "select count(distinct one), count(distinct word) from t where flag",
    "select sum(case when flag then one else -one end) from t where coalesce(two, 0) between -5 and 9999",
]


@pytest.fixture(scope="module")
def many() -> dict[str, pa.Table]:
    return {"t": _many(3_000_017)}


@pytest.mark.parametrize("query", MANY)
def test_many_rows(query: str, many: dict[str, pa.Table]) -> None:
    assert_fused(query, many)


@pytest.mark.parametrize(("query", "reason"), NOT_FUSED)
def test_what_no_kernel_holds_says_why(query: str, reason: str) -> None:
    expected, _ = answer(query, TABLES, fuse="never")
    found, notes = answer(query, TABLES, fuse="always")
    assert any(reason in note for note in notes), notes
    assert_same(expected, found)


def test_a_value_near_64_bits_is_left_to_the_operators() -> None:
    table = pa.table({"v": [2**62, -5], "w": [2**62 - 1, 2**62]})
    found, notes = answer("select sum(v + w) as s from t", {"t": table}, fuse="always")
    assert any("close to 64 bits" in note for note in notes), notes
    assert found["s"].to_pylist() == [2**63 - 1 + 2**62 - 5]


def test_an_overflow_raises_as_the_operators_do() -> None:
    table = pa.table({"v": [2**62, 3]})
    for fuse in ("never", "always"):
        with pytest.raises(OutOfRange):
            answer("select sum(v * v) from t", {"t": table}, fuse=fuse)


def test_a_changed_setting_is_heeded() -> None:
    with connected({"t": TABLES["t"]}, "gpu", fuse="always") as connection:
        kinds = []
        for choice in ("always", "never", "always"):
            connection.execute(f"set fuse = '{choice}'")
            frame = connection.sql("select sum(i) from t")
            frame.to_arrow()
            kinds.append("Pipeline" in [n.name for n in frame.profile.nodes])
        assert kinds == [True, False, True]


def test_a_new_table_of_the_name_gets_a_new_kernel_run() -> None:
    with fuseline.connect(device="gpu", fuse="always") as connection:
        for values in ([1, 2, 3], [10**12, None], ["7"]):
            connection.register("t", pa.table({"v": values}))
            total = connection.sql("select sum(v::bigint) as s from t").to_arrow()
            assert total["s"].to_pylist() == [sum(int(v) for v in values if v is not None)]


def test_columns_that_left_the_cache_are_loaded_again() -> None:
    with connected({"t": TABLES["t"]}, "gpu", fuse="always") as connection:
        frame = connection.sql("select sum(d), count(s) from t")
        before = frame.to_arrow()
        connection.cache.clear()
        assert_same(before, connection.sql("select sum(d), count(s) from t").to_arrow())


def test_several_threads(many: dict[str, pa.Table]) -> None:
    """Each run has results of its own, though all share the kernel and the columns."""
    query = "select word, count(*), sum(four), min(eight) from t group by word"
    with connected({"t": many["t"]}, "gpu", fuse="always") as connection:
        expected = connection.sql(query).to_arrow()
        with ThreadPoolExecutor(4) as pool:
            for found in pool.map(lambda _: connection.sql(query).to_arrow(), range(16)):
                assert_same(expected, found)


def test_columns_registered_on_the_device() -> None:
    """Slices begin within a buffer, at no multiple of a word."""
    import pylibcudf as plc

    values = pa.array([None if i % 5 == 0 else i % 90 for i in range(1000)], pa.int32())
    whole = plc.Column.from_arrow(values)
    (part,) = plc.copying.slice(whole, [3, 777])
    from fuseline.plan.types import INTEGER
    from fuseline.storage.columns.device_encode import encode_on_device

    encoded = encode_on_device(part, INTEGER)
    assert encoded is not None
    expected = values.slice(3, 774)
    assert encoded.nulls == expected.null_count
    assert (encoded.low, encoded.high) == (1, 89)
    codes = np.asarray(encoded.codes.to_arrow()).astype(np.int64)
    valid = np.asarray(expected.is_valid())
    np.testing.assert_array_equal(codes[valid] + 1, np.asarray(expected.drop_null()))


SALES = pa.table(
    {
        "k": pa.array(["b", None, "a", "c", "b", "a", None, "c"]),
        "v": pa.array([1.5, math.nan, -0.0, 0.0, 2.5, 0.0, 1.0, None]),
    }
)
ORDERED = [
    "select k, count(*), sum(v) from t group by k order by k desc nulls first",
    "select k, max(v) as m from t group by k order by m nulls first, k",
    "select k, min(v) as m from t group by k order by m desc, k limit 2 offset 1",
    "select k as key, count(*) as n from t group by k order by n, key limit 0",
    "select k, count(*) as n from t group by k order by k offset 9",
]


@pytest.mark.parametrize("query", ORDERED)
def test_few_groups_stay_on_the_host(query: str) -> None:
    found = {}
    for fuse in ("never", "always"):
        with connected({"t": SALES}, "gpu", fuse=fuse) as connection:
            frame = connection.sql(query)
            found[fuse] = frame.to_arrow()
            notes = [n.note or "" for n in frame.profile.nodes if n.name in ("SortRows", "TopK")]
        assert all("on the host" in note for note in notes), notes
    assert_same(found["never"], found["always"], ordered=True)


def test_operators_above_get_the_groups_on_the_device() -> None:
    groups = "(select k, count(*) as n, sum(v) as s from t group by k)"
    for query in (
        f"select n + 1, upper(k) from {groups} g where n > 1",
        f"select a.k, b.n from {groups} a join {groups} b using (k)",
        f"select k, n from {groups} g union all select k, n * 2 from {groups} h",
        f"select n, count(*) from {groups} g group by n",
    ):
        assert_fused(query, {"t": SALES})
