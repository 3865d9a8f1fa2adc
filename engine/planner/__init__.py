"""Logical plan to placed physical plan; runs nothing.

    optimize   logical -> logical     `optimizer.RULES`, in their order; what is named several times, once
    lower      logical -> physical    which algorithm, which build side
    apply_rules          `optimizer.PHYSICAL_RULES`, in their order: `common_subplans`, `reuse_finer_groups`
    place      + device, + the reason when it is not the GPU
    distribute on a cluster only: what one worker runs of the placed plan, and where the workers meet; its joins in `distribute_joins`
    fuse       chains of row-wise operators and joins -> Pipeline: `PIPELINE_RULES`, `CHAIN_RULES` and `BODY_RULES` of `pipelines.fuse`

Each step is a file here or a room: `rules`, with what they use in `subqueries`, `join_order`, `expressions` and `estimates`; `lower`;
`pipelines`, where `fuse` begins.  `plan_properties` says what holds of a plan whatever the data, and `rewrite` changes plans and
expressions without copying what stays.

May import plan and catalog; never operators or a GPU library.  Start reading at `optimizer.py`.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import NamedTuple

from ..plan.exchange import Exchange
from ..plan.logical import Logical
from ..plan.node import walk_once
from ..plan.physical import Device, Physical
from ..settings import FuseChoice, Settings
from .check import check_logical, check_physical
from .common_subplans import optimize_commons
from .distribute import Distribution
from .estimates.estimate import Estimates
from .exchanges import Claim, above, last_gather, steps_of_client
from .key_cuts import Sharing
from .lower.lower import lower as as_physical
from .optimizer import PHYSICAL_RULES, optimize
from .pipelines.fuse import fuse as fuse_pipelines
from .place import place as placed_on
from .rewrite import Observer, apply_rules, unobserved

__all__ = ["Claim", "Observer", "WorkerPlan", "plan_of_worker", "plan_query", "steps_of_client"]


def plan_query(
    plan: Logical,
    *,
    device: Device,
    unsupported: Callable[[Physical], str | None],
    observer: Observer | None = None,
    check: bool | None = None,
    fuse: FuseChoice = "never",
    look_at: Callable[[Logical], object] | None = None,
) -> Physical:
    """Return the placed physical plan of a query; `look_at` gets the optimized logical one before, and may raise.

    `unsupported` is the device's own: why it cannot run a node, or None.  `observer` gets the name and the tree of each
    step that changed something.  `check` validates the plan after each step; None asks `FUSELINE_CHECK`.  `fuse` says which
    chains become pipelines.
    """
    if check is None:
        check = Settings.from_environment().check
    if check:
        check_logical(plan, "bind", subqueries=True)
    optimized = optimize_commons(plan, partial(optimize, observer=observer, check=check))
    if look_at is not None:
        look_at(optimized)

    def seen(name: str, made: Physical) -> Physical:
        if check:
            check_physical(made, name, optimized.columns)
        if observer is not None:
            observer(name, made)
        return made

    lowered = as_physical(optimized, Estimates())
    placed = seen(
        "place", placed_on(apply_rules(lowered, PHYSICAL_RULES, observer=seen), device, unsupported)
    )
    fused = fuse_pipelines(placed, fuse, observer or unobserved)
    return placed if fused is placed else seen("fuse", fused)


# Bytes of what is small, of which up to twice as many go to one worker where all meet once less for it: that saves 2.5 ms on four H200s, and one
# of them takes 2 ms more to merge 128 MB than to merge a fourth of them [model]
MOST_DOUBLED = 1 << 26


class WorkerPlan(NamedTuple):
    """What one worker of a cluster runs, and what has to hold of its shares for the answer to be right.

    `last` is the gather of the plan whose input each worker answers, above which the client goes on.
    """

    plan: Physical
    claims: tuple[Claim, ...]
    last: Exchange | None


def plan_of_worker(
    placed: Physical, sharing: Sharing, *, small: float, fuse: FuseChoice, few_groups: bool = True
) -> WorkerPlan:
    """Return what one worker of a cluster runs of a placed plan without pipelines, as `distribute.Distribution` says; one alone runs it all.

    Without `few_groups` no groups are few, whatever is expected.
    """
    if sharing.workers == 1:
        return WorkerPlan(fuse_pipelines(placed, fuse, unobserved), (), None)
    tried = [Distribution(sharing, placed, small, few_groups)]
    if _meetings(tried[0].on_first()) > 1 and small <= MOST_DOUBLED:
        tried.append(Distribution(sharing, placed, 2 * small, few_groups))
    distribution = min(tried, key=lambda way: _meetings(way.on_first())).with_heavy_keys
    own = distribution.on_first()
    claims = [
        replace(claim, found=fuse_pipelines(claim.found, fuse, unobserved))
        for claim in distribution.claims
    ]
    last = last_gather(own)
    if last is None:
        return WorkerPlan(fuse_pipelines(own, fuse, unobserved), tuple(claims), None)
    fused = last.with_children((fuse_pipelines(last.input, fuse, unobserved),))
    assert isinstance(fused, Exchange)
    return WorkerPlan(above(own, last, lambda _: fused), tuple(claims), fused)


def _meetings(plan: Physical) -> int:
    """How many exchanges workers meet in before they answer."""
    last = last_gather(plan)
    found = (node for node in walk_once(plan) if isinstance(node, Exchange) and node is not last)
    return sum(node.kind != "pick" for node in found)
