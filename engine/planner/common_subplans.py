"""Equal parts of a plan run once: views and CTEs that a query reads twice, and copies that rules made.

Two parts are equal when they compute the same rows, whatever ids their columns have and however many columns each keeps.  The shared part
keeps the columns of both, and each reader gets its own under its own ids, which costs nothing.  Common queries, which several places
of a statement read by name, are optimized once for all of them.
"""

from __future__ import annotations

import dataclasses
from collections import Counter, defaultdict
from collections.abc import Callable, Hashable, Iterable
from dataclasses import field

from ..plan import physical as p
from ..plan.copies import commons_of, reading
from ..plan.expr import AggregateCall, Column, ColumnRef, Expr, Literal, substitute
from ..plan.logical import Common, CommonScan, Filter, Logical
from ..plan.node import walk, walk_once
from ..plan.shapes.guards import name_of_constant
from ..records import dataclass
from .expressions.logic import combine
from .expressions.simplification import simplified
from .place import SCANS
from .rewrite import narrow, replace_columns
from .rules.prune_columns import prune_columns

MAX_ROUNDS = 16
IGNORED = ("device", "reason", "estimate", "not_fused", "keep", "build", "pruned", "span")

Mapping = dict[Column, Column]


def share_subplans(plan: p.Physical) -> p.Physical:
    """Replace equal parts by one object, the largest parts first."""
    shapes = Shapes()
    for _ in range(MAX_ROUNDS):
        group = _largest_group(plan, shapes)
        if group is None:
            break
        plan = _with_shared(plan, group, shapes)
    return plan


def _largest_group(plan: p.Physical, shapes: Shapes) -> list[p.Physical] | None:
    """Return parts that compute the same, or None; a scan alone is no part, since scanned columns are cached."""
    groups: dict[int, dict[int, p.Physical]] = defaultdict(dict)
    for node in _alike(plan):
        groups[shapes.of(node).key][id(node)] = node
    shared = [list(g.values()) for g in groups.values() if len(g) > 1]
    return max(shared, key=lambda g: shapes.of(g[0]).size, default=None)


def _alike(plan: p.Physical) -> list[p.Physical]:
    """Return the parts that have the operators and tables of another one, which is soon told and rules out most of them."""
    numbers: dict[Hashable, int] = {}
    known: dict[int, int] = {}

    def number(node: p.Physical) -> int:
        if id(node) not in known:
            table = getattr(node, "table", None)
            outline = (type(node) if table is None else id(table), *map(number, node.children))
            known[id(node)] = numbers.setdefault(outline, len(numbers))
        return known[id(node)]

    number(plan)
    counts = Counter(known.values())
    return [
        node
        for node in walk_once(plan)
        if counts[known[id(node)]] > 1 and not isinstance(node, (*SCANS, p.ComputeColumns))
    ]


def _with_shared(plan: p.Physical, group: list[p.Physical], shapes: Shapes) -> p.Physical:
    merged: p.Physical = group[0]
    names: list[Mapping] = [{c: c for c in merged.columns}]
    for other in group[1:]:
        merged, renamed = _merged(merged, other, shapes)
        names.append({c: renamed[c] for c in other.columns})
    replacement: dict[int, p.Physical] = {}
    for node, own in zip(group, names, strict=True):
        items = tuple((c, ColumnRef(own[c])) for c in node.columns)
        passed = merged.columns == node.columns and all(c == own[c] for c in node.columns)
        replacement[id(node)] = (
            merged if passed else p.ComputeColumns(merged, items, estimate=node.estimate)
        )
    done: dict[int, p.Physical] = {}

    def visit(node: p.Physical) -> p.Physical:
        if id(node) in replacement:
            return replacement[id(node)]
        if id(node) not in done:
            done[id(node)] = node.with_children([visit(c) for c in node.children])
        return done[id(node)]

    return visit(plan)


@dataclass(frozen=True, slots=True)
class PlanShape:
    """What a part computes: `key` is equal for equal parts, `labels` name its columns alike in all of them."""

    key: int
    labels: dict[Column, int]
    size: int


