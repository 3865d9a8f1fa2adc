"""`fuseline cluster`, which starts one, and `fuseline doctor`: what this machine has, whether each device answers a query, and what to install."""

from __future__ import annotations

import platform
import signal
import sys
import threading
import time
from importlib.metadata import version
from itertools import groupby
from typing import TYPE_CHECKING, Any

from ..connection import connect
from ..errors import ClusterError, FuselineError, install
from ..operators.host_memory import readable
from ..requirements import requirements
from ..settings import Settings

if TYPE_CHECKING:
    from rich.console import Console


QUERY = "SELECT sum(range) AS total FROM range(1000) WHERE range % 2 = 0"
EXPECTED = 249500


def examine(cluster: str | None = None, device: str = "auto") -> bool:
    """Print the report; False when a device that should work gives no answer or a wrong one, or a worker of the cluster none."""
    from rich.console import Console

    console = Console(highlight=False, markup=False, soft_wrap=True)
    console.print(
        f"fuseline {version('fuseline')}, Python {sys.version.split()[0]}, {platform.platform()}"
    )
    for extra, group in groupby(requirements(), lambda r: r.extra):
        wanted = list(group)
        console.print(
            f"{extra or 'base':>11}: "
            + ", ".join(f"{r.package} {r.installed or '-'}" for r in wanted)
        )
        if wanted[0].installed:  # the library that the extra is for
            for misfit in filter(None, [r.misfit for r in wanted]):
                console.print(f"{'warning':>11}: {misfit}")
    console.print(f"{'store':>11}: {_column_store()}")
    healthy = _answers(console, "cpu")
    if cluster is not None:
        healthy = examine_cluster(console, cluster, device) and healthy
    reason = _gpu_missing()
    if reason is None:
        for line in _gpu_lines():
            console.print(f"{'gpu':>11}: {line}")
        return _answers(console, "gpu") and healthy
    console.print(f"{'gpu':>11}: not used. {reason}")
    return healthy


def _column_store() -> str:
    """Say what the folder of encoded columns holds, or why it is not used."""
    from ..backends import column_store
    from ..operators.host_memory import readable
    from ..settings import Settings

    try:
        store = column_store(Settings.from_environment())
    except FuselineError as error:
        return str(error)
    if store is None:
        return "no folder of encoded columns: column_store names none"
    sizes = store.sizes()
    return f"{len(sizes)} encoded columns, {readable(sum(sizes))}, in {store.folder}"


def _answers(console: object, device: str) -> bool:
    """Run one query on a device and print whether the answer is right."""
    from rich.console import Console

    from ..connection import connect

    assert isinstance(console, Console)
    try:
        with connect(device=device) as connection:
            (answer,) = connection.sql(QUERY).fetchall()[0]
    except FuselineError as error:
        console.print(f"{device:>11}: a query failed: {error}")
        return False
    right = int(answer) == EXPECTED
    console.print(f"{device:>11}: {'answers queries' if right else f'WRONG ANSWER {answer}'}")
    return right


def _gpu_missing() -> str | None:
    """Return why the GPU cannot be used, with the remedy, or None."""
    if not _importable("pylibcudf"):
        return f"pylibcudf is not installed: {install('cuda13')}."
    from ..operators import gpu

    available, reason = gpu.available()
    return None if available else reason


def _gpu_lines() -> list[str]:
    """Name, memory and driver of the first GPU."""
    from ..operators.gpu import device_description

    return device_description()


def _importable(module: str) -> bool:
    from importlib.util import find_spec

    return find_spec(module) is not None


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
