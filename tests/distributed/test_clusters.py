"""What Dask raises of a scheduler that is gone is an error that says so."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any

import pytest

from fuseline.errors import ClusterError

pytest.importorskip("distributed", reason="the extra dask is not installed")
from distributed import LocalCluster

from fuseline.distributed.clusters import Cluster


@pytest.fixture
def loop() -> Iterator[asyncio.AbstractEventLoop]:
    made = asyncio.new_event_loop()
    thread = threading.Thread(target=made.run_forever, daemon=True)
    thread.start()
    yield made
    made.call_soon_threadsafe(made.stop)
    thread.join()
    made.close()


@pytest.mark.parametrize(
    "raised", [OSError("no connection"), RuntimeError("ConnectionPool is closed"), None]
)
def test_a_scheduler_that_is_gone_while_it_is_asked(
    raised: BaseException | None, loop: asyncio.AbstractEventLoop
) -> None:
    async def identity(n_workers: int) -> object:
        assert raised is not None
        raise raised

    cluster = object.__new__(Cluster)
    cluster._address = "tcp://gone:1"
    asked = SimpleNamespace(identity=identity)
    cluster.client = SimpleNamespace(scheduler=asked, loop=SimpleNamespace(asyncio_loop=loop))  # type: ignore[assignment]
    if raised is None:
        cluster.client.scheduler = None
    with pytest.raises(ClusterError, match="The scheduler at tcp://gone:1"):
        cluster.addresses(10)


def test_who_is_there_is_asked_anew_after_a_team_was_made(
    loop: asyncio.AbstractEventLoop,
) -> None:
    """A team whose new worker is not among those of before would be taken for one that has lost it."""
    workers = {"tcp://one:1": {}}

    async def identity(n_workers: int) -> object:
        return {"workers": dict(workers)}

    cluster = object.__new__(Cluster)
    cluster._asked = None
    asked = SimpleNamespace(identity=identity)
    cluster.client = SimpleNamespace(scheduler=asked, loop=SimpleNamespace(asyncio_loop=loop))  # type: ignore[assignment]
    assert cluster.there(10) is None
    workers["tcp://two:1"] = {}
    assert cluster.addresses(10) == sorted(workers)
    found = [cluster.there(10)]
    while found[-1] is None:
        found.append(cluster.there(10))
    assert found[0] is None
    assert found[-1] == set(workers)


@pytest.mark.parametrize("is_own", [True, False])
def test_workers_that_dask_gave_up_are_started_also_where_the_cluster_was_given(
    is_own: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[int] = []
    monkeypatch.setattr(LocalCluster, "scale", lambda self, workers: asked.append(workers))
    local: Any = object.__new__(LocalCluster)
    local.worker_spec = {0: {}, 1: {}, 2: {}}
    cluster = object.__new__(Cluster)
    cluster.own = local if is_own else None
    cluster.client = SimpleNamespace(cluster=None if is_own else local)  # type: ignore[assignment]
    cluster.bring_back(3)
    assert not asked
    cluster.bring_back(2)
    assert asked == [3]


def test_a_worker_that_is_slow_to_end_does_not_keep_a_connection_from_closing() -> None:
    closed: list[str] = []

    class Slow:
        scheduler = SimpleNamespace(close="the scheduler")
        sync = staticmethod(closed.append)

        def close(self) -> None:
            raise TimeoutError

    cluster = object.__new__(Cluster)
    cluster.own, cluster.own_client = Slow(), False  # type: ignore[assignment]
    cluster.close()
    assert closed == ["the scheduler"]
