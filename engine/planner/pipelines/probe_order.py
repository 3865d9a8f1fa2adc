"""In which order a pipeline probes its build sides, and which of them a build side probes itself.

Dynamic programming over sets of relations, as in `join_order`, with the costs of a kernel that stores nothing: what a probe and
an insertion cost depends on whether the index stays in the processor's cache, and rows cost nothing unless they are probed.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import field

from ...plan.device_costs import DeviceCosts
from ...plan.expr import Column, Expr
from ...records import dataclass
from ..estimates.estimate import join_rows
from ..estimates.relation_estimate import RelationEstimate
from ..estimates.selectivity import ColumnEstimate
from ..join_order import reached, splits

MAX_UNITS = 10  # 3**10 / 2 pairs of sets
SLOT_BYTES, LINK_BYTES = 4.0, 16.0
IMPOSSIBLE = 1e30  # an index has each row once, so that no other rows can be found by it
REPEATED_PROBE = (
    2.0  # rows with equal keys are chained: their index is a list, and a probe goes through it
)


@dataclass(frozen=True, slots=True)
class Unit:
    """A relation of the group: `base` rows are read, of which `relation` remain.

    `payload`: something above reads its columns.  `repeats`: a row that is read may come out several times.
    """

    relation: RelationEstimate
    base: float
    payload: bool
    repeats: bool = False


@dataclass(frozen=True, slots=True)
class Extra:
    """A step that only adds columns or drops rows: a semi, anti, mark, left or single join, or one with a single row.

    `needs` are the units and extras whose columns it reads, as a bit set.
    """

    needs: int
    fraction: float
    index_bytes: float


@dataclass(frozen=True, slots=True)
class ProbeCondition:
    """A predicate, applied as soon as all of `needs` is there."""

    needs: int
    expr: Expr
    selectivity: float


@dataclass(frozen=True, slots=True)
class Key:
    """A column of one unit in a class of equal columns."""

    unit: int
    column: Column
    estimate: ColumnEstimate


@dataclass(frozen=True, slots=True)
class Equal:
    """A class of equal columns, and the bit set of their units."""

    members: Sequence[Key]
    units: int

    def member(self, step: ProbeStep) -> Key:
        """Return the column of a step, that of its spine if there is one."""
        found = [m for m in self.members if step.members >> m.unit & 1]
        return next((m for m in found if m.unit == step.spine), found[0])


@dataclass
class Group:
    """What joins put together: bits 0 .. n-1 are units, those after them extras.

    `payload` are the units that have some, `neighbors` for each unit those that it is joined with.
    """

    units: Sequence[Unit]
    extras: Sequence[Extra]
    classes: Sequence[Equal]
    conditions: Sequence[ProbeCondition]
    costs: DeviceCosts
    payload: int = field(init=False)
    neighbors: list[int] = field(init=False)

    def __post_init__(self) -> None:
        self.payload = sum(unit.payload << i for i, unit in enumerate(self.units))
        self.neighbors = [0] * len(self.units)
        for equal in self.classes:
            for member in equal.members:
                self.neighbors[member.unit] |= equal.units & ~(1 << member.unit)

    def probe_cost(self, size: float) -> float:
        return self.costs.of(self.costs.random_read, size)

    def crossing(self, a: ProbeStep, b: ProbeStep) -> list[tuple[Key, Key]]:
        """Return one pair of equal columns for each class that has members on both sides, those of the spines first."""
        return [
            (equal.member(a), equal.member(b))
            for equal in self.classes
            if equal.units & a.members and equal.units & b.members
        ]

    def has_payload(self, build: int, both: int) -> bool:
        """Whether a build side's columns are read once it is found, by what is above or by joins that are still to come."""
        if self.payload & build:
            return True
        return any(
            equal.units & ~both and equal.units & build and not equal.units & both & ~build
            for equal in self.classes
        )

    def completed(self, before: Sequence[int], after: int) -> Iterator[ProbeCondition]:
        """Yield the conditions that become possible with the set `after`."""
        for condition in self.conditions:
            needs = condition.needs
            if needs & after == needs and not any(needs & s == needs for s in before):
                yield condition


@dataclass(frozen=True, slots=True)
class ProbeStep:
    """The best known way to a set of units and extras: one unit, a probe into an index of `build`, or an extra above `probe`.

    `spine` is the unit whose `base` rows are gone through.  `again` is what finding the payload of its build sides costs for each row,
    should this set become a build side: an index holds rows of its spine alone.  `repeats`: a row of the spine may come
    out several times.
    """

    members: int
    rows: float
    cost: float
    base: float
    spine: int
    probe: ProbeStep | None = None
    build: ProbeStep | None = None
    extra: int | None = None
    again: float = 0.0
    repeats: bool = False


