"""The kernel that brings rows together: run here as simulated CUDA, and compiled for a GPU that need not be there."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from fuseline.codegen.handwritten import row_kernels as kernels
from fuseline.codegen.handwritten.row_kernels import WORD, Job
from tests.codegen import simulator

THREADS = 64
LYING = 40  # rows of a column
SLOTS = 32  # here
FORMATS = {1: np.uint8, 2: np.int16, 4: np.int32, 8: np.int64}
EXTREMES = {1: [0, 255], 2: [-(2**15), 2**15 - 1], 4: [-(2**31), 2**31 - 1]}


@dataclass
class Device:
    """Memory from address 0 on, where nothing lies."""

    parts: list[Any] = field(default_factory=lambda: [np.full(64, 0xEE, np.uint8)])
    size: int = 64

    def put(self, values: Any) -> int:
        """Return the address of an array."""
        data = np.ascontiguousarray(values).view(np.uint8).ravel()
        place, padding = self.size, 8 + -len(data) % 8
        self.parts += [data, np.full(padding, 0xEE, np.uint8)]
        self.size += len(data) + padding
        return place


@dataclass
class Source:
    """A column, the row numbers that are wanted of it, and what should come of them."""

    values: list[Any]
    job: Job
    rows: Any = None

    def expected(self, picked: Any) -> list[Any]:
        rows = picked if self.rows is None else self.rows[picked]
        return [None if row < 0 else self.values[row] for row in rows.tolist()]


def source(device: Device, values: list[Any], job: Job, first: int = 0, rows: Any = None) -> Source:
    valid = np.array([v is not None for v in values])
    if not valid.all():
        job.first = first
        bits = np.concatenate([np.arange(first) % 2 == 0, valid])
        job.bits, job.valid = device.put(np.packbits(bits, bitorder="little")), 0
    if rows is not None:
        job.places, job.valid = device.put(rows.astype(np.int32)), 0
    return Source(values, job, rows)


def numbers(device: Device, width: int, values: list[Any], **given: Any) -> Source:
    if width == 16:
        limbs = [(0 if v is None else v) % 2**128 for v in values]
        words = [half for v in limbs for half in (v % 2**64, v >> 64)]
        lying = np.array(words, np.uint64)
    else:
        lying = np.array([7 if v is None else v for v in values], FORMATS[width])
    return source(device, values, Job(0, width, device.put(lying), 0, 0, 0, 0), **given)


def texts(device: Device, values: list[bytes | None], width: int, **given: Any) -> Source:
    """A NULL has characters too, which nobody is to see."""
    there = [b"null" if v is None else v for v in values]
    ends = np.cumsum([3, *map(len, there)]).astype(FORMATS[width])
    characters = device.put(np.frombuffer(b"abc" + b"".join(there), np.uint8))
    return source(device, values, Job(1, width, device.put(ends), characters, 0, 0, 0), **given)


def run(
    device: Device, sources: list[Source], rows: int, picked: Any, room: int, blocks: int = 2
) -> tuple[Any, list[int]]:
    """Run the kernel; return the result and what its cursors say."""
    end = WORD * len(sources)
    for job in (s.job for s in sources):
        job.out, job.room = end, room if job.text else 0
        end += rows * (WORD if job.text else job.width) + job.room
        end += -end % WORD
        if job.valid >= 0:
            job.valid = end
            end += rows + -rows % WORD
    memory = np.concatenate(device.parts)
    assert not len(memory) % WORD
    result = np.full(end, 0xCC, np.uint8)
    result[: WORD * len(sources)] = 0
    given = {
        "rows": rows,
        "columns": len(sources),
        "jobs": np.array([s.job.words for s in sources], np.int64).ravel(),
        "picking": int(picked is not None),
        "picked": np.zeros(0, np.int32) if picked is None else picked.astype(np.int32),
        "cursors": result[: WORD * len(sources)].view(np.int64),
    }
    for width, kind in FORMATS.items():
        given |= {f"memory{8 * width}": memory.view(kind), f"result{8 * width}": result.view(kind)}
    launch(kernels.NAME, given, blocks)
    return result, given["cursors"].tolist()  # type: ignore[attr-defined]


def launch(name: str, given: dict[str, Any], blocks: int) -> None:
    cuda = simulator.Cuda(blocks, THREADS, 0)
    cuda.jit = lambda **options: lambda function: function  # type: ignore[attr-defined]
    space: dict[str, Any] = {"cuda": cuda}
    text = kernels.SOURCE.read_text().replace("from numba import cuda\n", "")
    text = text.replace(f"\nSLOTS = {kernels.SLOTS}\n", f"\nSLOTS = {SLOTS}\n")
    exec(compile(text, str(kernels.SOURCE), "exec"), space)
    signature = kernels.SIGNATURES[name]
    arguments = [np.int64(given[n]) if k == "int64" else given[n] for n, k in signature]
    cuda.launch(space[name], arguments)


def found(result: Any, job: Job, rows: int) -> list[Any]:
    """What a column's part of the result says."""
    valid = np.ones(rows, np.bool_)
    if job.valid >= 0:
        valid = result[job.valid : job.valid + rows]
        assert set(valid.tolist()) <= {0, 1}
    values: list[Any]
    if job.text:
        characters = result[job.out + rows * WORD :]
        words = result[job.out : job.out + rows * WORD].view(np.int64).tolist()
        places = [(word & 0xFFFFFFFF, word >> 32) for word in words]
        assert all(start + length <= job.room for start, length in places)
        values = [characters[start : start + length].tobytes() for start, length in places]
    elif job.width == 16:
        limbs = result[job.out : job.out + 16 * rows]
        values = [
            int.from_bytes(limbs[16 * i : 16 * i + 16].tobytes(), "little", signed=True)
            for i in range(rows)
        ]
    else:
        values = result[job.out : job.out + rows * job.width].view(FORMATS[job.width]).tolist()
    # Under a NULL is nothing that a code could not be
    assert all(v in (0, b"") for v, there in zip(values, valid, strict=True) if not there)
    return [v if there else None for v, there in zip(values, valid, strict=True)]


