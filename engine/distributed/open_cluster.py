"""What `connect(cluster=...)` makes of its arguments, and what is missing without Dask."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING

from ..errors import ClusterError, WrongArguments, install, shown

if TYPE_CHECKING:
    from ..catalog import Catalog
    from ..settings import Settings
    from .runner import ClusterRunner


def cluster_runner(
    cluster: object, workers: object
) -> Callable[[Catalog, Settings], ClusterRunner]:
    """Return what makes the runner of a connection to a cluster; raises `WrongArguments` and `ClusterError`."""
    if workers is not None:
        if not isinstance(workers, int) or isinstance(workers, bool) or workers < 1:
            raise WrongArguments(f"workers= takes a number of processes, not {shown(workers)}.")
        if cluster != "local":
            raise WrongArguments('workers= goes with cluster="local": others have theirs already.')
    try:
        from .runner import ClusterRunner
    except ModuleNotFoundError as error:
        raise ClusterError(f"{error.name} is not installed: {install('dask')}.") from error
    return partial(ClusterRunner, cluster=cluster, workers=workers)
