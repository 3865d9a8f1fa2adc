"""Trees of row-wise operators and joins become pipelines, which generated kernels run without storing what lies in between.

Whether a kernel can really hold a tree depends on the columns' statistics and is settled when it runs; here stay out those trees
that no kernel holds.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace

from ...plan.node import walk_once
from ...plan.physical import (
    ComputeColumns,
    ConcatRows,
    FilterRows,
    HashAggregate,
    HashJoin,
    MemoryScan,
    NestedLoopJoin,
    ParquetScan,
    Physical,
    Pipeline,
    Stored,
)
from ...plan.spine import leaf_of
from ...settings import FuseChoice
from ..estimates.chain_estimate import ChainEstimates
from .arrange_probes import arranged
from .full_joins import halves
from .group_keys import is_held
from .pipeline_shape import Body, is_link, outside, untested, with_used
from .reduce_builds import with_reduced_builds
from .two_phase_aggregation import in_two_steps

# Rows below which the CPU's operators finish before a kernel has been looked up; compiling one takes half a second.  At 60,000
# rows TPC-H Q1 takes operators 4.4 ms, and its kernel 1.1 once it is there.
# On the GPU each of them costs more than a launch, however few the rows are.
SMALL_INPUT = 50_000
SMALL_STORED = 1000  # rows that operators have made, of which others make the next step at once


def fuse(plan: Physical, choice: FuseChoice) -> Physical:
    """Trees of scans, filters, projections and joins, below an aggregate or not -> Pipeline of the same.

    As in HyPer (Neumann 2011), data flows from the scan to the sink without being stored.  What must be complete before a kernel can
    start (an aggregate, a sort, an operator reached over two paths) becomes an input of the pipeline.
    """
    if choice == "never":
        return plan
    return _Fusion(choice, _count_readers(plan)).visit(plan)


@dataclass
class _Fusion:
    """One pass over a plan: an operator that is reached twice is fused once."""

    choice: FuseChoice
    readers: dict[int, int]
    done: dict[int, tuple[Physical, Physical]] = field(default_factory=dict)
    stored: ChainEstimates = field(default_factory=ChainEstimates)

    def visit(self, node: Physical) -> Physical:
        if id(node) not in self.done:
            made = self.pipeline(node) or self._in_halves(node) or self._plain(node)
            self.done[id(node)] = node, made  # the node is kept, so that its id stays its own
        return self.done[id(node)][1]

    def _plain(self, node: Physical) -> Physical:
        rebuilt = node.with_children([self.visit(child) for child in node.children])
        if self.joins(node) and isinstance(node, HashJoin | NestedLoopJoin | HashAggregate):
            return replace(rebuilt, not_fused=outside(node))
        if isinstance(node, FilterRows) and isinstance(node.input, HashAggregate):
            fused = isinstance(rebuilt.children[0], Pipeline)
            return replace(rebuilt, not_fused=untested(node, node.input) if fused else None)
        return rebuilt

    def _in_halves(self, node: Physical) -> Physical | None:
        """A full join as the rows of two pipelines, each of which reads both of its sides."""
        found = halves(node)
        if found is None:
            return None
        for child in node.children:
            self.readers[id(child)] += 1
        made = tuple(self.visit(half) for half in found)
        if not all(isinstance(half, Pipeline) for half in made):
            for child in node.children:
                self.readers[id(child)] -= 1
            return None
        return ConcatRows(
            made, node.columns, device=node.device, reason=node.reason, estimate=node.estimate
        )

    def joins(self, node: Physical) -> bool:
        """Whether joins are fused where this operator runs, however small they are and many their groups."""
        return self.choice == "always" or node.device == "gpu"

    def pipeline(self, node: Physical) -> Physical | None:
        """Return a pipeline that ends in this operator, or None."""
        if isinstance(node, FilterRows) and (found := self._conditioned(node)) is not None:
            return found
        aggregates = isinstance(node, HashAggregate)
        if aggregates or is_link(node):
            found = self._sink(node, node.input if isinstance(node, HashAggregate) else node)
            if found is not None or self.joins(node):
                return found
        rows = node.device == "cpu" and _is_row_selection(node)
        return self._row_wise(node) if rows or aggregates else None

    def _conditioned(self, node: FilterRows) -> Physical | None:
        """A pipeline that ends in those groups for which a condition on them holds."""
        groups = node.input
        if not isinstance(groups, HashAggregate) or untested(node, groups) is not None:
            return None
        if self.readers.get(id(groups), 1) > 1 or groups.device != node.device:
            return None
        made = self.visit(groups)
        if not isinstance(made, Pipeline) or not isinstance(made.body, HashAggregate):
            return None
        body = node.with_children([made.body])
        return replace(made, body=body, estimate=node.estimate)

    def _is_conditioned(self, node: FilterRows) -> bool:
        return self._conditioned(node) is not None

    def _row_wise(self, node: Physical) -> Physical | None:
        """A pipeline without joins, all of whose operators only it reads."""
        below: Physical = node.input if isinstance(node, HashAggregate) else node
        while isinstance(below, FilterRows | ComputeColumns):
            if below is not node and self.readers[id(below)] > 1:
                return None
            below = below.input
        return _pipeline(node, node, ()) if self._is_worth_it(below) else None

    def _is_worth_it(self, leaf: Physical) -> bool:
        if not isinstance(leaf, ParquetScan | MemoryScan):
            return False
        if self.choice == "always" or leaf.device == "gpu":
            return True
        return (leaf.table.statistics().rows or 0) >= SMALL_INPUT

    def _sink(self, node: Physical, chain: Physical) -> Physical | None:
        """A pipeline of an aggregate over a chain, or of the rows of a chain that filters or joins."""
        if not (self.joins(node) or _has_joins(chain)):
            return None
        body = Body(self.readers, self._is_conditioned, stored=self.stored)
        below = arranged(body.chain(chain), body)
        made = below if node is chain else node.with_children([below])
        hashed = self.joins(node)
        steps = (
            in_two_steps(made, body.estimates, hashed) if isinstance(made, HashAggregate) else None
        )
        if not self._is_sink(made if steps is None else steps.early, body.estimates):
            return None
        if steps is not None:
            early = self._pipeline(steps.early, steps.early, body)
            self.done[id(early)] = early, early
            return self.visit(steps.over(early))
        return self._pipeline(node, made, body)

    def _is_sink(self, node: Physical, estimates: ChainEstimates) -> bool:
        """Whether a kernel should end in these rows, or in this aggregate over a chain."""
        aggregate = isinstance(node, HashAggregate)
        chain = node.input if isinstance(node, HashAggregate) else node
        leaf = leaf_of(chain)
        if not _has_joins(chain):
            if isinstance(leaf, Stored):
                large = (leaf.estimate or 0.0) >= SMALL_INPUT
                return aggregate and large and outside(node) is None and self.joins(node)
            return self._is_worth_it(leaf) and (aggregate or _is_row_selection(chain))
        if isinstance(node, HashAggregate):
            hashed = self.joins(node)
            if outside(node) is not None or not is_held(node, chain, estimates, hashed):
                return False
        if self.joins(node):
            return not isinstance(leaf, Stored) or (leaf.estimate or 0.0) >= SMALL_STORED
        return self._is_worth_it(leaf)

    def _pipeline(self, node: Physical, made: Physical, body: Body) -> Pipeline:
        made, inputs = with_used(with_reduced_builds(made, body.estimates), body.inputs)
        return _pipeline(node, made, tuple(self.visit(given) for given in inputs))


def _pipeline(node: Physical, body: Physical, inputs: tuple[Physical, ...]) -> Pipeline:
    return Pipeline(body, inputs, device=node.device, reason=node.reason, estimate=node.estimate)


def _is_row_selection(node: Physical) -> bool:
    """Whether these are the rows that filters above a scan select."""
    below: Physical = node
    while isinstance(below, FilterRows):
        below = below.input
    return below is not node and isinstance(below, ParquetScan | MemoryScan)


def _has_joins(node: Physical) -> bool:
    return any(isinstance(part, HashJoin | NestedLoopJoin) for part in walk_once(node))


def _count_readers(plan: Physical) -> dict[int, int]:
    readers: dict[int, int] = {}
    seen: set[int] = set()
    stack = [plan]
    while stack:
        node = stack.pop()
        if id(node) not in seen:
            seen.add(id(node))
            for child in node.children:
                readers[id(child)] = readers.get(id(child), 0) + 1
                stack.append(child)
    return readers
