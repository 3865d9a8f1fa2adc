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
from ....plan.expr import Call, Column, ColumnRef, Expr, Literal
from ....plan.functions.constant_arguments import REGULAR_EXPRESSIONS
from ....plan.node import walk
from .. import table as tables
from ..memory.chunks import CHUNK_ROWS
from ..sort.keys import is_plain_string
from ..sort.text_order import mostly_distinct, numbered
from ..table import Table, to_numpy
from .expressions_chunk import Chunk, ComputedConstant, DictionaryLookup, value
from .vectors import Vector, constant

LEAST_NUMBERED = 1 << 16  # rows


@dataclass(frozen=True)
class PreparedExpressions:
    """Expressions ready for `expressions_chunk`, and the ids of the objects that occur in them more than once."""

    roots: tuple[Expr, ...]
    shared: frozenset[int]
    maker: object = field(repr=False)  # holds the objects, so that ids stay theirs


def prepare(
    exprs: Sequence[Expr],
    table: Table,
    over: Callable[[Expr, Table], pa.Array] | None = None,
) -> PreparedExpressions:
    """Prepare expressions over a table; `over` evaluates one for many entries of a dictionary."""
    maker = _Maker(table, over)
    roots = tuple(maker.made(expr) for expr in exprs)
    uses = Counter(id(node) for root in roots for node in walk(root) if node.children)
    return PreparedExpressions(roots, frozenset(n for n, count in uses.items() if count > 1), maker)


class _Maker:
    """Rebuilds expressions; `objects` maps what a node is to the one object for it."""

    def __init__(self, table: Table, over: Callable[[Expr, Table], pa.Array] | None) -> None:
        self.table = table
        self.over = over
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
        return isinstance(array, pa.DictionaryArray) and len(array.dictionary) <= len(array)

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
        parts = [self._over(expr, column, part) for part in (entries, pa.nulls(1, entries.type))]
        made = tables.concat_arrays(parts)
        return DictionaryLookup(column, Vector.from_arrow(made, expr.type), expr.type)

    def _over(self, expr: Expr, column: Column, entries: pa.Array) -> pa.Array:
        count = len(entries)
        alone = Table({column.id: entries}, count)
        if self.over is not None and count > CHUNK_ROWS:
            return self.over(expr, alone)
        return value(expr, Chunk(alone, 0, count)).to_arrow(count)


def with_texts_numbered(exprs: Sequence[Expr], table: Table) -> Table:
    """Return the table with the texts that regular expressions read as dictionaries where a value has several rows.

    An expression takes 1.6 us a text, to number it 0.2 us: the hosts of a million addresses, of which every sixth is different, take two
    cores 0.4 s and not 0.9 s. `LEAST_NUMBERED` = inf switches it off.
    """
    if table.num_rows < LEAST_NUMBERED:
        return table
    arrays = dict(table.arrays)
    for column in {c for expr in exprs for node in walk(expr) for c in _searched(node)}:
        array = arrays[column.id]
        if is_plain_string(array) and not mostly_distinct(array):
            codes, values = numbered(array)
            missing = None if array.null_count == 0 else to_numpy(array.is_null())
            indices = pa.array(codes.astype(np.int32), mask=missing)
            arrays[column.id] = pa.DictionaryArray.from_arrays(indices, values)
    return Table(arrays, table.num_rows)


def _searched(node: object) -> set[Column]:
    """The column of texts that a call of a regular expression reads, where it reads no other."""
    if not isinstance(node, Call) or node.function not in REGULAR_EXPRESSIONS:
        return set()
    columns = {part.column for part in walk(node) if isinstance(part, ColumnRef)}
    return columns if len(columns) == 1 else set()


def _label(expr: Expr) -> tuple[object, ...]:
    """What a node is beside its children; the text of a float tells 0.0 from -0.0."""
    if isinstance(expr, Literal):
        value = expr.value
        return (Literal, expr.type, value if isinstance(value, str | bytes) else repr(value))
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
