"""The receipt of a query: what ran where, why there, for how long, and what came out."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import field
from functools import cached_property
from typing import TYPE_CHECKING, Literal as OneOf, NamedTuple

from ..operators.column_tiers import LiftedColumn
from ..operators.context import PipelineReceipt
from ..plan.physical import Device, Physical
from ..records import dataclass

if TYPE_CHECKING:
    from .profile_exports import ProfileData


@dataclass(frozen=True)
class NodeProfile:
    """One operator: where it ran (`reason`: why not on the GPU), how long without its inputs, and its output.

    `receipt` is what a pipeline says of its run: the kernel, the bytes that it read, or why there is none.  `host_values`
    counts, by function, the single values that a GPU operator had the host compute, since libcudf computes them otherwise than
    DuckDB; `remark` says that one ordered or passed on few rows there.  Without `Profile.timed` the GPU may still be working when an operator returns, so its seconds count the launch alone.
    """

    node: Physical = field(repr=False)
    depth: int
    seconds: float
    rows: int
    bytes: int
    receipt: PipelineReceipt | None = None
    host_values: Mapping[str, int] = field(default_factory=dict)
    remark: str | None = None

    @property
    def name(self) -> str:
        return type(self.node).__name__

    @property
    def device(self) -> Device:
        return self.node.device

    @property
    def reason(self) -> str | None:
        return self.node.reason

    @property
    def note(self) -> str | None:
        """The kernel of a pipeline or why there is none, and what a GPU operator left to the host."""
        parts = [] if self.receipt is None else [self.receipt.summary]
        if self.host_values:
            parts.append(self.host_note)
        if self.remark is not None:
            parts.append(self.remark)
        return "; ".join(parts) or None

    @property
    def host_note(self) -> str:
        """How many values of which function the host computed."""
        counts = ", ".join(f"{count:,} of {what}" for what, count in self.host_values.items())
        return f"values computed on the host: {counts}"

    @cached_property
    def text(self) -> str:
        """The operator in one line."""
        from ..plan.text.plan_text import describe

        return describe(self.node)


class Meeting(NamedTuple):
    """One exchange of rows: its number in the plan, when it began in seconds after the query, how long it took, and the bytes out and in."""

    number: int
    begun: float
    seconds: float
    sent: int
    received: int


@dataclass(frozen=True)
class WorkerReceipt:
    """What one worker did: its seconds in all, the bytes that its scans read, its meetings in their order, and its operators if the run was timed."""

    worker: int
    seconds: float
    bytes_read: int
    meetings: tuple[Meeting, ...]
    nodes: tuple[NodeProfile, ...] = field(default=(), repr=False)

    @property
    def met_seconds(self) -> float:
        return sum(meeting.seconds for meeting in self.meetings)

    def stages(self) -> list[float]:
        """The seconds of work before each meeting, and after the last."""
        ends = [0.0, *(m.begun + m.seconds for m in self.meetings)]
        begins = [*(m.begun for m in self.meetings), self.seconds]
        return [begin - end for begin, end in zip(begins, ends, strict=True)]


# Whose plan ran: one made for this run, though one of the same shape was known (`guards`) or not, that of this text, or of another one
PlanOrigin = OneOf["new", "guards", "text", "shape"]
PLAN_ORIGINS: Mapping[PlanOrigin, str] = {
    "new": "made for this text",
    "guards": "made for this text, since a guard of each known plan of its shape fails for its constants",
    "text": "known of this text",
    "shape": "that of a text with other constants, whose guards hold for these",
}


@dataclass(frozen=True)
class Profile:
    """All operators, the root first and each before its inputs; a shared one stands where it was first met.

    `plan_seconds` is the time before the first operator: parsing, binding, optimizing, or finding the plan in the cache
    (`cached_plan`; `plan_origin` says of what text).  `run_seconds` is the time of the run.  `bytes_read` counts what scans read.  `bandwidth` is what a copy
    reaches on each device that ran a kernel, bytes read and written a second; it is measured for timed runs.
    `spilled` are the bytes of joins that did not fit into memory, by where they lay: pinned host memory, host memory, disk.
    `lifted` are the columns that the run brought into the cache, from the host's memory, the column store or Parquet files; None without a store, unless some came from the host's memory.
    `workers` are what those of a cluster did, if they ran it.  `make` gives the operators when somebody asks for them, which after most queries nobody does.
    """

    make: Callable[[], tuple[NodeProfile, ...]] = field(repr=False)
    run_seconds: float
    bytes_read: int = 0
    plan_seconds: float = 0.0
    cached_plan: bool = False
    plan_origin: PlanOrigin = "new"
    timed: bool = False
    bandwidth: Mapping[Device, float] = field(default_factory=dict)
    spilled: Mapping[str, int] = field(default_factory=dict)
    workers: tuple[WorkerReceipt, ...] = ()
    lifted: tuple[LiftedColumn, ...] | None = None

    @cached_property
    def nodes(self) -> tuple[NodeProfile, ...]:
        return self.make()

    @property
    def pipelines(self) -> tuple[NodeProfile, ...]:
        return tuple(n for n in self.nodes if n.receipt is not None)

    @property
    def devices(self) -> set[Device]:
        return {n.device for n in self.nodes}

    def to_dict(self) -> ProfileData:
        """Return all of it as texts and numbers."""
        from .profile_exports import profile_data

        return profile_data(self)

    def to_json(self) -> str:
        from .profile_exports import profile_json

        return profile_json(self)

    def to_mermaid(self) -> str:
        """Return the plan as a diagram for Mermaid, with rows and times."""
        from .profile_exports import profile_mermaid

        return profile_mermaid(self)

    def to_html(self, query: str | None = None) -> str:
        """Return one page with the plan, bars of time and bandwidth, and the kernels' sources; `query` is shown above."""
        from .profile_page import profile_html

        return profile_html(self, query)

    def of(self, node: Physical) -> NodeProfile | None:
        """Return what is known of one node of the plan."""
        return next((n for n in self.nodes if n.node is node), None)