@dataclass
class Shapes:
    """Shapes of the nodes of one plan, as numbers of the descriptions met so far."""

    _numbers: dict[Hashable, int] = field(default_factory=dict)
    # By id, with the node, so that no other one gets it
    _known: dict[int, tuple[p.Physical, PlanShape]] = field(default_factory=dict)

    def of(self, node: p.Physical) -> PlanShape:
        if id(node) not in self._known:
            self._known[id(node)] = node, self._shape(node, [self.of(c) for c in node.children])
        return self._known[id(node)][1]

    def _number(self, *description: Hashable) -> int:
        return self._numbers.setdefault(description, len(self._numbers))

    def _shape(self, node: p.Physical, inputs: list[PlanShape]) -> PlanShape:
        size = 1 + sum(s.size for s in inputs)
        visible: dict[Column, int] = {}
        for i, shape in enumerate(inputs):
            for column, label in shape.labels.items():
                visible[column] = label if len(inputs) == 1 else self._number("side", i, label)
        below = tuple(s.key for s in inputs)
        match node:
            case p.ParquetScan() | p.MemoryScan():
                labels = {
                    c: self._number("source", s)
                    for c, s in zip(node.made, node.sources, strict=True)
                }
                selection = getattr(node, "selection", None)
                return PlanShape(self._number("scan", id(node.table), selection), labels, size)
            case p.ComputeColumns(items=items):
                labels = {c: self._expression(e, visible) for c, e in items}
                return PlanShape(self._number("compute", below), labels, size)
            case p.HashAggregate(keys=keys, aggregates=aggregates):
                labels = {c: visible[c] for c in keys}
                names = tuple(sorted(labels.values()))
                for column, call in aggregates:
                    labels[column] = self._number("aggregate", self._expression(call, visible))
                return PlanShape(self._number("group", names, below), labels, size)
            case p.FilterRows() | p.HashJoin() | p.NestedLoopJoin():
                if getattr(node, "mark", None) is not None:
                    visible[node.mark] = self._number("mark")  # type: ignore[union-attr,index]
                key = self._number(type(node).__name__, self._fields(node, visible), below)
                return PlanShape(key, {c: visible[c] for c in node.columns}, size)
        return self._rigid(node, visible, inputs, size)

    def _rigid(
        self, node: p.Physical, visible: dict[Column, int], inputs: list[PlanShape], size: int
    ) -> PlanShape:
        """Describe a node whose columns have places: it is shared with all of them or not at all."""
        places = tuple(tuple(s.labels.values()) for s in inputs)
        made = [c for c in node.columns if c not in visible]
        visible = visible | {c: self._number("place", i) for i, c in enumerate(made)}
        below = tuple(s.key for s in inputs)
        key = self._number(type(node).__name__, self._fields(node, visible), below, places)
        return PlanShape(key, {c: visible[c] for c in node.columns}, size)

    def _fields(self, node: p.Physical, visible: dict[Column, int]) -> Hashable:
        return tuple(
            self._value(getattr(node, f.name), visible)
            for f in dataclasses.fields(node)
            if f.name not in IGNORED and f.name not in node.CHILDREN
        )

    def _value(self, value: object, visible: dict[Column, int]) -> Hashable:
        match value:
            case Column():
                return visible.get(value, -value.id)
            case Expr():
                return self._expression(value, visible)
            case tuple():
                return tuple(self._value(v, visible) for v in value)
        if dataclasses.is_dataclass(value):
            parts = (getattr(value, f.name) for f in dataclasses.fields(value))
            return (type(value).__name__, *(self._value(part, visible) for part in parts))
        return (type(value).__name__, value) if isinstance(value, Hashable) else id(value)

    def _expression(self, expr: Expr, visible: dict[Column, int]) -> int:
        if isinstance(expr, ColumnRef):
            return visible.get(expr.column, -expr.column.id)
        if isinstance(expr, Literal):
            return self._number("constant", name_of_constant(expr))
        parts = tuple(
            self._value(getattr(expr, f.name), visible)
            for f in dataclasses.fields(expr)  # type: ignore[arg-type]
            if f.name != "span"
        )
        return self._number(type(expr).__name__, *parts)


def _merged(a: p.Physical, b: p.Physical, shapes: Shapes) -> tuple[p.Physical, Mapping]:
    """Return `a` with the columns of `b` beside its own, and which of its columns each column of `b` is."""
    if a is b:
        return a, {c: c for c in a.columns}
    inputs = [_merged(x, y, shapes) for x, y in zip(a.children, b.children, strict=True)]
    renamed: Mapping = {}
    for _, names in inputs:
        renamed |= names
    match a, b:
        case (p.ParquetScan() | p.MemoryScan(), p.ParquetScan() | p.MemoryScan()):
            return _merged_scans(a, b)
        case (p.ComputeColumns(), p.ComputeColumns()):
            return _merged_items(a, b, inputs[0][0], renamed)
        case (p.HashAggregate(), p.HashAggregate()):
            return _merged_aggregates(a, b, inputs[0][0], renamed, shapes)
        case (p.FilterRows() | p.HashJoin() | p.NestedLoopJoin(), _):
            mark = getattr(b, "mark", None)
            if mark is not None:
                renamed[mark] = a.mark  # type: ignore[union-attr,assignment]
            wanted = (*a.columns, *(renamed[c] for c in b.columns))
            keep = tuple(dict.fromkeys(wanted))
            node = dataclasses.replace(a.with_children([x for x, _ in inputs]), keep=keep)
            return node, renamed
    return a, dict(zip(b.columns, a.columns, strict=True))


def _merged_scans(
    a: p.ParquetScan | p.MemoryScan, b: p.ParquetScan | p.MemoryScan
) -> tuple[p.Physical, Mapping]:
    own = dict(zip(a.sources, a.made, strict=True))
    renamed = {c: own.get(s, c) for c, s in zip(b.made, b.sources, strict=True)}
    added = [(c, s) for c, s in zip(b.made, b.sources, strict=True) if s not in own]
    made = (*a.made, *(c for c, _ in added))
    return dataclasses.replace(a, made=made, sources=(*a.sources, *(s for _, s in added))), renamed


