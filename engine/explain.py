"""Renders a query at any stage: what was asked, what each rule made of it, what runs where, and what that took."""

from __future__ import annotations

from typing import TYPE_CHECKING, get_args
from typing import Literal as OneOf

from .errors import UnknownName, nearest
from .plan.node import Node
from .plan.text import tree

if TYPE_CHECKING:
    from .connection import Connection
    from .plan.logical import Logical
    from .runtime.profile import Profile

Stage = OneOf["logical", "rules", "optimized", "physical", "analyze", "all"]


def explain(connection: Connection, plan: Logical, stage: Stage = "physical") -> str:
    """Return the text of one stage of a plan.

    logical    as the query was bound
    rules      the tree after each rule that changed it
    optimized  after the last rule
    physical   algorithms, build sides, devices, and the reason where the device is not the GPU
    analyze    runs the query: the physical plan with time, rows and bytes of each node
    all        everything but `analyze`

    Raises `UnknownName` for another word.
    """
    if stage not in get_args(Stage):
        raise UnknownName(
            f'There is no stage "{stage}": expected one of {", ".join(get_args(Stage))}.'
            + nearest(stage, get_args(Stage))
        )
    if stage == "logical":
        return tree(plan)
    if stage == "analyze":
        return analyzed(connection.run(plan, timed=True).profile)
    steps: list[tuple[str, Node]] = []
    physical = connection.physical(plan, lambda name, node: steps.append((name, node)))
    logical_steps = [(name, node) for name, node in steps if name != "place"]
    match stage:
        case "physical":
            return tree(physical)
        case "optimized":
            return tree(optimized(plan, logical_steps))
        case "rules":
            return "\n\n".join(f"-- {name}\n{tree(node)}" for name, node in steps)
    parts = [("logical", plan), *logical_steps, ("physical", physical)]
    return "\n\n".join(f"-- {name}\n{tree(node)}" for name, node in parts)


def optimized(plan: Logical, steps: list[tuple[str, Node]]) -> Node:
    """Return the last logical tree among the steps, which is `plan` when no rule changed it."""
    from .plan.logical import Logical

    return next((node for _, node in reversed(steps) if isinstance(node, Logical)), plan)


def analyzed(profile: Profile) -> str:
    """Return the profile as an indented table, one line a node, the root first."""
    lines = [
        f"{'ms':>9}  {'rows':>12}  {'MB':>9}  device  node",
    ]
    for node in profile.nodes:
        where = node.device if node.reason is None else f"{node.device}*"
        lines.append(
            f"{node.seconds * 1e3:9.2f}  {node.rows:12,d}  {node.bytes / 1e6:9.1f}  "
            f"{where:6s}  {'  ' * node.depth}{node.text}"
        )
    lines.extend(f"{n.name}: {n.note}" for n in profile.nodes if n.note is not None)
    reasons = {n.reason: n.name for n in profile.nodes if n.reason is not None}
    lines.extend(f"* {name}: {reason}" for reason, name in reasons.items())
    lines.append(
        f"planning {profile.plan_seconds * 1e3:.2f} ms, execution {profile.run_seconds * 1e3:.2f} ms"
    )
    return "\n".join(lines)
