"""The way from GPU to GPU: an NCCL communicator of a team's workers, one GPU each.

Bytes go by grouped sends and receives of sizes that both sides know, one group at a time, so that a worker is never inside a call that
waits for a dead one: it looks at an event until the group is done.  Where another worker is lost meanwhile, or does not come, the
communicator is aborted, by the thread that uses it; the team gets another one.  If the abort costs the process its CUDA context,
`context_lost` says so, and the process has to end.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Sequence
from importlib import import_module
from importlib.util import find_spec
from typing import TYPE_CHECKING

from cuda.bindings import runtime
from rmm.pylibrmm.device_buffer import DeviceBuffer

from ....errors import ClusterError
from ...context import MovedBytes
from ..memory.buffers import check, stream_handle

if TYPE_CHECKING:
    from nccl.core import Communicator

START_SECONDS = 45.0
LONGEST_SECONDS = 300.0  # for one group, whatever the workers say
PATIENCE_SECONDS = 0.5  # for a group, once a worker has said that it leaves
ABORT_SECONDS = 10.0
BUSY_SECONDS = 0.002  # in which the event is looked at without rest
REST_SECONDS = 0.00005
LOOK_SECONDS = 0.001
FORM_LOOK_SECONDS = 0.02
WARMTH_BYTES = 1 << 16
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


class _Span:
    """Device memory as NCCL's binding takes it."""

    def __init__(self, address: int, size: int) -> None:
        self.__cuda_array_interface__ = {
            "data": (address, False),
            "shape": (size,),
            "strides": None,
            "typestr": "|u1",
            "version": 3,
        }


class NcclLink:
    """This worker's end of a communicator; all workers of the team make theirs at the same time."""

    def __init__(self) -> None:
        self._nccl = import_module("nccl.core")
        self._lock = threading.Lock()
        self._is_closing = self._is_formed = False
        self.context_lost = False
        error, event = runtime.cudaEventCreateWithFlags(runtime.cudaEventDisableTiming)
        check(error)
        self._event = event
        self._communicator: Communicator | None = None

    def form(self, workers: int, rank: int, identity: bytes) -> None:
        """Form the communicator, in a thread that may be left behind: NCCL waits without end for a worker that does not come.

        `close` ends the wait, as where the client has found that another worker is lost.
        """
        failed: list[BaseException] = []

        def begin() -> None:
            try:
                unique = self._nccl.UniqueId.from_bytes(identity)
                self._communicator = self._nccl.Communicator.init(workers, rank, unique)
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
        with self._lock:
            communicator = self._communicator
            if communicator is None or self._is_closing:
                raise ClusterError(why_left() or "The link between the GPUs is gone.")
            stream = stream_handle()
            try:
                with self._nccl.group():
                    for rank, address, size in outgoing:
                        communicator.send(_Span(address, size), rank, stream=stream)
                    for rank, address, size in incoming:
                        communicator.recv(_Span(address, size), rank, stream=stream)
                check(runtime.cudaEventRecord(self._event, stream)[0])
            except Exception as error:
                self._abort()
                raise ClusterError(
                    f"NCCL failed: {error}. SET exchange = 'host' does without."
                ) from error
            self._wait(why_left)

    def _wait(self, why_left: Callable[[], str | None]) -> None:
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
                if now - left_at > PATIENCE_SECONDS:
                    self._abort()
                    raise ClusterError(why)
            elif now - begun > LONGEST_SECONDS:
                self._abort()
                raise ClusterError(
                    f"An exchange between GPUs has not ended within {LONGEST_SECONDS:g} s."
                )

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
