"""Kernels that bring rows to the slots of workers: run here as simulated CUDA, and compiled for a GPU that need not be there."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from fuseline.codegen.handwritten import exchange_kernels as kernels
from tests.codegen import simulator
from tests.codegen.machine_code import assembly

THREADS, SHARE = 64, 128
FORMATS = {1: np.uint8, 2: np.int16, 4: np.int32, 8: np.int64}
NOWHERE = 0xEE


def run(name: str, given: dict[str, Any], blocks: int = 2) -> None:
    cuda = simulator.Cuda(blocks, THREADS, 0)
    cuda.jit = lambda **options: lambda function: function  # type: ignore[attr-defined]
    space: dict[str, Any] = {"cuda": cuda}
    text = kernels.SOURCE.read_text().replace("from numba import cuda\n", "")
    exec(compile(text, str(kernels.SOURCE), "exec"), space)
    signature = kernels.SIGNATURES[name]
    cuda.launch(
        space[name], [np.int64(given[n]) if k == "int64" else given[n] for n, k in signature]
    )


class Memory:
    """Memory from address 0 on; an array gets a place, and so does room for values to come, which nobody else may write to."""

    def __init__(self) -> None:
        self.bytes = np.full(1 << 16, NOWHERE, np.uint8)
        self.end = 64

    def room(self, size: int) -> int:
        place, self.end = self.end, self.end + size + 16 + -size % 16
        return place

    def put(self, values: Any, skipped: int = 0) -> int:
        data = np.ascontiguousarray(values).view(np.uint8).ravel()
        place = self.room(len(data) + skipped) + skipped
        self.bytes[place : place + len(data)] = data
        return place

    @property
    def views(self) -> dict[str, Any]:
        return {f"memory{8 * width}": self.bytes.view(kind) for width, kind in FORMATS.items()}


def bitmap(memory: Memory, there: Any, first: int) -> int:
    """A column's bits, behind some of other rows."""
    bits = np.concatenate([np.arange(first) % 2 == 0, there])
    return memory.put(np.packbits(bits, bitorder="little"))


def scattered(
    numbers: Any, owners: list[int], slots: int, columns: dict[int, Any], nulls: list[Any], mask: int = -1
) -> tuple[list[int], list[list[bytes]]]:  # fmt: skip
    """Count and scatter; return the rows of each slot, and the bytes of each column there. `nulls` are keys' NULLs; a width of 0 is for them."""
    memory, rows = Memory(), len(numbers)
    warps = -(-rows // SHARE)
    masks = [
        word for n, there in enumerate(nulls) for word in (bitmap(memory, there, 3 * n), 3 * n)
    ]
    to, counts = np.full(rows, 77, np.uint8), np.full(slots * warps, -1, np.int64)
    given: dict[str, Any] = {
        "rows": rows, "warps": warps, "share": SHARE, "slots": slots, "to": to, "mask": mask,
        "numbers": numbers.astype(np.uint32), "owners": np.array(owners, np.uint8),
        "nullable": len(nulls), "bitmaps": np.array(masks, np.int64), "counts": counts,
    }  # fmt: skip
    jobs = [
        (width, 0, *((bitmap(memory, values, 5), 5) if values is not None else (0, 0)))
        if not width
        else (width, memory.put(values), 0, 0)
        for width, values in columns.items()
    ]
    run(kernels.COUNT, given | memory.views)
    ends = np.cumsum(counts)
    totals = np.diff([0, *ends[warps - 1 :: warps]]).tolist()
    bases = [[memory.room(n * (width or 1)) for n in totals] for width in columns]
    before = memory.bytes.copy()
    given |= {"ends": ends, "columns": len(jobs), "jobs": np.array(jobs, np.int64).ravel()}
    run(kernels.SCATTER, given | memory.views | {"bases": np.array(bases, np.int64).ravel()})
    found = []
    for width, places in zip(columns, bases, strict=True):
        found.append([])
        for n, place in zip(totals, places, strict=True):
            part = slice(place, place + n * (width or 1))
            found[-1].append(memory.bytes[part].tobytes())
            before[part] = memory.bytes[part]
    assert (before == memory.bytes).all(), "nothing else is written"
    return totals, found


def values(width: int, rows: int) -> Any:
    return np.random.default_rng(width).integers(0, 256, (rows, width), np.uint8)


@pytest.mark.parametrize(("rows", "slots"), [(1, 2), (127, 1), (128, 3), (129, 2), (700, 5)])
def test_rows_of_each_slot_in_their_order(rows: int, slots: int) -> None:
    draw = np.random.default_rng(rows)
    numbers = draw.integers(0, 1 << 32, rows, np.uint32)
    owners = draw.integers(0, slots, 64).tolist()
    there = draw.random(rows) < 0.7
    columns = {width: values(width, rows) for width in (1, 2, 4, 8, 16)} | {0: there}
    totals, found = scattered(numbers, owners, slots, columns, [], 63)
    to = np.array(owners)[numbers & 63]
    assert totals == np.bincount(to, minlength=slots).tolist()
    for column, parts in zip(columns.values(), found, strict=True):
        assert parts == [column[to == slot].tobytes() for slot in range(slots)]


def test_a_row_with_a_key_that_is_null_goes_where_number_0_does() -> None:
    rows = 300
    draw = np.random.default_rng(1)
    nulls = [draw.random(rows) < 0.5 for _ in range(2)]
    numbers, column = np.full(rows, 2), values(8, rows)
    totals, (parts,) = scattered(numbers, [1, 1, 0], 2, {8: column}, nulls)
    there = nulls[0] & nulls[1]
    assert totals == [there.sum(), rows - there.sum()]
    assert parts == [column[there].tobytes(), column[~there].tobytes()]


def test_all_rows_for_one_slot_and_a_column_without_nulls_beside_those_of_others() -> None:
    totals, found = scattered(np.zeros(400), [2], 4, {0: None, 4: values(4, 400)}, [])
    assert totals == [0, 0, 400, 0]
    assert found[0][2] == b"\1" * 400


def test_rows_that_go_nowhere_are_left_out() -> None:
    numbers, column = np.arange(500) % 3, values(4, 500)
    totals, (parts,) = scattered(numbers, [kernels.NO_SLOT, 0, 1], 2, {4: column}, [])
    assert totals == [167, 166]
    assert parts == [column[numbers == 1].tobytes(), column[numbers == 2].tobytes()]


def test_constants_are_those_of_the_kernels() -> None:
    text = kernels.SOURCE.read_text()
    assert f"\nJOB_WORDS = {kernels.JOB_WORDS}\n" in text
    assert f"\nNO_SLOT = np.int64({kernels.NO_SLOT})\n" in text


@pytest.mark.by_day(2)
@pytest.mark.parametrize("name", kernels.SIGNATURES)
def test_kernels_compile_for_a_gpu(name: str) -> None:
    assert assembly(kernels.SOURCE.read_text(), name, kernels.SIGNATURES[name])
