"""A profile as data, as JSON and as a Mermaid diagram: what other programs and pages take of it."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, TypedDict

from ..plan.physical import Pipeline
from ..plan.text.plan_text import describe
from .roofline import bound

if TYPE_CHECKING:
    from ..operators.context import Origin, PipelineReceipt
    from ..plan.physical import Device
    from .profile import NodeProfile, PlanOrigin, Profile

LABEL = 80  # characters of a node in a diagram


class StepData(TypedDict):
    """A step of a fused pipeline."""

    depth: int
    text: str


class IndexData(TypedDict):
    """An index that a pipeline probed."""

    file: str
    form: str
    rows: int
    bytes: int


class KernelData(TypedDict):
    """What a pipeline's receipt says; a `file` that is None was not fused."""

    file: str | None
    not_fused: str | None
    origin: Origin
    rows: int
    bytes: int
    seconds: float
    bytes_a_second: float
    share_of_copy: float | None
    bound_by: str | None
    load_seconds: float
    compile_seconds: float
    chunks: int
    operations_a_row: int
    indexes: list[IndexData]


class NodeData(TypedDict):
    """An operator, with what its kernel did where it is a pipeline."""

    depth: int
    name: str
    text: str
    device: Device
    reason: str | None
    seconds: float
    rows: int
    bytes: int
    notes: list[str]
    steps: list[StepData]
    kernel: KernelData | None


class WorkerData(TypedDict):
    """What a worker of a cluster did."""

    worker: int
    seconds: float
    bytes_read: int
    meetings: list[Mapping[str, float]]


class LiftedData(TypedDict):
    """A column that was brought into the cache."""

    table: str
    column: str
    tier: str
    bytes: int
    reason: str


class ProfileData(TypedDict):
    """A whole profile."""

    planning_seconds: float
    execution_seconds: float
    cached_plan: bool
    plan_origin: PlanOrigin
    timed: bool
    bytes_read: int
    spilled_bytes: dict[str, int]
    lifted: list[LiftedData] | None
    copy_bytes_a_second: dict[Device, float]
    nodes: list[NodeData]
    workers: list[WorkerData]


def profile_data(profile: Profile) -> ProfileData:
    """Return a profile as dictionaries and lists of texts and numbers; seconds and bytes have these units in their names.

    `depth` tells the tree: a node's inputs follow it, one deeper.
    """
    return {
        "planning_seconds": profile.plan_seconds,
        "execution_seconds": profile.run_seconds,
        "cached_plan": profile.cached_plan,
        "plan_origin": profile.plan_origin,
        "timed": profile.timed,
        "bytes_read": profile.bytes_read,
        "spilled_bytes": dict(profile.spilled),
        "lifted": _lifted(profile),
        "copy_bytes_a_second": dict(profile.bandwidth),
        "nodes": [_node(node, profile.bandwidth) for node in profile.nodes],
        "workers": [
            {
                "worker": worker.worker,
                "seconds": worker.seconds,
                "bytes_read": worker.bytes_read,
                "meetings": [meeting._asdict() for meeting in worker.meetings],
            }
            for worker in profile.workers
        ],
    }


def _lifted(profile: Profile) -> list[LiftedData] | None:
    if profile.lifted is None:
        return None
    return [
        {"table": e.table, "column": e.column, "tier": e.tier, "bytes": e.bytes, "reason": e.reason}
        for e in profile.lifted
    ]


def _node(node: NodeProfile, bandwidths: Mapping[Device, float]) -> NodeData:
    notes = [node.remark, node.node.not_fused, node.host_note if node.host_values else None]
    found: NodeData = {
        "depth": node.depth,
        "name": node.name,
        "text": node.text,
        "device": node.device,
        "reason": node.reason,
        "seconds": node.seconds,
        "rows": node.rows,
        "bytes": node.bytes,
        "notes": [note for note in notes if note],
        "steps": _steps(node),
        "kernel": None,
    }
    if node.receipt is not None:
        found["kernel"] = _kernel(node.receipt, node, bandwidths)
    return found


def _steps(node: NodeProfile) -> list[StepData]:
    if not isinstance(node.node, Pipeline):
        return []
    listed = node.node.steps.listed()
    return [{"depth": depth, "text": describe(step)} for depth, step, again in listed if not again]


def _kernel(
    receipt: PipelineReceipt, node: NodeProfile, bandwidths: Mapping[Device, float]
) -> KernelData:
    roof = bandwidths.get(node.device)
    fused = receipt.fused and receipt.kernel is not None
    return {
        "file": str(receipt.kernel) if fused else None,
        "not_fused": receipt.reason,
        "origin": receipt.origin,
        "rows": receipt.rows,
        "bytes": receipt.bytes,
        "seconds": receipt.seconds,
        "bytes_a_second": receipt.bandwidth,
        "share_of_copy": receipt.bandwidth / roof if roof and fused else None,
        "bound_by": bound(receipt, roof, node.device) if roof and fused else None,
        "load_seconds": receipt.load_seconds,
        "compile_seconds": receipt.compile_seconds,
        "chunks": receipt.chunks,
        "operations_a_row": receipt.operations,
        "indexes": [
            {"file": str(b.kernel), "form": b.form, "rows": b.rows, "bytes": b.bytes}
            for b in receipt.builds
        ],
    }


def profile_json(profile: Profile) -> str:
    """Return a profile as JSON."""
    return json.dumps(profile_data(profile), indent=1)


def profile_mermaid(profile: Profile) -> str:
    """Return the plan with rows and times as a Mermaid flowchart, inputs below the nodes that read them."""
    lines = ["flowchart BT"]
    above: list[int] = []  # the node of each depth
    for number, node in enumerate(profile.nodes):
        text = node.text if len(node.text) <= LABEL else f"{node.text[: LABEL - 3]}..."
        numbers = f"{node.rows:,} rows, {node.seconds * 1e3:,.2f} ms"
        lines.append(f'  n{number}["{_escaped(text)}<br>{numbers}"]')
        del above[node.depth :]
        if above:
            lines.append(f"  n{number} --> n{above[-1]}")
        above.append(number)
    return "\n".join(lines) + "\n"


def _escaped(text: str) -> str:
    """Return a text whose signs mean nothing to Mermaid: numbers of characters in their place."""
    return "".join(c if c.isalnum() or c in " .,_-+*/=:" else f"#{ord(c)};" for c in text)


def source_of(file: str) -> str:
    """Return the text of a kernel's file, or why it cannot be read."""
    try:
        return Path(file).read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        return f"The file cannot be read: {error}."
