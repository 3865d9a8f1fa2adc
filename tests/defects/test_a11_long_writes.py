"""DEFECTS A11: what a query read while one long write went on was kept under the identity of the finished file."""

from __future__ import annotations

import mmap
import os
import threading
import time
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import fuseline
from fuseline.errors import FileError
from fuseline.storage.tables import footers
from fuseline.storage.tables.files import find_files
from fuseline.storage.tables.footers import is_settled

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from tests.limits import SetLimits

ROWS = 200_000
QUERY = "select sum(c0), min(c0), max(c0), sum(c1), min(c1), max(c1) from '{}'"


def version(number: int, rows: int = ROWS, columns: int = 2) -> bytes:
    """A file whose size does not tell its version, nor does its footer in much."""
    table = pa.table({f"c{i}": np.full(rows, number * 1000 + i) for i in range(columns)})
    sink = pa.BufferOutputStream()
    pq.write_table(table, sink, compression="none", use_dictionary=False, row_group_size=1 << 16)
    return bytes(sink.getvalue())


def answer(number: int, columns: tuple[int, ...] = (0, 1), rows: int = ROWS) -> list[Any]:
    values = [number * 1000 + i for i in columns]
    return [tuple(x for v in values for x in (v * rows, v, v))]


class LongWrite:
    """A write whose bytes change after its times have: to pages that a mapping has touched already."""

    def __init__(self, path: Path) -> None:
        self.file = path.open("r+b")
        self.map = mmap.mmap(self.file.fileno(), 0)
        for at in range(0, len(self.map), mmap.PAGESIZE):
            self.map[at] = self.map[at]

    def write(self, data: bytes, begin: float, end: float) -> None:
        first, last = int(len(data) * begin), int(len(data) * end)
        self.map[first:last] = data[first:last]

    def close(self) -> None:
        self.map.close()
        self.file.close()


@pytest.fixture(params=["never", "always"])
def connection(request: pytest.FixtureRequest) -> Iterator[Any]:
    with fuseline.connect("cpu", fuse=request.param) as opened:
        yield opened


def test_a_mix_is_not_kept(connection: Any, tmp_path: Path, limits: SetLimits) -> None:
    """Where the system happens to write pages back meanwhile, it gives the file a new time: then once more."""
    limits(footers__SECONDS=1e9)
    assert any(keeps_its_time(connection, tmp_path / f"t{i}.parquet") for i in range(10))


def keeps_its_time(connection: Any, path: Path) -> bool:
    """Whether a file had the same time all through a write, of which no answer may be kept."""
    path.write_bytes(version(1))
    write = LongWrite(path)
    before = find_files([str(path)])
    frame = connection.sql(QUERY.format(path))
    assert frame.fetchall() == answer(1)
    for half in (0.0, 0.5):
        write.write(version(2), half, half + 0.5)
        try:
            mixed = frame.fetchall()
        except FileError:
            mixed = None
        assert (mixed == answer(2)) <= (half == 0.5)
    kept = find_files([str(path)]) == before
    assert frame.fetchall() == answer(2)
    assert connection.sql(QUERY.format(path)).fetchall() == answer(2)
    write.close()
    return kept


def test_columns_that_serve_one_query_leave_the_cache(
    connection: Any, tmp_path: Path, limits: SetLimits
) -> None:
    limits(footers__SECONDS=1e9)
    path = tmp_path / "t.parquet"
    path.write_bytes(version(1))
    frame = connection.sql(QUERY.format(path))
    for _ in range(3):
        assert frame.fetchall() == answer(1)
        assert connection.sql(QUERY.format(path)).fetchall() == answer(1)
        assert connection.cache.stats() == []


def read(connection: Any, path: Path, monkeypatch: pytest.MonkeyPatch) -> int:
    """How many times a query that asks again opens the file."""
    from fuseline.operators.cpu.scan import remote_parts

    opened, count = remote_parts.opened, []
    with monkeypatch.context() as patch:
        for module in (remote_parts, footers):
            patch.setattr(module, "opened", lambda file: count.append(file) or opened(file))
        assert connection.sql(QUERY.format(path)).fetchall() == answer(1)
    return len(count)


def test_a_file_becomes_hot_when_it_has_settled(
    connection: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, limits: SetLimits
) -> None:
    path = tmp_path / "t.parquet"
    path.write_bytes(version(1))
    now = time.time
    limits(footers__SECONDS=2.0, footers__WRITE_RATE=100e6)
    assert read(connection, path, monkeypatch) > 0
    assert read(connection, path, monkeypatch) > 0
    monkeypatch.setattr(footers.time, "time", lambda: now() + 3.0)
    assert read(connection, path, monkeypatch) > 0
    assert read(connection, path, monkeypatch) == 0


def test_large_files_settle_later(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, limits: SetLimits
) -> None:
    limits(footers__SECONDS=2.0, footers__WRITE_RATE=100e6)
    path = tmp_path / "t"
    path.write_bytes(b"x")
    (found,) = find_files([str(path)])
    now = time.time()
    monkeypatch.setattr(footers.time, "time", lambda: now + 5.0)
    assert is_settled(found.identity)
    assert not is_settled(found.identity._replace(size=400_000_000))
    monkeypatch.setattr(footers.time, "time", lambda: now + 25.0)
    assert is_settled(found.identity._replace(size=1 << 40))


def test_a_clock_that_was_set_back(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, limits: SetLimits
) -> None:
    """Then the time since this process first saw the file counts."""
    limits(footers__SECONDS=2.0)
    path = tmp_path / "t"
    path.write_bytes(b"x")
    (found,) = find_files([str(path)])
    now, since = time.time(), time.monotonic()
    monkeypatch.setattr(footers.time, "time", lambda: now - 1e6)
    assert not is_settled(found.identity)
    monkeypatch.setattr(footers.time, "monotonic", lambda: since + 5.0)
    assert is_settled(found.identity)


@pytest.mark.nightly
def test_long_writes_during_queries(tmp_path: Path, limits: SetLimits) -> None:
    """The repro: one `pwrite` of 152 MB, and queries in a loop; afterwards no answer is of another version."""
    limits(footers__SECONDS=2.0, footers__WRITE_RATE=100e6)
    rows, columns, query = 475_000, 40, QUERY.replace("c1", "c9").replace("c0", "c7")
    versions = [version(number, rows, columns) for number in (1, 2)]
    assert len(versions[0]) > 150e6
    path = tmp_path / "t.parquet"
    path.write_bytes(versions[0])
    wrong = []
    with fuseline.connect("cpu") as connection:
        for turn in range(25):
            data = versions[(turn + 1) % 2]
            handle = os.open(path, os.O_RDWR)
            writer = threading.Thread(target=os.pwrite, args=(handle, data, 0))
            writer.start()
            while writer.is_alive():
                try:
                    connection.sql(query.format(path)).fetchall()
                except FileError:
                    continue
            writer.join()
            os.close(handle)
            expected = answer((turn + 1) % 2 + 1, (7, 9), rows)
            found = [connection.sql(query.format(path)).fetchall() for _ in range(3)]
            if found != [expected] * 3:
                wrong.append(turn)
    assert wrong == []
