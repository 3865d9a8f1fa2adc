"""Which device runs each operator, and why when it is not the GPU."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable

from ..plan import physical as p
from ..plan.node import walk_once

Unsupported = Callable[[p.Physical], str | None]

ON_CPU = "the connection runs on the CPU"
READ_BY_CPU = "only operators on the CPU read it"
SCANS = (p.ParquetScan, p.MemoryScan, p.RangeScan, p.ValuesScan)


def place(plan: p.Physical, device: p.Device, unsupported: Unsupported) -> p.Physical:
    """Give each operator its device, with a `Transfer` wherever a table has to move.

    An operator reached over two paths stays one object.  A scan that only CPU operators read is read by the CPU, so that its rows do
    not travel twice.
    """
    chosen = _choose(plan, device, unsupported)
    placed: dict[int, p.Physical] = {}
    moved: dict[tuple[int, p.Device], p.Transfer] = {}

    def moved_to(node: p.Physical, where: p.Device) -> p.Physical:
        if node.device == where:
            return node
        key = (id(node), where)
        if key not in moved:
            moved[key] = p.Transfer(node, device=where, estimate=node.estimate)
        return moved[key]

    def visit(node: p.Physical) -> p.Physical:
        if id(node) not in placed:
            where, reason = chosen[id(node)]
            inputs = [moved_to(visit(child), where) for child in node.children]
            rebuilt = node.with_children(inputs)
            placed[id(node)] = rebuilt.replaced(device=where, reason=reason)
        return placed[id(node)]

    return visit(plan)


def _choose(
    plan: p.Physical, device: p.Device, unsupported: Unsupported
) -> dict[int, tuple[p.Device, str | None]]:
    chosen: dict[int, tuple[p.Device, str | None]] = {}
    readers: dict[int, list[p.Physical]] = defaultdict(list)
    nodes: dict[int, p.Physical] = {}
    for node in walk_once(plan):
        nodes[id(node)] = node
        for child in node.children:
            readers[id(child)].append(node)
    for key, node in nodes.items():
        if device == "cpu":
            chosen[key] = ("cpu", ON_CPU)
        else:
            reason = unsupported(node)
            chosen[key] = ("gpu", None) if reason is None else ("cpu", reason)
    for key, node in nodes.items():
        if isinstance(node, SCANS) and readers[key]:
            devices = {chosen[id(reader)][0] for reader in readers[key]}
            if devices == {"cpu"} and chosen[key][0] == "gpu":
                chosen[key] = ("cpu", READ_BY_CPU)
    return chosen
