"""Kernels that encode whole columns: run here as Python, thread after thread, and compiled for a GPU that need not be there."""

from __future__ import annotations

import types
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from fuseline.codegen.handwritten.column_kernels import SIGNATURES, SOURCE, column_kernel, key_slots

THREADS = 64
HOPPER = (9, 0)
I64_MIN, I64_MAX = -(2**63), 2**63 - 1
WIDTHS = {1: np.uint8, 2: np.uint16, 4: np.uint32, 8: np.uint64}


class Atomic:
    """Atomics of one thread at a time."""

    def min(self, array: Any, at: int, value: Any) -> None:
        array[at] = min(array[at], value)

    def max(self, array: Any, at: int, value: Any) -> None:
        array[at] = max(array[at], value)

    def add(self, array: Any, at: int, value: Any) -> None:
        array[at] += value

    def or_(self, array: Any, at: int, value: Any) -> None:
        array[at] |= value


class Cuda:
    """What the kernels use of `numba.cuda`, each thread alone: every lane is the first, and hears itself."""

    laneid = 0
    atomic = Atomic()
    thread = 0

    def jit(self, **options: Any) -> Any:
        return lambda function: function

    def grid(self, dimensions: int) -> int:
        return self.thread

    def gridsize(self, dimensions: int) -> int:
        return THREADS

    def shfl_down_sync(self, lanes: int, value: Any, distance: int) -> Any:
        return value


def run(name: str, *arguments: Any) -> None:
    """Run a kernel of `THREADS` threads; as pointers it gets arrays."""
    cuda = Cuda()
    text = SOURCE.read_text().replace("from numba import cuda\n", "")
    module = types.ModuleType("kernels")
    module.__dict__["cuda"] = cuda
    exec(compile(text, str(SOURCE), "exec"), module.__dict__)
    assert len(arguments) == len(SIGNATURES[name])
    with np.errstate(over="ignore"):
        for cuda.thread in range(THREADS):
            getattr(module, name)(*arguments)


def words(values: Any) -> tuple[Any, ...]:
    """Width, shift and stride of numbers, and one array for each element type that they might have."""
    width, unsigned = values.itemsize, values.dtype.kind == "u"
    stride = 2 if values.ndim == 2 else 1
    arrays = [values.reshape(-1).view(t) if w == width else None for w, t in WIDTHS.items()]
    return (width, 0 if unsigned else 64 - 8 * width, stride, *arrays)


def one_of(array: Any, widths: tuple[int, ...] = (1, 2, 4, 8)) -> list[Any]:
    return [array if w == array.itemsize else None for w in widths]


def bitmap(valid: Any) -> Any:
    packed = np.packbits(valid, bitorder="little")
    return np.append(packed, np.zeros(-len(packed) % 4, np.uint8)).view(np.uint32)


TYPES = ["i1", "i2", "i4", "i8", "u1", "u2", "u4"]


@pytest.mark.parametrize("nulls", [0.0, 0.5])
@pytest.mark.parametrize("kind", TYPES)
def test_measure_finds_extremes_and_a_sample(kind: str, nulls: float) -> None:
    random = np.random.default_rng(1)
    limits = np.iinfo(kind)
    values = random.integers(limits.min, limits.max, 300, dtype=kind, endpoint=True)
    valid = random.random(300) >= nulls
    out = np.full(2 + 100, 7, np.int64)
    out[:2] = I64_MAX, I64_MIN
    run("column_measure", 300, *words(values), bitmap(valid), int(nulls > 0), 3, out)
    assert out[0] == values[valid].min()
    assert out[1] == values[valid].max()
    np.testing.assert_array_equal(out[2:], np.where(valid[::3], values[::3].astype(np.int64), 7))


