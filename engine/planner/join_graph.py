"""The relations, equalities and predicates of a group of inner, semi and anti joins, as bit sets for `join_order`."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

from ..plan.expr import Call, Column, Expr, columns_of, conjuncts
from ..plan.logical import Join, JoinKind, Logical
from .equalities import equalities
from .estimate import Estimates, Relation, expected, join_rows, semi_fraction
from .selectivity import ColumnEstimate, selectivity


@dataclass(frozen=True)
class Member:
    """One expression of a class of equal ones: over one relation."""

    unit: int
    expr: Expr
    estimate: ColumnEstimate


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
    estimates: list[Relation]
    classes: list[list[Member]] = field(default_factory=list)
    residuals: list[Residual] = field(default_factory=list)
    reducers: list[Reducer] = field(default_factory=list)
    neighbors: list[int] = field(default_factory=list)

    @property
    def relation_mask(self) -> int:
        return (1 << len(self.relations)) - 1

    def crossing(self, left: int, right: int) -> Iterator[tuple[Member, Member]]:
        """Yield one equality for each class that has members on both sides."""
        for members in self.classes:
            a = next((m for m in members if left >> m.unit & 1), None)
            b = next((m for m in members if right >> m.unit & 1), None)
            if a is not None and b is not None:
                yield a, b

    def completed(self, left: int, right: int) -> Iterator[Residual]:
        """Yield the predicates that a join of two sets makes possible."""
        both = left | right
        for residual in self.residuals:
            units = residual.units
            if units & both == units and units & left != units and units & right != units:
                yield residual

    def joined_rows(self, left: int, left_rows: float, right: int, right_rows: float) -> float:
        keys = [(a.estimate, b.estimate) for a, b in self.crossing(left, right)]
        rows = join_rows(left_rows, right_rows, keys)
        for residual in self.completed(left, right):
            rows *= residual.selectivity
        return rows


def build_graph(
    relations: list[Logical], parts: list[Expr], reducers: list[Join], estimates: Estimates
) -> JoinGraph:
    """Sort the conditions of joined relations into equalities and others."""
    known = [estimates.relation(r) for r in relations]
    graph = JoinGraph(relations, known)
    maker = {c: i for i, r in enumerate(relations) for c in r.columns}
    classes: list[dict[Expr, int]] = []
    for part in parts:
        sides = _sides(part, maker)
        if sides is not None:
            _unite(classes, sides)
            continue
        units = _units(part, maker)
        read = {c: e for r in known for c, e in r.columns.items() if c in columns_of(part)}
        graph.residuals.append(Residual(units, part, selectivity(part, read)))
    graph.classes = [
        [Member(unit, expr, expected(expr, known[unit])) for expr, unit in members.items()]
        for members in classes
    ]
    graph.reducers = [_reducer(join, maker, known, estimates) for join in reducers]
    graph.neighbors = _neighbors(graph)
    return graph


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


def _unite(classes: list[dict[Expr, int]], sides: list[tuple[Expr, int]]) -> None:
    joined = dict(sides)
    touched = [c for c in classes if any(expr in c for expr, _ in sides)]
    for members in touched:
        joined = members | joined
        classes.remove(members)
    classes.append(joined)


def _reducer(
    join: Join, maker: dict[Column, int], known: list[Relation], estimates: Estimates
) -> Reducer:
    right = estimates.relation(join.right)
    units = 0
    for part in conjuncts(join.condition):
        units |= _units(part, maker)
    columns = {c: e for r in known for c, e in r.columns.items()}
    left = Relation(max(r.rows for r in known), columns)
    pairs, rest = equalities(join.condition, frozenset(maker), frozenset(join.right.columns))
    keys = [(expected(a, left), expected(b, right)) for a, b in pairs]
    residual = selectivity(rest, {**columns, **right.columns})
    fraction = semi_fraction(join.kind, keys, right.rows, residual)
    return Reducer(
        units, join.kind, join.right, join.condition, join.null_aware, fraction, right.rows
    )


def _neighbors(graph: JoinGraph) -> list[int]:
    """Return for each relation those that a join need not multiply with it.

    A relation of at most one row, a scalar subquery's result, multiplies nothing and goes with everything.
    """
    found = [0] * len(graph.relations)
    for members in graph.classes:
        units = {m.unit for m in members}
        for unit in units:
            found[unit] |= sum(1 << other for other in units if other != unit)
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
