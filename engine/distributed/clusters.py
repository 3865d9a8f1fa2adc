"""The scheduler and the workers that a connection starts for itself, or is given."""

from __future__ import annotations

import asyncio
import multiprocessing
import threading
import time
from collections.abc import Awaitable, Callable, Coroutine, Iterator, Sequence
from concurrent.futures import Future
from contextlib import ExitStack, contextmanager, suppress
from typing import Any, ClassVar, TypeVar

from distributed import Client, LocalCluster, Lock
from distributed.actor import BaseActorFuture

from ..errors import ClusterError, install
from ..records import dataclass

T = TypeVar("T")
LOCAL = "local"
WAIT_SECONDS = 0.2  # for a turn, between two looks at the stop
# What Dask raises of a scheduler that is gone, the second by a client that has just given up
GONE = (OSError, RuntimeError)
GUARD = 'connect(cluster="local") starts processes that import this script again: put what it does under `if __name__ == "__main__":`.'


class ClusterTurn:
    """Held while a query runs: connections of this process take turns by a lock, those of others by one that Dask's scheduler keeps."""

    _locks: ClassVar[dict[str, threading.Lock]] = {}

    def __init__(self, client: Client, alone: bool) -> None:
        self._here = self._locks.setdefault(client.scheduler.address, threading.Lock())
        with client.as_current():
            self._everywhere = None if alone else Lock("fuseline")

    @contextmanager
    def held(self, check: Callable[[], None]) -> Iterator[None]:
        """Wait for the turn, which `check` may end, and have it."""
        with ExitStack() as stack:
            for lock in filter(None, (self._here, self._everywhere)):
                while not _acquired(lock):
                    check()
                stack.callback(_released, lock)
            yield

    @contextmanager
    def held_if_free(self) -> Iterator[bool]:
        """Have the turn where nobody else has it, and say whether."""
        with ExitStack() as stack:
            for lock in filter(None, (self._here, self._everywhere)):
                if not _acquired(lock, 0):
                    yield False
                    return
                stack.callback(_released, lock)
            yield True


def _acquired(lock: Lock, seconds: float = WAIT_SECONDS) -> bool:
    try:
        return bool(lock.acquire(timeout=seconds))
    except GONE as error:
        raise ClusterError(f"The scheduler cannot be reached: {error}.") from error


def _released(lock: Lock) -> None:
    with suppress(*GONE):  # and the lock with it
        lock.release()