@pytest.mark.parametrize("code", ["u1", "u2", "u4", "u8"])
@pytest.mark.parametrize("nulls", [0.0, 0.5])
def test_narrow_divides_distances(code: str, nulls: float) -> None:
    random = np.random.default_rng(2)
    places = random.integers(0, 250, 200)
    base = -(2**63) if code != "u8" else 0
    values = (places * 100 + base).astype(np.int64)
    valid = random.random(200) >= nulls
    codes, wrong = np.full(200, 99, code), np.zeros(1, np.int64)
    arguments = (*words(values), bitmap(valid), int(nulls > 0))
    step = 100 if code != "u8" else 1
    run("column_narrow", 200, *arguments, base, step, codes.itemsize, *one_of(codes), wrong)
    expected = np.where(valid, places * (100 // step), 0)
    np.testing.assert_array_equal(codes, expected.astype(code))
    assert wrong[0] == 0


def test_narrow_says_when_a_distance_is_no_multiple() -> None:
    values = np.array([0, 100, 250, 300])
    codes, wrong = np.zeros(4, np.uint8), np.zeros(1, np.int64)
    run("column_narrow", 4, *words(values), None, 0, 0, 100, 1, *one_of(codes), wrong)
    assert wrong[0] == 1


@pytest.mark.parametrize(("high", "failed"), [(0, 0), (1, 1), (-1, 1)])
def test_narrow_says_when_128_bits_do_not_fit(high: int, failed: int) -> None:
    values = np.array([[5, 0], [7, high]], np.int64)
    codes, wrong = np.zeros(2, np.uint8), np.zeros(1, np.int64)
    run("column_narrow", 2, *words(values), None, 0, 5, 1, 1, *one_of(codes), wrong)
    assert wrong[0] == failed
    assert codes.tolist() == [0, 2]


def texts(values: list[bytes], wide: bool) -> tuple[Any, ...]:
    starts = np.cumsum([0, *map(len, values)]).astype(np.int64 if wide else np.int32)
    return len(values), int(wide), *one_of(starts, (4, 8))


def characters(values: list[bytes]) -> Any:
    """In a buffer of whole blocks."""
    joined = b"".join(values)
    return np.frombuffer(joined.ljust(-(-len(joined) // 1024) * 1024, b"~"), np.uint8).copy()


def hash_table(keys: list[bytes]) -> Any:
    return key_slots(characters(keys), np.cumsum([0, *map(len, keys)]).astype(np.int32))


@pytest.mark.parametrize("wide", [False, True])
@pytest.mark.parametrize("code", ["u1", "u2"])
def test_number_finds_the_key_of_each_text(code: str, wide: bool) -> None:
    random = np.random.default_rng(3)
    keys = sorted({bytes(random.integers(0, 256, random.integers(0, 9))) for _ in range(200)})
    places = random.integers(0, len(keys), 300)
    valid = random.random(300) > 0.2
    values = [keys[i] if ok else b"" for i, ok in zip(places, valid, strict=True)]
    slots = hash_table(keys)
    codes, wrong = np.full(300, 99, code), np.zeros(1, np.int64)
    starts = np.cumsum([0, *map(len, keys)]).astype(np.int32)
    table = (len(slots) - 1, slots, characters(keys), starts)
    run(
        "text_number", *texts(values, wide), characters(values), bitmap(valid), 1, 0, 0, *table,
        codes.itemsize, *one_of(codes, (1, 2)), wrong,
    )  # fmt: skip
    np.testing.assert_array_equal(codes, np.where(valid, places, 0))
    assert wrong[0] == 0


@pytest.mark.parametrize("strange", [b"", b"a", b"abd", b"abcd", b"\xff"])
def test_number_says_when_a_text_is_no_key(strange: bytes) -> None:
    keys = [b"ab", b"abc", b"b"]
    values = [b"abc", strange, b"ab"]
    codes, wrong = np.zeros(3, np.uint8), np.zeros(1, np.int64)
    slots = hash_table(keys)
    table = (len(slots) - 1, slots, characters(keys), np.array([0, 2, 5, 6], np.int32))
    run(
        "text_number", *texts(values, False), characters(values), None, 0, 0, 0, *table,
        1, *one_of(codes, (1, 2)), wrong,
    )  # fmt: skip
    assert wrong[0] == 1


LONG = [b"13-345", b"", b"1", b"13", b"2\x003", b"\x00\x00\x00", b"\x00", b"13-", b"abc-def"]


def pieces(values: list[bytes], keys: list[bytes], skipped: int, most: int) -> tuple[Any, int]:
    """The codes of pieces, and how many threads failed."""
    slots = hash_table(keys)
    starts = np.cumsum([0, *map(len, keys)]).astype(np.int32)
    table = (len(slots) - 1, slots, characters(keys), starts)
    codes, wrong = np.full(len(values), 99, np.uint8), np.zeros(1, np.int64)
    text = (*texts(values, False), characters(values), None, 0)
    codes_of_either = one_of(codes, (1, 2))
    run("text_number", *text, skipped, most, *table, 1, *codes_of_either, wrong)
    return codes, int(wrong[0])


@pytest.mark.parametrize("skipped", [0, 1, 2, 5, 60])
@pytest.mark.parametrize("most", [1, 2, 3, 8])
def test_number_of_pieces(skipped: int, most: int) -> None:
    wanted = [v[skipped : skipped + most] for v in LONG]
    keys = sorted(set(wanted))
    codes, wrong = pieces(LONG, keys, skipped, most)
    assert [keys[c] for c in codes] == wanted
    assert wrong == 0


@pytest.mark.parametrize("strange", ["é1", "1é", "11é"])
def test_number_of_pieces_refuses_what_is_not_ascii(strange: str) -> None:
    encoded = strange.encode()
    keys = sorted({encoded[1:3], b"3-", b"b"})
    _, wrong = pieces([b"13-345", encoded, b"abc"[0:2]], keys, 1, 2)
    assert wrong == 1
    # Beyond the piece anything may come
    _, wrong = pieces([b"13-345", encoded], sorted({encoded[:1], b"1"}), 0, 1)
    assert wrong == (1 if encoded[0] > 127 else 0)


@pytest.mark.parametrize("wide", [False, True])
@pytest.mark.parametrize("count", [0, 1, 50])
def test_measure_of_texts(count: int, wide: bool) -> None:
    random = np.random.default_rng(count)
    values = [bytes(random.integers(0, 256, random.integers(0, 40))) for _ in range(count)]
    joined = b"".join(values)
    out = np.zeros(7, np.int64)
    run("text_measure", *texts(values, wide), characters(values).view(np.uint32), out)
    assert out[0] == max(map(len, values), default=0)
    seen = {64 * i + b for i in range(4) for b in range(64) if int(out[1 + i]) >> b & 1}
    assert seen == set(joined)
    assert out[5:].tolist() == [0, len(joined)]


@pytest.mark.parametrize("width", [1, 2, 4])
def test_lengths_of_texts(width: int) -> None:
    values = [b"", b"abc", b"x" * (255 if width == 1 else 300), b""]
    lengths = np.full(5, 9, WIDTHS[width])
    run("text_lengths", *texts(values, False), width, *one_of(lengths, (1, 2, 4)))
    assert lengths.tolist() == [*map(len, values), 0]


@pytest.mark.parametrize("width", range(1, 8))
@pytest.mark.parametrize("count", [1, 1023, 1024, 1025, 5000])
def test_packed_characters_come_back(count: int, width: int) -> None:
    random = np.random.default_rng(width)
    alphabet = np.sort(random.choice(256, 1 << width, replace=False)).astype(np.uint8)
    text = random.choice(alphabet, count)
    blocks = -(-count // 1024)
    padded = np.append(text, np.full(blocks * 1024 - count, 255, np.uint8)).view(np.uint32)
    numbers = np.zeros(256, np.uint8)
    numbers[alphabet] = np.arange(len(alphabet))
    packed = np.zeros(blocks * 32 * width, np.uint32)
    run("text_pack", count, width, numbers, padded, packed)
    back = np.zeros(blocks * 256, np.uint32)
    run("text_unpack", count, width, alphabet, packed, back)
    np.testing.assert_array_equal(back.view(np.uint8)[:count], text)


@pytest.mark.by_day(3)
@pytest.mark.parametrize("name", SIGNATURES)
def test_each_is_machine_code_for_a_gpu(name: str, tmp_path: Path) -> None:
    pytest.importorskip("numba_cuda", reason="the compiler for GPUs is an extra")
    code, origin = column_kernel(name, tmp_path, HOPPER).machine_code()
    assert origin == "compiler"
    assert len(code) > 1000
