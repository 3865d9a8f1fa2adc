"""Trees of row-wise operators and joins become pipelines, which generated kernels run without storing what lies in between.

Whether a kernel can really hold a tree depends on the columns' statistics and is settled when it runs; here stay out those trees
that no kernel holds.  To know which operators become a pipeline, read `PIPELINE_RULES`; to know what becomes of their tree, `CHAIN_RULES`
and `BODY_RULES`.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import field, replace

from ...plan import physical as p
from ...plan.join_kinds import JoinKind
from ...plan.node import transform_up, walk_once
from ...plan.partial import FinishAverages
from ...plan.pipeline_steps import leaf_of, spine, steps_of
from ...records import dataclass
from ...settings import FuseChoice
from ..estimates.chain_estimate import ChainEstimates
from ..rewrite import Observer, Rule, apply_rules, unobserved
from .aggregate_unions import aggregate_unions, halves
from .arrange_probes import arrange_probes
from .filter_texts_late import filter_texts_late
from .group_keys import is_held, numbers_floats
from .pipeline_shape import Body, has_joins, is_link, leaves, outside, untested, with_used
from .reduce_builds import reduce_builds
from .two_phase_aggregation import aggregate_in_two_phases

# Rows below which the CPU's operators finish before a kernel has been looked up; compiling one takes half a second.  At 60,000
# rows TPC-H Q1 takes operators 4.4 ms, and its kernel 1.1 once it is there.
# On the GPU each of them costs more than a launch, however few the rows are.
SMALL_INPUT = 50_000
LISTED_SHARE = (
    1 / 16
)  # of a table, beyond which operators order it sooner than a kernel leaves rows out
SMALL_STORED = 1000  # rows that operators have made, of which others make the next step at once


def fuse(plan: p.Physical, choice: FuseChoice, observer: Observer = unobserved) -> p.Physical:
    """Trees of scans, filters, projections and joins, below an aggregate or not -> Pipeline of the same.

    As in HyPer (Neumann 2011), data flows from the scan to the sink without being stored.  What must be complete before a kernel can
    start (an aggregate, a sort, an operator reached over two paths) becomes an input of the pipeline.
    """
    if choice == "never":
        return plan
    readers = Counter(id(child) for node in walk_once(plan) for child in node.children)
    return Fusion(choice, readers, observer).visit(plan)


@dataclass
class Fusion:
    """One pass over a plan: an operator that is reached twice is fused once."""

    choice: FuseChoice
    readers: Counter[int]
    observer: Observer
    done: dict[int, tuple[p.Physical, p.Physical]] = field(default_factory=dict)
    stored: ChainEstimates = field(default_factory=ChainEstimates)

    def visit(self, node: p.Physical) -> p.Physical:
        if id(node) not in self.done:
            ways = (rule.apply(node, self) for rule in PIPELINE_RULES)
            made = next((way for way in ways if way is not None), None) or self._alone(node)
            self.done[id(node)] = node, made  # the node is kept, so that its id stays its own
        return self.done[id(node)][1]

    def _alone(self, node: p.Physical) -> p.Physical:
        rebuilt = node.with_children([self.visit(child) for child in node.children])
        if self.joins(node) and isinstance(node, p.HashJoin | p.NestedLoopJoin | p.HashAggregate):
            return replace(rebuilt, not_fused=outside(node))
        if isinstance(node, p.FilterRows) and isinstance(node.input, p.HashAggregate):
            fused = isinstance(rebuilt.children[0], p.Pipeline)
            return replace(rebuilt, not_fused=untested(node, node.input) if fused else None)
        return rebuilt

    def joins(self, node: p.Physical) -> bool:
        """Whether joins are fused where this operator runs, however small they are and many their groups."""
        return self.choice == "always" or node.device == "gpu"

    def is_worth_it(self, leaf: p.Physical) -> bool:
        if not isinstance(leaf, p.ParquetScan | p.MemoryScan):
            return False
        return self.joins(leaf) or (leaf.table.statistics().rows or 0) >= SMALL_INPUT

    def has_large(self, chain: p.Physical) -> bool:
        """Whether a table that a chain goes through, or looks up in, is worth a kernel.

        Few rows may be asked for in a set of millions of keys: TPC-DS Q37 and Q82 take a fifth and a third less than by operators, at SF1 on
        two busy cores; no other plan of TPC-DS changes.
        """
        return isinstance(leaf_of(chain), p.ParquetScan | p.MemoryScan) and any(
            map(self.is_worth_it, leaves(chain))
        )

    def ends(self, node: p.Physical, chain: p.Physical, body: Body) -> bool:
        """Whether a kernel should end in the rows of a chain, or in this aggregate over them."""
        leaf, aggregate = leaf_of(chain), node is not chain
        if aggregate and outside(node) is not None:
            return False
        if isinstance(node, p.HashAggregate) and not numbers_floats(node, chain, body.estimates):
            return False
        if not has_joins(chain):
            if isinstance(leaf, p.Stored):
                return aggregate and (leaf.estimate or 0.0) >= SMALL_INPUT and body.hashed
            return self.is_worth_it(leaf) and (
                aggregate or (isinstance(chain, p.FilterRows) and steps_of(chain).is_selection)
            )
        if isinstance(node, p.HashAggregate) and not is_held(
            node, chain, body.estimates, body.hashed
        ):
            return False
        if body.hashed:
            return not isinstance(leaf, p.Stored) or (leaf.estimate or 0.0) >= SMALL_STORED
        return self.has_large(chain)

    def pipeline(self, node: p.Physical, sink: p.Physical, body: Body) -> p.Pipeline:
        made = apply_rules(sink, BODY_RULES, body, observer=self.observer)
        made, used = with_used(made, body.inputs)
        inputs = tuple(map(self.visit, used))
        return p.Pipeline(steps_of(made), inputs).placed_as(node)


def filter_groups(node: p.Physical, fusion: Fusion) -> p.Physical | None:
    """FilterRows(p, Pipeline(HashAggregate(k, x)))  ->  Pipeline(FilterRows(p, HashAggregate(k, x)))."""
    if not isinstance(node, p.FilterRows) or not isinstance(node.input, p.HashAggregate):
        return None
    groups = node.input
    if untested(node, groups) is not None or groups.device != node.device:
        return None
    made = None if fusion.readers[id(groups)] > 1 else fusion.visit(groups)
    if not isinstance(made, p.Pipeline) or not isinstance(made.body, p.HashAggregate):
        return None
    steps = steps_of(node.with_children([made.body]))
    return replace(made, steps=steps, estimate=node.estimate)


def fuse_chain(node: p.Physical, fusion: Fusion) -> p.Physical | None:
    """HashAggregate(k, chain), or chain  ->  Pipeline of the same; of an aggregate in two phases the first one."""
    aggregates = isinstance(node, p.HashAggregate)
    if not aggregates and not is_link(node):
        return None
    chain = node.children[0] if aggregates else node
    hashed = fusion.joins(node)
    if not (hashed or has_joins(chain)):
        between = (n for n in spine(chain) if n is not node and n.children)
        if any(fusion.readers[id(n)] > 1 for n in between):
            return None
    body = Body(
        fusion.readers,
        lambda condition: filter_groups(condition, fusion) is not None,
        hashed=hashed,
        stored=fusion.stored,
    )
    below = body.chain(chain)
    made = node.with_children([below]) if aggregates else below
    made = apply_rules(made, CHAIN_RULES, body, observer=fusion.observer)
    sink = _first_phase(made) if aggregates else made
    below = sink.children[0] if aggregates else sink
    if not fusion.ends(sink, below, body):
        return None
    if sink is made:
        return fusion.pipeline(node, sink, body)
    early = fusion.pipeline(sink, sink, body)
    fusion.done[id(early)] = early, early
    return fusion.visit(transform_up(made, lambda part: early if part is sink else None))


def _first_phase(made: p.Physical) -> p.Physical:
    """The aggregation of several that reads the rows."""
    groups = made.input if isinstance(made, FinishAverages) else made
    return [n for n in spine(groups) if isinstance(n, p.HashAggregate)][-1]


def split_full_joins(node: p.Physical, fusion: Fusion) -> p.Physical | None:
    """HashJoin(a, b, full)  ->  ConcatRows(Pipeline(HashJoin(a, b, left)), Pipeline(HashJoin(b, a, anti)))."""
    is_full = isinstance(node, p.HashJoin) and node.kind is JoinKind.FULL
    found = halves(node) if is_full else None
    if found is None:
        return None
    fusion.readers.update(map(id, node.children))
    made = tuple(map(fusion.visit, found))
    if not all(isinstance(half, p.Pipeline) for half in made):
        fusion.readers.subtract(map(id, node.children))
        return None
    return p.ConcatRows(made, node.columns).placed_as(node)


def list_first_rows(node: p.Physical, fusion: Fusion) -> p.Physical | None:
    """TopK(chain)  ->  TopK(Pipeline(chain)), whose kernel leaves out rows that are behind the last one which is kept.

    Columns may come after the order then, and a chain that computes what the rows are ordered by need not be stored: the 25 dearest of
    6 M line items by a product of three columns take 6.1 ms of CPU time instead of 52.6, a thousand of them in the order in which they lie
    1.3 ms instead of 8.5 (SF1, two busy cores, hot).
    """
    if not isinstance(node, p.TopK) or fusion.readers[id(node.input)] > 1:
        return None
    below = fusion.visit(node.input)
    if not isinstance(below, p.Pipeline):
        if not _lists_few(node, fusion):
            return None
        body = Body(fusion.readers, stored=fusion.stored)
        below = fusion.pipeline(node.input, body.chain(node.input), body)
    first = p.FirstRows(node.keys[0], node.offset + node.count)
    return replace(node, input=replace(below, cut=first))


def _lists_few(node: p.TopK, fusion: Fusion) -> bool:
    """Whether a kernel should go through all rows of a table for those that an order keeps.

    A device's kernels list rows alone, of which its operators then compute what the rows are ordered by: 7.7 ms of 60 M rows instead of
    3.7 (H200).
    """
    chain, leaf = node.input, leaf_of(node.input)
    return (
        chain.device == "cpu"
        and node.keys[0].column.type.fits_register
        and isinstance(leaf, p.ParquetScan | p.MemoryScan)
        and all(is_link(part) and fusion.readers[id(part)] == 1 for part in spine(chain))
        and not has_joins(chain)
        and fusion.is_worth_it(leaf)
        and node.offset + node.count <= (leaf.table.statistics().rows or 0) * LISTED_SHARE
    )


# What an operator becomes, instead of one that runs alone: the first that makes something of it
PIPELINE_RULES = (
    Rule(
        filter_groups, "first: as the end of a chain of its own a filter would read stored groups"
    ),
    Rule(aggregate_unions, "before rows of several sources are stored as one source"),
    Rule(fuse_chain, "whatever rows go through without being stored, from a scan to where it ends"),
    Rule(list_first_rows, "above chains, which are made before it"),
    Rule(split_full_joins, "last: the halves are chains, which a full join ends"),
)
# What becomes of a tree before it is settled whether a kernel ends there
CHAIN_RULES = (
    Rule(arrange_probes, "first: which rows are gone through decides about all that follows"),
    Rule(
        aggregate_in_two_phases,
        "needs the joins as they are probed: a row that one of them finds may decide the keys",
    ),
)
# And what then, of the tree that becomes a pipeline's body
BODY_RULES = (
    Rule(reduce_builds, "what a build side is spared depends on all that probes it"),
    Rule(filter_texts_late, "last: what reduces a build side leaves few texts of it"),
)
