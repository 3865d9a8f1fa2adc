"""Build sides that are much larger than what probes them keep only the rows whose keys the probe side has.

    HashJoin(a, b, k)  ->  HashJoin(a, HashJoin(b, a', k, semi), k)

`a'` is the probe side, or a part of it that has the same keys and more.  A kernel makes a set of its keys in one more pass over its
rows, by which rows of `b` are dropped before they are put into the index.  Joins that are reduced by the same part share the set.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import field

from ...plan.device_costs import DeviceCosts, NearFar, costs_of
from ...plan.expr import Column, ColumnRef, new_column
from ...plan.join_kinds import JoinKind
from ...plan.node import walk
from ...plan.physical import ComputeColumns, FilterRows, HashJoin, NestedLoopJoin, Physical
from ...plan.pipeline_steps import (
    Chain,
    Columns,
    HashProbe,
    chain_of,
    columns_read,
    leaf_of,
    reads_build,
    self_key,
)
from ...plan.types import DataType, Kind
from ...records import dataclass
from ..estimates.chain_estimate import ChainEstimates, expected_column
from ..estimates.estimate import key_domain
from ..estimates.selectivity import ColumnEstimate
from .pipeline_shape import Body, table_rows
from .probe_order import domain, index_bytes, may_be_unique

# As many bytes of an index to a row, or fewer, are as good as in a cache where rows come in the order of their keys: rows share
# sectors of 32 bytes
IN_ORDER_BYTES = 4.0
# What reading a value costs, by how many values its column has, as codes are narrow; texts have no codes where they are many
NARROW = ((256.0, 0.25), (65_536.0, 0.5))
TEXT = 8.0
LEAST_GAIN = 1.0  # for each row of a build side, as estimates are no more than that


Identity = tuple[int, tuple[Column, ...], tuple[bool, ...]]


@dataclass(frozen=True, slots=True, eq=False)
class KeySource:
    """A part of a probe side, and those of its columns that hold the keys of a join above it."""

    part: Physical
    keys: tuple[Column, ...]
    null_equal: tuple[bool, ...]

    @property
    def identity(self) -> Identity:
        return id(self.part), self.keys, self.null_equal


def reduce_builds(node: Physical, body: Body) -> Physical | None:
    """Return the tree of a pipeline with build sides reduced where that costs less than what it spares."""
    joins = list({id(n): n for n in walk(node) if isinstance(n, HashJoin)}.values())
    chosen = _chosen(joins, _Costs(body.estimates, _sets(joins), costs_of(node.device)))
    return _Reduction(chosen).visit(node) if chosen else None


def _sets(joins: Sequence[HashJoin]) -> set[Identity]:
    """The sets of keys that the kernels of a body make anyway."""
    found = (j for j in joins if not reads_build(j))
    return {(id(j.build_side), j.build_keys, j.null_equal) for j in found}


def _chosen(joins: Sequence[HashJoin], costs: _Costs) -> dict[int, tuple[KeySource, float]]:
    """For joins, by their identity, the part that reduces their build side and the share of it that remains.

    The part that spares most for all the joins that it can reduce comes first.
    """
    spared: dict[KeySource, dict[int, tuple[float, float]]] = {}
    known: dict[Identity, KeySource] = {}
    for join in joins:
        if not join.kind.is_divisible or join.null_aware or costs.is_unbuilt(join):
            continue
        for found in _sources(join):
            source = known.setdefault(found.identity, found)
            gain, fraction = costs.spared(join, source)
            if gain > 0.0:
                spared.setdefault(source, {})[id(join)] = gain, fraction
    chosen: dict[int, tuple[KeySource, float]] = {}
    while spared:
        totals = {
            source: sum(gain for gain, _ in reduced.values()) - costs.source(source)
            for source, reduced in spared.items()
        }
        best = max(totals, key=lambda s: totals[s])
        if totals[best] <= 0.0:
            break
        chosen |= {number: (best, fraction) for number, (_, fraction) in spared[best].items()}
        spared = {
            source: rest
            for source, reduced in spared.items()
            if (rest := {number: gain for number, gain in reduced.items() if number not in chosen})
        }
    return chosen


def _sources(join: HashJoin) -> Iterator[KeySource]:
    """Yield the parts of a join's probe side in which all keys occur that the probe side has, the largest first."""
    waiting = [(join.probe_side, join.probe_keys)]
    while waiting:
        node, keys = waiting.pop(0)
        yield KeySource(node, keys, join.null_equal)
        waiting += inputs_with_keys(node, keys)


