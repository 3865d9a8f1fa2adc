"""The CPU backend: Arrow arrays in host memory, computed on with pyarrow and numpy.

`table` says in which forms values lie; `sort.keys` turns key columns into integers, on which `join`, `aggregate`, `sort` and
`set_operations` work; `functions` compute values, `pipeline` runs generated kernels.  Imports what `operators` may.  Start reading at
`rows.py`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from operator import attrgetter
from typing import Any

import pyarrow as pa

from ...plan import physical as p
from ...plan.expr import Column, Expr
from ...plan.partial import FinishAverages
from ...plan.types import to_arrow as arrow_type
from ...plan.window.window_operator import WindowRows
from ..context import Context
from ..run_pipeline import pipelines
from ..run_unfused import Operators
from .aggregate.aggregate import distinct_on, finish_averages, hash_aggregate
from .functions.expressions import evaluate
from .handwritten_kernels import keep_in
from .join.join import hash_join, nested_loop_join
from .join.join_parts import parted as parted, piece_of as piece_of, unparted as unparted
from .memory.ask_memory import arrow_bytes as arrow_bytes, text_ends
from .memory.bandwidth import copy_bandwidth as copy_bandwidth, device_name as device_name
from .pipeline.pipeline import Attempt
from .rows import (
    compute_columns,
    concat_rows,
    filter_rows,
    limit_rows,
    numbered as numbered,
    range_scan,
    unnest_rows,
    values_scan,
)
from .scan.encoded import (
    encode_columns,
    lift_columns,
    load_for_kernels as load_for_kernels,
    store_columns,
    take_form as take_form,
)
from .scan.scan import memory_scan, parquet_scan
from .scan.scan_batches import batches as batches
from .set_operations import hash_set_operation
from .sort.sort import sort_rows, top_k
from .table import STRING_LIMIT, Table, settled as settled, to_logical, to_physical
from .window.window_rows import window_rows

Operator = Callable[[Any, tuple[Table, ...], Context], Table]

name = "cpu"
keep_kernels_in, load_columns = keep_in, encode_columns
num_bytes: Callable[[Table], int] = attrgetter("nbytes")
exchanged = None  # rows go to other workers by the host, where they are

OPERATORS: dict[type[p.Physical], Operator] = {
    p.ParquetScan: parquet_scan,
    p.MemoryScan: memory_scan,
    p.RangeScan: range_scan,
    p.ValuesScan: values_scan,
    p.FilterRows: filter_rows,
    p.ComputeColumns: compute_columns,
    p.UnnestRows: unnest_rows,
    p.HashJoin: hash_join,
    p.NestedLoopJoin: nested_loop_join,
    p.HashAggregate: hash_aggregate,
    FinishAverages: finish_averages,
    p.DistinctOn: distinct_on,
    p.SortRows: sort_rows,
    p.TopK: top_k,
    p.LimitRows: limit_rows,
    p.ConcatRows: concat_rows,
    p.HashSetOperation: hash_set_operation,
    WindowRows: window_rows,
}


def unsupported(node: p.Physical) -> str | None:
    """Return why this backend cannot run a node; it runs all that the planner makes."""
    if isinstance(node, p.Transfer) or type(node) in OPERATORS:
        return None
    return f"the CPU backend has no operator {type(node).__name__}"


def to_arrow(table: Table, columns: Sequence[Column]) -> pa.Table:
    """Return `columns` as a pyarrow.Table in the types of `plan.types.to_arrow`; names may repeat."""
    schema = pa.schema([pa.field(c.name, arrow_type(c.type)) for c in columns])
    if not columns:
        # Arrow counts rows by columns; the count of a table without them is kept by `select`.
        return pa.table({"": pa.nulls(table.num_rows)}).select([])
    arrays = [_logical(table.arrays[c.id], c) for c in columns]
    return pa.Table.from_arrays(arrays, schema=schema)


def from_arrow(table: pa.Table, columns: Sequence[Column]) -> Table:
    """Return the columns of a pyarrow.Table, by position, in physical form."""
    arrays = {
        c.id: to_physical(column, c.type) for c, column in zip(columns, table.columns, strict=True)
    }
    return Table(arrays, table.num_rows)


def evaluate_columns(expr: Expr, columns: Sequence[Column], values: pa.Table) -> pa.Array:
    """Return an expression over the values of some columns, for a backend that cannot compute it for all of them."""
    return to_logical(evaluate(expr, from_arrow(values, columns)), expr.type)


def operate(node: p.Physical, inputs: tuple[Table, ...], context: Context) -> Table:
    """Run a node over tables of the host, one for each child, for a backend that has few rows there."""
    return OPERATORS[type(node)](node, inputs, context)


# Which runs the bodies that no kernel holds by these operators
OPERATORS[p.Pipeline] = pipelines(
    Operators(OPERATORS, num_bytes), Attempt, lift_columns, store_columns=store_columns
)


def synchronize() -> None:
    """Nothing is pending: operators return when they are done."""


def wait_for(table: Table) -> None:
    """A table is there when its operator returns."""


def _logical(array: pa.Array, column: Column) -> pa.Array | pa.ChunkedArray:
    """One array, or as many chunks as the 32-bit offsets of `string` need."""
    is_long = isinstance(array, pa.LargeStringArray | pa.DictionaryArray)
    ends = text_ends(array, STRING_LIMIT) if is_long else None
    if ends is None:
        return to_logical(array, column.type)
    starts = [0, *ends[:-1]]
    chunks = [
        to_logical(array.slice(start, end - start), column.type)
        for start, end in zip(starts, ends, strict=True)
    ]
    return pa.chunked_array(chunks, arrow_type(column.type))