def _merged_items(
    a: p.ComputeColumns, b: p.ComputeColumns, below: p.Physical, renamed: Mapping
) -> tuple[p.Physical, Mapping]:
    known = {e: c for c, e in a.items}
    items, names = list(a.items), {}
    for column, expr in b.items:
        own = _renamed(expr, renamed)
        if own not in known:
            # A column that is passed on keeps the id that it has below.
            known[own] = own.column if isinstance(own, ColumnRef) else column
            items.append((known[own], own))
        names[column] = known[own]
    return dataclasses.replace(a, input=below, items=tuple(items)), names


def _merged_aggregates(
    a: p.HashAggregate, b: p.HashAggregate, below: p.Physical, renamed: Mapping, shapes: Shapes
) -> tuple[p.Physical, Mapping]:
    """Keys are paired by what they are, since an input may have one thing twice, and each groups by another of the two."""
    keys = {shapes.of(a).labels[key]: key for key in a.keys}
    known: dict[Expr, Column] = {call: c for c, call in a.aggregates}
    aggregates = list(a.aggregates)
    names = {key: keys[shapes.of(b).labels[key]] for key in b.keys}
    for column, call in b.aggregates:
        own = _renamed(call, renamed)
        assert isinstance(own, AggregateCall)
        if own not in known:
            known[own] = column
            aggregates.append((column, own))
        names[column] = known[own]
    return dataclasses.replace(a, input=below, aggregates=tuple(aggregates)), names


def _renamed(expr: Expr, renamed: Mapping) -> Expr:
    return substitute(expr, lambda c: ColumnRef(renamed[c]) if c in renamed else None)


MAX_TERMS = 8  # of a filter for all readers: with more of them it hardly keeps a row out

Optimize = Callable[[Logical], Logical]
Readers = dict[int, list[tuple[CommonScan, Expr | None]]]  # by common query, with their filters


def optimize_commons(plan: Logical, optimize: Optimize) -> Logical:
    """Optimize a plan and the common queries that it reads, directly or through others.

    First each by itself, those before others that these read: how many rows they make and what identifies one is known where they are
    read.  Then, from the plan inward, each loses the columns that nobody reads, and where all readers filter it, the rows that none of
    them keeps; for that alone one is optimized a second time.
    """
    commons = commons_of(plan)
    if not commons:
        return optimize(plan)
    first: dict[int, Common] = {}
    for common in commons:
        first[id(common)] = Common(common.name, optimize(reading(common.plan, first)))
    plan = optimize(reading(plan, first))
    readers: Readers = defaultdict(list)
    _note_readers(plan, readers)
    wanted: list[tuple[Common, Logical]] = []
    for common in reversed(commons):
        whole = first[id(common)]
        if found := readers[id(whole)]:
            narrowed = _kept_by(found, reading(common.plan, first), whole.plan, optimize)
            _note_readers(narrowed, readers)
            wanted.append((whole, narrowed))
    new: dict[int, Common] = {}
    for whole, narrowed in reversed(wanted):
        new[id(whole)] = Common(whole.name, reading(narrowed, new))
    return reading(plan, new)


def _note_readers(plan: Logical, readers: Readers) -> None:
    """Note who reads which common query; a filter above a reader is met before it."""
    filters: dict[int, Expr] = {}
    for node in walk(plan):
        match node:
            case Filter(input=CommonScan() as scan, predicate=predicate):
                filters[id(scan)] = predicate
            case CommonScan(common=common):
                readers[id(common)].append((node, filters.get(id(node))))


def _kept_by(
    readers: list[tuple[CommonScan, Expr | None]],
    bound: Logical,
    optimized: Logical,
    optimize: Optimize,
) -> Logical:
    """Return a common query with the rows and columns that one of its readers keeps."""
    predicate = _either(readers)
    plan = optimized if predicate is None else optimize(Filter(bound, predicate))
    read = {column for scan, _ in readers for column in scan.sources}
    columns = tuple(c for c in plan.columns if c in read)
    plan = narrow(
        plan, columns or plan.columns[:1]
    )  # whoever counts rows needs none, but a table has one
    return prune_columns(plan)


def _either(readers: Iterable[tuple[CommonScan, Expr | None]]) -> Expr | None:
    """Return what is TRUE of each row that a reader keeps, None when one keeps all."""
    terms: dict[Expr, None] = {}
    for scan, predicate in readers:
        if predicate is None:
            return None
        own: dict[Column, Expr] = {
            c: ColumnRef(s) for c, s in zip(scan.made, scan.sources, strict=True)
        }
        terms[replace_columns(predicate, own)] = None
    return simplified(combine("or", list(terms))) if len(terms) <= MAX_TERMS else None