def inputs_with_keys(
    node: Physical, keys: tuple[Column, ...]
) -> Iterator[tuple[Physical, tuple[Column, ...]]]:
    """Yield inputs of a node of which each row of the node has all keys, and the names that they have there."""
    match node:
        case FilterRows(input=below):
            yield below, keys
        case ComputeColumns(input=below, items=items):
            made = dict(items)
            refs = [made[key] for key in keys]
            passed = tuple(ref.column for ref in refs if isinstance(ref, ColumnRef))
            if len(passed) == len(keys):
                yield below, passed
        case HashJoin(left=left, right=right, kind=kind):
            pairs = list(zip(node.left_keys, node.right_keys, strict=True))
            sides = [(left, {b: a for a, b in pairs}), (right, dict(pairs))]
            for side, equal in sides if kind is JoinKind.INNER else [(left, {})]:
                own = side.columns
                named = tuple(key if key in own else equal.get(key) for key in keys)
                found = tuple(key for key in named if key is not None and key in own)
                if len(found) == len(keys):
                    yield side, found
        case NestedLoopJoin(left=left):
            if all(key in left.columns for key in keys):
                yield left, keys


@dataclass
class _Costs:
    """What passes over parts of a body cost, and what a reduction spares."""

    estimates: ChainEstimates
    there: set[Identity]
    device: DeviceCosts
    whole: dict[int, float] = field(default_factory=dict)  # by join what its build costs, unreduced
    chains: dict[int, Chain] = field(default_factory=dict)

    def source(self, source: KeySource) -> float:
        """What it costs to make the set of keys, unless it is there anyway."""
        if source.identity in self.there:
            return 0.0
        cost = self.made(chain_of(source.part, self.chains), frozenset(source.keys))
        filled = self.filled(source) if self.device.fills_sets else 0.0
        return self.device.launch + cost * self.device.scan + filled

    def filled(self, source: KeySource) -> float:
        """What it costs to put the keys of a part into a set, which are hashed where they are not a bit each."""
        known = self.estimates.relation(source.part)
        keys = [expected_column(known, key) for key in source.keys]
        all_rows = table_rows(leaf_of(source.part))
        size = index_bytes(self.device, all_rows, keys, membership=True)
        bits = math.prod(map(domain, keys)) <= self.device.most_bits(all_rows)
        cost = self.device.insert_bit if bits else self.device.insert_row
        return known.rows * self.each(cost, size, known.rows, keys)

    def spared(self, join: HashJoin, source: KeySource) -> tuple[float, float]:
        """What a join's build costs less once the set of keys is there, and the share of its rows that remains."""
        build, keys = join.build_side, join.build_keys
        known, other = self.estimates.relation(build), self.estimates.relation(source.part)
        pairs = [
            (expected_column(known, a), expected_column(other, b))
            for a, b in zip(keys, source.keys, strict=True)
        ]
        shares = (b.distinct / max(key_domain(a, b), 1.0) for a, b in pairs)
        fraction = min(1.0, *shares)
        rows = table_rows(leaf_of(source.part))  # from which a kernel chooses the form of an index
        size = index_bytes(self.device, rows, [b for _, b in pairs], membership=True)
        tested = self.each(self.device.test_bit, size, known.rows, [a for a, _ in pairs])
        if id(join) not in self.whole:
            self.whole[id(join)] = self.built(join, 1.0)
        gain = self.whole[id(join)] - self.built(join, fraction) - tested * known.rows
        return gain if gain >= LEAST_GAIN * known.rows else 0.0, fraction

    def is_unbuilt(self, join: HashJoin) -> bool:
        """Whether kernels probably look around a row for the others of its key, without an index: `codegen` measures that."""
        if not reads_build(join):
            return False
        step = chain_of(join, self.chains).steps[-1]
        if not isinstance(step, HashProbe) or self_key(step) is None:
            return False
        build = self.estimates.relation(join.build_side)
        keys = [expected_column(build, key) for key in join.build_keys]
        (key,) = keys
        return key.ascending and key.null_share == 0.0 and not _ascends_strictly(keys)

    def built(self, join: HashJoin, share: float) -> float:
        """What it costs to put a share of the rows of the build side into its index."""
        side = join.build_side
        build = self.estimates.relation(side)
        bits, rows = not reads_build(join), share * build.rows
        keys = [expected_column(build, key) for key in join.build_keys]
        size = index_bytes(self.device, build.rows, keys, bits)
        cost = rows * self.each(
            self.device.insert_bit if bits else self.device.insert_row, size, build.rows, keys
        )
        all_rows = table_rows(leaf_of(side))
        if bits or not _ascends_strictly(keys) or not self.device.are_ranked(rows, all_rows):
            return cost
        ranked = 0.0 if domain(keys[0]) <= all_rows else self.device.rank_row * all_rows
        return min(cost, ranked + (0.0 if rows >= all_rows else self.device.insert_bit[0] * rows))

    def each(
        self, cost: NearFar, size: float, rows: float, keys: Sequence[ColumnEstimate]
    ) -> float:
        """What each of so many rows costs that come by with their keys, in an index of this size."""
        in_order = len(keys) == 1 and keys[0].ascending and size <= IN_ORDER_BYTES * rows
        return cost[0] if in_order else self.device.of(cost, size)

    def made(self, chain: Chain, wanted: Columns) -> float:
        """What it costs to go through the rows of a chain again, its indexes being there as far as they are the same."""
        cost = 0.0
        for step in reversed(chain.steps):
            if isinstance(step, HashProbe):
                cost += self.probed(step, wanted)
            wanted = step.reads(wanted)
        columns = self.estimates.relation(chain.source).columns
        own = wanted.intersection(chain.source.columns)
        each = sum(_value(column.type, columns.get(column)) for column in own)
        return cost + table_rows(chain.source) * max(each, NARROW[0][1])

    def probed(self, step: HashProbe, wanted: Columns) -> float:
        """What it costs to look rows up, and to make their index anew where another one is needed than the main kernel's."""
        join = step.node
        passing = self.estimates.relation(join.probe_side)
        built = self.estimates.relation(join.build_side)
        keys = [expected_column(built, key) for key in join.build_keys]
        asked = [expected_column(passing, key) for key in join.probe_keys]
        bits = not reads_build(join, wanted)
        size = index_bytes(self.device, built.rows, keys, bits)
        cost = passing.rows * self.each(
            self.device.test_bit if bits else self.device.probe_row, size, passing.rows, asked
        )
        if join.kind.is_membership or bits != reads_build(join):
            return cost
        return cost + self.made(step.build, wanted | columns_read(join)) + self.built(join, 1.0)


