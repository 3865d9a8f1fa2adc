"""Rows and files that are hard on a cluster: keys that are all NULL or half of them one, sums beyond 64 bits, files that change, clients that go."""

from __future__ import annotations

import signal
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import fuseline
from fuseline import errors
from tests.compare import assert_same_as_duckdb
from tests.distributed.conftest import Opened
from tests.distributed.test_crew import TABLES
from tests.distributed.test_faults import HEAVY, LIMIT, until
from tests.distributed.test_sorts import shares

ROWS = 600
HARD = {
    "t": pa.table({
        "nothing": pa.nulls(ROWS, pa.int64()), "half": [7] * (ROWS // 2) + list(range(ROWS // 2)),
        "big": pa.array([2**62] * ROWS), "id": list(range(ROWS)),
    })
}  # fmt: skip
QUERIES = [
    "select nothing, count(*), sum(id) from t group by nothing", "select half, count(*), sum(big) from t group by half",
    "select sum(big), min(big), avg(big) from t", "select count(*), sum(a.big) from t a join t b on a.half = b.half",
    "select count(*) from t a join t b on a.nothing = b.nothing", "select count(*) from t a left join t b on a.nothing = b.nothing",
    "select count(distinct half), count(distinct nothing) from t", "select id from t where id not in (select nothing from t)",
    "select distinct nothing, half % 2 from t", "select nothing, id from t order by nothing, id desc limit 3",
]  # fmt: skip


HEAVY_KEYS = {
    "t": pa.table({
        "id": range(ROWS), "half": [7 if i % 2 else i // 2 for i in range(ROWS)], "n": pa.array([i % 9 if i % 3 else None for i in range(ROWS)]),
        "nothing": pa.nulls(ROWS, pa.int64()), "word": ["the"] * (ROWS - 50) + [f"w{i}" for i in range(50)],
    }),
    "u": pa.table({
        "k": [*range(300), 7, None], "v": range(302), "w": ["the", "w3", None] * 100 + ["the", "x"],
        "nothing": pa.nulls(302, pa.int64()),
    }),
}  # fmt: skip
JOINS = [
    "select t.id, u.v from t join u on t.half = u.k", "select t.id, u.v from u join t on t.half = u.k",
    "select t.id, u.v from t left join u on t.half = u.k", "select t.id, u.v from t left join u on t.nothing = u.k",
    "select t.id, u.v from u right join t on t.half = u.k", "select t.id, u.v from u left join t on t.half = u.k",
    "select t.id, u.v from t full join u on t.half = u.k", "select id from t where exists (select 1 from u where k = half and v > n)",
    "select id from t where half not in (select k from u where k is not null)", "select id from t where not exists (select 1 from u where k = half)",
    "select v from u where not exists (select 1 from t where k = half and n > 3)", "select id, half in (select k from u) from t",
    "select t.id, (select max(v) from u where k = half) from t", "select t.id, u.v from t join u on t.word = u.w and t.n = u.v % 9",
    "select t.id, u.v from t join u on t.nothing = u.nothing", "select t.id, u.v from t left join u using (nothing)",
    "select half, count(*) from t join u on half = k group by half", "select v, count(*), sum(id) from t join u on half = k group by v",
    "select a.id, b.id from t a join t b on a.half = b.id join u on a.word = u.w where b.n = 1",
]  # fmt: skip


@pytest.mark.parametrize("query", JOINS)
def test_joins_of_heavy_keys(query: str, opened: Opened) -> None:
    assert_same_as_duckdb(query, HEAVY_KEYS, connection=opened(HEAVY_KEYS, 37))


@pytest.mark.parametrize("build", ["k", "v % 300"])
def test_rows_of_heavy_keys_stay_where_they_are(build: str, opened: Opened) -> None:
    """Where the other side is cut at the key, and where it is sent by its hash: each worker joins about as many rows."""
    connection = opened(HEAVY_KEYS, 37)
    query = f"select t.id, u.v from t join (select {build} as b, v from u) u on t.half = u.b"
    assert "but for heavy keys" in connection.sql(query).explain()
    found = shares(connection, query)
    assert max(found) < 0.45 * sum(found)
    # Whoever groups by the key relies on its rows to be on one worker
    grouped = f"select half, median(v) from t join (select {build} as b, v from u) u on t.half = u.b group by half"
    assert "heavy keys" not in connection.sql(grouped).explain()
    assert_same_as_duckdb(grouped, HEAVY_KEYS, connection=connection)


@pytest.mark.parametrize("group_rows", [37, ROWS])
def test_hard_keys_and_sums(group_rows: int, opened: Opened) -> None:
    """In many row groups, and in one, so that all workers but one have empty shares."""
    connection = opened(HARD, group_rows)
    for query in QUERIES:
        assert_same_as_duckdb(query, HARD, connection=connection)


def test_a_sum_that_fits_on_each_worker_alone_is_an_error(opened: Opened) -> None:
    """As in one process: 600 times 2**62 are no BIGINT."""
    connection = opened(HARD)
    with pytest.raises(errors.FuselineError):
        connection.sql("select cast(sum(big) as bigint) from t").to_arrow()
    assert_same_as_duckdb("select sum(big) from t", HARD, connection=connection)


def test_a_file_that_changes_is_read_anew(client: Any, tmp_path: Path) -> None:
    path = tmp_path / "t.parquet"
    with fuseline.connect("cpu", cluster=client, replicate_below=0) as connection:
        for first in (0, 1000, 5000):
            rows = {"t": pa.table({"id": list(range(first, first + 300))})}
            pq.write_table(rows["t"], path, row_group_size=50)
            if first == 0:
                connection.read_parquet(path, "t")
            for query in ("select count(*), sum(id) from t", "select id from t where id % 7 = 0"):
                assert_same_as_duckdb(query, rows, connection=connection)


def test_a_file_that_was_just_written_is_read(
    opened: Opened, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What may still be written is read for one query alone, by workers too, to whom it looked like another file."""
    from fuseline.storage.tables import footers

    monkeypatch.setattr(footers, "SECONDS", 3600.0)
    connection = opened(HARD)
    for _ in range(2):
        assert_same_as_duckdb(
            "select half, sum(id) from t group by half", HARD, connection=connection
        )


def _running() -> int:
    from fuseline.distributed.session import SESSIONS

    return sum(session._running is not None for session in SESSIONS.values())


def test_a_client_that_is_gone_leaves_the_workers_free(client: Any, opened: Opened) -> None:
    connection = opened(TABLES)
    script = f"""
import fuseline
with fuseline.connect("cpu", cluster={client.scheduler.address!r}) as connection:
    connection.sql({HEAVY!r}).to_arrow()
"""
    process = subprocess.Popen([sys.executable, "-c", script])
    until(lambda: sum(client.run(_running).values()) == 1)
    process.send_signal(signal.SIGKILL)
    process.wait(LIMIT)
    until(lambda: sum(client.run(_running).values()) == 0)
    assert_same_as_duckdb("select sum(n) from t", TABLES, connection=connection)


@pytest.mark.nightly
def test_a_busy_worker_hears_at_once(opened: Opened) -> None:
    """A moment for control and the next look of the worker; 0.2 s on a quiet machine."""
    connection = opened(TABLES)
    took: list[float] = []
    for _ in range(10):
        ended: list[float] = []

        def run(ended: list[float] = ended) -> None:
            with pytest.raises(errors.Interrupted):
                connection.sql(HEAVY).to_arrow()
            ended.append(time.perf_counter())

        thread = threading.Thread(target=run)
        thread.start()
        time.sleep(0.5)
        asked = time.perf_counter()
        connection.interrupt()
        thread.join()
        took.append(ended[0] - asked)
    print(f"stopped after {min(took) * 1e3:.0f} to {max(took) * 1e3:.0f} ms")
    assert sorted(took)[len(took) // 2] < 0.2
