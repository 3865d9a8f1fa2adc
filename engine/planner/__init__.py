"""Logical plan to placed physical plan; runs nothing.

    optimize   logical -> logical     `optimizer.RULES`, in their order; `common_queries`: what is named several times, once
    lower      logical -> physical    which algorithm, which build side
    common_subplans      equal parts become one object, which runs once
    reuse_finer_groups   totals of what is grouped too read the groups
    place      + device, + the reason when it is not the GPU
    fuse       chains of row-wise operators and joins -> Pipeline

Each step is a file here or a room: `rules`, with what they use in `subqueries`, `join_order`, `expressions` and `estimates`; `lower`;
`pipelines`, where `fuse` begins.  `plan_properties` says what holds of a plan whatever the data, and `rewrite` changes plans and
expressions without copying what stays.

May import plan and catalog; never operators or a GPU library.  Start reading at `optimizer.py`.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from ..plan.logical import Logical
from ..plan.node import Node
from ..plan.physical import Device, Physical
from ..settings import FuseChoice, Settings
from .check import check_logical, check_physical
from .common_queries import optimize_commons
from .common_subplans import share_subplans
from .estimates.estimate import Estimates
from .lower.lower import lower as as_physical
from .optimizer import optimize
from .pipelines.fuse import fuse as fuse_pipelines
from .place import place as placed_on
from .reuse_finer_groups import roll_up

__all__ = ["plan_query"]

Observer = Callable[[str, Node], None]


def plan_query(
    plan: Logical,
    *,
    device: Device,
    unsupported: Callable[[Physical], str | None],
    observer: Observer | None = None,
    check: bool | None = None,
    fuse: FuseChoice = "never",
) -> Physical:
    """Return the placed physical plan of a query.

    `unsupported` is the device's own: why it cannot run a node, or None.  `observer` gets the name and the tree of each
    step that changed something.  `check` validates the plan after each step; None asks `FUSELINE_CHECK`.  `fuse` says which
    chains become pipelines.
    """
    if check is None:
        check = Settings.from_environment().check
    if check:
        check_logical(plan, "bind", subqueries=True)
    optimized = optimize_commons(plan, partial(optimize, observer=observer, check=check))
    physical = roll_up(share_subplans(as_physical(optimized, Estimates())))
    if check:
        check_physical(physical, "lower", optimized.columns)
    placed = placed_on(physical, device, unsupported)
    if check:
        check_physical(placed, "place", optimized.columns)
    if observer is not None:
        observer("place", placed)
    fused = fuse_pipelines(placed, fuse)
    if check:
        check_physical(fused, "fuse", optimized.columns)
    if observer is not None and fused is not placed:
        observer("fuse", fused)
    return fused
