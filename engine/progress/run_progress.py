"""How far a query is: its nodes run one after the other, and within a node rows, bytes or steps of known number are counted.

    query    0 % ── node 1 ──┬──────── node 2 ────────┬─ node 3 ─ 100 %       each as wide as the rows that it goes through
                             └─ read ──┬── kernels ───┘                       stages: each takes a share of what the node has left

Counting costs a query that nobody looks at a few calls for each node and one for each step of a kernel: there is no lock, since each
thread adds to a number of its own, and no clock.  Widths, sums and texts are made when somebody asks.  What is shown never goes back:
a plan that begins anew, since it has to run in another way, has what was left before.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from threading import get_ident
from typing import Any

from ..errors import ExecutionError, FuselineError, WrongArguments, shown
from ..fence import fenced
from ..plan import physical as p
from ..plan.physical import Physical
from ..plan.text.plan_text import describe
from ..records import dataclass

READING_SHARE = (
    0.6  # of what a node has left, when columns have to be read first: kernels are quicker
)
Bounds = tuple[float, float]
WHOLE: Bounds = (0.0, 1.0)
Measured = Mapping[int, tuple[float, int, int]]  # seconds, rows and bytes of nodes by identity
Receipts = Mapping[
    int, Callable[[], Any]
]  # of pipelines, by identity: `operators.context.PipelineReceipt`s


@dataclass(frozen=True)
class NodeProgress:
    """One node of the plan: which share of it is done, the rows that it has gone through of those that it will, and the bytes that it read."""

    text: str
    share: float
    rows: int
    total_rows: int
    bytes: int


@dataclass(frozen=True)
class QueryProgress:
    """How far a query is in percent, which only grows, and its nodes in the order in which they run.

    `seconds` have passed, and `remaining` are about those that are left, None before anything can be said.
    """

    percentage: float
    seconds: float
    remaining: float | None
    nodes: tuple[NodeProgress, ...]

    @property
    def current(self) -> NodeProgress | None:
        """The node that runs: the first that is not done."""
        return next((node for node in self.nodes if node.share < 1), None)

    @property
    def rows(self) -> int:
        """The rows that all nodes together have gone through."""
        return sum(node.rows for node in self.nodes)

    @property
    def bytes(self) -> int:
        return sum(node.bytes for node in self.nodes)


class _Stage:
    """A part of a node: so many of `total` are done, in each thread; it leads from one share of the node to another."""

    __slots__ = ("bytes", "counts_rows", "done", "high", "low", "total")

    def __init__(self, bounds: Bounds, total: int, nbytes: int, counts_rows: bool) -> None:
        self.low, self.high = bounds
        self.total, self.bytes, self.counts_rows = total, nbytes, counts_rows
        self.done: dict[int, int] = {}

    @property
    def share(self) -> float:
        """How much of the stage is done; a kernel that begins anew counts rows twice."""
        done = sum(list(self.done.values()))  # other threads may add theirs meanwhile
        return min(1.0, done / self.total) if self.total else 1.0


class PlanWay:
    """One way through a plan's nodes, begun when `start` of the query was done; a node begins with the `WHOLE` of itself left and no stage."""

    __slots__ = (
        "bounds",
        "measured",
        "order",
        "position",
        "receipts",
        "stage",
        "start",
        "widths",
    )

    def __init__(
        self,
        order: Sequence[Physical],
        measured: Measured,
        receipts: Receipts,
        start: float,
    ) -> None:
        self.order, self.measured, self.receipts, self.start = order, measured, receipts, start
        self.position = 0
        self.bounds: Bounds = WHOLE
        self.stage: _Stage | None = None
        self.widths: list[float] | None = None  # until somebody asks

    def share(self) -> float:
        """How much of the query is done."""
        if self.widths is None:
            self.widths = [1.0 + rows_through(node) for node in self.order]
        position, stage = self.position, self.stage
        done = sum(self.widths[:position])
        if stage is not None and position < len(self.widths):
            done += self.widths[position] * _within(stage)
        return self.start + (1.0 - self.start) * done / sum(self.widths)


