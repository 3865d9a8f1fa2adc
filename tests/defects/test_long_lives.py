"""Many connections one after the other, and a clock that is set back: nothing grows, and answers are those of the files."""

from __future__ import annotations

import os
import threading
import time
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import fuseline

YEAR = 365 * 86400.0


def resident() -> float:
    """Megabytes of this process."""
    return int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE") / 1e6


def live(closed: bool) -> None:
    connection = fuseline.connect(device="cpu")
    connection.register("t", {"a": [1, 2, 3]})
    assert connection.sql("select sum(a) from t").fetchall() == [(6,)]
    if closed:
        connection.close()


def left(count: int, warm: int) -> tuple[int, int, float]:
    """Descriptors, threads and megabytes that so many connections leave, half of them never closed."""
    for i in range(warm):
        live(closed=i % 2 == 0)
    before = len(list(Path("/proc/self/fd").iterdir())), threading.active_count(), resident()
    for i in range(count):
        live(closed=i % 2 == 0)
    after = len(list(Path("/proc/self/fd").iterdir())), threading.active_count(), resident()
    return after[0] - before[0], after[1] - before[1], after[2] - before[2]


def test_some_connections_leave_nothing() -> None:
    descriptors, threads, megabytes = left(200, 50)
    assert (max(descriptors, 0), max(threads, 0)) == (0, 0)
    assert megabytes < 20


@pytest.mark.nightly
def test_a_hundred_thousand_connections_leave_nothing() -> None:
    descriptors, threads, megabytes = left(100_000, 1000)
    assert (max(descriptors, 0), max(threads, 0)) == (0, 0)
    assert megabytes < 50


@pytest.mark.by_day(2)
@pytest.mark.parametrize("shift", [-YEAR, -60.0, 60.0, 30 * YEAR])
@pytest.mark.parametrize("fuse", ["never", "always"])
def test_a_clock_that_is_set_back_or_forth(
    shift: float, fuse: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path, spills = tmp_path / "t.parquet", tmp_path / "spills"
    spills.mkdir()
    now = time.time
    settings = {"cache_dir": tmp_path / "kernels", "spill_dir": spills}
    with fuseline.connect(device="cpu", fuse=fuse, **settings) as connection:
        for i, moved in enumerate((0.0, shift, 0.0, -shift)):
            monkeypatch.setattr(time, "time", lambda moved=moved: now() + moved)
            pq.write_table(pa.table({"a": [i, 10 * i], "s": [f"{i}", "x"]}), path)
            os.utime(path, (now() + moved, now() + moved))
            query = f"select sum(a), max(s) from '{path}' where s like '{i}%'"
            for _ in range(2):
                assert connection.sql(query).fetchall() == [(i, f"{i}")]
        assert not list(spills.iterdir())
