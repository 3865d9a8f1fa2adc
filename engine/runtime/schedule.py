"""In which order the nodes of a plan run, and which of them run together, a share of the rows at a time."""

from __future__ import annotations

from dataclasses import field, replace
from functools import cached_property
from operator import attrgetter
from typing import TYPE_CHECKING, NamedTuple

from ..operators.run_unfused import opened
from ..operators.streaming import chunks_of, scan_below
from ..plan import physical as p
from ..plan.exchange import Exchange
from ..plan.node import walk
from ..plan.physical import (
    Device,
    FilterRows,
    HashAggregate,
    HashJoin,
    ParquetScan,
    Physical,
    Pipeline,
)
from ..plan.pipeline_steps import probed, steps_of
from ..plan.shapes.plan_model import ShapedPart
from ..records import dataclass
from .memory import waiting_places

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from ..operators.context import Context
    from ..plan.expr import Value

FEW_ROWS = 1 << 17  # of a source or a join, which are made at once


def pulled_below(node: p.Physical, readers: Mapping[int, int]) -> p.Pipeline | None:
    """Return the plan of a limit whose rows may come in pieces, with the nodes that are to be complete before as inputs.

    `readers` counts by identity who reads a node.  None where nothing would be saved: the rows come from what has to be complete.
    """
    if not isinstance(node, p.LimitRows) or node.keys or node.count is None:
        return None
    found = _Below(readers)
    body = node.with_children([found.visit(node.input, exclusive=True)])
    complete = tuple(found.complete)
    return p.Pipeline(steps_of(body), complete, device=node.device) if found.saves else None


@dataclass
class _Below:
    """One look at what is below a limit; `saves`: among what can be pulled is a source or a join of more than a few rows."""

    readers: Mapping[int, int]
    complete: list[p.Physical] = field(default_factory=list)
    saves: bool = False

    def visit(self, node: p.Physical, exclusive: bool) -> p.Physical:
        """Return a node with what can be pulled below it; all else becomes an input."""
        if exclusive and self.readers.get(id(node), 1) > 1:
            return self._completed(node)
        self.saves = self.saves or _is_large(node)
        match node:
            case p.RangeScan() | p.ParquetScan() | p.MemoryScan() | p.ValuesScan():
                return node
            case p.ConcatRows() | p.LimitRows(count=int(), keys=()):
                return node.with_children([self.visit(c, exclusive) for c in node.children])
            case p.Pipeline(steps=steps) if steps.groups is None:
                return self.visit(opened(node), exclusive)
            case p.HashAggregate():
                return self._completed(node)
        place = probed(node)
        if place is None:
            return self._completed(node)
        children = enumerate(node.children)
        return node.with_children(
            [self.visit(c, exclusive) if i == place else self._completed(c) for i, c in children]
        )

    def _completed(self, node: p.Physical) -> p.Physical:
        if not any(node is known for known in self.complete):
            self.complete.append(node)
        return node


def _is_large(node: p.Physical) -> bool:
    match node:
        case p.RangeScan(start=start, stop=stop, step=step):
            return len(range(start, stop, step)) > FEW_ROWS
        case p.ParquetScan(table=table):
            return (table.statistics().rows or 0) > FEW_ROWS
        case p.HashJoin(estimate=rows) | p.NestedLoopJoin(estimate=rows):
            return rows is None or rows > FEW_ROWS
    return False


# Rows that sources give to a limit before all of its input is made by kernels, with columns that stay in the cache
PULLED_FIRST = 1 << 18


class Turn(NamedTuple):
    """The turn of a node in a run, by identity: itself, whose tables it `reads`, and those of these that nobody reads after it, with their devices."""

    node: Physical
    key: int
    reads: tuple[int, ...]
    done_with: tuple[tuple[int, Device], ...]


@dataclass(frozen=True)
class Schedule:
    """In which order the nodes of a plan run, inputs first, and by their identity how many others read each.

    `paths` are those of `memory.waiting_places`; `divisible` the nodes that may have to run in chunks; `limits`, by
    identity, the plans of limits below which rows are pulled, until `unreached` says that they need all rows anyway.
    `shaped` are, by identity, the pipelines that other texts have with other constants.
    `too_large` holds the limit under which a run found that only all of the plan in pieces fits.
    """

    plan: Physical
    order: tuple[Physical, ...]
    readers: Mapping[int, int]
    places: Mapping[int, tuple[HashJoin, int]]
    divisible: tuple[Physical, ...]
    limits: Mapping[int, Pipeline]
    shaped: Mapping[int, ShapedPart[Physical]] = field(default_factory=dict)
    unreached: set[int] = field(default_factory=set)
    too_large: set[int | None] = field(default_factory=set)

    @cached_property
    def meets(self) -> bool:
        """Whether the workers of a cluster meet in it."""
        return any(isinstance(node, Exchange) for node in self.order)

    @cached_property
    def turns(self) -> tuple[Turn, ...]:
        """The turns of runs in which there are no chains."""
        return turns_of(self.order)

    @cached_property
    def unbroken(self) -> Chains:
        """No chains at all."""
        return Chains(self, {}, {})


