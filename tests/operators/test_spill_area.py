"""Spilled files: a checksum for each part, and clear errors of a disk that fails."""

from __future__ import annotations

import resource
import shutil
import signal
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from fuseline import stopping
from fuseline.errors import ExecutionError
from fuseline.operators import spill_area, spilling
from fuseline.operators.host_memory import readable
from fuseline.operators.spill_area import SpillArea, SpilledFile, SpilledPiece
from fuseline.plan.physical import Device
from tests.operators.test_join_parts import QUERIES, T, U, connect, fail_whole_joins

PARTS = 8
ROWS = 4000


def piece() -> SpilledPiece:
    """Numbers and a dictionary, which Arrow writes with the first part."""
    texts = pa.array([f"text {i % 100}" for i in range(ROWS)]).dictionary_encode()
    rows = pa.record_batch({"k": pa.array(range(ROWS)), "s": texts})
    return SpilledPiece(rows, range(0, ROWS + 1, ROWS // PARTS))


def test_parts_come_back_as_they_were(tmp_path: Path) -> None:
    one = piece()
    with SpillArea(tmp_path, 0) as area:
        kept = area.keep(one, "cpu")
        for i in range(PARTS):
            assert [b.to_pydict() for b in kept.parts(i, i + 1)] == [
                b.to_pydict() for b in one.parts(i, i + 1)
            ]
        assert sum(b.num_rows for b in kept.parts(2, 7)) == ROWS // PARTS * 5


def test_a_stop_is_heard_between_two_parts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """All parts of a piece are compressed, or checked, in a quarter of a second on a busy machine."""
    heard: list[int] = []
    monkeypatch.setattr(stopping, "check", lambda: heard.append(1))
    with SpillArea(tmp_path, 0) as area:
        kept = area.keep(piece(), "cpu")
        assert len(heard) >= PARTS
        kept.parts(0, PARTS)
        assert len(heard) >= 2 * PARTS


@pytest.mark.parametrize(
    "kind", [pa.string(), pa.large_string(), pa.dictionary(pa.int32(), pa.string())]
)
def test_a_part_without_rows_has_no_text_of_others(tmp_path: Path, kind: pa.DataType) -> None:
    texts = pa.array([f"a text {i * 7919}" for i in range(ROWS)]).cast(kind)
    rows = pa.record_batch({"s": texts, "k": pa.array(range(ROWS))})
    with SpillArea(tmp_path, 0) as area:
        one = SpilledPiece(rows, [0] * (PARTS // 2) + [ROWS] * (PARTS // 2 + 1))
        kept = area.keep(one, "cpu")
        assert area.keep(SpilledPiece(rows, [0, ROWS]), "cpu").size + 1000 * PARTS > kept.size
        for i in range(PARTS):
            assert [b.to_pydict() for b in kept.parts(i, i + 1)] == [
                b.to_pydict() for b in one.parts(i, i + 1)
            ]
            empty = i != PARTS // 2 - 1
            assert not empty or kept.parts(i, i + 1)[0].column(1).nbytes == 0


def test_each_changed_byte_is_seen(tmp_path: Path) -> None:
    """Whichever byte of the file is another one: an error that names the folder, or parts that do not lie there."""
    with SpillArea(tmp_path, 0) as area:
        kept = area.keep(piece(), "cpu")
        (file,) = tmp_path.rglob("*.arrow")
        whole = file.read_bytes()
        for at in range(0, len(whole), 97):
            file.write_bytes(whole[:at] + bytes([whole[at] ^ 0x10]) + whole[at + 1 :])
            with pytest.raises(ExecutionError, match=f'spilled to "{tmp_path}".*checksum differs'):
                kept.parts(0, PARTS)
        file.write_bytes(whole)
        assert kept.parts(0, PARTS)


@pytest.mark.parametrize("damage", ["cut off", "gone", "empty"])
def test_a_file_that_is_not_whole(tmp_path: Path, damage: str) -> None:
    with SpillArea(tmp_path, 0) as area:
        kept = area.keep(piece(), "cpu")
        (file,) = tmp_path.rglob("*.arrow")
        data = file.read_bytes()
        file.write_bytes(data[:500] if damage == "cut off" else b"")
        if damage == "gone":
            file.unlink()
        with pytest.raises(ExecutionError, match=r"could not be read back.*spill_dir"):
            kept.parts(3, 4)


@contextmanager
def full_disk(limit: int) -> Iterator[None]:
    """Files take `limit` bytes in this process, as where the disk has no more."""
    before, handler = resource.getrlimit(resource.RLIMIT_FSIZE), signal.getsignal(signal.SIGXFSZ)
    signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (limit, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
        signal.signal(signal.SIGXFSZ, handler)


@pytest.mark.parametrize("limit", [0, 10, 1000, 5000])
def test_a_disk_that_is_full(tmp_path: Path, limit: int) -> None:
    with SpillArea(tmp_path, 0) as area:
        with full_disk(limit), pytest.raises(ExecutionError, match=r"could not write.*spill_dir"):
            area.keep(piece(), "cpu")
        assert not list(tmp_path.rglob("*.arrow"))
        assert area.keep(piece(), "cpu").parts(0, 1)
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("when", ["written", "read"])
def test_a_folder_that_is_removed_while_a_query_runs(
    tmp_path: Path, monkeypatch: Any, when: str
) -> None:
    """The query fails with one sentence, nothing stays behind, and the next one runs."""
    fail_whole_joins(monkeypatch)
    name = "keep" if when == "written" else "_worked"
    owner: Any = SpillArea if when == "written" else spilling
    original = getattr(owner, name)
    with connect(tmp_path, {"t": T, "u": U}, None, "never") as connection:
        expected = connection.sql(QUERIES["three"]).to_arrow()

        def removing(*given: Any) -> Any:
            for folder in tmp_path.iterdir():
                shutil.rmtree(folder)
            return original(*given)

        with monkeypatch.context() as patch:
            patch.setattr(owner, name, removing)
            with pytest.raises(ExecutionError, match=f"{tmp_path}.*spill_dir"):
                connection.sql(QUERIES["three"]).to_arrow()
        assert not list(tmp_path.iterdir())
        assert connection.sql(QUERIES["three"]).to_arrow().num_rows == expected.num_rows


def test_rows_of_a_gpu_stay_in_host_memory_as_far_as_it_goes(tmp_path: Path) -> None:
    one = piece()
    with SpillArea(tmp_path, 2 * one.size + 1) as area:
        first, second = area.keep(one, "gpu"), area.keep(one, "gpu")
        assert first is one
        assert second is one
        assert not list(tmp_path.iterdir())
        assert area.keep(one, "gpu").place == "disk"
        area.drop(first)
        assert area.keep(one, "cpu").place == "disk"
        assert area.keep(one, "gpu") is one
        assert len(list(tmp_path.rglob("*.arrow"))) == 2


def test_pinned_memory_counts_as_much_as_is_locked(tmp_path: Path) -> None:
    one = piece()
    locked = replace(one, pinned=2 * one.size)
    assert (one.place, locked.place) == ("host memory", "pinned host memory")
    assert locked.size == 2 * one.size
    assert replace(one, pinned=1).size == one.size
    with SpillArea(tmp_path, 2 * one.size) as area:
        assert area.keep(locked, "gpu").place == "disk"
        assert area.keep(one, "gpu") is one


def test_a_file_that_is_let_go_is_removed_and_no_other(tmp_path: Path) -> None:
    with SpillArea(tmp_path, 0) as area:
        first, second = area.keep(piece(), "cpu"), area.keep(piece(), "cpu")
        area.drop(first)
        (file,) = tmp_path.rglob("*.arrow")
        assert file.stat().st_size == second.size
        assert sum(b.num_rows for b in second.parts(0, PARTS)) == ROWS
        third = area.keep(piece(), "cpu")
        assert second.parts(0, 1) == third.parts(0, 1)
        area.drop(third)
        area.drop(third)
        with pytest.raises(ExecutionError, match="could not be read back"):
            third.parts(0, 1)
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("bytes_a_check", [1, 1000])
def test_damage_is_seen_where_it_is_read_and_nowhere_else(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, bytes_a_check: int
) -> None:
    """The head, the first part with all dictionaries and the footer are read for each part."""
    rows = piece().rows.slice(0, 64)
    monkeypatch.setattr(spill_area, "BYTES_A_CHECK", bytes_a_check)
    with SpillArea(tmp_path, 0) as area:
        kept = area.keep(SpilledPiece(rows, range(0, 65, 8)), "cpu")
        assert isinstance(kept, SpilledFile)
        assert len(kept.sections) == PARTS + 2
        whole = kept.path.read_bytes()
        assert kept.size == len(whole)
        for number, section in enumerate(kept.sections):
            at = section.end - 1
            kept.path.write_bytes(whole[:at] + bytes([whole[at] ^ 1]) + whole[at + 1 :])
            seen = set()
            for i in range(PARTS):
                try:
                    kept.parts(i, i + 1)
                except ExecutionError:
                    seen.add(i)
            of_all = number in (0, 1, PARTS + 1)
            assert seen == (set(range(PARTS)) if of_all else {number - 1})


@pytest.mark.parametrize(
    ("device", "remedy"), [("gpu", "raise spill_memory or memory_limit"), ("cpu", "raise memory_limit")]
)  # fmt: skip
def test_a_refusal_says_what_there_is_and_what_to_raise(
    tmp_path: Path, device: Device, remedy: str
) -> None:
    one = piece()
    size, limit = one.size, one.size + 1000
    with SpillArea(tmp_path, limit) as area:
        area.keep(one, "gpu")
        with full_disk(10), pytest.raises(ExecutionError) as error:
            area.keep(one, device)
    text = str(error.value)
    assert f"could not write to {tmp_path}: " in text
    assert f"{readable(size)} were to be written" in text
    held = f"Host memory holds {readable(size)} of spill_memory = {readable(limit)}."
    assert (held in text) == (device == "gpu")
    assert f"or {remedy}." in text
