"""What is computed once before the rows: constants, and functions of one dictionary column on its values.

Also makes equal subexpressions one object, so that a chunk computes them once.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

import numpy as np
import pyarrow as pa

from .... import stopping
from ....errors import FuselineError
from ....plan.expr import Column, ColumnRef, Expr, Literal
from ....plan.node import walk
from .. import table as tables
from ..table import Table
from .expressions_chunk import Chunk, ComputedConstant, DictionaryLookup, value
from .vectors import Vector, constant


@dataclass(frozen=True)
class PreparedExpressions:
    """Expressions ready for `expressions_chunk`, and the ids of the objects that occur in them more than once."""

    roots: tuple[Expr, ...]
    shared: frozenset[int]
    maker: object = field(repr=False)  # holds the objects, so that ids stay theirs


def prepare(exprs: Sequence[Expr], table: Table) -> PreparedExpressions:
    maker = _Maker(table)
    roots = tuple(maker.made(expr) for expr in exprs)
    uses = Counter(id(node) for root in roots for node in walk(root) if node.children)
    return PreparedExpressions(roots, frozenset(n for n, count in uses.items() if count > 1), maker)


class _Maker:
    """Rebuilds expressions; `objects` maps what a node is to the one object for it."""

    def __init__(self, table: Table) -> None:
        self.table = table
        self.objects: dict[object, Expr] = {}

    def made(self, expr: Expr) -> Expr:
        """Return the one object for `expr`, computed already if no row is needed."""
        stopping.check()
        if isinstance(expr, Literal):
            return self._one(
                expr, lambda: ComputedConstant(constant(expr.value, expr.type), expr.type)
            )
        if isinstance(expr, ColumnRef):
            return self._one(expr, lambda: expr)
        columns = {node.column for node in walk(expr) if isinstance(node, ColumnRef)}
        if not columns or (len(columns) == 1 and self._is_small_dictionary(*columns)):
            known = self._computed(expr, columns)
            if known is not None:
                return known
        children = tuple(self.made(child) for child in expr.children)
        return self._one(expr, lambda: expr.with_children(children), children)

    def _one(self, expr: Expr, make: Callable[[], Expr], children: tuple[Expr, ...] = ()) -> Expr:
        key = (*_label(expr), *map(id, children))
        if key not in self.objects:
            self.objects[key] = make()
        return self.objects[key]

    def _is_small_dictionary(self, column: Column) -> bool:
        array = self.table.arrays[column.id]
        return pa.types.is_dictionary(array.type) and len(array.dictionary) <= len(array)

    def _computed(self, expr: Expr, columns: set[Column]) -> Expr | None:
        """The value over the column's dictionary, or without a column; None when some entry raises.

        A dictionary may hold entries that no row uses any more, and a constant may stand where no row gets to.
        """
        key = (
            "computed",
            *(part for node in walk(expr) for part in (_label(node), len(node.children))),
        )
        if key not in self.objects:
            try:
                with np.errstate(all="ignore"):
                    self.objects[key] = self._evaluated(expr, columns)
            except FuselineError:
                return None
        return self.objects[key]

    def _evaluated(self, expr: Expr, columns: set[Column]) -> Expr:
        if not columns:
            vector = value(expr, Chunk(Table({}, 1), 0, 1))
            if not vector.is_constant:
                vector = vector.first()
            return ComputedConstant(vector, expr.type)
        (column,) = columns
        entries = self.table.arrays[column.id].dictionary
        entries = tables.concat_arrays([entries, pa.nulls(1, entries.type)])
        count = len(entries)
        vector = value(expr, Chunk(Table({column.id: entries}, count), 0, count))
        return DictionaryLookup(
            column, Vector.from_arrow(vector.to_arrow(count), expr.type), expr.type
        )


def _label(expr: Expr) -> tuple[object, ...]:
    """What a node is beside its children; the text of a float tells 0.0 from -0.0."""
    if isinstance(expr, Literal):
        return (Literal, expr.type, repr(expr.value))
    if isinstance(expr, ColumnRef):
        return (ColumnRef, expr.column.id)
    counts = tuple(len(v) for v in vars(expr).values() if isinstance(v, tuple))
    return (
        type(expr),
        getattr(expr, "function", None),
        getattr(expr, "safe", None),
        expr.type,
        getattr(expr, "body", None),
        getattr(expr, "condition", None),
        counts,
    )
