"""Host memory that the device copies to and from by itself, at the full speed of its bus.

To lock the pages of a block takes many times as long as to fill it, so that blocks are kept for the next piece and the next query.
Where the system locks no more pages, blocks are memory of the usual kind, which takes the same copies more slowly.
"""

from __future__ import annotations

import weakref
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from threading import RLock

import numpy as np
import pyarrow as pa
import pylibcudf as plc
from cuda.bindings import runtime
from rmm.pylibrmm.stream import CudaStreamFlags, Stream

from ....errors import ExecutionError
from .buffers import TO_HOST, check

KEPT_BYTES = 8 << 30  # of blocks that nobody uses now
LEAST_BYTES = 1 << 16
STEPS = 8  # sizes of blocks between one power of two and the next
SLACK = 2  # how many times as large as asked for a kept block may be
ALIGNMENT = 64


@dataclass(frozen=True, eq=False)
class PinnedBlock:
    """Memory of the host; `owner` is what holds it where its pages are not locked."""

    address: int
    size: int
    owner: object = None

    @property
    def pinned(self) -> bool:
        return self.owner is None


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
            error, address = runtime.cudaHostAlloc(size, runtime.cudaHostAllocDefault)
            if int(error) == 0:
                return PinnedBlock(int(address), size)
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
    return PinnedBlock(memory.ctypes.data, size, memory)


def _unlock(block: PinnedBlock) -> None:
    check(runtime.cudaFreeHost(block.address)[0])


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