class Progress:
    """What one query counts, and what it says of it.

    `outer` is that of the query which this one is part of, and which is what people see.  `tell` is called at each step, by the thread
    that made it, one call at a time.
    """

    __slots__ = ("_shown", "_tell", "_telling", "_way", "began", "is_ended", "is_told", "outer")

    def __init__(
        self, tell: Callable[[QueryProgress], object] | None = None, outer: Progress | None = None
    ) -> None:
        self.outer = outer
        self._tell = tell if outer is None else None
        self._way: PlanWay | None = None
        self._shown, self.is_ended = 0.0, False
        self.began = time.perf_counter()
        # Not the lock of those who look: what is told may wait for a thread that does
        self._telling: AbstractContextManager[object] = _NOTHING
        self.is_told = self._tell is not None
        if self.is_told:
            self._telling = threading.RLock()

    # What runs says

    def begin(self, order: Sequence[Physical], measured: Measured, receipts: Receipts) -> PlanWay:
        """Begin with the first of these nodes; `measured` gets what each made that is done, and `receipts` what pipelines say.

        Who runs them moves the way that this returns from node to node by itself, without a call for each.
        """
        start = 0.0 if self._way is None else self._share()
        self._way = way = PlanWay(order, measured, receipts, start)
        return way

    def expect(
        self, total: int, nbytes: int = 0, share: float = 1.0, counts_rows: bool = False
    ) -> None:
        """Begin a stage that `advance` counts up to `total`; it takes a share of what the node has left."""
        way = self._way
        if way is not None:
            low, high = way.bounds
            middle = low + share * (high - low)
            way.stage = _Stage((low, middle), total, nbytes, counts_rows)
            way.bounds = middle, high

    def advance(self, count: int) -> None:
        """Note that so much of a stage is done; any thread may."""
        way = self._way
        stage = None if way is None else way.stage
        if stage is not None:
            thread = get_ident()
            stage.done[thread] = stage.done.get(thread, 0) + count
            if self.is_told:
                self.tell()

    def parts(self, count: int) -> list[Bounds]:
        """Cut what the node has left into parts, for each of which `within` makes stages anew."""
        low, high = WHOLE if self._way is None else self._way.bounds
        step = (high - low) / max(1, count)
        return [(low + i * step, low + (i + 1) * step) for i in range(count)]

    def within(self, bounds: Bounds) -> None:
        """Have the stages to come take this part of the node."""
        way = self._way
        if way is not None:
            way.stage, way.bounds = _Stage((bounds[0], bounds[0]), 0, 0, False), bounds
            if self.is_told:
                self.tell()

    def end(self) -> None:
        """Note that the answer is there."""
        self.is_ended = True
        if self.is_told:
            self.tell()

    # What people ask

    @property
    def outermost(self) -> Progress:
        """That of the whole query."""
        return self if self.outer is None else self.outer.outermost

    def percentage(self) -> float:
        """Return how far the query is, from 0 to 100; no less than the last time."""
        with _looking:
            self._shown = max(self._shown, self._share())
            return 100.0 * self._shown

    def snapshot(self) -> QueryProgress:
        """Return what is known at this moment."""
        percentage = self.percentage()
        seconds = time.perf_counter() - self.began
        remaining = seconds * (100.0 - percentage) / percentage if percentage else None
        way = self._way
        nodes = () if way is None else tuple(_nodes(way, self.is_ended))
        return QueryProgress(percentage, seconds, remaining, nodes)

    def _share(self) -> float:
        if self.is_ended:
            return 1.0
        return 0.0 if self._way is None else self._way.share()

    def tell(self) -> None:
        """Tell the listener how far the query is."""
        assert self._tell is not None
        with self._telling:
            try:
                self._tell(self.snapshot())
            except FuselineError:
                raise
            except Exception as error:
                kind = type(error).__name__
                raise ExecutionError(
                    f"The function that on_progress() was given raised {kind}: {error}."
                ) from error


_looking = threading.Lock()
_NOTHING = nullcontext()


def _within(stage: _Stage) -> float:
    return stage.low + (stage.high - stage.low) * stage.share


def _nodes(way: PlanWay, ended: bool) -> list[NodeProgress]:
    """Return what each node has done; one that a limit made superfluous has done what it had to."""
    found = []
    for i, node in enumerate(way.order):
        total = rows_through(node, way.measured)
        share = 1.0 if ended or i < way.position else 0.0
        rows, nbytes = int(share) * total, _bytes_read(node, way) if share else 0
        stage = way.stage
        if i == way.position and not ended and stage is not None:
            share = _within(stage)
            rows = int(stage.share * total) if stage.counts_rows else 0
            nbytes = int(stage.share * stage.bytes)
        found.append(NodeProgress(describe(node), share, rows, total, nbytes))
    return found


def _bytes_read(node: Physical, way: PlanWay) -> int:
    """Return what a node that is done has read: what its kernels say, else its inputs, else what a scan made."""
    receipt = way.receipts.get(id(node))
    nbytes = 0 if receipt is None else receipt().bytes
    read = node.children or (node,)
    return nbytes or sum(way.measured[id(n)][2] for n in read if id(n) in way.measured)


def rows_scanned(node: Physical) -> int:
    """Return how many rows of tables a node reads by itself."""
    if isinstance(node, p.Pipeline):
        return sum(_scanned(chain.source) for chain in node.steps.chains)
    return _scanned(node)


def rows_through(node: Physical, measured: Measured | None = None) -> int:
    """Return how many rows a node goes through: those of its scans, and those of its inputs as they are known or expected."""
    below = sum(_rows_of(child, measured or {}) for child in node.children)
    return below + rows_scanned(node)


def _rows_of(node: Physical, measured: Measured) -> int:
    known = measured.get(id(node))
    if known is not None:
        return known[1]
    return int(node.estimate) if node.estimate is not None else rows_through(node)


def _scanned(node: Physical) -> int:
    match node:
        case p.ParquetScan(table=table, selection=selection) if selection is not None:
            counts: Sequence[Sequence[int]] | None = getattr(table, "group_rows", None)
            if counts is not None:
                return sum(counts[part.file][group] for part in selection for group in part.groups)
            return table.statistics().rows or 0
        case p.ParquetScan(table=table) | p.MemoryScan(table=table):
            return table.statistics().rows or 0
        case p.RangeScan(start=start, stop=stop, step=step):
            return max(0, -((start - stop) // step))
        case p.ValuesScan(rows=rows):
            return len(rows)
    return 0


@fenced
class TellsProgress:
    """The methods of a connection that tell how far the query is which it runs."""

    _runner: Any

    def query_progress(self) -> float:
        """Return how far the query is that another thread runs on this connection, 0 to 100 percent; -1 when none runs."""
        progress = self._runner.progress()
        return -1.0 if progress is None else progress.percentage

    def on_progress(self, listener: Callable[[QueryProgress], object] | None) -> None:
        """Have a function told at each step of a query how far it is, until it gets None instead.

        It is called by the threads that work, one call at a time, so it should be quick; what it raises ends the query.
        """
        if listener is not None and not callable(listener):
            raise WrongArguments(f"on_progress() takes a function or None, not {shown(listener)}.")
        self._runner.listener = listener