def _value(data_type: DataType, known: ColumnEstimate | None) -> float:
    """What it costs to read one value of a column."""
    if known is None:
        return 1.0
    few = domain(known) if data_type.is_integer or data_type.kind is Kind.DATE else known.distinct
    texts = data_type.kind is Kind.VARCHAR
    return next((cost for most, cost in NARROW if few <= most), TEXT if texts else 1.0)


def _ascends_strictly(keys: Sequence[ColumnEstimate]) -> bool:
    """Whether the rows of a table probably come in the order of the only key, and each has one of its own."""
    if len(keys) > 1 or not keys[0].ascending or keys[0].null_share > 0.0:
        return False
    return may_be_unique(keys, keys[0].source_rows)


@dataclass
class _Reduction:
    """One pass over a body; what is reached twice stays one object, and so does each set of keys."""

    chosen: dict[int, tuple[KeySource, float]]
    done: dict[int, Physical] = field(default_factory=dict)
    renamed: dict[KeySource, Physical] = field(default_factory=dict)

    def visit(self, node: Physical) -> Physical:
        if id(node) not in self.done:
            self.done[id(node)] = self.made(node)
        return self.done[id(node)]

    def made(self, node: Physical) -> Physical:
        made = node.with_children([self.visit(child) for child in node.children])
        if id(node) not in self.chosen:
            return made
        assert isinstance(node, HashJoin)
        assert isinstance(made, HashJoin)
        source, fraction = self.chosen[id(node)]
        build, found = made.build_side, self.visit(source.part)
        keys = source.keys
        if not set(found.columns).isdisjoint(build.columns):
            found = self.renamed_keys(source)
            keys = found.columns
        rows = node.build_side.estimate
        reduced = HashJoin(
            build,
            found,
            JoinKind.SEMI,
            node.build_keys,
            keys,
            source.null_equal,
            device=node.device,
            reason=node.reason,
            reduces=True,
            estimate=None if rows is None else rows * fraction,
        )
        return made.with_build_side(reduced)

    def renamed_keys(self, source: KeySource) -> Physical:
        """The keys of a part under names of their own, where a build side reads the same table."""
        if source not in self.renamed:
            part = self.visit(source.part)
            items = tuple((new_column(k.name, k.type), ColumnRef(k)) for k in source.keys)
            self.renamed[source] = ComputeColumns(part, items).placed_as(part)
        return self.renamed[source]