def columns(device: Device, rng: Any, nulls: bool, optional: bool) -> list[Source]:
    """A column of each kind, at its own rows or at those of another relation."""

    def without(values: list[Any]) -> list[Any]:
        return [None if nulls and rng.random() < 0.3 else v for v in values]

    def rows() -> Any:
        return rng.integers(-1 if optional else 0, LYING, LYING)

    made = []
    for number, width in enumerate((1, 2, 4, 8, 16)):
        bits = 8 * width
        low, high = EXTREMES.get(width, [-(2 ** (bits - 1)), 2 ** (bits - 1) - 1])
        values = [low, high, *(int(rng.integers(0, 100)) for _ in range(LYING - 2))]
        given = {"first": number * 3, "rows": rows() if number % 2 else None}
        made.append(numbers(device, width, without(values), **given))
    for width in (4, 8):
        lengths = [0, 1, 31, 32, 33, 300, *rng.integers(0, 50, LYING - 6).tolist()]
        values = [rng.integers(0, 256, n, np.uint8).tobytes() for n in lengths]
        made += [
            texts(device, without(values), width, **given)
            for given in ({"first": 5}, {"rows": rows()})
        ]
    return made


@pytest.mark.parametrize("rows", [0, 1, 31, 33, LYING])
@pytest.mark.parametrize("picking", [False, True])
@pytest.mark.parametrize(("nulls", "optional"), [(False, False), (True, False), (True, True)])
def test_rows_come_as_they_lie(rows: int, picking: bool, nulls: bool, optional: bool) -> None:
    rng, device = np.random.default_rng(rows), Device()
    sources = columns(device, rng, nulls, optional)
    picked = rng.integers(0, LYING, rows) if picking else None
    result, cursors = run(device, sources, rows, picked, room=LYING * 400)
    numbers = np.arange(rows) if picked is None else picked
    for one, cursor in zip(sources, cursors, strict=True):
        expected = one.expected(numbers)
        assert found(result, one.job, rows) == expected
        assert cursor == (sum(len(v or b"") for v in expected) if one.job.text else 0)


def test_many_rows_take_several_turns() -> None:
    rng, device = np.random.default_rng(1), Device()
    values = rng.integers(0, 1 << 40, 700).tolist()
    strings = [f"text {v}".encode() for v in values]
    sources = [numbers(device, 8, values), texts(device, strings, 4)]
    result, _ = run(device, sources, 700, None, room=1 << 14, blocks=1)
    for one in sources:
        assert found(result, one.job, 700) == one.values


