"""Expressions over a table: `evaluate` gives an Arrow array, `selection` the rows for which a predicate is TRUE.

A table is worked on in chunks of rows that stay in the processor's cache while a whole expression is computed, on several
threads when there is more than one chunk.  Before that, `expressions_prepare` has computed what depends on no column, or on one
dictionary column alone.  `expressions_chunk` computes one chunk; the kernels are in `kernels_*.py`.

`selection` returns a boolean mask when many rows are selected, else ascending row numbers (int64): what is faster to filter with.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from .... import stopping
from ....plan.expr import ColumnRef, Expr, conjuncts
from ....plan.types import Kind
from ....plan.udf.python_function import keeps_order
from ....settings import usable_cores
from .. import table as tables
from ..memory.chunks import CHUNK_ROWS
from ..table import Table
from .expressions_chunk import Chunk, ComputedConstant, DictionaryLookup, true_rows, value
from .expressions_prepare import PreparedExpressions, prepare, with_texts_numbered
from .vectors import Array, Mask, Vector, dtype_of

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
                else pa.array([], tables.physical_type(self.type))
            )
        valid: Mask | None = None
        if parts:
            valid = np.ones(self.num_rows, bool)
            for start, mask in self.parts.items():
                valid[start : start + len(mask)] = mask
        return Vector(self.type, self.data, valid).to_arrow(self.num_rows)


def _each_chunk(run: Callable[[int, int], None], num_rows: int, threads: int | None) -> None:
    """Call `run(start, stop)` for each chunk of rows, at least once; the first error is raised."""
    starts = range(0, max(num_rows, 1), CHUNK_ROWS)

    def one(start: int) -> None:
        # Overflow and invalid operations are detected where they matter; error state is kept by thread.
        with np.errstate(all="ignore"):
            run(start, min(start + CHUNK_ROWS, num_rows))

    threads = min(threads or usable_cores(), len(starts))
    if threads == 1:
        for start in starts:
            stopping.check()
            one(start)
        return
    run_carried = stopping.carried(one)
    pool = stopping.shared_threads("fuseline-expressions", usable_cores())
    futures = [pool.submit(run_carried, start) for start in starts]
    try:
        for future in futures:
            stopping.wait(future)
    finally:
        for future in futures:
            future.cancel()


def _threads(exprs: Sequence[Expr], table: Table, threads: int | None) -> int | None:
    """Return 1 for functions with side effects, which are called for one row after the other."""
    return 1 if table.num_rows > CHUNK_ROWS and keeps_order(exprs) else threads


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
