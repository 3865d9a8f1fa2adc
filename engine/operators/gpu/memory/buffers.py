"""The buffers of one run of a pipeline, allocated and filled in the order of the stream on which its kernels run."""

from __future__ import annotations

import ctypes
from collections.abc import Iterable, Sequence
from functools import cache
from typing import Any

import numpy as np
import pylibcudf as plc
from cuda.bindings import runtime
from rmm.pylibrmm.device_buffer import DeviceBuffer

from ....storage.columns.encodings import Array
from ..columns import INT64, empty, scalar
from ..pipeline.driver_calls import DriverCalls
from ..pipeline.regions import ALIGNMENT, BYTES, BufferSpan, Region, Regions

TO_DEVICE = runtime.cudaMemcpyKind.cudaMemcpyDeviceToDevice
TO_HOST = runtime.cudaMemcpyKind.cudaMemcpyDeviceToHost
FROM_HOST = runtime.cudaMemcpyKind.cudaMemcpyHostToDevice
LANDING_BYTES = 1 << 22  # that come to the host in one turn, at most
MOST_ROWS = 1 << 30  # of a column that is filled at a time


class Memory:
    """Buffers by region; what is small and what is let go of after the run share one allocation.

    Words whose bytes differ are filled in already, the rest is left to the calls of a run.
    """

    def __init__(self, regions: Regions) -> None:
        sizes = regions.sizes
        small = sizes[Region.SMALL] + -sizes[Region.SMALL] % ALIGNMENT
        self.working = working_memory(small + sizes[Region.WORKING])
        start = int(self.working.ptr)
        self.starts = {Region.SMALL: start, Region.WORKING: start + small, Region.RESULTS: 0}
        self._results: plc.gpumemoryview = None
        if size := sizes[Region.RESULTS]:
            buffer = DeviceBuffer(size=size, stream=plc.utils.CUDF_DEFAULT_STREAM)
            self.starts[Region.RESULTS] = int(buffer.ptr)
            self._results = plc.gpumemoryview(buffer)
        for span, word in regions.fills:
            if word not in BYTES:
                self._fill(span, word, small)

    def column(self, span: BufferSpan, data_type: plc.DataType, length: int) -> plc.Column:
        """Return the first elements of an array of the results as a column, which keeps all of them."""
        if not length:
            return empty(data_type)
        data = self._results.byte_slice(slice(span.start, span.start + length * span.width))
        return plc.Column(data_type, length, data, None, 0, 0, [])

    def _fill(self, span: BufferSpan, word: int, small: int) -> None:
        """Fill words of the working memory, which begins behind what is small."""
        whole = plc.gpumemoryview(self.working)
        for first in range(0, span.length, MOST_ROWS):
            part = span.part(first, min(MOST_ROWS, span.length - first))
            place = small + part.start
            data = whole.byte_slice(slice(place, place + part.size))
            column = plc.Column(INT64, part.length, data, None, 0, 0, [])
            plc.filling.fill_in_place(column, 0, part.length, scalar(word, INT64))


def blank_of(regions: Regions) -> DeviceBuffer | None:
    """Return on the device what the small buffer begins with."""
    if not regions.initial:
        return None
    return DeviceBuffer.to_device(np.concatenate(regions.initial).view(np.uint8))


def copy(target: int, source: int, size: int) -> None:
    """Copy bytes from one place on the device to another."""
    check(runtime.cudaMemcpyAsync(target, source, size, TO_DEVICE, stream_handle())[0])


def zeros(size: int) -> DeviceBuffer:
    """Return device memory that begins with zeros."""
    buffer = DeviceBuffer(size=size, stream=plc.utils.CUDF_DEFAULT_STREAM)
    check(runtime.cudaMemsetAsync(buffer.ptr, 0, size, stream_handle())[0])
    return buffer


def landed(pieces: Iterable[tuple[int, int, int]], size: int) -> Array:
    """Copy pieces of device memory, wait, and return `size` bytes; a piece is its place there, its address, and its size.

    They go through memory that the device writes to without the host's help.
    """
    staging, start = found = staging_memory(size)
    for place, address, length in pieces:
        if length:
            copied = runtime.cudaMemcpyAsync(
                start + place, address, length, TO_HOST, stream_handle()
            )
            check(copied[0])
    plc.utils.CUDF_DEFAULT_STREAM.synchronize()
    bytes_ = staging[:size].copy()
    give_staging(found)
    return bytes_


def exchanged(sent: Array, calls: DriverCalls, given: Sequence[int], size: int) -> Array:
    """Return `size` bytes that calls have the device write where what is `sent` lies, which they copy to the device before, and wait for.

    Where that is they are given first, then the other arguments.
    """
    staging, start = found = staging_memory(max(size, len(sent)))
    staging[: len(sent)] = sent
    calls.run_numbered({}, (start, *given))
    bytes_ = staging[:size].copy()
    give_staging(found)
    return bytes_


SPARE_SIZES = tuple(1 << bits for bits in range(12, 23, 2))
# Memory of the device that no run uses, by its size
_spare: dict[int, list[DeviceBuffer]] = {size: [] for size in SPARE_SIZES}


def give_back(buffer: DeviceBuffer) -> None:
    """Leave memory of a run to others: their kernels come after those that this one has launched, on the same stream."""
    size = buffer.size
    if size in _spare:
        _spare[size].append(buffer)


def working_memory(size: int) -> DeviceBuffer:
    """Return memory of the device for one run: little of it is some that a run has given back.

    Each allocation, and each that is freed, gives the interpreter's lock away.
    """
    for room in SPARE_SIZES:
        if size <= room:
            size = room
            try:
                return _spare[room].pop()
            except (IndexError, KeyError):  # another thread was faster, or none is left to others
                break
    return DeviceBuffer(size=size, stream=plc.utils.CUDF_DEFAULT_STREAM)


_staging: list[tuple[Array, int]] = []  # memory that no thread uses now, and where it begins


def staging_memory(size: int = LANDING_BYTES) -> tuple[Array, int]:
    """Return memory that the device reads and writes by itself, and where it begins; more than `LANDING_BYTES` are any memory of the host.

    It is not given back where the work fails: the device may write to it still.
    """
    if size > LANDING_BYTES:
        host = np.empty(size, np.uint8)
        return host, host.ctypes.data
    try:
        return _staging.pop()
    except IndexError:
        return _allocated(LANDING_BYTES)


def give_staging(memory: tuple[Array, int]) -> None:
    """Give staging memory back that the device has done with."""
    if memory[0].size == LANDING_BYTES:
        _staging.append(memory)


def _allocated(size: int) -> tuple[Array, int]:
    error, address = runtime.cudaHostAlloc(size, runtime.cudaHostAllocDefault)
    check(error)
    memory = (ctypes.c_uint8 * size).from_address(int(address))
    return np.ctypeslib.as_array(memory), int(address)


@cache
def stream_handle() -> int:
    """The stream on which libcudf works."""
    return int(plc.utils.CUDF_DEFAULT_STREAM.__cuda_stream__()[1])


def check(error: Any) -> None:
    """Raise what the driver answered, unless all is well."""
    if int(error) != 0:
        raise RuntimeError(f"The CUDA driver answered {error.name}.")
