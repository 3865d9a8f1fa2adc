"""What Dask raises of a scheduler that is gone is an error that says so."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Iterator
from types import SimpleNamespace

import pytest

from fuseline.errors import ClusterError

pytest.importorskip("distributed", reason="the extra dask is not installed")
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
