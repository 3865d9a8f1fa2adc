"""Encoded columns between host and device: over locked pages where the system gives them, on streams of copies beside that of kernels."""

from __future__ import annotations

from dataclasses import replace
from functools import cache
from types import TracebackType

import numpy as np
import pyarrow as pa
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
BYTES_TOGETHER = 256  # as one row of a block: threads copy 8 MB each


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
        self.wait()

    def wait(self) -> None:
        """Wait for what has begun."""
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


def locked_copy(value: EncodedColumn | pa.Array, threads: int) -> EncodedColumn | pa.Array:
    """Return a column over mapped files in locked memory, from where copies go at the speed of the link; raises `ExecutionError` as `locked_bytes` does."""
    if isinstance(value, EncodedColumn):
        codes = _locked(value.codes, threads).view(value.codes.dtype)
        bitmap = None if value.validity is None else _locked(value.validity, threads)
        return replace(value, codes=codes, validity=bitmap)
    bitmap, *others = value.buffers()
    copies = [_locked_buffer(buffer, threads) for buffer in others]
    rows, nulls = len(value), value.null_count
    return pa.Array.from_buffers(value.type, rows, [bitmap, *copies], nulls, value.offset)


def _locked_buffer(buffer: pa.Buffer | None, threads: int) -> pa.Buffer | None:
    if buffer is None or not buffer.size:
        return buffer
    return pa.py_buffer(_locked(np.frombuffer(buffer, np.uint8), threads))


def _locked(values: Array, threads: int) -> Array:
    """Copy an array by several threads, since one is slower than the link."""
    source, made = values.view(np.uint8), locked_bytes(values.nbytes)

    def copy(some: slice) -> None:
        place = slice(some.start * BYTES_TOGETHER, some.stop * BYTES_TOGETHER)
        made[place] = source[place]

    each_block(-(-len(source) // BYTES_TOGETHER), threads, copy)
    return made


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


def downloaded_texts(column: plc.Column) -> pa.Array | None:
    """Return texts of the device in locked memory of the host; None for more than have offsets of 32 bits.  Raises `ExecutionError` as `locked_bytes` does."""
    rows = column.size()
    if column.offset() or not rows or column.child(0).type().id() != plc.TypeId.INT32:
        found = column.to_arrow()
        return found if pa.types.is_string(found.type) else None
    starts = PinnedLanding()
    places = [starts.add(int(column.child(0).data().ptr), 4 * (rows + 1))]
    if column.null_count():
        places.append(starts.add(int(column.null_mask().ptr), -(-rows // 8)))
    starts.begin()
    wait()
    offsets, *bitmap = starts.buffers(places)
    count = int(np.frombuffer(offsets, np.int32)[rows])
    characters = PinnedLanding()
    place = characters.add(int(column.data().ptr) if count else 0, count)
    characters.begin()
    wait()
    buffers = [bitmap[0] if bitmap else None, offsets, *characters.buffers([place])]
    return pa.Array.from_buffers(pa.string(), rows, buffers, column.null_count())
