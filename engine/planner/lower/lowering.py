"""What the parts of `lower` share: one physical operator for each logical node, and columns where operators want columns."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field

from ...plan.expr import Column, ColumnRef, Expr, columns_of, new_column
from ...plan.logical import Item, Logical
from ...plan.physical import ComputeColumns, Physical
from ..estimates.estimate import Estimates
from ..expressions.common_subexpressions import replace_parts, shared_parts
from ..rewrite import pass_on

Needed = frozenset[Column]


@dataclass
class Lowering:
    """The state of one pass: a logical node reached twice for the same columns becomes one physical object."""

    estimates: Estimates
    dispatch: Callable[[Logical, Needed, Lowering], Physical]
    _made: dict[tuple[int, Needed], tuple[Logical, Physical]] = field(default_factory=dict)
    _exact: dict[tuple[int, tuple[Column, ...]], Physical] = field(default_factory=dict)

    def lower(self, node: Logical, needed: Needed) -> Physical:
        """Return an operator that makes `needed`, and maybe more, of the columns of `node`."""
        key = (id(node), needed)
        if key not in self._made:
            physical = self.dispatch(node, needed, self)
            if physical.estimate is None:
                physical = physical.replaced(estimate=self.estimates.rows(node))
            self._made[key] = node, physical
        return self._made[key][1]

    def exact(self, node: Logical, columns: tuple[Column, ...]) -> Physical:
        """Return an operator that makes exactly `columns`, in this order."""
        key = id(node), columns
        if key not in self._exact:
            self._exact[key] = exactly(self.lower(node, frozenset(columns)), columns)
        return self._exact[key]


def exactly(physical: Physical, columns: tuple[Column, ...]) -> Physical:
    if physical.columns == columns:
        return physical
    if isinstance(physical, ComputeColumns) and set(columns) <= set(physical.columns):
        items = dict(physical.items)
        return dataclasses.replace(physical, items=tuple((c, items[c]) for c in columns))
    return ComputeColumns(physical, pass_on(columns), estimate=physical.estimate)


def kept(columns: Iterable[Column], needed: Needed) -> tuple[Column, ...] | None:
    """Return those of `columns` that are needed; None, for all of them, when nothing falls away."""
    available = tuple(columns)
    chosen = tuple(c for c in available if c in needed)
    return None if len(chosen) == len(available) else chosen


def compute(physical: Physical, items: tuple[Item, ...]) -> Physical:
    """Return the columns of `items`, what several of them share computed once below."""
    shared = shared_parts([e for _, e in items])
    if not shared:
        return ComputeColumns(physical, items, estimate=physical.estimate)
    names = {part: new_column("shared", part.type) for part in shared}
    items = tuple((c, replace_parts(e, names)) for c, e in items)
    read = frozenset().union(*(columns_of(e) for _, e in items))
    passed = pass_on(c for c in physical.columns if c in read)
    return ComputeColumns(
        compute(physical, (*passed, *((c, e) for e, c in names.items()))),
        items,
        estimate=physical.estimate,
    )


@dataclass
class Computed:
    """Expressions that an operator wants as columns; equal expressions become one column."""

    items: list[Item] = field(default_factory=list)
    _known: dict[Expr, Column] = field(default_factory=dict)

    def column(self, expr: Expr, name: str) -> Column:
        if isinstance(expr, ColumnRef):
            return expr.column
        if expr not in self._known:
            self._known[expr] = new_column(name, expr.type)
            self.items.append((self._known[expr], expr))
        return self._known[expr]

    def above(self, physical: Physical, needed: Needed) -> Physical:
        """Return `physical` with the computed columns beside those of its own that are needed."""
        if not self.items:
            return physical
        passed = pass_on(c for c in physical.columns if c in needed)
        return compute(physical, (*passed, *self.items))
