"""What one worker of a cluster runs of a plan, and which workers run it."""

from __future__ import annotations

from functools import partial
from typing import NamedTuple, cast

from ..errors import ClusterError
from ..plan.node import walk_once
from ..plan.partial import Exchange
from ..plan.physical import ParquetScan, Physical
from ..planner import plan_of_worker
from ..settings import Settings
from ..storage.shards import share_of
from ..storage.tables.parquet import ParquetTable

FIRST = 0  # the worker that gathers


class Form(NamedTuple):
    """Who runs a plan, and who answers: `meets`, so that all run it together; `spread`, so that each answers its own rows."""

    meets: bool
    spread: bool


def whole_plan(plan: Physical, settings: Settings, below: int, rank: int, workers: int) -> Physical:
    """Return what one worker runs of a placed plan so that the first has all rows; `below` are the bytes of columns that each reads whole."""
    own = partial(share, below, rank, workers)
    return plan_of_worker(plan, own, workers=workers, small=below, fuse=settings.fuse)


def own_plan(
    plan: Physical, settings: Settings, below: int, rank: int, workers: int
) -> tuple[Physical, Form]:
    """Return what one worker runs of a placed plan, and its form: what would be gathered at the end, each answers itself."""
    own = whole_plan(plan, settings, below, rank, workers)
    spread = isinstance(own, Exchange) and own.kind == "gather" and bool(own.columns)
    if spread:
        (own,) = own.children
    meets = any(isinstance(n, Exchange) and n.kind != "pick" for n in walk_once(own))
    return own, Form(meets, spread)


def share(below: int, rank: int, workers: int, scan: ParquetScan) -> ParquetScan | None:
    """Return a worker's share of a scan; None where its columns take less than so many bytes, so that each worker has all of them."""
    table = cast("ParquetTable", scan.table)
    chosen = table.all_row_groups if scan.selection is None else scan.selection
    if sum(table.sizes.plain(scan.sources, part) for part in chosen) < below:
        return None
    return scan.replaced(selection=share_of(table, chosen, rank, workers))


def check_files(plan: Physical) -> None:
    """Raise `ClusterError` where a worker's files are not those of the client."""
    for node in walk_once(plan):
        table = getattr(node, "table", None)
        if isinstance(table, ParquetTable) and not table.is_current():
            raise ClusterError(f"The files of {table.name} are not the same on all workers.")
