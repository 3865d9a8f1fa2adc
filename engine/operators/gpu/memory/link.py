"""Host memory with locked pages, where the system gives it, and encoded columns between it and the device, on streams of copies beside that of kernels.

To lock the pages of a block takes many times as long as to fill it, so that blocks are kept for the next piece and the next query.
Threads touch the pages of a large one before, in large pages where the system has these.
Where the system locks no more pages, blocks are memory of the usual kind, which takes the same copies more slowly.
"""

from __future__ import annotations

import mmap
import weakref
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import replace
from functools import cache
from threading import RLock
from types import TracebackType

import numpy as np
import pyarrow as pa
import pylibcudf as plc
from cuda.bindings import runtime
from rmm.pylibrmm.device_buffer import DeviceBuffer
from rmm.pylibrmm.stream import CudaStreamFlags, Stream

from ....errors import ExecutionError
from ....plan.arrow.arrow_arrays import bits_of
from ....records import dataclass
from ....storage.columns.device_decode import codes_of
from ....storage.columns.device_encode import aligned
from ....storage.columns.encodings import PADDING, Array, EncodedColumn, each_block
from ....threads.together import together
from .buffers import FROM_HOST, TO_HOST, check

KEPT_BYTES = 8 << 30  # of blocks that nobody uses now
LEAST_BYTES = 1 << 16
LEAST_TOUCHED = 1 << 25  # bytes of a block whose pages threads make
TOUCHING_THREADS = 8
STEPS = 8  # sizes of blocks between one power of two and the next
SLACK = 2  # how many times as large as asked for a kept block may be
ALIGNMENT = 64


@dataclass(frozen=True, eq=False)
class PinnedBlock:
    """Memory of the host; `owner` is what holds it where it is not the driver's, `pinned` whether its pages are locked."""

    address: int
    size: int
    owner: object = None
    pinned: bool = True


class Lease:
    """The use of a block, over once nobody refers to this."""

    def __init__(self, block: PinnedBlock, pool: Pool) -> None:
        self.block = block
        if block.pinned:
            # Nothing is to be done at exit, when the driver may be gone already
            weakref.finalize(self, pool.give, block).atexit = False

    @property
    def __array_interface__(self) -> dict[str, object]:
        """The block as NumPy takes it; arrays of it keep the lease."""
        block = self.block
        return {
            "data": (block.address, False),
            "shape": (block.size,),
            "typestr": "|u1",
            "version": 3,
        }

    def buffer(self) -> pa.Buffer:
        """Return the block as a buffer, which keeps the lease."""
        return pa.foreign_buffer(self.block.address, self.block.size, self)


class Pool:
    """Blocks whose pages are locked, oldest first; a lease may end in any thread at any time, also while one begins."""

    def __init__(self) -> None:
        self.free: list[PinnedBlock] = []
        self._lock = RLock()

    def take(self, size: int) -> Lease:
        """Return the use of at least `size` bytes; raises `ExecutionError` when the host has no memory of any kind."""
        with self._lock:
            fitting = [b for b in list(self.free) if size <= b.size <= SLACK * rounded(size)]
            if fitting:
                block = min(fitting, key=lambda b: b.size)
                self.free.remove(block)
                return Lease(block, self)
        return Lease(self._locked(rounded(size)) or _usual(size), self)

    def give(self, block: PinnedBlock) -> None:
        """Keep a block for the next one who asks, and no more than `KEPT_BYTES` altogether."""
        with self._lock:
            self.free.append(block)
            while self.free and sum(b.size for b in self.free) > KEPT_BYTES:
                _unlock(self.free.pop(0))

    def clear(self) -> None:
        """Give all blocks that nobody uses back to the system."""
        with self._lock:
            while self.free:
                _unlock(self.free.pop())

    def _locked(self, size: int) -> PinnedBlock | None:
        """Return a new block; None where the system refuses, even without the blocks that nobody uses."""
        for attempt in range(2):
            block = _registered(size) if size >= LEAST_TOUCHED else _allocated(size)
            if block is not None:
                return block
            runtime.cudaGetLastError()  # else the next caller who asks takes the failure for its own
            if attempt == 0:
                self.clear()
        return None


