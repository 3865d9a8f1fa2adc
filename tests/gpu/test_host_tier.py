"""Columns that the device has no room for come from the host's memory, and their files are read once."""

from __future__ import annotations

from decimal import Decimal
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import fuseline
from tests.compare import assert_same_as_duckdb, connected

if TYPE_CHECKING:
    from pathlib import Path

    from fuseline.connection import Connection

pytestmark = pytest.mark.gpu

ROWS = 100_000
LIMITS = {"column_cache_limit": "1MB"}
QUERIES = (
    "select k, sum(n), sum(m), min(t), max(f), count(b), min(d) from t group by k order by k",
    "select count(*), max(f), max(s), count(d) from t where f > 100 and b",
    "select max(u), min(u), count(u), sum(n) from t where k = 'b'",
    "select n, s, u from t where n % 9973 = 1 order by n",
    "select t.k, sum(t.n) from t join t as o on t.n = o.n + 1 where o.s = '7' group by t.k order by 1",
)


@pytest.fixture
def source(tmp_path: Path) -> Path:
    numbers = np.arange(ROWS)
    table = pa.table({
        "n": numbers, "k": pa.array(["a", "b", None, "d"]).take(pa.array(numbers % 4)),
        "m": pa.array([Decimal(int(i) % 1000).scaleb(-2) if i % 7 else None for i in numbers], pa.decimal128(12, 2)),
        "t": pa.array(numbers * 10**6, pa.timestamp("us")), "f": pa.array(numbers / 7, mask=numbers % 11 == 0),
        "b": pa.array(numbers % 2 == 0, mask=numbers % 5 == 0), "s": [f"{i % 50}" for i in numbers],
        "d": pa.array(numbers.astype(np.int32) % 3000, pa.date32()),
        "u": pa.array([f"text number {i} of many" if i % 13 else None for i in numbers]),
    })  # fmt: skip
    pq.write_table(table, tmp_path / "t.parquet", row_group_size=7_777)
    return tmp_path / "t.parquet"


def tiers(connection: Connection, query: str) -> tuple[list[Any], dict[str, int]]:
    """Return the answer, and the bytes of each tier that it took."""
    frame = connection.sql(query)
    answer, lifted = frame.fetchall(), {"host": 0, "store": 0, "Parquet": 0}
    for each in frame.profile.lifted or ():
        lifted[each.tier] += each.bytes
    return answer, lifted


@pytest.mark.parametrize("fused", ["always", "never"])
def test_chunks_come_from_the_host(source: Path, fused: str) -> None:
    with connected({"t": source}, "gpu", fuse=fused) as connection:
        expected = [connection.sql(query).fetchall() for query in QUERIES]
    with connected({"t": source}, "gpu", fuse=fused, **LIMITS) as connection:
        first = [connection.sql(query).fetchall() for query in QUERIES]
        later = [tiers(connection, query) for query in QUERIES]
    assert first == expected
    assert [answer for answer, _ in later] == expected
    for _, lifted in later[:4]:  # whose tables do not fit
        assert lifted["Parquet"] == lifted["store"] == 0
        assert lifted["host"] > 0


def test_answers_from_the_host_are_those_of_duckdb(source: Path) -> None:
    with connected({"t": source}, "gpu", fuse="always", **LIMITS) as connection:
        for query in (*QUERIES, *QUERIES):
            assert_same_as_duckdb(query, {"t": source}, connection=connection)


def test_what_leaves_the_cache_is_copied_down_and_comes_back(source: Path) -> None:
    query = QUERIES[0]
    with connected({"t": source}, "gpu", fuse="always") as connection:
        expected, lifted = tiers(connection, query)
        assert lifted["host"] == 0
        connection.cache.release("gpu", 1 << 40)
        shown = "select column_name, device, tier from fuseline_columns() order by 1"
        assert connection.sql(shown).fetchall() == [(c, "cpu", "memory") for c in sorted("nkmtfbd")]
        found, lifted = tiers(connection, query)
        assert (found, lifted["Parquet"]) == (expected, 0)
        assert lifted["host"] > 0
        connection.cache.release("gpu", 1 << 40)
        assert "from memory of the host" in connection.sql(query).explain("analyze")


def test_chunks_take_rows_of_what_the_device_has_whole(source: Path) -> None:
    query = QUERIES[0]
    with connected({"t": source}, "gpu", fuse="always", **LIMITS) as connection:
        expected = connection.sql(query).fetchall()

        def lifted() -> set[str]:
            frame = connection.sql(query)
            assert frame.fetchall() == expected
            assert max(node.receipt.chunks for node in frame.profile.pipelines) > 1
            return {each.column for each in frame.profile.lifted or ()}

        assert {"n", "m"} <= lifted()
        connection.sql("select sum(n) from t").fetchall()
        assert "n" not in lifted()
        assert "m" in lifted()
        assert_same_as_duckdb(query, {"t": source}, connection=connection)


def test_a_host_without_room_has_files_read_again(source: Path) -> None:
    with connected({"t": source}, "gpu", fuse="always", host_cache_limit=0, **LIMITS) as connection:
        expected = [connection.sql(query).fetchall() for query in QUERIES]
        assert connection.cache.used("cpu") == 0
        assert [connection.sql(query).fetchall() for query in QUERIES] == expected


def test_locked_memory_that_is_refused(source: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from fuseline.operators.gpu.memory.link import Pool

    monkeypatch.setattr(Pool, "_locked", lambda pool, size: None)
    test_chunks_come_from_the_host(source, "always")


def test_columns_come_from_a_store_where_the_host_keeps_none(source: Path, tmp_path: Path) -> None:
    settings: dict[str, Any] = {"fuse": "always", "column_store": tmp_path / "columns", **LIMITS}
    with connected({"t": source}, "gpu", **settings, host_cache_limit=0) as connection:
        expected = [connection.sql(query).fetchall() for query in QUERIES]
    with connected({"t": source}, "gpu", **settings) as connection:
        for query, answer in zip(QUERIES[:4], expected, strict=False):
            found, lifted = tiers(connection, query)
            assert (found, lifted["Parquet"]) == (answer, 0)


@pytest.mark.parametrize("groups", [1, 3])
def test_some_row_groups_come_alone(source: Path, groups: int) -> None:
    query = f"select sum(n), max(u), count(b) from t where n < {groups * 7777}"
    with connected({"t": source}, "gpu", fuse="always", **LIMITS) as connection:
        connection.sql("select sum(n), max(u), count(b) from t").fetchall()
        ((total, *_),), lifted = tiers(connection, query)
        assert total == sum(range(groups * 7777))
        assert 0 < lifted["host"] < connection.cache.used("cpu") / 2
        assert lifted["Parquet"] == 0


def test_columns_of_a_table_in_memory_stay_where_they_are() -> None:
    with fuseline.connect("gpu", fuse="always") as connection:
        connection.register("t", pa.table({"n": np.arange(1000)}))
        assert connection.sql("select sum(n) from t").fetchall() == [(499_500,)]
        connection.cache.release("gpu", 1 << 40)
        assert connection.cache.used("cpu") == 0
        assert connection.sql("select sum(n) from t").fetchall() == [(499_500,)]
