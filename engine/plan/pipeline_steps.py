"""Pipelines as data: a source, the steps that its rows go through one by one, and a sink; joins look rows up in chains of their own.

    PipelineSteps := Chain                     its rows come out
                   | Chain, groups             they are aggregated
                   | Chain, groups, condition  and groups dropped
    Chain         := source, ChainStep ...     one object, wherever a body comes to it
    ChainStep     := FilterRows | ComputeColumns | HashProbe of a Chain | RowLookup in a Chain of one row

`planner.pipelines` makes them of a tree of operators, once for each pipeline.  Kernels are generated along them, chunks are cut from
their sources, and where no kernel holds them their operators run one after the other.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import field, replace

from ..records import dataclass
from . import physical as p
from .expr import Column, ColumnRef, Expr, columns_of
from .join_kinds import JoinKind
from .node import Once
from .window.window_operator import WindowRows

LEAST_SHARE = 1e-6  # that an estimate is believed to be
FEW_ROWS = 0.1  # the share of rows up to which a filter drops most

Columns = frozenset[Column]
Scan = p.ParquetScan | p.MemoryScan


@dataclass(frozen=True, eq=False)
class Chain:
    """The rows of a source, and what each goes through; `node` is the operator that gives the same rows."""

    node: p.Physical
    source: p.Physical
    steps: tuple[ChainStep, ...] = ()

    def read_by(self, wanted: Columns) -> Iterator[tuple[ChainStep, Columns]]:
        """Yield the steps in their order, each with those of its columns that are read, where `wanted` come out."""
        read = [wanted]
        for step in reversed(self.steps[1:]):
            read.append(step.reads(read[-1]))
        return zip(self.steps, reversed(read), strict=False)


@dataclass(frozen=True, eq=False)
class ChainStep:
    """An operator that rows go through one by one: a filter or a projection, unless it is one of the joins below."""

    node: p.Physical
    below: Chain

    @property
    def share(self) -> float | None:
        """Which share of the rows is let through, by the planner's estimates."""
        made, given = self.node.estimate, self.below.node.estimate
        return None if made is None or not given else min(max(made / given, LEAST_SHARE), 1.0)

    def reads(self, wanted: Columns) -> Columns:
        """Return the columns of the chain below that are read for those that are wanted."""
        if isinstance(self.node, p.ComputeColumns):
            made = (columns_of(expr) for column, expr in self.node.items if column in wanted)
            return frozenset().union(*made)
        return (wanted | columns_read(self.node)) & frozenset(self.below.node.columns)


@dataclass(frozen=True, eq=False)
class HashProbe(ChainStep):
    """A join that looks rows up by their keys; `build` are those that it has in its index."""

    node: p.HashJoin
    build: Chain


@dataclass(frozen=True, eq=False)
class RowLookup(ChainStep):
    """A join with the only row of `build`."""

    node: p.NestedLoopJoin
    build: Chain


@dataclass(frozen=True)
class PipelineSteps:
    """A pipeline's chain and sink; `body` are the same as operators, `chains` the main one and all that are probed."""

    body: p.Physical
    chain: Chain = field(compare=False, repr=False)
    chains: tuple[Chain, ...] = field(compare=False, repr=False)
    groups: p.HashAggregate | None = field(compare=False, repr=False)
    condition: p.FilterRows | None = field(compare=False, repr=False)

    @Once
    def source(self) -> p.Physical:
        return self.chain.source

    @Once
    def is_selection(self) -> bool:
        """Whether rows come out as they lie in a scan, less those that filters drop."""
        filters = all(isinstance(step.node, p.FilterRows) for step in self.chain.steps)
        return self.groups is None and filters and isinstance(self.source, Scan)

    @property
    def joins(self) -> bool:
        return len(self.chains) > 1

    @property
    def drops_most(self) -> bool:
        """Whether filters let few rows through, by the planner's estimates, of which operators would compute each test for all rows."""
        filters = (step for step in self.chain.steps if isinstance(step.node, p.FilterRows))
        return any(step.share is not None and step.share <= FEW_ROWS for step in filters)

    @property
    def columns_read(self) -> Columns:
        """The columns that the operators read themselves."""
        nodes: list[p.Physical] = [step.node for chain in self.chains for step in chain.steps]
        nodes += [] if self.groups is None else [self.groups]
        return frozenset().union(*map(columns_read, nodes))

    def listed(self) -> Iterator[tuple[int, p.Physical, bool]]:
        """Yield the operators in the order in which a row meets them, what a join looks up one deeper; whether it was there before."""
        met: set[int] = set()

        def along_chain(chain: Chain, depth: int) -> Iterator[tuple[int, p.Physical, bool]]:
            if chain.steps and id(chain.node) in met:
                yield depth, chain.node, True
                return
            yield depth, chain.source, False
            for step in chain.steps:
                met.add(id(step.node))
                yield depth, step.node, False
                if isinstance(step, HashProbe | RowLookup):
                    yield from along_chain(step.build, depth + 1)

        yield from along_chain(self.chain, 0)
        yield from ((0, node, False) for node in (self.groups, self.condition) if node is not None)

    def over(self, source: p.Physical) -> PipelineSteps:
        """Return the same steps over another source."""
        return steps_of(along(self.body, lambda _: source, lambda side: side))


