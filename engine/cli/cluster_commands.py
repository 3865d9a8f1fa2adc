"""`fuseline cluster`, which starts one, and what `fuseline doctor --cluster` says of one that runs."""

from __future__ import annotations

import signal
import threading
import time
from typing import TYPE_CHECKING, Any

from ..connection import connect
from ..errors import ClusterError, FuselineError, install
from ..operators.host_memory import readable
from ..settings import Settings

if TYPE_CHECKING:
    from rich.console import Console

TRIED_BYTES = 1 << 24  # that each worker gives all others
CALLS = 20


def run_cluster(device: str, workers: int | None, host: str, port: int) -> None:
    """Start a scheduler and workers, print its address, and go on until Ctrl-C or SIGTERM."""
    try:
        from ..distributed import clusters
    except ModuleNotFoundError as error:
        raise ClusterError(f"{error.name} is not installed: {install('dask')}.") from error
    from ..backends import resolve_device

    ended = threading.Event()
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, lambda *_: ended.set())
    chosen = resolve_device(Settings().with_option("device", device))
    with clusters.started(workers, chosen, host=host, scheduler_port=port) as cluster:
        print(f"scheduler  {cluster.scheduler_address}")
        print(f"workers    {len(cluster.workers)}, on the {chosen}")
        print(f"dashboard  {cluster.dashboard_link}")
        print("Ctrl-C ends it.", flush=True)
        ended.wait()


def examine_cluster(console: Console, address: str, device: str) -> bool:
    """Print what each worker is and has, and what calls and exchanges take; False where a worker says nothing."""
    try:
        connection = connect(device, cluster=address)
    except FuselineError as error:
        console.print(f" cluster: {error}")
        return False
    with connection:
        rows = connection.sql("select * from fuseline_workers() order by worker").to_arrow()
        for row in rows.to_pylist():
            console.print(f" cluster: {_described(row)}")
        runner: Any = connection._runner
        crew = runner.crew
        for _ in range(CALLS):
            begun = time.perf_counter()
            crew.ask_all("here")
            call = time.perf_counter() - begun
        linked = not crew.not_linked
        small = min(crew.trial("hash", 8) for _ in range(3))
        large = min(crew.trial("hash", TRIED_BYTES, linked) for _ in range(3))
        moved = TRIED_BYTES * (crew.size - 1) / crew.size
        way = "from GPU to GPU by NCCL" if linked else f"by way of the host ({crew.not_linked})"
        console.print(
            f" cluster: a call to all {call * 1e3:.2f} ms, a meeting {small * 1e3:.2f} ms, an exchange of "
            f"{readable(TRIED_BYTES)} a worker {way} {large * 1e3:.1f} ms"
            + (f" ({moved / large / 1e9:.2f} GB/s out of each)" if moved else "")
        )
        return None not in rows["device"].to_pylist()


def _described(row: dict[str, Any]) -> str:
    name = f"worker {row['worker']} {row['address']}"
    if row["device"] is None:
        return f"{name} says nothing"
    protocol = row["address"].partition(":")[0]
    return (
        f"{name}, process {row['process_id']} on {row['host']}: {row['device']} ({row['device_name']}), {row['threads']} threads, "
        f"{readable(row['free_memory'])} of {readable(row['memory'])} free, keeps {readable(row['cached_bytes'])} of "
        f"{readable(row['cache_limit'])} of columns, linked by {protocol}"
    )
