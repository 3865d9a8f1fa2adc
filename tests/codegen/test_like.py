"""The LIKE kernels without a GPU: each way runs in Python against DuckDB's answers, and becomes machine code for Hopper.

A barrier of a block becomes a `yield`: its threads run in turn from one barrier to the next.
"""

from __future__ import annotations

from collections.abc import Generator
from types import SimpleNamespace
from typing import Any

import duckdb
import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings, strategies as st

from fuseline.codegen.handwritten import like, like_source
from fuseline.codegen.handwritten.like import LikeShape
from fuseline.plan.patterns import Literals, literals, pattern_parts
from tests.codegen.machine_code import assembly

WAYS = ["rows", "blocks"]
SHAPES = [
    LikeShape(False), LikeShape(False, False, True), LikeShape(True, True), LikeShape(True, False), LikeShape(True, True, True),
]  # fmt: skip


class _Cuda:
    """The module that a kernel knows as `cuda`, for one thread after the other."""

    def __init__(self) -> None:
        self.thread, self.block, self.memory = 0, 0, {}  # type: ignore[var-annotated]
        self.shared = SimpleNamespace(array=self._shared)
        self.atomic = SimpleNamespace(add=_change(lambda a, b: a + b))
        self.made = 0
        self.jit = lambda **options: lambda function: function
        self.ffs = lambda bits: np.int32((int(bits) & -int(bits)).bit_length())

    @property
    def threadIdx(self) -> Any:  # noqa: N802 - CUDA's name
        return SimpleNamespace(x=np.int32(self.thread))

    @property
    def blockIdx(self) -> Any:  # noqa: N802
        return SimpleNamespace(x=np.int32(self.block))

    def grid(self, dimensions: int) -> Any:
        return np.int64(self.block * like.THREADS + self.thread)

    def _shared(self, shape: int, machine: Any) -> Any:
        """The n-th array that a thread asks for is the n-th of its block; full of garbage at first."""
        garbage = np.full(shape, 77, machine)
        self.made += 1
        return self.memory.setdefault(self.made, garbage)

    def launch(self, kernel: Any, blocks: int, arguments: list[Any]) -> None:
        for self.block in range(blocks):
            self.memory = {}
            running: list[Generator[None, None, None]] = []
            for self.thread in range(like.THREADS):
                self.made = 0
                started = kernel(*arguments)
                if started is not None and next(started, self) is not self:
                    running.append(started)
            while running:
                assert len(running) == like.THREADS, "a thread left before a barrier"
                running = [r for r in running if next(r, self) is not self]


def _change(fold: Any) -> Any:
    def change(array: Any, index: Any, value: Any) -> Any:
        before = array[index]
        array[index] = fold(before, value)
        return before

    return change