def steps_of(body: p.Physical) -> PipelineSteps:
    """Return the steps of a chain, of an aggregate over one, or of a filter of its groups."""
    groups = body
    while isinstance(groups, p.FilterRows):
        groups = groups.input
    known: dict[int, Chain] = {}
    if not isinstance(groups, p.HashAggregate):
        chain = chain_of(body, known)
        return PipelineSteps(body, chain, _reached(chain), None, None)
    chain = chain_of(groups.input, known)
    condition = body if isinstance(body, p.FilterRows) else None
    return PipelineSteps(body, chain, _reached(chain), groups, condition)


def chain_of(node: p.Physical, known: dict[int, Chain]) -> Chain:
    """Return the chain that an operator ends; `known` are those made before, by the identity of their ends."""
    if id(node) not in known:
        place = probed(node)
        if place is None:
            known[id(node)] = Chain(node, node)
        else:
            below = chain_of(node.children[place], known)
            known[id(node)] = Chain(node, below.source, (*below.steps, _step(node, below, known)))
    return known[id(node)]


def _step(node: p.Physical, below: Chain, known: dict[int, Chain]) -> ChainStep:
    match node:
        case p.HashJoin():
            return HashProbe(node, below, chain_of(node.build_side, known))
        case p.NestedLoopJoin():
            return RowLookup(node, below, chain_of(node.right, known))
    return ChainStep(node, below)


def _reached(main: Chain) -> tuple[Chain, ...]:
    """Return a chain and all that are probed along it, each once."""
    found = {id(main): main}
    waiting = [main]
    while waiting:
        for step in waiting.pop().steps:
            if isinstance(step, HashProbe | RowLookup) and id(step.build) not in found:
                found[id(step.build)] = step.build
                waiting.append(step.build)
    return tuple(found.values())


# Trees of operators


def probed(node: p.Physical) -> int | None:
    """Return which child the rows come from that go through a node one by one, or None for a leaf or another node."""
    match node:
        case p.FilterRows() | p.ComputeColumns() | p.HashAggregate():
            return 0
        case p.HashJoin(kind=kind) if kind.is_divisible:
            return int(node.probes_right)
        case p.NestedLoopJoin(kind=kind) if kind.is_divisible:
            return 0
    return None


def spine(node: p.Physical) -> Iterator[p.Physical]:
    """Yield the nodes that a row goes through, the last one first; a join that keeps rows of both sides ends them, as a leaf does."""
    yield node
    while (place := probed(node)) is not None:
        node = node.children[place]
        yield node


def leaf_of(body: p.Physical) -> p.Physical:
    """Return the node whose rows go through a body: a leaf, unless a join keeps rows of both sides."""
    while (place := probed(body)) is not None:
        body = body.children[place]
    return body


def along(
    node: p.Physical,
    of_leaf: Callable[[p.Physical], p.Physical],
    of_side: Callable[[p.Physical], p.Physical],
) -> p.Physical:
    """Return a tree whose leaf, and the sides that are probed, are others."""
    place = probed(node)
    if place is None:
        return of_leaf(node)
    return node.with_children(
        [
            along(c, of_leaf, of_side) if i == place else of_side(c)
            for i, c in enumerate(node.children)
        ]
    )


def columns_read(node: p.Physical) -> frozenset[Column]:
    """Return the columns of its inputs that an operator reads itself, besides those that it passes on."""
    read: tuple[Column, ...] = ()
    exprs: tuple[Expr | None, ...] = ()
    match node:
        case p.FilterRows(predicate=predicate):
            exprs = (predicate,)
        case p.ComputeColumns(items=items):
            exprs = tuple(expr for _, expr in items)
        case p.HashJoin():
            read, exprs = (*node.left_keys, *node.right_keys), (node.residual,)
        case p.NestedLoopJoin(condition=condition):
            exprs = (condition,)
        case p.HashAggregate(keys=keys, aggregates=aggregates):
            read, exprs = keys, tuple(call for _, call in aggregates)
        case p.DistinctOn(keys=keys):
            read = keys
        case p.UnnestRows(lists=lists):
            read = (*node.keep, *(column for _, column in lists))
        case p.SortRows(keys=orders) | p.TopK(keys=orders):
            read = tuple(order.column for order in orders)
        case WindowRows(partition=keys, order=orders, calls=calls, passed=passed):
            read = (*keys, *(order.column for order in orders), *passed)
            exprs = tuple(call for _, call in calls)
    return frozenset(read).union(*(columns_of(expr) for expr in exprs if expr is not None))


