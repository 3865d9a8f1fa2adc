"""`fuseline doctor`: what this machine has, whether each device answers a query, and what to install."""

from __future__ import annotations

import platform
import sys
from importlib.metadata import version
from itertools import groupby

from ..errors import FuselineError, install
from ..requirements import requirements

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
        from .cluster_commands import examine_cluster

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
