"""Host memory that is gone through block by block: in blocks that stay in a core's cache, on threads."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

BLOCK = 1 << 15  # rows, a multiple of 8: 256 kB of int64
PADDING = 64  # bytes: kernels load whole words, which must not leave the buffer
UNSIGNED = {1: np.uint8, 2: np.uint16, 4: np.uint32, 8: np.uint64}


def each_block(rows: int, threads: int, work: Callable[[slice], Any]) -> list[Any]:
    """Return what `work` makes of each block of rows."""
    blocks = [slice(at, min(at + BLOCK, rows)) for at in range(0, rows, BLOCK)]
    if threads < 2 or len(blocks) < 2 * threads:
        return [work(block) for block in blocks]
    shared: Iterator[tuple[int, slice]] = iter(list(enumerate(blocks)))
    results: list[Any] = [None] * len(blocks)
    lock = threading.Lock()

    def drain() -> None:
        while True:
            with lock:
                found = next(shared, None)
            if found is None:
                return
            results[found[0]] = work(found[1])

    with ThreadPoolExecutor(threads) as pool:
        for future in [pool.submit(drain) for _ in range(threads)]:
            future.result()
    return results


def values_of(array: pa.Array, numpy_type: Any) -> Any:
    """The values buffer as NumPy sees it, without a copy; what lies under NULLs is anything."""
    item, data = np.dtype(numpy_type), array.buffers()[1]
    if data is None or not len(array):
        return np.zeros(len(array), item)
    return np.frombuffer(data, item, len(array), array.offset * item.itemsize)


def bits_of(buffer: pa.Buffer | None, offset: int, length: int) -> npt.NDArray[np.bool_]:
    """Return bits of a buffer as truth values; without a buffer all are set."""
    if buffer is None or length == 0:
        return np.ones(length, bool)
    start, shift = divmod(offset, 8)
    packed = np.frombuffer(buffer, np.uint8, (shift + length + 7) // 8, start)
    unpacked = np.unpackbits(packed, count=shift + length, bitorder="little")
    return unpacked[shift:].view(np.bool_)


def zeros(rows: int, numpy_type: Any) -> Any:
    """An array of zeros at the start of a buffer of a multiple of `PADDING` bytes."""
    item = np.dtype(numpy_type).itemsize
    count = -(-rows * item // PADDING) * PADDING // item
    return np.zeros(count, numpy_type)[:rows]