@dataclass
class Cluster:
    """A client of a scheduler; `own` is what this connection has started and ends, if anything."""

    client: Client
    own: LocalCluster | None = None
    own_client: bool = False

    def __post_init__(self) -> None:
        # Two queries at once would each wait for workers that the other has
        self.turn = ClusterTurn(self.client, alone=self.own is not None)
        self._asked: tuple[float, Future[Any]] | None = None
        self._address = self.client.scheduler.address

    def begun(self, call: Any) -> Future[Any]:
        """What is waited for as often as one likes: Dask's own `result(timeout)` may come back with neither an answer nor an error."""

        async def answer() -> Any:
            if isinstance(call, BaseActorFuture):
                return await call
            return await self.client.gather(call, asynchronous=True)

        return self._on_loop(answer)

    def begun_together(self, calls: Sequence[Callable[[], Awaitable[T]]]) -> list[Future[T]]:
        """Begin calls in one step of the client's loop, which is woken once for all of them."""
        answers: list[Future[T]] = [Future() for _ in calls]

        async def fill(answer: Future[T], call: Callable[[], Awaitable[T]]) -> None:
            try:
                found = await call()
            except Exception as error:
                answer.set_exception(error)
            except BaseException:  # the loop ends
                answer.set_exception(OSError("the client was closed"))
                raise
            else:
                answer.set_result(found)

        async def fill_all() -> None:
            await asyncio.gather(*map(fill, answers, calls))

        self._on_loop(fill_all)
        return answers

    def _on_loop(self, work: Callable[[], Coroutine[Any, Any, Any]]) -> Future[Any]:
        if self.client.scheduler is None:  # Dask gives up after `distributed.comm.timeouts.connect`
            raise self._unheard("is gone: open another connection")
        return asyncio.run_coroutine_threadsafe(work(), self.client.loop.asyncio_loop)

    def there(self, patience: float) -> set[str] | None:
        """The workers that were there when last asked for, and ask again; None while that is not known.

        Raises `ClusterError` where the scheduler has said nothing for so many seconds.
        """
        asked = self._asked
        if asked is None:
            self._asked = time.monotonic(), self._on_loop(self._identity)
            return None
        since, answer = asked
        if not answer.done():
            if time.monotonic() - since > patience:
                raise self._unheard("says nothing")
            return None
        self._asked = None
        try:
            return set(answer.result()["workers"])
        except GONE as error:
            raise self._unheard(f"cannot be reached: {error}") from error

    def addresses(self, patience: float) -> list[str]:
        """The workers that are there, in an order that stays; raises `ClusterError` as `there` does."""
        self._asked = None  # what was asked before this would miss workers that this one finds
        try:
            answer = self._on_loop(self._identity).result(timeout=patience)
        except GONE as error:
            raise self._unheard(f"cannot be reached: {error}") from error
        return sorted(answer["workers"])

    def bring_back(self, there: int) -> None:
        """Have workers started that Dask has given up: those of a local cluster, of this process, that died twice within a while.

        `there` are the workers that the scheduler has.
        """
        local = self.own or self.client.cluster
        if isinstance(local, LocalCluster) and there < len(local.worker_spec):
            local.scale(len(local.worker_spec))  # which starts those that are missing

    async def _identity(self) -> Any:
        if self.client.scheduler is None:
            raise OSError("the client has given up")
        return await self.client.scheduler.identity(n_workers=-1)

    def _unheard(self, how: str) -> ClusterError:
        return ClusterError(f"The scheduler at {self._address} {how}.")

    def close(self) -> None:
        if self.own_client:
            self.client.close()
        if self.own is not None:
            try:
                self.own.close()
            except TimeoutError:  # of a worker that was given up and has been killed by now
                self.own.sync(self.own.scheduler.close)


def cluster_of(given: object, workers: int | None, device: str) -> Cluster:
    """Return the cluster that `connect` was asked for: "local", a scheduler's address, or a Dask client."""
    if isinstance(given, Client):
        if given.asynchronous:
            raise ClusterError(
                "connect(cluster=...) takes no asynchronous client: make one with Client(address)."
            )
        if given.scheduler is None:
            raise ClusterError("The Dask client of connect(cluster=...) is closed.")
        return Cluster(given)
    if given == LOCAL:
        return _local(workers, device)
    if isinstance(given, str):
        try:
            return Cluster(Client(given, timeout=10, direct_to_workers=True), own_client=True)
        except (OSError, ValueError) as error:
            raise ClusterError(f"There is no Dask scheduler at {given}: {error}.") from error
    raise ClusterError(
        'cluster is "local", the address of a scheduler such as "tcp://host:8786", or a Dask client.'
    )


def _local(workers: int | None, device: str) -> Cluster:
    own = started(workers, device)
    return Cluster(Client(own, direct_to_workers=True), own, own_client=True)


def started(workers: int | None, device: str, **more: object) -> LocalCluster:
    """Start a scheduler and workers on this machine: those of dask-cuda where there is a GPU, else Dask's."""
    if multiprocessing.current_process().name != "MainProcess":
        raise ClusterError(GUARD)
    options: dict[str, object] = {
        "n_workers": workers,
        "dashboard_address": "127.0.0.1:0",
        "silence_logs": 50,
        **more,
    }
    try:
        if device == "gpu":
            from dask_cuda import LocalCUDACluster

            # What Dask itself would hold and spill, the engine holds and spills
            return LocalCUDACluster(**options, memory_limit=0, device_memory_limit=0)
        return LocalCluster(**options, threads_per_worker=1, memory_limit=None)
    except ModuleNotFoundError as error:
        raise ClusterError(f"{error.name} is not installed: {install('cuda13-dask')}.") from error
    except ValueError as error:
        raise ClusterError(
            f"The workers did not start: {error}. On GPUs there is one for each that CUDA_VISIBLE_DEVICES names, or fewer."
        ) from error
    except RuntimeError as error:
        raise ClusterError(
            f"The workers did not start: {str(error).rstrip('.')}. {GUARD}"
        ) from error
    except OSError as error:
        raise ClusterError(f"The scheduler did not start: {error}.") from error
