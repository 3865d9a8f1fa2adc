"""The cheapest order of a group of inner, semi and anti joins: dynamic programming over sets of relations, greedy where there are too
many sets.

`JoinGraph` states the problem in bit sets: relations, equalities and predicates.  A plan's cost is the rows that its joins read, hash
and make.  Bushy trees are considered, cross products only where the graph is not connected.  Semi and anti joins are units too: they
can stand at any set that has the relations that they read.  The rule `reorder_joins` asks for it, and `pipelines.probe_order` for probes.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import field
from typing import TypeVar

from ..plan.expr import Call, Column, Expr, columns_of, conjuncts
from ..plan.join_kinds import JoinKind
from ..plan.logical import Join, Logical
from ..records import dataclass
from .estimates.estimate import Estimates, expected, join_rows, semi_fraction
from .estimates.relation_estimate import RelationEstimate
from .estimates.selectivity import ColumnEstimate, Lazily, selectivity, united
from .expressions.simplification import equalities

T = TypeVar("T")
V = TypeVar("V")


@dataclass(frozen=True)
class EqualExpr:
    """One expression of a class of equal ones: over one relation."""

    unit: int
    expr: Expr
    estimate: ColumnEstimate


@dataclass(frozen=True)
class JoinEquality:
    """A class of equal expressions, and the bit set of their relations."""

    members: tuple[EqualExpr, ...]
    units: int

    def member(self, units: int) -> EqualExpr:
        return next(m for m in self.members if units >> m.unit & 1)


@dataclass(frozen=True)
class Residual:
    """A predicate over several relations that is no equality of two."""

    units: int  # bit set of relations
    expr: Expr
    selectivity: float


@dataclass(frozen=True)
class Reducer:
    """A semi or anti join with `right`: a filter that can be applied once the relations in `units` are joined."""

    units: int
    kind: JoinKind
    right: Logical
    condition: Expr | None
    null_aware: bool
    fraction: float
    rows: float


@dataclass
class JoinGraph:
    """Units 0 .. n-1 are relations, the units after them reducers."""

    relations: list[Logical]
    estimates: list[RelationEstimate]
    classes: list[JoinEquality]
    residuals: list[Residual]
    reducers: list[Reducer]
    neighbors: list[int] = field(init=False)

    def __post_init__(self) -> None:
        self.neighbors = _neighbors(self)

    @property
    def relation_mask(self) -> int:
        return (1 << len(self.relations)) - 1

    def crossing(self, left: int, right: int) -> list[tuple[EqualExpr, EqualExpr]]:
        """Return one equality for each class that has members on both sides."""
        return [
            (equal.member(left), equal.member(right))
            for equal in self.classes
            if equal.units & left and equal.units & right
        ]

    def completed(self, left: int, right: int) -> Iterator[Residual]:
        """Yield the predicates that a join of two sets makes possible."""
        both = left | right
        for residual in self.residuals:
            units = residual.units
            if units & both == units and units & left != units and units & right != units:
                yield residual


def build_graph(
    relations: list[Logical], parts: list[Expr], reducers: list[Join], estimates: Estimates
) -> JoinGraph:
    """Sort the conditions of joined relations into equalities and others."""
    known = [estimates.relation(r) for r in relations]
    maker = _makers(relations)
    columns = Lazily(lambda c: known[maker[c]].columns.get(c) if c in maker else None)
    classes, others = equal_expressions(relations, parts)
    max_rows = max(r.rows for r in known)
    return JoinGraph(
        relations,
        known,
        [_equal(members, known) for members in classes],
        [Residual(_units(part, maker), part, selectivity(part, columns)) for part in others],
        [
            _reducer(join, maker, RelationEstimate(max_rows, columns), estimates)
            for join in reducers
        ],
    )


def _equal(members: dict[Expr, int], known: list[RelationEstimate]) -> JoinEquality:
    found = tuple(
        EqualExpr(unit, expr, expected(expr, known[unit])) for expr, unit in members.items()
    )
    units = 0
    for unit in members.values():
        units |= 1 << unit
    return JoinEquality(found, units)


def equal_expressions(
    relations: list[Logical], parts: list[Expr]
) -> tuple[list[dict[Expr, int]], list[Expr]]:
    """Return classes of equal expressions, each with its relation, and the conditions that are no equality of two relations."""
    maker = _makers(relations)
    sides = [_sides(part, maker) for part in parts]
    others = [part for part, found in zip(parts, sides, strict=True) if found is None]
    return classes_of(map(dict, filter(None, sides))), others


def classes_of(groups: Iterable[dict[T, V]]) -> list[dict[T, V]]:
    """Merge groups that have a member in common; a class that grows goes to the end."""
    classes: dict[int, dict[T, V]] = {}
    place: dict[T, int] = {}
    for number, group in enumerate(groups):
        joined = group
        for touched in sorted({place[member] for member in group if member in place}):
            joined = classes.pop(touched) | joined
        classes[number] = joined
        place |= dict.fromkeys(joined, number)
    return list(classes.values())


def _makers(relations: list[Logical]) -> dict[Column, int]:
    return {c: i for i, r in enumerate(relations) for c in r.columns}


def _units(expr: Expr, maker: dict[Column, int]) -> int:
    units = 0
    for column in columns_of(expr):
        if column in maker:
            units |= 1 << maker[column]
    return units


def _sides(part: Expr, maker: dict[Column, int]) -> list[tuple[Expr, int]] | None:
    """Return the sides of an equality between two relations, each with its relation."""
    if not isinstance(part, Call) or part.function != "eq":
        return None
    sides = [(arg, _units(arg, maker)) for arg in part.args]
    if any(units.bit_count() != 1 for _, units in sides) or sides[0][1] == sides[1][1]:
        return None
    return [(arg, units.bit_length() - 1) for arg, units in sides]


def _reducer(
    join: Join, maker: dict[Column, int], left: RelationEstimate, estimates: Estimates
) -> Reducer:
    right = estimates.relation(join.right)
    units = 0
    for part in conjuncts(join.condition):
        units |= _units(part, maker)
    pairs, rest = equalities(join.condition, frozenset(maker), frozenset(join.right.columns))
    keys = [(expected(a, left), expected(b, right)) for a, b in pairs]
    residual = selectivity(rest, united(left.columns, right.columns))
    fraction = semi_fraction(join.kind, keys, right.rows, residual)
    return Reducer(
        units, join.kind, join.right, join.condition, join.null_aware, fraction, right.rows
    )


def _neighbors(graph: JoinGraph) -> list[int]:
    """Return for each relation those that a join need not multiply with it.

    A relation of at most one row, a scalar subquery's result, multiplies nothing and goes with everything.
    """
    found = [0] * len(graph.relations)
    for equal in graph.classes:
        for member in equal.members:
            found[member.unit] |= equal.units & ~(1 << member.unit)
    for residual in graph.residuals:
        if residual.units.bit_count() == 2:
            for unit in range(len(found)):
                if residual.units >> unit & 1:
                    found[unit] |= residual.units & ~(1 << unit)
    for unit, relation in enumerate(graph.estimates):
        if relation.rows <= 1.0:
            found[unit] = graph.relation_mask & ~(1 << unit)
            for other in range(len(found)):
                if other != unit:
                    found[other] |= 1 << unit
    return found


MAX_UNITS = 10  # 3**10 / 2 pairs of sets take about 20 ms
BUILD = 2.0  # cost of a hashed row; a probed or made one costs 1


@dataclass(frozen=True, slots=True)
class Step:
    """The best known way to join a set of units: two smaller sets, or one relation."""

    units: int
    rows: float
    cost: float
    left: Step | None = None
    right: Step | None = None
    reducer: int | None = None  # position among the graph's reducers, applied to `left`


def best_order(graph: JoinGraph) -> Step:
    """Return a way to join all units of a graph."""
    count = len(graph.relations) + len(graph.reducers)
    if count <= MAX_UNITS:
        found = _dynamic(graph, count)
        if found is not None:
            return found
    return _greedy(graph)


def _single(graph: JoinGraph, unit: int) -> Step:
    return Step(1 << unit, graph.estimates[unit].rows, 0.0)


def _joined(graph: JoinGraph, a: Step, b: Step) -> Step:
    keys = graph.crossing(a.units, b.units)
    rows = join_rows(a.rows, b.rows, [(x.estimate, y.estimate) for x, y in keys])
    for residual in graph.completed(a.units, b.units):
        rows *= residual.selectivity
    small, large = (a, b) if a.rows <= b.rows else (b, a)
    read = max(1, len(keys)) * (BUILD * small.rows + large.rows)  # each key is hashed and compared
    cost = a.cost + b.cost + read + rows
    return Step(a.units | b.units, rows, cost, large, small)


def _reduced(graph: JoinGraph, step: Step, position: int) -> Step:
    reducer = graph.reducers[position]
    rows = step.rows * reducer.fraction
    small, large = min(step.rows, reducer.rows), max(step.rows, reducer.rows)
    cost = step.cost + BUILD * small + large + rows
    bit = 1 << (len(graph.relations) + position)
    return Step(step.units | bit, rows, cost, step, None, position)


def _dynamic(graph: JoinGraph, count: int) -> Step | None:
    """Fill a table of the best plan of each connected set, smaller sets first."""
    size = len(graph.relations)
    relations = graph.relation_mask
    best: dict[int, Step] = {1 << i: _single(graph, i) for i in range(size)}
    reach = reached(graph.neighbors)
    for units in range(1, 1 << count):
        if units in best or not units & relations:
            continue
        found: Step | None = None
        for position in range(len(graph.reducers)):
            bit = 1 << (size + position)
            below = best.get(units & ~bit) if units & bit else None
            needed = graph.reducers[position].units
            if below is not None and needed & units == needed:
                step = _reduced(graph, below, position)
                if found is None or step.cost < found.cost:
                    found = step
        for left, right in splits(units):
            a = best.get(left)
            if a is None or not reach[left & relations] & right:
                continue
            b = best.get(right)
            if b is None:
                continue
            lower = a.cost + b.cost + max(a.rows, b.rows)
            if found is None or lower < found.cost:
                step = _joined(graph, a, b)
                if found is None or step.cost < found.cost:
                    found = step
        if found is not None:
            best[units] = found
    return best.get((1 << count) - 1)


def reached(neighbors: Sequence[int]) -> list[int]:
    """Return for each set of relations the neighbors of its members."""
    found = [0] * (1 << len(neighbors))
    for units in range(1, len(found)):
        lowest = (units & -units).bit_length() - 1
        found[units] = found[units & (units - 1)] | neighbors[lowest]
    return found


def splits(units: int) -> Iterator[tuple[int, int]]:
    """Yield each division of a set into two, once."""
    lowest = units & -units
    rest = units ^ lowest
    part = rest
    while part:
        part = (part - 1) & rest
        yield part | lowest, rest ^ part


def _greedy(graph: JoinGraph) -> Step:
    """Join, again and again, the two sets whose join costs least; reducers as soon as they can be applied."""
    steps = [_single(graph, i) for i in range(len(graph.relations))]
    waiting = set(range(len(graph.reducers)))
    known: dict[
        tuple[int, int], tuple[bool, float, Step]
    ] = {}  # by the two sets, which stay as they are while others are joined
    while True:
        steps = [_all_reduced(graph, step, waiting) for step in steps]
        if len(steps) == 1:
            return steps[0]
        best: tuple[bool, float] | None = None
        joined = steps[0]
        for i, a in enumerate(steps):
            for b in steps[i + 1 :]:
                found = known.get((a.units, b.units))
                if found is None:
                    found = known[a.units, b.units] = _candidate(graph, a, b)
                if best is None or found[:2] < best:
                    best, joined = found[:2], found[2]
        steps = [s for s in steps if not s.units & joined.units]
        steps.append(joined)


def _candidate(graph: JoinGraph, a: Step, b: Step) -> tuple[bool, float, Step]:
    """Return the join of two sets, behind what it is chosen by: whether it multiplies rows, and what it costs."""
    joined = _joined(graph, a, b)
    return not _are_neighbors(graph, a, b), joined.rows + joined.cost - a.cost - b.cost, joined


def _all_reduced(graph: JoinGraph, step: Step, waiting: set[int]) -> Step:
    for position in sorted(waiting):
        needed = graph.reducers[position].units
        if needed & step.units == needed:
            step = _reduced(graph, step, position)
            waiting.discard(position)
    return step


def _are_neighbors(graph: JoinGraph, a: Step, b: Step) -> bool:
    reached = 0
    for unit in range(len(graph.relations)):
        if a.units >> unit & 1:
            reached |= graph.neighbors[unit]
    return bool(reached & b.units)
