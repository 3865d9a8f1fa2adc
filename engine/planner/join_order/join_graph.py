"""The relations, equalities and predicates of a group of inner, semi and anti joins, as bit sets for `cheapest_order`."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

from ...plan.expr import Call, Column, Expr, columns_of, conjuncts
from ...plan.join_kinds import JoinKind
from ...plan.logical import Join, Logical
from ..estimates.estimate import Estimates, expected, semi_fraction
from ..estimates.relation_estimate import RelationEstimate
from ..estimates.selectivity import ColumnEstimate, Lazily, selectivity, united
from ..expressions.equalities import equalities


@dataclass(frozen=True)
class Member:
    """One expression of a class of equal ones: over one relation."""

    unit: int
    expr: Expr
    estimate: ColumnEstimate


@dataclass(frozen=True)
class JoinEquality:
    """A class of equal expressions, and the bit set of their relations."""

    members: tuple[Member, ...]
    units: int

    def member(self, units: int) -> Member:
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

    def crossing(self, left: int, right: int) -> list[tuple[Member, Member]]:
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
    found = tuple(Member(unit, expr, expected(expr, known[unit])) for expr, unit in members.items())
    units = 0
    for unit in members.values():
        units |= 1 << unit
    return JoinEquality(found, units)


def equal_expressions(
    relations: list[Logical], parts: list[Expr]
) -> tuple[list[dict[Expr, int]], list[Expr]]:
    """Return classes of equal expressions, each with its relation, and the conditions that are no equality of two relations."""
    maker = _makers(relations)
    classes: list[dict[Expr, int]] = []
    others = []
    for part in parts:
        sides = _sides(part, maker)
        if sides is None:
            others.append(part)
        else:
            _unite(classes, sides)
    return classes, others


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


def _unite(classes: list[dict[Expr, int]], sides: list[tuple[Expr, int]]) -> None:
    joined = dict(sides)
    touched = [c for c in classes if any(expr in c for expr, _ in sides)]
    for members in touched:
        joined = members | joined
        classes.remove(members)
    classes.append(joined)


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
