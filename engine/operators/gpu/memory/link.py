"""Encoded columns between host and device: over locked pages where the system gives them, on streams of copies beside that of kernels."""

from __future__ import annotations

from dataclasses import replace
from functools import cache
from types import TracebackType

import numpy as np
import pylibcudf as plc
from cuda.bindings import runtime
from rmm.pylibrmm.device_buffer import DeviceBuffer
from rmm.pylibrmm.stream import CudaStreamFlags, Stream

from ....storage.columns.device_decode import codes_of
from ....storage.columns.device_encode import aligned
from ....storage.columns.encodings import PADDING, Array, EncodedColumn, bits_of, each_block
from .buffers import FROM_HOST, check
from .pinned import POOL, PinnedLanding, wait

CLEARING_THREADS = 4


class Uploads:
    """Copies to the device, which are over when a `with` ends: until then host memory must stay as it is, and is referred to.

    Kernels run meanwhile; with `in_order` those that are launched after a copy wait for it, so that others may see what it copies to.
    """

    def __init__(self, in_order: bool) -> None:
        self._in_order = in_order
        self._sources: list[Array] = []

    def __enter__(self) -> Uploads:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if self._sources:
            _stream().synchronize()
        self._sources.clear()

    def add(self, array: Array) -> DeviceBuffer:
        """Begin to copy an array, and return the memory that it will be in: some more than it takes, as kernels and bitmaps want it."""
        size, default = array.nbytes, plc.utils.CUDF_DEFAULT_STREAM
        made = DeviceBuffer(size=size + -size % PADDING, stream=default)
        # What was allocated on the default stream may be written to once that has come so far
        plc.experimental.join_streams([default], _stream())
        self._sources.append(array)
        handle = int(_stream().__cuda_stream__()[1])
        check(runtime.cudaMemcpyAsync(made.ptr, array.ctypes.data, size, FROM_HOST, handle)[0])
        if self._in_order:
            plc.experimental.join_streams([_stream()], default)
        return plc.gpumemoryview(made)


@cache
def _stream() -> Stream:
    return Stream(flags=CudaStreamFlags.NON_BLOCKING)


def locked_bytes(size: int) -> Array:
    """Return memory of the host whose pages are locked, where the system does that; raises `ExecutionError` where it has none of any kind."""
    lease = POOL.take(size + PADDING)
    return np.asarray(lease)[:size]


def downloaded(column: EncodedColumn) -> EncodedColumn:
    """Return a column of the device in locked memory of the host; raises `ExecutionError` as `locked_bytes` does."""
    whole = aligned(codes_of(column))
    width, rows = column.encoding.width, column.rows
    landing = PinnedLanding()
    places = [landing.add(int(whole.data().ptr), rows * width)] if rows else []
    if column.nulls:
        places.append(landing.add(int(whole.null_mask().ptr), -(-rows // 8)))
    landing.begin()
    wait()
    if landing.lease is None:
        return replace(column, codes=np.empty(0, column.encoding.code_type), validity=None)
    memory = np.asarray(landing.lease)
    codes = memory[places[0]].view(column.encoding.code_type)
    if not column.nulls:
        return replace(column, codes=codes, validity=None)
    bitmap = memory[places[1]]

    def clear(some: slice) -> None:  # the code of a NULL is 0 on the host
        valid = bits_of(bitmap[some.start // 8 :], 0, some.stop - some.start)
        np.copyto(codes[some], codes.dtype.type(0), where=~valid)

    each_block(rows, CLEARING_THREADS, clear)
    return replace(column, codes=codes, validity=bitmap)