def equal_keys(join: p.HashJoin) -> dict[Column, Column]:
    """Keys of the build side that need not be read, since those of the probe side are the same, by these.

    Equal doubles may differ: 0.0 and -0.0.
    """
    if join.kind is not JoinKind.INNER:
        return {}
    pairs = zip(join.build_keys, join.probe_keys, strict=True)
    return {built: probed for built, probed in pairs if not built.type.is_float}


def payload(join: p.HashJoin, wanted: frozenset[Column]) -> frozenset[Column]:
    """Return the columns of the build side that are read at the rows found; `wanted`: those of the join that are read."""
    read = wanted if join.residual is None else wanted | columns_of(join.residual)
    return (read & set(join.build_side.columns)) - set(equal_keys(join))


def reads_build(join: p.HashJoin, wanted: frozenset[Column] | None = None) -> bool:
    """Whether rows of the build side are looked at, so that an index is of rows; else a set of keys is enough.

    `wanted` are the columns of the join that are read, by default all.
    """
    read = frozenset(join.columns) if wanted is None else wanted
    return join.residual is not None or bool(payload(join, read))


# Joins of a table with itself: where both keys are one stored column, a row that looks for others is among those of its key

# Of a table's rows: so many look at most, or are looked for at least, where looking around each is no more work than an index, of
# which a few rows are soon made
FEW_LOOK = 1 / 2
MANY_ARE_IN = 1 / 4


def self_key(step: HashProbe) -> Column | None:
    """Return the column, as the scan of the probe side has it, that is the only key of a join of the rows of a table with
    themselves, of which its build side leaves out some by filters; None for other joins, and where few rows are looked for.
    """
    node = step.node
    if len(node.left_keys) != 1 or node.null_aware:
        return None
    (probed,), (built,) = node.probe_keys, node.build_keys
    own, other = (
        stored_column(step.below, probed, through_joins=True),
        stored_column(step.build, built),
    )
    if own is None or other is None or not _same(*own, *other):
        return None
    rows, looking = other[0].estimate, step.below.node.estimate
    there = step.build.node.estimate
    if rows is None or looking is None or there is None:
        return own[1]
    return own[1] if looking <= FEW_LOOK * rows or there >= MANY_ARE_IN * rows else None


def unreduced(step: HashProbe) -> HashProbe:
    """Return a join whose build side has the rows too that no probe finds."""
    build = step.build
    while build.steps and isinstance(node := build.node, p.HashJoin) and node.reduces:
        build = build.steps[-1].below
    if build is step.build:
        return step
    return replace(step, node=step.node.with_build_side(build.node), build=build)


def stored_column(
    chain: Chain, column: Column, through_joins: bool = False
) -> tuple[Scan, Column] | None:
    """The scan whose rows a chain goes through, and which of its columns this one is."""
    for step in reversed(chain.steps):
        match step.node:
            case p.FilterRows():
                continue
            case p.ComputeColumns(items=items):
                made = dict(items)[column]
                if not isinstance(made, ColumnRef):
                    return None
                column = made.column
            case p.HashJoin() as node if through_joins:
                if column not in node.probe_side.columns:
                    equal = dict(zip(node.build_keys, node.probe_keys, strict=True))
                    if node.kind is not JoinKind.INNER or column not in equal:
                        return None
                    column = equal[column]
            case p.NestedLoopJoin(left=left) if through_joins and column in left.columns:
                continue
            case _:
                return None
    return (chain.source, column) if isinstance(chain.source, Scan) else None


def _same(scan: Scan, column: Column, other: Scan, its: Column) -> bool:
    """Whether columns of two scans are one, of the same rows."""
    if scan is other:
        return column == its
    table, its_table = (s.table.identity or id(s.table) for s in (scan, other))
    names = [dict(zip(s.made, s.sources, strict=True)) for s in (scan, other)]
    chosen, its_chosen = (
        s.selection if isinstance(s, p.ParquetScan) else None for s in (scan, other)
    )
    return table == its_table and names[0][column] == names[1][its] and chosen == its_chosen
