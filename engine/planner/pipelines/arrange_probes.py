"""Join trees of a pipeline, arranged for kernels that probe: one spine, and what it probes in the cheapest order."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import field, replace

from ...plan import physical as p
from ...plan.device_costs import costs_of
from ...plan.expr import Call, Column, ColumnRef, Expr, columns_of, conjunction, conjuncts
from ...plan.join_kinds import JoinKind
from ...plan.logical import Item
from ...plan.pipeline_steps import columns_read, leaf_of, spine
from ...plan.types import BOOLEAN
from ...records import dataclass
from ..estimates.chain_estimate import ChainEstimates, expected_column
from ..estimates.estimate import key_domain, semi_fraction
from ..estimates.selectivity import Columns, Lazily, selectivity, united
from ..join_order import classes_of
from ..rewrite import is_passed, replace_columns
from .pipeline_shape import Body, table_rows
from .probe_order import (
    IMPOSSIBLE,
    Equal,
    Extra,
    Group,
    Key,
    ProbeCondition,
    ProbeStep,
    Unit,
    best_order,
    index_bytes,
    may_be_unique,
    reductions,
)

KeyPairs = list[tuple[Key, Key]]  # columns of the probe side and of the build side
Join = p.HashJoin | p.NestedLoopJoin
Equality = tuple[Column, Column]


def arrange_probes(node: p.Physical, body: Body) -> p.Physical:
    """Return a chain whose joins are in the order in which a kernel should probe.

        HashJoin(HashJoin(x, fact, inner), y, inner)  ->  HashJoin(HashJoin(fact, y, inner), x, inner)

    An inner join probes with the side that has more rows to read, since keys of the other are then rather unique, and nothing of
    the larger one has to be looked up; joins that drop most rows for the least memory come first.  What a build side probes itself
    filters it before it is put into its index.
    """
    if isinstance(node, p.HashAggregate):
        return node.with_children([arrange_probes(node.input, body)])
    return _Arrangement(body, body.estimates).visit(node)


@dataclass
class _Arrangement:
    """`repeating` are chains from which a row of their leaf may come out several times, by their identity."""

    body: Body
    estimates: ChainEstimates
    repeating: dict[int, p.Physical] = field(default_factory=dict)

    def visit(self, node: p.Physical) -> p.Physical:
        if _is_group(node) and not isinstance(node, p.ComputeColumns):
            parts = _Parts()
            self.gather(node, parts)
            if parts.are_free():
                return self.ordered(parts, node)
        return self.turned(node)

    def ordered(self, parts: _Parts, node: p.Physical) -> p.Physical:
        parts.repeating = [self.repeats(unit) for unit in parts.units]
        made = _Ordered(parts, node, self.estimates)
        if made.order.cost >= IMPOSSIBLE:
            parts.store_repeating(self.body)
            made = _Ordered(parts, node, self.estimates)
        tree = made.tree()
        if made.order.repeats:
            self.repeating[id(tree)] = tree
        return tree

    def repeats(self, chain: p.Physical) -> bool:
        """Whether a row of the leaf may come out of a chain several times."""
        return any(id(node) in self.repeating for node in spine(chain))

    def build_side(self, join: p.HashJoin) -> p.Physical:
        """The right side of a join that stays right; stored where its rows are asked for and an index cannot hold them."""
        side = self.visit(join.right)
        by_row = join.residual is not None or join.kind.nulls_right
        return self.body.store(join.right) if by_row and self.repeats(side) else side

    def gather(self, node: p.Physical, parts: _Parts) -> None:
        """Collect what joins below one another put together; what is computed between them is computed of the result."""
        match node:
            case p.FilterRows(input=x, predicate=predicate) if _is_group(x):
                self.gather(x, parts)
                parts.filter(predicate)
            case p.ComputeColumns(input=x, items=items) if _is_group(x):
                self.gather(x, parts)
                parts.compute(items)
            case p.HashJoin(kind=JoinKind.INNER) if not any(node.null_equal):
                self.gather(node.left, parts)
                self.gather(node.right, parts)
                parts.equate(node.left_keys, node.right_keys)
                parts.filter(node.residual)
            case p.NestedLoopJoin(kind=JoinKind.INNER, condition=condition):
                self.gather(node.left, parts)
                parts.extras.append(replace(node, condition=None))
                parts.filter(condition)
            case p.NestedLoopJoin():
                self.gather(node.left, parts)
                parts.extras.append(replace(node, condition=parts.inlined(node.condition)))
            case p.HashJoin() if node.kind is not JoinKind.INNER:
                self.gather(node.left, parts)
                keys = parts.own(node.left_keys)
                residual = parts.inlined(node.residual)
                side = self.build_side(node)
                parts.extras.append(replace(node, right=side, left_keys=keys, residual=residual))
            case p.HashJoin():
                parts.add_unit(node, self.turned(node))
            case _:
                parts.add_unit(node, self.visit(node))

    def turned(self, node: p.Physical) -> p.Physical:
        """Return an operator where it stands, over what is below it arranged; an inner join goes through the larger side."""
        node = node.with_children([self.visit(child) for child in node.children])
        if not isinstance(node, p.HashJoin) or node.kind is not JoinKind.INNER:
            return node
        left, right = table_rows(leaf_of(node.left)), table_rows(leaf_of(node.right))
        node = replace(node, build="right" if left >= right else "left")
        self.repeating[id(node)] = node
        return node


def _is_group(node: p.Physical) -> bool:
    while isinstance(node, p.FilterRows | p.ComputeColumns):
        node = node.input
    return isinstance(node, p.HashJoin | p.NestedLoopJoin)


@dataclass
class _Parts:
    """Relations, and what holds of their rows together; `extras` as joins whose left side may be any.

    `origins` are the relations as the body made them, before anything below them was arranged.  `computed` are columns that
    projections between the joins made, as expressions over columns of relations and extras.
    """

    units: list[p.Physical] = field(default_factory=list)
    origins: list[p.Physical] = field(default_factory=list)
    repeating: list[bool] = field(default_factory=list)
    extras: list[Join] = field(default_factory=list)
    equalities: list[Equality] = field(default_factory=list)
    predicates: list[Expr] = field(default_factory=list)
    computed: dict[Column, Expr] = field(default_factory=dict)

    def add_unit(self, origin: p.Physical, unit: p.Physical) -> None:
        self.origins.append(origin)
        self.units.append(unit)

    def store_repeating(self, body: Body) -> None:
        for i, repeats in enumerate(self.repeating):
            if repeats:
                self.units[i], self.repeating[i] = body.store(self.origins[i]), False

    def filter(self, predicate: Expr | None) -> None:
        self.predicates += conjuncts(self.inlined(predicate))

    def compute(self, items: tuple[Item, ...]) -> None:
        made = {column: replace_columns(expr, self.computed) for column, expr in items}
        self.computed |= {c: e for c, e in made.items() if e != ColumnRef(c)}

    def equate(self, left: tuple[Column, ...], right: tuple[Column, ...]) -> None:
        self.equalities += zip(self.own(left), self.own(right), strict=True)

    def inlined(self, expr: Expr | None) -> Expr | None:
        return None if expr is None else replace_columns(expr, self.computed)

    def own(self, keys: tuple[Column, ...]) -> tuple[Column, ...]:
        """Return columns under the names that they have in a relation, as far as they are in one."""
        values = [self.computed.get(key) for key in keys]
        return tuple(
            value.column if isinstance(value, ColumnRef) else key
            for key, value in zip(keys, values, strict=True)
        )

    def are_free(self) -> bool:
        """Whether relations are joined by their own columns, not by what is computed or what extras add to them, and no two have the same ones.

        Both sides may read one shared part, and one of them under new names that are given above of what stands here.
        """
        columns = [c for unit in self.units for c in unit.columns]
        own = frozenset(columns)
        if len(own) < len(columns):
            return False
        made = own.union(*map(_made, self.extras))
        keys = {k for join in self.extras if isinstance(join, p.HashJoin) for k in join.left_keys}
        return own.issuperset(c for pair in self.equalities for c in pair) and made >= keys


class _Ordered:
    """Parts of joins as a group whose order can be chosen, and that order as operators."""

    def __init__(self, parts: _Parts, root: p.Physical, estimates: ChainEstimates) -> None:
        self.parts = parts
        self.root = root
        self.estimates = estimates
        made = (parts.computed.get(c, ColumnRef(c)) for c in root.columns)
        self.needed: frozenset[Column] = frozenset().union(*map(columns_of, made))
        self.maker = {c: 1 << i for i, unit in enumerate(parts.units) for c in unit.columns}
        known: dict[Column, Columns] = {}
        for unit in parts.units:
            known |= dict.fromkeys(unit.columns, estimates.relation(unit).columns)
        for i, extra in enumerate(parts.extras, len(parts.units)):
            self.maker |= dict.fromkeys(_made(extra), 1 << i)
            if extra.mark is None:
                known |= dict.fromkeys(extra.right.columns, estimates.relation(extra.right).columns)
        self.known = Lazily(lambda c: known[c].get(c) if c in known else None)
        self.costs = costs_of(root.device)
        self.extras = [self.extra(extra, i) for i, extra in enumerate(parts.extras)]
        self.group = Group(self.units(), self.extras, self.classes(), self.conditions(), self.costs)
        self.order = best_order(self.group)
        self.reductions = reductions(self.group, self.order)

    def tree(self) -> p.Physical:
        items = [(c, self.parts.computed.get(c, ColumnRef(c))) for c in self.root.columns]
        tree = self.build(self.order, self.needed)
        if not all(map(is_passed, items)):
            return p.ComputeColumns(tree, tuple(items)).placed_as(self.root, self.order.rows)
        assert isinstance(tree, p.FilterRows | p.HashJoin | p.NestedLoopJoin)
        keep = None if tree.columns == self.root.columns else self.root.columns
        return tree if keep is None else replace(tree, keep=keep)

    # What the order is chosen from

    def units(self) -> list[Unit]:
        wanted = self.needed.union(*map(columns_of, self.parts.predicates))
        wanted = wanted.union(*map(columns_read, self.parts.extras))
        return [
            Unit(
                self.estimates.relation(unit),
                table_rows(leaf_of(unit)),
                not wanted.isdisjoint(unit.columns),
                repeats,
            )
            for unit, repeats in zip(self.parts.units, self.parts.repeating, strict=True)
        ]

    def extra(self, join: Join, number: int) -> Extra:
        """A join whose rows are those of its left side; one that may raise stays above all that was below it."""
        below = columns_read(join) - set(join.right.columns)
        needs = self.makers(below)
        if join.kind is JoinKind.SINGLE:
            needs |= self.makers(join.left.columns) | (1 << len(self.parts.units)) - 1
            needs |= sum(1 << (len(self.parts.units) + i) for i in range(number))
        if isinstance(join, p.NestedLoopJoin):
            return Extra(needs, 1.0, 0.0)
        right = self.estimates.relation(join.right)
        pairs = [
            (self.known[a], expected_column(right, b))
            for a, b in zip(join.left_keys, join.right_keys, strict=True)
        ]
        fraction = 1.0
        residual = selectivity(join.residual, united(self.known, right.columns))
        if join.kind.is_filter:
            fraction = semi_fraction(join.kind, pairs, right.rows, residual)
        elif join.kind is JoinKind.LEFT:
            matches = right.rows * residual
            for a, b in pairs:
                matches /= max(key_domain(a, b), 1.0)
            fraction = max(1.0, matches)
        membership = join.residual is None and join.kind is not JoinKind.LEFT
        size = index_bytes(self.costs, right.rows, [b for _, b in pairs], membership)
        return Extra(needs, fraction, size)

    def makers(self, columns: Iterable[Column]) -> int:
        needs = 0
        for column in columns:
            needs |= self.maker[column]
        return needs

    def classes(self) -> list[Equal]:
        """Columns that are equal to one another in the result."""
        found = classes_of(dict.fromkeys(equality) for equality in self.parts.equalities)
        return [Equal(list(map(self.key, members)), self.makers(members)) for members in found]

    def key(self, column: Column) -> Key:
        return Key(self.maker[column].bit_length() - 1, column, self.known[column])

    def conditions(self) -> list[ProbeCondition]:
        return [
            ProbeCondition(self.makers(columns_of(part)), part, selectivity(part, self.known))
            for part in self.parts.predicates
        ]

    # The order as operators

    def build(self, step: ProbeStep, needed: frozenset[Column]) -> p.Physical:
        """Return the operators of a step, with no more columns than are needed above."""
        before = tuple(s.members for s in (step.probe, step.build) if s is not None)
        tests = [c.expr for c in self.group.completed(before, step.members)]
        keys: KeyPairs = []
        if step.probe is not None and step.build is not None:
            keys, rest = self.keys(step.probe, step.build)
            tests += [_equal(a.column, b.column) for a, b in rest]
        below = needed.union(*map(columns_of, tests))
        if step.probe is None:
            node = self.reduced(step.spine)
        elif step.build is None:
            assert step.extra is not None
            node = self.with_extra(step.probe, step.extra, below)
        else:
            node = self.joined(step, keys, below)
        if tests:
            node = p.FilterRows(node, conjunction(tests), _kept(node.columns, needed))
        if step.probe is None and not tests:
            return node
        return node.placed_as(self.root, step.rows)

    def reduced(self, number: int) -> p.Physical:
        """A relation, less the rows that joins elsewhere would drop after it was put into an index."""
        node = self.parts.units[number]
        waiting, self.reductions = self.reductions, []  # two relations may reduce one another
        for reduction in [r for r in waiting if r.unit == number]:
            keys = frozenset((reduction.source_key,))
            node = p.HashJoin(
                node,
                self.build(reduction.source, keys),
                JoinKind.SEMI,
                (reduction.key,),
                (reduction.source_key,),
                (False,),
            ).placed_as(self.root, reduction.fraction * self.group.units[number].relation.rows)
        self.reductions = waiting
        return node

    def with_extra(self, probe: ProbeStep, number: int, needed: frozenset[Column]) -> p.Physical:
        join = self.parts.extras[number]
        left = self.build(probe, needed - set(_made(join)) | columns_read(join))
        joined = replace(join, left=left, keep=None)
        return replace(joined, keep=_kept(joined.columns, needed))

    def joined(self, step: ProbeStep, keys: KeyPairs, needed: frozenset[Column]) -> p.Physical:
        assert step.probe is not None
        assert step.build is not None
        read = needed.union(*({a.column, b.column} for a, b in keys))
        left, right = self.build(step.probe, read), self.build(step.build, read)
        return p.HashJoin(
            left,
            right,
            JoinKind.INNER,
            tuple(a.column for a, _ in keys),
            tuple(b.column for _, b in keys),
            (False,) * len(keys),
            keep=_kept((*left.columns, *right.columns), needed),
        ).placed_as(self.root, step.rows)

    def keys(self, probe: ProbeStep, build: ProbeStep) -> tuple[KeyPairs, KeyPairs]:
        """Return the equalities to look up, and those to compare afterwards: one key that may be unique makes the smaller index."""
        pairs = self.group.crossing(probe, build)
        if len(pairs) > 1 and not build.repeats:
            for i, (_, b) in enumerate(pairs):
                unique = b.estimate.unique and may_be_unique([b.estimate], build.base)
                if unique and b.unit == build.spine:
                    return [pairs[i]], pairs[:i] + pairs[i + 1 :]
        return pairs, []


def _made(join: Join) -> tuple[Column, ...]:
    """Return the columns that a join adds to those of its left side."""
    if join.kind.is_filter:
        return ()
    return join.right.columns if join.mark is None else (join.mark,)


def _equal(a: Column, b: Column) -> Expr:
    return Call("eq", (ColumnRef(a), ColumnRef(b)), BOOLEAN)


def _kept(columns: Sequence[Column], needed: frozenset[Column]) -> tuple[Column, ...] | None:
    chosen = tuple(c for c in columns if c in needed)
    return None if len(chosen) == len(columns) else chosen
