"""Expressions over a table: `evaluate` gives an Arrow array, `selection` the rows for which a predicate is TRUE.

A table is worked on in chunks of rows that stay in the processor's cache while a whole expression is computed, on several
threads when there is more than one chunk.  Before that, `prepare` has computed what depends on no column, or on one
dictionary column alone.  `expressions_chunk` computes one chunk; the kernels are in `kernels_*.py`.

`selection` returns a boolean mask when many rows are selected, else ascending row numbers (int64): what is faster to filter with.

Equal subexpressions are one object, so that a chunk computes them once.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import field
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from .... import stopping
from ....errors import FuselineError
from ....plan.arrow.arrow_arrays import array_from, from_numpy
from ....plan.expr import Call, Column, ColumnRef, Expr, Literal, columns_of, conjuncts
from ....plan.functions.constant_arguments import REGULAR_EXPRESSIONS
from ....plan.node import walk
from ....plan.types import Kind
from ....plan.udf.python_function import PythonCall, keeps_order, reads_one_text
from ....records import dataclass
from ....settings import usable_cores
from ....threads.together import shared_threads
from .. import table as tables
from ..memory.chunks import CHUNK_ROWS
from ..sort.keys import is_plain_string
from ..sort.text_order import mostly_distinct, numbered
from ..table import Table, validity
from .expressions_chunk import Chunk, ComputedConstant, DictionaryLookup, true_rows, value
from .vectors import Array, Mask, Vector, constant, dtype_of

SPARSE = 8  # row numbers are returned when less than one row in so many is selected


def evaluate(expr: Expr, table: Table, threads: int | None = None) -> pa.Array:
    """Return the value of `expr` in each row of `table`, in physical form."""
    return evaluate_all((expr,), table, threads)[0]


def evaluate_all(
    exprs: Sequence[Expr],
    table: Table,
    threads: int | None = None,
    ask: Callable[[int], None] = lambda nbytes: None,
) -> list[pa.Array]:
    """Return the values of several expressions; what they have in common is computed once.

    How long text becomes nobody knows before: `ask` is called with the bytes of that made so far and of what it becomes
    when it is put together, after each chunk.
    """
    computed = [e for e in exprs if not isinstance(e, ColumnRef)]
    if not computed:
        return [table.arrays[e.column.id] for e in exprs if isinstance(e, ColumnRef)]
    made = iter(_evaluated(computed, with_texts_numbered(computed, table), threads, ask))
    return [table.arrays[e.column.id] if isinstance(e, ColumnRef) else next(made) for e in exprs]


def _evaluated(
    exprs: Sequence[Expr],
    table: Table,
    threads: int | None,
    ask: Callable[[int], None] = lambda nbytes: None,
) -> list[pa.Array]:
    """Return the values of several expressions over columns as they lie."""
    plan = prepare(exprs, table, lambda expr, entries: _evaluated((expr,), entries, threads)[0])
    open_roots = [i for i, root in enumerate(plan.roots) if _finished(root, table) is None]
    columns = [_Column(exprs[i], table.num_rows) for i in open_roots]
    texts = [column for column in columns if column.is_text]

    def run(start: int, stop: int) -> None:
        chunk = Chunk(table, start, stop, plan.shared)
        for i, column in zip(open_roots, columns, strict=True):
            column.put(start, stop, value(plan.roots[i], chunk))
        if texts:
            ask(2 * sum(column.text_bytes for column in texts))

    if columns:
        _each_chunk(run, table.num_rows, _threads(exprs, table, threads))
    made = iter(columns)
    results = [_finished(root, table) for root in plan.roots]
    return [next(made).array() if r is None else r for r in results]


def _finished(root: Expr, table: Table) -> pa.Array | None:
    """The result of an expression that needs no pass over the rows."""
    match root:
        case ColumnRef(column=column):
            return table.arrays[column.id]
        case ComputedConstant(vector=vector):
            return vector.to_arrow(table.num_rows)
        case DictionaryLookup() if root.type.kind is Kind.VARCHAR:
            return root.dictionary_array(table)
    return None


class _Column:
    """A result while its chunks arrive: fixed-width values go straight to their place."""

    def __init__(self, expr: Expr, num_rows: int) -> None:
        self.type = expr.type
        self.num_rows = num_rows
        self.parts: dict[int, Any] = {}
        self.text_bytes = 0
        self.is_text = expr.type.varies_in_width
        self.data: Array | None = None if self.is_text else np.empty(num_rows, dtype_of(expr.type))

    def put(self, start: int, stop: int, vector: Vector) -> None:
        if self.data is None:
            self.parts[start] = made = vector.to_arrow(stop - start)
            self.text_bytes += made.nbytes
            return
        self.data[start:stop] = vector.data
        if vector.valid is not None:
            self.parts[start] = np.broadcast_to(vector.valid, stop - start)

    def array(self) -> pa.Array:
        parts = [self.parts[start] for start in sorted(self.parts)]
        if self.data is None:
            return (
                tables.concat_arrays(parts)
                if parts
                else array_from([], tables.physical_type(self.type))
            )
        valid: Mask | None = None
        if parts:
            valid = np.ones(self.num_rows, bool)
            for start, mask in self.parts.items():
                valid[start : start + len(mask)] = mask
        return Vector(self.type, self.data, valid).to_arrow(self.num_rows)


def _each_chunk(run: Callable[[int, int], None], num_rows: int, threads: int | None) -> None:
    """Call `run(start, stop)` for each chunk of rows, at least once; the first error is raised."""
    threads = threads or usable_cores()
    size = _chunk_rows(num_rows, threads)
    starts = range(0, max(num_rows, 1), size)

    def one(start: int) -> None:
        # Overflow and invalid operations are detected where they matter; error state is kept by thread.
        with np.errstate(all="ignore"):
            run(start, min(start + size, num_rows))

    threads = min(threads, len(starts))
    if threads == 1:
        for start in starts:
            stopping.check()
            one(start)
        return
    run_carried = stopping.carried(one)
    pool = shared_threads("fuseline-expressions", usable_cores())
    futures = [pool.submit(run_carried, start) for start in starts]
    try:
        for future in futures:
            stopping.wait(future)
    finally:
        for future in futures:
            future.cancel()


def _chunk_rows(num_rows: int, threads: int) -> int:
    """Return how large chunks are so that all threads have as many of them, where these are not many.

    Of 150,000 rows in whole chunks one of two threads had seven eighths: digits out of telephone numbers took 7.9 ms, and take 4.9.
    """
    if threads == 1 or num_rows <= CHUNK_ROWS // 2:
        return CHUNK_ROWS
    rounds = -(-num_rows // (threads * CHUNK_ROWS))
    return (
        -(-num_rows // (8 * rounds * threads)) * 8
    )  # a byte of a bitmap has rows of one chunk alone


def _threads(exprs: Sequence[Expr], table: Table, threads: int | None) -> int | None:
    """Return 1 for functions with side effects, which are called for one row after the other."""
    return 1 if table.num_rows > CHUNK_ROWS // 2 and keeps_order(exprs) else threads


def selection(
    predicate: Expr, table: Table, threads: int | None = None
) -> Mask | npt.NDArray[np.int64]:
    """Return the rows for which `predicate` is TRUE: a mask, or ascending row numbers when they are few."""
    plan: PreparedExpressions = prepare(tuple(conjuncts(predicate)), table)
    mask = np.empty(table.num_rows, bool)

    def run(start: int, stop: int) -> None:
        mask[start:stop] = true_rows(plan.roots, Chunk(table, start, stop, plan.shared))

    _each_chunk(run, table.num_rows, _threads((predicate,), table, threads))
    if np.count_nonzero(mask) * SPARSE < table.num_rows:
        return np.flatnonzero(mask)
    return mask


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
    """Return the table with the texts that regular expressions and Python functions read as dictionaries where a value has several rows.

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
            indices = from_numpy(codes.astype(np.int32), validity(array))
            arrays[column.id] = pa.DictionaryArray.from_arrays(indices, values)
    return Table(arrays, table.num_rows)


def _searched(node: object) -> set[Column]:
    """The column of texts that a call of a regular expression, or of what Python runs, reads, where it reads no other."""
    if isinstance(node, PythonCall):
        return set(columns_of(node)) if node.image is None and reads_one_text(node) else set()
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
