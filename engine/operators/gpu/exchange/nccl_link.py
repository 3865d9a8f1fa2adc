"""The way from GPU to GPU: an NCCL communicator of a team's workers, one GPU each.

Bytes go by grouped sends and receives of sizes that both sides know, one group at a time, and what workers tell each other by an
all-gather of slots of one size, so that a worker is never inside a call that waits for a dead one: it looks at an event until the group
is done.  Where another worker is lost meanwhile, or does not come, the
communicator is aborted, by the thread that uses it; the team gets another one.  If the abort costs the process its CUDA context,
`context_lost` says so, and the process has to end.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Sequence
from importlib import import_module
from importlib.util import find_spec
from math import inf
from typing import TYPE_CHECKING

import numpy as np
import pylibcudf as plc
from cuda.bindings import runtime
from rmm.pylibrmm.device_buffer import DeviceBuffer

from ....errors import ClusterError
from ....storage.columns.encodings import Array
from ...context import MovedBytes
from ...exchange.exchange_rounds import SLOT_ALIGNMENT
from ..memory.buffers import (
    FROM_HOST,
    LANDING_BYTES,
    TO_HOST,
    check,
    give_staging,
    staging_memory,
    stream_handle,
)

if TYPE_CHECKING:
    from nccl.core import Communicator

START_SECONDS = 45.0
LONGEST_SECONDS = 300.0  # for one group, whatever the workers say
PATIENCE_SECONDS = 0.5  # for a group, once a worker has said that it leaves
# For what others tell, once the query is to end: those that are there come to tell that they have failed
TELLING_SECONDS = 3.0
ABORT_SECONDS = 10.0
BUSY_SECONDS = 0.002  # in which the event is looked at without rest
REST_SECONDS = 0.00005
LOOK_SECONDS = 0.001
FORM_LOOK_SECONDS = 0.02
WARMTH_BYTES = 1 << 16
# That each worker tells in a first round: headers, and an aggregate of some groups.  A meeting of 64 bytes took 0.05 ms on four H200s, one of
# 256 kB 0.17 on two
TOLD_BYTES = 4 << 10
UINT8 = 1  # NCCL's number of the type
LENGTH_BYTES = 8  # of a message's length, before it
NEEDED = "install nvidia-nccl-cu13 and nccl4py, which the extra cuda13-dask brings"


def what_is_missing() -> str:
    """Say why NCCL cannot be used here, or nothing."""
    if find_spec("nccl") is None:
        return f"nccl4py is not installed: {NEEDED}"
    try:
        found = import_module("nccl.core").get_version().libnccl
    except Exception as error:
        return f"NCCL cannot be loaded ({error}): {NEEDED}"
    return "" if found is not None else f"there is no libnccl: {NEEDED}"


def device_place() -> str:
    """Return the place of this process's GPU on its host's buses."""
    error, properties = runtime.cudaGetDeviceProperties(0)
    check(error)
    return f"{properties.pciDomainID}:{properties.pciBusID}:{properties.pciDeviceID}"


def new_identity() -> bytes:
    """Return what tells workers which communicator they are to form."""
    return bytes(import_module("nccl.core").get_unique_id())


class _MessageSlots:
    """Device memory for what all workers tell: so many bytes of each, one behind the other."""

    def __init__(self, workers: int, rank: int) -> None:
        # What all tell comes to the host through a piece of staging memory
        self.most = LANDING_BYTES // workers // SLOT_ALIGNMENT * SLOT_ALIGNMENT
        self.workers, self.rank = workers, rank
        self._memory = DeviceBuffer(size=self.most * workers, stream=plc.utils.CUDF_DEFAULT_STREAM)
        self.start = int(self._memory.ptr)


class NcclLink:
    """This worker's end of a communicator; all workers of the team make theirs at the same time."""

    def __init__(self) -> None:
        # Below `nccl.core`, which looks at each buffer's device and type, and whether it is PyTorch's or CuPy's: 40 us a buffer under a profiler
        self._nccl, self._calls = import_module("nccl.core"), import_module("nccl.bindings.nccl")
        self._lock = threading.Lock()
        self._is_closing = self._is_formed = False
        self.context_lost = False
        error, event = runtime.cudaEventCreateWithFlags(runtime.cudaEventDisableTiming)
        check(error)
        self._event = event
        self._communicator: Communicator | None = None
        self._handle: object = None  # of it, as NCCL's calls take it
        self._slots: _MessageSlots | None = None

    def form(self, workers: int, rank: int, identity: bytes) -> None:
        """Form the communicator, in a thread that may be left behind: NCCL waits without end for a worker that does not come.

        `close` ends the wait, as where the client has found that another worker is lost.
        """
        failed: list[BaseException] = []

        def begin() -> None:
            try:
                unique = self._nccl.UniqueId.from_bytes(identity)
                self._communicator = made = self._nccl.Communicator.init(workers, rank, unique)
                self._handle = self._calls.Comm(made.ptr)
                self._slots = _MessageSlots(workers, rank)
                self._warm(workers, rank)
                self._is_formed = True
            except BaseException as error:
                failed.append(error)
                with self._lock:
                    self._abort()

        thread = threading.Thread(target=begin, name="nccl", daemon=True)
        thread.start()
        end = time.monotonic() + START_SECONDS
        while thread.is_alive() and not self._is_closing and time.monotonic() < end:
            thread.join(FORM_LOOK_SECONDS)
        if failed:
            raise ClusterError(f"NCCL cannot be started: {failed[0]}.") from failed[0]
        if not self.alive:
            why = (
                "Another worker was lost." if self._is_closing else f"{START_SECONDS:g} s are over."
            )
            self._is_closing = True  # for a thread that goes on
            raise ClusterError(f"NCCL has not started: {why}")

    @property
    def alive(self) -> bool:
        return self._is_formed and self._communicator is not None and not self._is_closing

    def move(
        self,
        outgoing: Sequence[MovedBytes],
        incoming: Sequence[MovedBytes],
        why_left: Callable[[], str | None],
    ) -> None:
        """Send and receive at once, and wait; raises `ClusterError` where `why_left` says that a worker leaves, and the link is gone then."""
        if not outgoing and not incoming:
            return

        def begin(handle: object, stream: int) -> None:
            send, receive = self._calls.send, self._calls.recv
            with self._nccl.group():
                for rank, address, size in outgoing:
                    send(address, size, UINT8, rank, handle, stream)
                for rank, address, size in incoming:
                    receive(address, size, UINT8, rank, handle, stream)

        with self._lock:
            self._run(begin, why_left, PATIENCE_SECONDS, LONGEST_SECONDS)

    def tell(self, message: bytes, why_left: Callable[[], str | None]) -> list[bytes]:
        """Tell all workers of the team something and return what each tells, when all have; raises `ClusterError` as `move`.

        One round where no message is long, else another one for the rest, as long as the longest, or several.
        """
        with self._lock:
            slots, room = self._slots, TOLD_BYTES - LENGTH_BYTES
            assert slots is not None
            memory = staging_memory()
            first = len(message).to_bytes(LENGTH_BYTES, "little") + message[:room]
            told = self._gathered(slots, memory, first, TOLD_BYTES, why_left)
            lengths = [int.from_bytes(said[:LENGTH_BYTES], "little") for said in told]
            found = [said[LENGTH_BYTES:] for said in told]
            begin, end = room, max(lengths)
            while begin < end:
                size = min(slots.most, -(-(end - begin) // SLOT_ALIGNMENT) * SLOT_ALIGNMENT)
                piece = message[begin : begin + size]
                more = self._gathered(slots, memory, piece, size, why_left)
                found = [known + said for known, said in zip(found, more, strict=True)]
                begin += size
            give_staging(memory)
            return [said[:length] for said, length in zip(found, lengths, strict=True)]

    def _gathered(
        self,
        slots: _MessageSlots,
        memory: tuple[Array, int],
        given: bytes,
        size: int,
        why_left: Callable[[], str | None],
    ) -> list[bytes]:
        """Return so many bytes of each worker, of which this one gives some."""
        staging, start = memory
        whole, own = slots.start, slots.start + size * slots.rank
        staging[: len(given)] = np.frombuffer(given, np.uint8)

        def begin(handle: object, stream: int) -> None:
            if given:
                check(runtime.cudaMemcpyAsync(own, start, len(given), FROM_HOST, stream)[0])
            self._calls.all_gather(own, whole, size, UINT8, handle, stream)
            # Copies of a stream keep their order: what is given has gone when this begins
            check(runtime.cudaMemcpyAsync(start, whole, size * slots.workers, TO_HOST, stream)[0])

        self._run(begin, why_left, TELLING_SECONDS, inf)
        return [staging[size * r : size * (r + 1)].tobytes() for r in range(slots.workers)]

    def _run(
        self,
        begin: Callable[[object, int], None],
        why_left: Callable[[], str | None],
        patience: float,
        longest: float,
    ) -> None:
        """Begin what all workers do together, and wait for it."""
        communicator = self._communicator
        if communicator is None or self._is_closing:
            raise ClusterError(why_left() or "The link between the GPUs is gone.")
        try:
            begin(self._handle, stream := stream_handle())
            check(runtime.cudaEventRecord(self._event, stream)[0])
        except Exception as error:
            self._abort()
            raise ClusterError(
                f"NCCL failed: {error}. SET exchange = 'host' does without."
            ) from error
        self._wait(why_left, patience, longest)

    def _wait(self, why_left: Callable[[], str | None], patience: float, longest: float) -> None:
        begun = time.monotonic()
        left_at: float | None = None
        why: str | None = None
        while not self._is_done():
            now = time.monotonic()
            if now - begun > BUSY_SECONDS:
                time.sleep(REST_SECONDS)
                why = (
                    why or why_left() or ("The connection is closed." if self._is_closing else None)
                )
            else:
                time.sleep(0)
            if why is not None:
                left_at = now if left_at is None else left_at
                if now - left_at > patience:
                    self._abort()
                    raise ClusterError(why)
            elif now - begun > longest:
                self._abort()
                raise ClusterError(f"An exchange between GPUs has not ended within {longest:g} s.")

    def _is_done(self) -> bool:
        (found,) = runtime.cudaEventQuery(self._event)
        if found == runtime.cudaError_t.cudaErrorNotReady:
            runtime.cudaGetLastError()  # else the next caller who asks takes it for a failure
            return False
        if int(found) != 0:
            self.context_lost = True
            self._communicator = None
            raise ClusterError(f"The GPU has failed in an exchange ({found.name}).")
        return True

    def _abort(self) -> None:
        """End what runs, and see whether the CUDA context has outlived it; whoever uses the link calls this."""
        communicator, self._communicator = self._communicator, None
        if communicator is None:
            return
        failed: list[Exception] = []

        def abort() -> None:
            try:
                communicator.abort()
            except Exception as error:
                failed.append(error)

        end = time.monotonic() + ABORT_SECONDS
        # A thread of its own, since NCCL waits here for its own threads and kernels, which may not end
        thread = threading.Thread(target=abort, name="nccl abort", daemon=True)
        thread.start()
        thread.join(ABORT_SECONDS)
        if thread.is_alive() or failed:
            self.context_lost = True
            return
        while time.monotonic() < end:
            (found,) = runtime.cudaStreamQuery(stream_handle())
            if found != runtime.cudaError_t.cudaErrorNotReady:
                self.context_lost = int(found) != 0
                return
            runtime.cudaGetLastError()
            time.sleep(LOOK_SECONDS)
        self.context_lost = True

    def close(self) -> None:
        """Let the communicator go; one that is in use goes when its user sees that."""
        self._is_closing = True
        if self._lock.acquire(timeout=PATIENCE_SECONDS + ABORT_SECONDS):
            try:
                self._abort()
            finally:
                self._lock.release()

    def _warm(self, workers: int, rank: int) -> None:
        """Have all connections made, which a first group would wait for inside of a call."""
        others = [r for r in range(workers) if r != rank]
        size = WARMTH_BYTES * workers
        given, taken = DeviceBuffer(size=size), DeviceBuffer(size=size)
        places = [
            [MovedBytes(r, int(b.ptr) + WARMTH_BYTES * r, WARMTH_BYTES) for r in others]
            for b in (given, taken)
        ]
        self.move(places[0], places[1], lambda: None)
        self.tell(b"", lambda: None)