@pytest.mark.parametrize("short", [1, 100, 2000])
def test_characters_without_room_are_counted_and_not_written(short: int) -> None:
    device = Device()
    values = [b"x" * length for length in (400, 0, 1000, 7, 600)]
    sources = [texts(device, values, 8), numbers(device, 4, [1, 2, 3, 4, 5])]
    room = 2007 - short
    result, cursors = run(device, sources, 5, None, room)
    assert cursors == [2007, 0]
    out = sources[0].job.out + 5 * WORD + room
    assert set(result[out : sources[1].job.out].tolist()) <= {0xCC}
    assert found(result, sources[1].job, 5) == [1, 2, 3, 4, 5]
    exact = run(device, sources, 5, None, room=2007)
    assert found(exact[0], sources[0].job, 5) == values


def test_a_job_has_as_many_words_as_the_kernel_reads() -> None:
    words = len(Job(0, 1, 2, 3, 4, 5, 6).words)
    assert f"\nJOB_WORDS = {words}\n" in kernels.SOURCE.read_text()


def leading(keys: Any, count: int, descending: bool, room: int = 64) -> tuple[list[int], int]:
    """The rows that kernels list as those that can be among the first, and how many they count."""
    least = np.full(SLOTS, np.iinfo(np.int64).max)
    state, chosen = np.zeros(2, np.int64), np.full(room + 1, -1, np.int32)
    given = {
        "rows": len(keys), "width": keys.dtype.itemsize, "keys32": keys.view(np.int32),
        "keys64": keys if keys.dtype == np.int64 else np.zeros(0, np.int64),
        "turned": -int(descending), "least": least, "wanted": count, "state": state, "room": room, "chosen": chosen,
    }  # fmt: skip
    launch(kernels.LEAST, given, 3)
    launch(kernels.BOUND, given, 3)
    launch(kernels.ROWS, given, 2)
    assert chosen[room] == -1, "more than there is room for"
    return sorted(chosen[chosen >= 0].tolist()), int(state[1])


@pytest.mark.by_day
@pytest.mark.parametrize("rows", [33, 400])
@pytest.mark.parametrize("order", ["random", "ascending", "descending", "ties", "extremes"])
@pytest.mark.parametrize(("kind", "descending"), [(np.int32, True), (np.int64, False)])
def test_the_first_are_among_those_that_are_found(
    rows: int, order: str, kind: Any, descending: bool
) -> None:
    rng, info = np.random.default_rng(rows), np.iinfo(kind)
    if order == "ties":
        keys = rng.integers(0, 60, rows).astype(kind)
    else:
        keys = rng.integers(-(10**6), 10**6, rows).astype(kind)
    if order in ("ascending", "descending"):
        keys = np.sort(keys)[:: 1 if order == "ascending" else -1].copy()
    if order == "extremes":
        keys[rng.permutation(rows)[:3]] = [info.min, info.max, info.min][: min(rows, 3)]
    for count in (1, 12):
        chosen, counted = leading(keys, count, descending)
        bound = np.sort(keys)[-count] if descending else np.sort(keys)[count - 1]
        wanted = np.flatnonzero(keys >= bound if descending else keys <= bound).tolist()
        assert counted >= len(wanted)
        if counted <= 64:
            assert len(chosen) == counted
            assert set(wanted) <= set(chosen), "one of the first is missing"
            assert all((keys[chosen].min() <= bound, keys[chosen].max() >= bound))
    if order == "random" and rows == 400:
        assert leading(keys, 2, descending)[1] <= 8, "far more than are wanted"


def test_more_rows_than_there_is_room_for_are_counted() -> None:
    chosen, counted = leading(np.full(400, 7, np.int64), 5, True, room=16)
    assert counted == 400
    assert len(chosen) == 16


def test_slots_are_as_many_as_the_kernel_has() -> None:
    assert f"\nSLOTS = {kernels.SLOTS}\n" in kernels.SOURCE.read_text()


@pytest.mark.parametrize("name", kernels.SIGNATURES)
def test_the_kernels_compile_for_a_gpu(name: str, tmp_path: Path) -> None:
    pytest.importorskip("numba_cuda")
    code, origin = kernels.row_kernel(name, tmp_path, (9, 0)).machine_code()
    assert code
    assert origin == "compiler"