def best_order(group: Group) -> ProbeStep:
    """Return the cheapest way to all units and extras of a connected group.

    Of too many for all sets to be looked at, extras that only add columns come last: they spare no other probe.  Of TPC-DS it decides about
    Q72 alone, whose eleven joins took 4.3 times DuckDB's time in the order of `_greedy`, and now 1.1, at SF1 on two busy cores.
    """
    wanted = (1 << len(group.units) + len(group.extras)) - 1
    if wanted.bit_count() > MAX_UNITS:
        wanted &= ~_added_last(group)
    found = _dynamic(group, wanted) if wanted.bit_count() <= MAX_UNITS else None
    return _greedy(group) if found is None else _with_extras(group, found, _extras(group, found))


def _added_last(group: Group) -> int:
    """Return the extras that drop no rows and that nothing else reads, as a bit set."""
    read = 0
    for needs in (*(c.needs for c in group.conditions), *(e.needs for e in group.extras)):
        read |= needs
    bits = (1 << len(group.units) + i for i, e in enumerate(group.extras) if e.fraction >= 1.0)
    return sum(bit for bit in bits if not bit & read)


def _extras(group: Group, step: ProbeStep) -> set[int]:
    """Return the extras that a step has not."""
    count = len(group.units)
    return {i for i in range(len(group.extras)) if not step.members >> count + i & 1}


def index_bytes(
    costs: DeviceCosts, rows: float, keys: Sequence[ColumnEstimate], membership: bool = False
) -> float:
    """Expected size of an index: of bits for membership alone, of row numbers for each possible key, else a hash table."""
    numbers = math.prod(domain(key) for key in keys)
    if membership and numbers <= costs.most_bits(rows):
        return numbers / 8
    if numbers <= costs.most_slots(rows):
        return numbers * SLOT_BYTES
    return rows * LINK_BYTES


def domain(key: ColumnEstimate) -> float:
    """How many numbers the values of a key are given: all between its bounds, where it has some."""
    if key.low is None or key.high is None:
        return max(1.0, key.domain)
    return max(1.0, key.high - key.low + 1)


def may_be_unique(keys: Sequence[ColumnEstimate], rows: float) -> bool:
    """Whether each of so many rows can have a key of its own, as far as bounds and distinct values say."""
    return math.prod(domain(key) for key in keys) >= rows


@dataclass(frozen=True, slots=True)
class Reduction:
    """Rows of `unit` whose `key` no row of `source` has are dropped before the unit is put into an index."""

    unit: int
    key: Column
    source: ProbeStep
    source_key: Column
    fraction: float


def reductions(group: Group, root: ProbeStep) -> list[Reduction]:
    """Return what a build side is spared by a filter of a column that is equal to one of its own.

    In x.a = y.a = z.a, where x is gone through and y is few rows, z need not hold more than those of y.
    """
    found: dict[tuple[int, Column], Reduction] = {}
    equal = {key.column: c.members for c in group.classes for key in c.members}
    for step in _joins(root):
        assert step.probe is not None
        assert step.build is not None
        source, probe = step.build, step.probe
        for _, key in group.crossing(probe, source):
            fraction = join_rows(1.0, source.rows, [(key.estimate, key.estimate)])
            for other in equal[key.column]:
                free = not (source.members >> other.unit & 1) and other.unit not in (
                    root.spine,
                    probe.spine,
                )
                if free and _is_worth_it(group, other, source, key, fraction):
                    reduction = Reduction(other.unit, other.column, source, key.column, fraction)
                    best = found.setdefault((other.unit, other.column), reduction)
                    if fraction < best.fraction:
                        found[other.unit, other.column] = reduction
    return list(found.values())


def _is_worth_it(group: Group, other: Key, source: ProbeStep, key: Key, fraction: float) -> bool:
    rows = group.units[other.unit].relation.rows
    spared = (1.0 - fraction) * rows * group.probe_cost(rows * SLOT_BYTES)
    size = index_bytes(group.costs, source.rows, [key.estimate], membership=True)
    return spared > rows * group.probe_cost(size) + source.base + source.cost


def _joins(step: ProbeStep) -> Iterator[ProbeStep]:
    """Yield the joins of a step, those above first."""
    if step.build is not None:
        yield step
        yield from _joins(step.build)
    if step.probe is not None:
        yield from _joins(step.probe)


def _unit(group: Group, number: int) -> ProbeStep:
    unit = group.units[number]
    rows = unit.relation.rows
    for condition in group.completed((), 1 << number):
        rows *= condition.selectivity
    return ProbeStep(1 << number, rows, 0.0, unit.base, number, repeats=unit.repeats)