POOL = Pool()


def _usual(size: int) -> PinnedBlock:
    try:
        memory = np.empty(size, np.uint8)
    except MemoryError as error:
        raise ExecutionError(
            f"The host has no memory for {size:,} bytes of a join that does not fit into the GPU's. "
            "Let more of it go to disk: SET spill_memory to fewer bytes."
        ) from error
    return PinnedBlock(memory.ctypes.data, size, memory, pinned=False)


def _allocated(size: int) -> PinnedBlock | None:
    error, address = runtime.cudaHostAlloc(size, runtime.cudaHostAllocDefault)
    return None if int(error) else PinnedBlock(int(address), size)


def _registered(size: int) -> PinnedBlock | None:
    """Have the pages of new memory locked once they are there: the driver would make them one by one, in one thread."""
    try:
        pages = mmap.mmap(-1, size, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
    except OSError:
        return None
    with suppress(OSError):  # without large pages it takes longer
        pages.madvise(mmap.MADV_HUGEPAGE)
    memory = np.frombuffer(pages, np.uint8)

    def touch(some: slice) -> None:
        memory[some][:: mmap.PAGESIZE] = 0

    step = -(-size // TOUCHING_THREADS)
    shares = [slice(start, min(start + step, size)) for start in range(0, size, step)]
    together(touch, shares, TOUCHING_THREADS)
    address = memory.ctypes.data
    error = runtime.cudaHostRegister(address, size, runtime.cudaHostRegisterDefault)[0]
    return None if int(error) else PinnedBlock(address, size, memory)


def _unlock(block: PinnedBlock) -> None:
    free = runtime.cudaFreeHost if block.owner is None else runtime.cudaHostUnregister
    check(free(block.address)[0])


def rounded(size: int) -> int:
    """Return the size of a new block: sizes are few, so that blocks suit the next one who asks."""
    step = max(LEAST_BYTES, (1 << max(size - 1, 0).bit_length()) // (2 * STEPS))
    return max(1, -(-size // step)) * step


# Copies to the host


class PinnedLanding:
    """Device memory on its way to the host, a piece behind the other, while the device goes on with other work.

    Who began a landing keeps the device memory until it has waited for `wait`.
    """

    def __init__(self) -> None:
        self.size = 0
        self._pieces: list[tuple[int, int, int]] = []
        self.lease: Lease | None = None

    def add(self, address: int, size: int) -> slice:
        """Have bytes copied and return where they will be."""
        place = slice(self.size, self.size + size)
        if size:
            self._pieces.append((self.size, address, size))
        self.size += size + -size % ALIGNMENT
        return place

    def begin(self) -> None:
        """Copy, once what fills the memory has run."""
        if not self.size:
            return
        self.lease = POOL.take(self.size)
        plc.utils.CUDF_DEFAULT_STREAM.synchronize()
        copying = int(stream().__cuda_stream__()[1])
        for start, address, size in self._pieces:
            target = self.lease.block.address + start
            check(runtime.cudaMemcpyAsync(target, address, size, TO_HOST, copying)[0])

    def buffers(self, places: Sequence[slice]) -> list[pa.Buffer]:
        """Return what landed at places."""
        if self.lease is None:
            return [pa.py_buffer(b"") for _ in places]
        whole = self.lease.buffer()
        return [whole.slice(place.start, place.stop - place.start) for place in places]

    @property
    def pinned(self) -> int:
        """Bytes of locked memory that are in use for it."""
        return self.lease.block.size if self.lease is not None and self.lease.block.pinned else 0


def wait() -> None:
    """Wait for all landings that have begun."""
    stream().synchronize()


@cache
def stream() -> Stream:
    """The stream of copies, which waits for no other."""
    return Stream(flags=CudaStreamFlags.NON_BLOCKING)


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
