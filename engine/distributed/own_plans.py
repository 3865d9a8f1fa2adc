"""What one worker of a cluster runs of a plan, and which workers run it."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import replace
from typing import NamedTuple

from ..errors import ClusterError
from ..operators.exchange.agree_columns import (
    AGREEMENT,
    NOTHING_AGREED,
    Agreed,
    SharedColumn,
    shared_columns,
)
from ..plan.exchange import Exchange
from ..plan.node import walk_once
from ..plan.physical import Physical
from ..planner import Claim, WorkerPlan, plan_of_worker, steps_of_client
from ..records import dataclass
from ..runtime.schedule import Schedule, schedule_of
from ..settings import Settings
from ..storage.shards import Placement, Shards, scans_of
from ..storage.tables.parquet import ParquetTable

FIRST = 0  # the worker that gathers


@dataclass
class OwnPlan:
    """A plan as a worker runs it: what it has to confirm before, and the columns on which it agrees with the others.

    `exchanges` are `meeting_exchanges`, `agreed` is what was found of these columns, `many` are the meetings of the last run for which a
    worker had too many rows.
    """

    schedule: Schedule
    claims: tuple[Claim, ...]
    exchanges: tuple[frozenset[int], ...]
    shared: Sequence[SharedColumn]
    agreed: Agreed = NOTHING_AGREED
    many: frozenset[int] = frozenset()

    @classmethod
    def of(cls, plan: Physical, claims: tuple[Claim, ...]) -> OwnPlan:
        return cls(schedule_of(plan), claims, meeting_exchanges(plan), shared_columns(plan))

    def expected(self, agrees: bool) -> Sequence[frozenset[int]]:
        """The meetings in which the others wait for this worker, which may have pipelines though this one has too few rows for any."""
        return (frozenset({AGREEMENT}), *self.exchanges) if agrees else self.exchanges


class Form(NamedTuple):
    """Who runs a plan, and who answers: `meets`, so that all run it together; `spread`, so that each answers its own rows.

    `rest` is what the client makes of these, as the body of a pipeline over them; None where nothing is left to do.
    """

    meets: bool
    spread: bool
    rest: Physical | None


def whole_plan(
    plan: Physical,
    settings: Settings,
    placement: Placement,
    rank: int,
    workers: int,
    found: dict[Hashable, int] | None = None,
) -> WorkerPlan:
    """Return what one worker runs of a placed plan so that the first has all rows.

    `found` keeps where keys are cut; without it no file is looked at, for a plan that is only shown.
    """
    shards = Shards(placement, rank, workers, scans_of(plan), found)
    few, groups = placement.few_below, placement.few_groups
    return plan_of_worker(plan, shards, small=few, fuse=settings.fuse, few_groups=groups)


def own_plan(
    plan: Physical,
    settings: Settings,
    placement: Placement,
    rank: int,
    workers: int,
    found: dict[Hashable, int] | None = None,
) -> tuple[Physical, tuple[Claim, ...], Form]:
    """Return what one worker runs of a placed plan, as `whole_plan`, and its form: what would be gathered last, each answers itself."""
    own, claims, last = whole_plan(plan, settings, placement, rank, workers, found)
    if last is None:
        # Of one worker alone all rows are its share
        return own, claims, Form(bool(meeting_exchanges(own)), workers == 1, None)
    form = Form(bool(meeting_exchanges(last.input)), True, steps_of_client(own, last))
    return last.input, claims, form


def placement_for(
    plan: Physical, settings: Settings, placement: Placement, workers: int
) -> tuple[Placement, Form]:
    """Return where a plan finds its tables, and its form: on one worker rather than that all meet, if it reads little."""
    alone = replace(settings, fuse="never")
    _, _, form = own_plan(plan, alone, placement, FIRST, workers)
    whole = placement.whole_for(scans_of(plan)) if form.meets else None
    if whole is not None:
        _, _, found = own_plan(plan, alone, whole, FIRST, workers)
        if not found.meets:  # over rows that stay on workers
            return whole, found
    return placement, form


def meeting_exchanges(plan: Physical) -> tuple[frozenset[int], ...]:
    """Return what says that an exchange in which workers meet is done, for each of a plan: its number.

    Where rows go only to those of heavy keys, also the complement of the number of the exchange that has found none of these.
    """
    nodes = (node for node in walk_once(plan) if isinstance(node, Exchange))
    return tuple(
        frozenset({node.number, ~node.beside.number})
        if node.kind == "spread" and node.beside is not None
        else frozenset({node.number})
        for node in nodes
        if node.kind != "pick" or node.keeps_heavy
    )


def check_files(plan: Physical) -> None:
    """Raise `ClusterError` where a worker's files are not those of the client."""
    for node in walk_once(plan):
        table = getattr(node, "table", None)
        if isinstance(table, ParquetTable) and not table.has_its_files():
            raise ClusterError(f"The files of {table.name} are not the same on all workers.")