@pytest.mark.parametrize("kind", [np.int32, np.int64])
@pytest.mark.parametrize("slots", [1, 7, 300])
def test_the_first_row_of_each_slot(kind: Any, slots: int) -> None:
    keys = np.random.default_rng(slots).integers(0, slots, 300).astype(kind)
    first, state = np.full(slots, 0x7F7F7F7F, np.int32), np.zeros(1, np.int64)
    chosen = np.full(slots + 1, -1, np.int32)
    given = {
        "rows": len(keys), "width": keys.dtype.itemsize, "keys32": keys.view(np.int32),
        "keys64": keys if kind == np.int64 else np.zeros(0, np.int64),
        "first": first, "state": state, "room": slots, "chosen": chosen,
    }  # fmt: skip
    launch(kernels.FIRST, given, 3)
    launch(kernels.LIST, given, 2)
    expected = sorted(np.unique(keys, return_index=True)[1].tolist())
    assert sorted(chosen[chosen >= 0].tolist()) == expected
    assert state.tolist() == [len(expected)]
    assert chosen[slots] == -1, "more than there is room for"


@pytest.mark.by_day
@pytest.mark.parametrize("slots", [1, 3, 90])
@pytest.mark.parametrize("order", ["random", "ascending", "descending", "ties", "none"])
@pytest.mark.parametrize(("width", "turned"), [(4, 0), (8, 1)])
def test_the_extreme_texts_of_slots(slots: int, order: str, width: int, turned: int) -> None:
    rng, device, rows = np.random.default_rng(slots), Device(), 150
    kinds = [b"", b"a", b"a\0", b"ab", b"\xff", b"\x7f", "é".encode(), b"abcdefghijk"]
    if order == "ties":
        values: list[bytes | None] = [kinds[i] for i in rng.integers(0, 2, rows)]
    else:
        values = [kinds[i] + b"%03d" % rng.integers(999) for i in rng.integers(0, 8, rows)]
    if order in ("ascending", "descending"):
        values = sorted(values, reverse=order == "descending")  # type: ignore[type-var]
    if order == "none":
        values = [None if rng.random() < 0.8 else v for v in values]
    keys = rng.integers(0, slots, rows).astype(np.int32)
    job = texts(device, values, width, first=5).job
    memory = np.concatenate(device.parts)
    best = np.full(slots, -0x7F7F7F80, np.int32)
    given = {
        "rows": rows, "grouped": int(slots > 1), "keys": keys, "turned": turned, "best": best,
        "width": job.width, "data": job.data, "characters": job.characters, "bits": job.bits, "first": job.first,
        **{f"memory{8 * size}": memory.view(FORMATS[size]) for size in (1, 4, 8)},
    }  # fmt: skip
    for step in (16, 1):
        launch(kernels.TEXTS, {**given, "step": step}, 2)
    for slot, row in enumerate(best.tolist()):
        there = [v for v, k in zip(values, keys, strict=True) if k == slot and v is not None]
        found = None if row < 0 else values[row]
        assert found == ((max if turned else min)(there) if there else None)


@pytest.mark.parametrize("slots", [1, 5])
@pytest.mark.parametrize("least", [0, 1])
@pytest.mark.parametrize("range_", [3, 1500])
def test_the_different_values_of_slots(slots: int, least: int, range_: int) -> None:
    rng, rows = np.random.default_rng(slots), 300
    keys, values = (rng.integers(0, n, rows).astype(np.int32) for n in (slots, range_))
    words = -(-range_ // kernels.MARKED) * kernels.WARP
    marks, counts = np.zeros(slots * words, np.uint32), np.zeros(slots, np.int64)
    given = {
        "rows": rows, "grouped": int(slots > 1), "keys": keys, "values": values, "least": least,
        "slots": slots, "words": words, "marks": marks, "counts": counts,
    }  # fmt: skip
    launch(kernels.MARK, given, 3)
    launch(kernels.COUNT, given, 2)
    if slots == 1:
        asked, found = np.arange(range_, dtype=np.int32), np.full(range_, 7, np.uint8)
        launch(kernels.TEST, {"rows": range_, "values": asked, "marks": marks, "found": found}, 2)
        assert set(np.flatnonzero(found).tolist()) == {v for v in values.tolist() if v >= least}
    expected = [len({v for v in values[keys == s].tolist() if v >= least}) for s in range(slots)]
    assert counts.tolist() == expected
