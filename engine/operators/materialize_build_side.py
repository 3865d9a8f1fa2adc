"""Pipelines of which one build side is a pipeline of its own, since its joins multiply its rows.

A build side's index knows a row by its number in the leaf.  Where joins of the side find several rows for one of the leaf's, that
number says too little: another pipeline lists the rows of the side first, and each then has a number again.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from ..codegen.typed_values import Multiplied, NotFusable
from ..plan import physical as p
from ..plan.node import transform_up
from ..plan.pipeline_steps import steps_of
from .context import Apart, PipelineReceipt

REMARK = "a build side that its joins multiply is stored first"


def apart(node: p.Pipeline, refused: NotFusable) -> Apart | None:
    """Return a pipeline in two that no kernels hold as one; None where that is not for the rows of a part of its body."""
    if not isinstance(refused, Multiplied):
        return None
    side = refused.side
    if not any(chain.node is side for chain in node.steps.chains):
        return None
    placement: Any = {"device": node.device, "reason": node.reason}
    stored = p.Stored(len(node.inputs), side.columns, estimate=side.estimate, **placement)
    body = transform_up(node.body, lambda part: stored if part is side else None)
    first = p.Pipeline(steps_of(side), node.inputs, estimate=side.estimate, **placement)
    inputs = (*node.inputs, first)
    return Apart(first, p.Pipeline(steps_of(body), inputs, estimate=node.estimate, **placement))


def together(first: PipelineReceipt, last: PipelineReceipt) -> PipelineReceipt:
    """What both did; the kernel is that of the last."""
    reasons = dict.fromkeys(r.reason for r in (first, last) if r.reason is not None)
    return replace(
        last,
        reason="; ".join(reasons) or None,
        bytes=first.bytes + last.bytes,
        seconds=first.seconds + last.seconds,
        load_seconds=first.load_seconds + last.load_seconds,
        compile_seconds=first.compile_seconds + last.compile_seconds,
        builds=(*first.builds, *last.builds),
    )