def matched(
    strings: pa.Array, parts: Literals, way: str, wide: bool = False, group: int | None = None
) -> list[bool]:
    """Run a kernel over an Arrow array; its characters begin at an odd address."""
    shape = like.shape_of(parts, way == "blocks", wide)
    offsets = np.frombuffer(strings.buffers()[1], np.int32)[strings.offset :]
    text = bytes(strings.buffers()[2] or b"")
    shift = 5
    padded = b"\xff" * shift + text + b"\xee" * (-(shift + len(text)) % 16)
    chars = np.frombuffer(padded or b"\0" * 16, np.uint8)
    bitmap = strings.buffers()[0]
    bits = np.frombuffer(bitmap or b"\0", np.uint8)
    rows, out = len(strings), np.full(len(strings), 9, np.uint8)
    memory = np.frombuffer(like.memory(parts), np.uint8)
    bounds = memory[like.bounds_at(parts) :].view(np.int32)
    memory = memory[: like.bounds_at(parts)]
    cuda = _Cuda()
    lines = like_source.source(shape).replace("cuda.syncthreads()", "yield").splitlines()
    namespace: dict[str, Any] = {
        "np": np,
        "cuda": cuda,
        "load_pair": lambda words, pair: (words[2 * int(pair)], words[2 * int(pair) + 1]),
    }
    exec("\n".join(line for line in lines if "import" not in line), namespace)
    share = like.THREADS if not shape.blocks else (group or like.rows_a_block(rows, len(text)))
    arguments = [np.int64(rows)]
    if shape.blocks:
        arguments += [np.int64(share), np.int32(like.searched(parts))]
    arguments += [
        chars.view(np.uint64), chars, np.int64(shift), offsets.astype(np.int64) if wide else offsets, bits,
        np.int64(strings.offset), np.int64(bitmap is not None), memory.view(np.uint64), memory,
        bounds, np.int32(len(parts.floating)), np.int32(parts.size), np.int32(len(parts.suffix)),
        out, *(like.words(parts) if shape.blocks else []),
    ]  # fmt: skip
    assert len(arguments) == len(like.signature(shape))
    with np.errstate(over="ignore"):
        cuda.launch(namespace[shape.name], -(-rows // share), arguments)
    return [bool(x) for x in out]


def expected(strings: pa.Array, pattern: str) -> list[bool]:
    """DuckDB's answer, False for NULL."""
    strings_table = pa.table({"s": strings})  # noqa: F841 - the query reads it
    query = "select coalesce(s like $p, false) from strings_table"
    return [row[0] for row in duckdb.execute(query, {"p": pattern}).fetchall()]


def parts_of(pattern: str) -> Literals:
    parts = literals(pattern_parts(pattern))
    assert parts is not None
    return parts


CASES = [
    "%special%requests%", "%special%", "%green%", "%a%", "%ab%", "%abc%", "a%", "%a", "a%b", "ab%ab", "%ab%ab%", "%aa%aa%aa%",
    "x%abcdefgh%y", "%abcdefgh%abcdefgh%", "%abcdefg%b%abcdefg%", "%é%", "%日本%", "日%本", "%a%b%c%d%", "%aaaaaaa%", "aaaaaaa%aaaaaaa",
    "%aaaa%aaaaaaaa%",
]  # fmt: skip
STRINGS = [
    None, "", "a", "b", "ab", "aba", "abab", "specialrequests", "requests special", "special of the requests", "specia", "equests",
    "a" * 7, "a" * 13, "a" * 14, "a" * 15, "a" * 16, "a" * 40, "xabcdefghy", "xabcdefgh", "abcdefghabcdefgh", "abcdefgabcdefg",
    "abcdefgbabcdefg", "日本", "日x本", "é", "ee", "sp" * 30 + "special" + "r" * 31 + "requests", "green", "dark green thing", "abcd",
    "\n", "a\nb", "special\0requests", "x" * 700 + "specialrequests", None, "agreen", "gree", "n",
]  # fmt: skip


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("pattern", CASES)
def test_patterns(pattern: str, way: str) -> None:
    strings = pa.array(STRINGS * 3)
    parts = parts_of(pattern)
    assert matched(strings, parts, way) == expected(strings, pattern)
    assert matched(strings[5:90], parts, way, wide=True) == expected(strings[5:90], pattern)


@pytest.mark.parametrize("way", WAYS)
def test_few_strings(way: str) -> None:
    for strings in (
        pa.array([""]),
        pa.array(["abc"]),
        pa.array([None], pa.string()),
        pa.array(["", ""]),
    ):
        for pattern in ("%abc%", "a%", "%special%requests%", "%b%c%"):
            assert matched(strings, parts_of(pattern), way) == expected(strings, pattern)


def test_blocks_of_many_turns() -> None:
    """A block whose bytes are more than it looks through at a time, and parts across that border."""
    border = 16 * like.TURN
    for place in range(border - 9, border + 3):
        strings = pa.array([
            "x" * place + "special", "x" * 30, "requests", "special", "y" * border + "special requests",
        ])  # fmt: skip
        found = matched(strings, parts_of("%special%"), "blocks", group=5)
        assert found == [True, False, False, True, True]


def test_more_places_than_are_noted_at_a_time() -> None:
    """Nearly every vector of many turns may hold the part."""
    size = 16 * like.TURN * 4
    strings = pa.array(["a" * size + "b", "a" * 50 + "bb", "ab" * size, "a" * size])
    for pattern in ("%b%b%", "%ab%b%", "%aaaaaaab%"):
        found = matched(strings, parts_of(pattern), "blocks", group=4)
        assert found == expected(strings, pattern)


TEXT = (
    st.text("ab", max_size=40) | st.text("abcspecialrequests ", max_size=40) | st.text(max_size=6)
)
PATTERN = st.lists(st.sampled_from(["a", "ab", "b", "ba", "special", "requests", "aaaaaaa", "abababa", "é"]) | st.text("ab", max_size=9), min_size=2, max_size=5).map("%".join)  # fmt: skip


@settings(max_examples=60)
@given(
    st.lists(st.none() | TEXT, min_size=1, max_size=70), PATTERN, st.sampled_from(WAYS), st.data()
)
def test_random(values: list[str | None], pattern: str, way: str, data: Any) -> None:
    strings = pa.array([None if v is None else v.replace("\0", "") for v in values], pa.string())
    strings = strings[data.draw(st.integers(0, len(values) - 1)) :]
    group = data.draw(st.integers(1, 80))
    found = matched(strings, parts_of(pattern), way, data.draw(st.booleans()), group)
    assert found == expected(strings, pattern)


@pytest.mark.by_day(2)
@pytest.mark.parametrize("shape", SHAPES, ids=lambda s: s.name)
def test_machine_code(shape: LikeShape) -> None:
    assembly(like_source.source(shape), shape.name, like.signature(shape))
