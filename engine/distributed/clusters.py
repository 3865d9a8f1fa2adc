"""The scheduler and the workers that a connection starts for itself, or is given."""

from __future__ import annotations

import multiprocessing
import threading
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from typing import Any, ClassVar

from distributed import Client, LocalCluster, Lock

from ..errors import ClusterError

LOCAL = "local"
WAIT_SECONDS = 0.2  # for a turn, between two looks at the stop
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
                while not lock.acquire(timeout=WAIT_SECONDS):
                    check()
                stack.callback(lock.release)
            yield


@dataclass
class Cluster:
    """A client of a scheduler; `own` is what this connection has started and ends, if anything."""

    client: Client
    own: Any = None
    own_client: bool = False

    def __post_init__(self) -> None:
        # Two queries at once would each wait for workers that the other has
        self.turn = ClusterTurn(self.client, alone=self.own is not None)

    def addresses(self) -> list[str]:
        """The workers that are there, in an order that stays."""
        return sorted(self.client.scheduler_info(n_workers=-1)["workers"])

    def close(self) -> None:
        if self.own_client:
            self.client.close()
        if self.own is not None:
            self.own.close()


def cluster_of(given: object, workers: int | None, device: str) -> Cluster:
    """Return the cluster that `connect` was asked for: "local", a scheduler's address, or a Dask client."""
    if isinstance(given, Client):
        if given.asynchronous:
            raise ClusterError(
                "connect(cluster=...) takes no asynchronous client: make one with Client(address)."
            )
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
    if multiprocessing.current_process().name != "MainProcess":
        raise ClusterError(GUARD)
    options: dict[str, Any] = {
        "n_workers": workers,
        "dashboard_address": "127.0.0.1:0",
        "silence_logs": 50,
    }
    try:
        if device == "gpu":
            from dask_cuda import LocalCUDACluster

            own = LocalCUDACluster(**options, memory_limit=0)
        else:
            own = LocalCluster(**options, threads_per_worker=1, memory_limit=None)
    except RuntimeError as error:
        raise ClusterError(
            f"The workers did not start: {str(error).rstrip('.')}. {GUARD}"
        ) from error
    return Cluster(Client(own, direct_to_workers=True), own, own_client=True)