@dataclass(frozen=True)
class Chains:
    """The ends of chains that run as one node, by identity: those that run in chunks, and those that are pulled.

    A chain is written as a pipeline: its body and the nodes that are complete before.
    """

    schedule: Schedule
    streamed: Mapping[int, Pipeline]
    pulled: Mapping[int, Pipeline]

    @cached_property
    def ends(self) -> bool:
        return bool(self.streamed or self.pulled)

    def inputs(self, node: Physical) -> tuple[Physical, ...]:
        """Return the nodes whose tables a node reads."""
        if not self.ends:
            return node.children
        chain = self.streamed.get(id(node)) or self.pulled.get(id(node))
        return node.children if chain is None else chain.inputs

    def shown(self, node: Physical) -> tuple[Physical, ...]:
        """Return the nodes below one in the profile."""
        return self.inputs(node) if id(node) in self.streamed else node.children

    def most(self, node: Physical) -> int | None:
        """Return the number of rows that sources give to a limit before it is run in another way, None if there is none."""
        parts = walk(self.pulled[id(node)].body)
        other = any(isinstance(part, ParquetScan | HashJoin) for part in parts)
        return PULLED_FIRST if other else None

    def give_up(self, node: Physical) -> None:
        """Note for later runs that a limit needs all rows."""
        self.schedule.unreached.add(id(node))

    def pipelines_below(self, node: Physical) -> Iterator[Pipeline]:
        """Yield the pipelines whose rows are pulled instead."""
        complete = set(map(id, self.pulled[id(node)].inputs))
        stack: list[Physical] = [node]
        while stack:
            below = stack.pop()
            if id(below) not in complete:
                stack.extend(below.children)
                if isinstance(below, Pipeline):
                    yield below


def schedule_of(plan: Physical) -> Schedule:
    """Return what is the same in each run of a plan."""
    order = inputs_first(plan)
    readers = readers_of(order)
    ends = [n for n in order if isinstance(n, HashAggregate | FilterRows)]
    divisible = tuple(n for n in ends if scan_below(n) is not None)
    limits = {id(n): chain for n in order if (chain := pulled_below(n, readers)) is not None}
    places = waiting_places(order, readers)
    return Schedule(plan, tuple(order), readers, places, divisible, limits)


def shaped_schedule(plan: Physical, shape: Sequence[Physical], values: Sequence[Value]) -> Schedule:
    """Return the schedule of a plan that was made for values of slots; `shape` are the nodes with these slots, inputs first."""
    schedule = schedule_of(plan)
    pairs = zip(schedule.order, shape, strict=True)
    shaped = {
        id(node): ShapedPart(part, values)
        for node, part in pairs
        if node is not part and isinstance(node, Pipeline)
    }
    return replace(schedule, shaped=shaped)


def chains_of(schedule: Schedule, context: Context) -> Chains:
    """Return the chains of this run; there are none without limits and nodes that may run in chunks."""
    pulled = {i: c for i, c in schedule.limits.items() if i not in schedule.unreached}
    streamed = _streamed(schedule, context) if schedule.divisible else {}
    return Chains(schedule, streamed, pulled)


def _streamed(schedule: Schedule, context: Context) -> dict[int, Pipeline]:
    """Return the chains that run in chunks, since the columns of their scans do not fit, by the identity of their ends.

    The planner has made pipelines of most chains; of the others each ends where the last operator does that can be divided.
    """
    found: dict[int, Pipeline] = {}
    inner: set[int] = set()
    plain = replace(context, fuse="never")
    for node in reversed(schedule.divisible):
        steps = steps_of(node)
        if id(node) in inner or chunks_of(steps, plain) is None:
            continue
        chain = inputs_first(node)[:-1]
        if all(schedule.readers[id(below)] == 1 for below in chain):
            found[id(node)] = Pipeline(steps, device=node.device)
            inner.update(map(id, chain))
    return found


def inputs_first(plan: Physical, chains: Chains | None = None) -> list[Physical]:
    """Return each node object once, after those whose tables it reads; exchanges by their numbers, whose order is the same on all workers."""
    order: list[Physical] = []
    met: set[int] = set()

    def visit(node: Physical) -> None:
        if id(node) not in met:
            met.add(id(node))
            for child in node.children if chains is None else chains.inputs(node):
                visit(child)
            order.append(node)

    visit(plan)
    meetings = [node for node in order if isinstance(node, Exchange)]
    if len(meetings) > 1:  # a worker may arrange the inputs of joins by what its share has
        order.clear()
        met.clear()
        for node in (*sorted(meetings, key=attrgetter("number")), plan):
            visit(node)
    return order


def turns_of(order: Sequence[Physical], chains: Chains | None = None) -> tuple[Turn, ...]:
    """Return the turns of nodes in this order."""
    inputs = [node.children if chains is None else chains.inputs(node) for node in order]
    last = {id(child): place for place, children in enumerate(inputs) for child in children}
    turns: list[Turn] = []
    for place, (node, children) in enumerate(zip(order, inputs, strict=True)):
        done = {id(child): child.device for child in children if last[id(child)] == place}
        turns.append(Turn(node, id(node), tuple(map(id, children)), tuple(done.items())))
    return tuple(turns)


def readers_of(order: Sequence[Physical], chains: Chains | None = None) -> dict[int, int]:
    """Return by identity how many nodes read the table of each."""
    readers = dict.fromkeys(map(id, order), 0)
    for node in order:
        for child in node.children if chains is None else chains.inputs(node):
            readers[id(child)] += 1
    return readers