def _joined(group: Group, a: ProbeStep, b: ProbeStep) -> ProbeStep:
    """Go through the set with more rows to read, unless only that one has unique keys, or is an index by itself."""
    keys = group.crossing(a, b)
    sides = {
        True: not a.repeats and may_be_unique([x.estimate for x, _ in keys], a.base),
        False: not b.repeats and may_be_unique([y.estimate for _, y in keys], b.base),
    }
    turned = sides[True]
    if turned == sides[False]:
        turned = a.base < b.base
        own, other = zip(*keys, strict=True)
        if _is_index(b, other, own) if turned else _is_index(a, own, other):
            turned = not turned
    if turned:
        a, b, keys = b, a, [(y, x) for x, y in keys]
    unique = sides[turned]
    rows = join_rows(a.rows, b.rows, [(x.estimate, y.estimate) for x, y in keys])
    members = a.members | b.members
    for condition in group.completed((a.members, b.members), members):
        rows *= condition.selectivity
    payload = group.has_payload(b.members, members)
    size = index_bytes(
        group.costs, b.rows, [y.estimate for _, y in keys], membership=unique and not payload
    )
    each = group.probe_cost(size) * (1.0 if unique else REPEATED_PROBE)
    cost = a.cost + b.cost + size / SLOT_BYTES + (a.rows + b.rows) * each
    again = a.again
    if payload:
        cost += rows * b.again + (IMPOSSIBLE if b.repeats else 0.0)
        again += each + b.again
    repeats = a.repeats or not unique
    return ProbeStep(members, rows, cost, a.base, a.spine, a, b, None, again, repeats)


def _is_index(step: ProbeStep, own: Sequence[Key], other: Sequence[Key]) -> bool:
    """Whether a table is an index by itself: all its rows, in the order of a key that each has for itself, and others have not."""
    if len(own) > 1 or step.members.bit_count() > 1 or step.rows < step.base:
        return False
    key = own[0].estimate
    return key.unique and key.ascending and not other[0].estimate.unique


def _with_extra(group: Group, step: ProbeStep, number: int) -> ProbeStep:
    extra = group.extras[number]
    members = step.members | 1 << (len(group.units) + number)
    rows = step.rows * extra.fraction
    for condition in group.completed((step.members,), members):
        rows *= condition.selectivity
    cost = step.cost + step.rows * (
        group.probe_cost(extra.index_bytes) if extra.index_bytes else 0.0
    )
    repeats = step.repeats or extra.fraction > 1.0
    return ProbeStep(
        members, rows, cost, step.base, step.spine, step, None, number, step.again, repeats
    )


def _dynamic(group: Group, wanted: int) -> ProbeStep | None:
    """Fill a table of the best way to each connected set of those that are wanted, smaller sets first."""
    size = len(group.units)
    only_units = (1 << size) - 1
    best = {1 << i: _unit(group, i) for i in range(size)}
    reach = reached(group.neighbors)
    for members in range(1, wanted + 1):
        if members in best or not members & only_units or members & ~wanted:
            continue
        found: ProbeStep | None = None
        for number, extra in enumerate(group.extras):
            bit = 1 << (size + number)
            below = best.get(members & ~bit) if members & bit else None
            if below is not None and extra.needs & below.members == extra.needs:
                found = _cheaper(found, _with_extra(group, below, number))
        for left, right in splits(members):
            if not reach[left & only_units] & right:
                continue
            a, b = best.get(left), best.get(right)
            if a is not None and b is not None:
                least = a.cost + b.cost + (a.rows + b.rows) * group.costs.random_read[0]
                if found is None or least < found.cost:
                    found = _cheaper(found, _joined(group, a, b))
        if found is not None:
            best[members] = found
    return best.get(wanted)


def _cheaper(found: ProbeStep | None, step: ProbeStep) -> ProbeStep:
    return step if found is None or step.cost < found.cost else found


def _are_neighbors(group: Group, left: int, right: int) -> bool:
    return any(left >> unit & 1 and near & right for unit, near in enumerate(group.neighbors))


def _greedy(group: Group) -> ProbeStep:
    """Join, again and again, the two sets whose join costs least; extras as soon as they can be applied."""
    steps = [_unit(group, i) for i in range(len(group.units))]
    waiting = set(range(len(group.extras)))
    while True:
        steps = [_with_extras(group, step, waiting) for step in steps]
        if len(steps) == 1:
            return steps[0]
        pairs = [
            (_joined(group, a, b), a, b)
            for i, a in enumerate(steps)
            for b in steps[i + 1 :]
            if _are_neighbors(group, a.members, b.members)
        ]
        joined, a, b = min(pairs, key=lambda p: p[0].cost - p[1].cost - p[2].cost)
        steps = [*(s for s in steps if s is not a and s is not b), joined]


def _with_extras(group: Group, step: ProbeStep, waiting: set[int]) -> ProbeStep:
    for number in sorted(waiting):
        needs = group.extras[number].needs
        if needs & step.members == needs:
            step = _with_extra(group, step, number)
            waiting.discard(number)
    return step
