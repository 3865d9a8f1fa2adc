"""Operators that handle each row on its own: filter, compute, constants, ranges, limit, union all."""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow as pa
import pylibcudf as plc

from ...plan import physical as p
from ...plan.all_values import never_raises
from ...plan.arrow.arrow_arrays import array_from
from ...plan.expr import Column, ColumnRef, Expr, Literal, columns_of, conjunction, conjuncts
from ...plan.types import DataType, Kind, to_arrow
from ...plan.udf.python_function import in_turn
from ..context import Context
from . import table as tables
from .aggregate.unique_groups import is_retyped, with_types, without_default
from .columns import INT64, STRING, sequence
from .compute_few_rows import kept_rows, row_by_row
from .dictionaries import Coded, Held
from .few_rows import run_on_host
from .functions.expressions import evaluate, evaluate_all, selection
from .functions.kernels_arithmetic import around, proven_of
from .late_materialization import (
    Bounds,
    Fetch,
    LateColumns,
    bounds_of,
    lasting,
    registers_of,
    together,
)
from .memory.device import on_device
from .memory.host_table import HostColumns, few_on_host, note
from .memory.upload import on_host
from .pipeline.finish import late_integers
from .table import Table, check_rows, concat_columns, concat_held, to_device

# Below this many rows a second filter costs more in fixed overhead (about 0.1 ms) than it saves.
STAGED_FILTER_ROWS = 100_000


@on_device
def filter_rows(node: p.FilterRows, inputs: tuple[Table, ...], context: Context) -> Table:
    """Test numbers and dates before the text of the rows that are left, which costs most."""
    (table,) = inputs
    if type(table.columns) is HostColumns:
        kept = kept_rows(node, table.columns, table.num_rows, context.memory)
        if kept is not None:
            note(node, table.num_rows, context)
            return Table(*kept)
    few = run_on_host(node, inputs, context)
    if few is not None:
        return few
    columns = node.columns
    parts = in_turn(node.predicate)
    if len(parts) > 1:
        return _rows_in_turn(parts, table, columns, context)
    first, last = _by_cost(node.predicate, table)
    if not first or not last or table.num_rows < STAGED_FILTER_ROWS:
        return tables.keep_rows(table, selection(node.predicate, table), columns)
    rest = conjunction(last)
    needed = [*columns, *(columns_of(rest) - set(columns))]
    survivors = tables.keep_rows(table, selection(conjunction(first), table), needed)
    context.check()
    return tables.keep_rows(survivors, selection(rest, survivors), columns)


def _rows_in_turn(
    parts: Sequence[Expr], table: Table, columns: tuple[Column, ...], context: Context
) -> Table:
    """Return the rows that fulfil each part of a condition, the later ones of which are tested for those alone that are left."""
    for number, part in enumerate(parts):
        read = {c for later in parts[number + 1 :] for c in columns_of(later)}
        needed = [*columns, *(read - set(columns))]
        table = tables.keep_rows(table, selection(part, table), needed)
        context.check()
    return table


def _by_cost(predicate: Expr, table: Table) -> tuple[list[Expr], list[Expr]]:
    """Split the parts of a condition into those that read no text and those that do; codes are no text.

    What may raise keeps its place behind the parts that may have decided its rows.
    """
    cheap: list[Expr] = []
    dear: list[Expr] = []
    for part in conjuncts(predicate):
        reads_text = any(_is_text(table, c) for c in columns_of(part))
        waits = reads_text or (dear and not never_raises(part))
        (dear if waits else cheap).append(part)
    return cheap, dear


def _is_text(table: Table, column: Column) -> bool:
    columns = table.columns
    if type(columns) is LateColumns and column.id in columns.fetches:
        held: Held = columns.fetches[column.id][1].lying
    else:
        held = columns[column.id]
    return not isinstance(held, Coded) and held.type().id() == STRING


@on_device
def compute_columns(node: p.ComputeColumns, inputs: tuple[Table, ...], context: Context) -> Table:
    (table,) = inputs
    if type(table.columns) is HostColumns:
        made = row_by_row(node, table.columns, table.num_rows, context.memory)
        if made is not None:
            note(node, table.num_rows, context)
            return Table(made, table.num_rows)
    items = [(c, without_default(e, table)) for c, e in node.items]
    passed = [(c, e.column) for c, e in items if isinstance(e, ColumnRef)]
    if len(passed) == len(items):
        return tables.renamed(table, passed)
    retyped = {c: e for c, e in items if is_retyped(e, table)}
    computed = [(c, e) for c, e in items if c not in retyped and not isinstance(e, ColumnRef)]
    few = run_on_host(node, inputs, context) if computed else None
    if few is not None:
        return few
    tables.fetch(table, {c.id for _, expr in computed for c in columns_of(expr)})
    values = evaluate_all([expr for _, expr in computed], table)
    columns = {c.id: v for (c, _), v in zip(computed, values, strict=True)}
    known = {c.id: proven_of(e, table.columns) for c, e in computed}
    same = with_types(table, passed, retyped)
    return Table(together(same, lasting(columns, table.columns, known)), table.num_rows)


@on_device
def values_scan(node: p.ValuesScan, inputs: tuple[Table, ...], context: Context) -> Table:
    """Constants stay on the host, where kernels' few rows are and what reads them encodes them: each column took 0.2 ms to the device (H200)."""
    cells = [[row[i] for row in node.rows] for i in range(len(node.made))]
    if node.made and all(map(_lies_on_host, node.made, cells)):
        pairs = zip(node.made, cells, strict=True)
        return on_host(((c, _array(found, c.type)) for c, found in pairs), len(node.rows))
    columns = {
        made.id: _constants(found, made.type) for made, found in zip(node.made, cells, strict=True)
    }
    return Table(columns, len(node.rows))


@on_device
def range_scan(node: p.RangeScan, inputs: tuple[Table, ...], context: Context) -> Table:
    count = check_rows(len(range(node.start, node.stop, node.step)), "range()")
    # One value has no next one, and a step may be beyond what the type holds.
    step = node.step if count > 1 else 1
    return Table({node.made.id: sequence(count, node.start, step, INT64)}, count)


def numbered(table: Table, column: Column, start: int) -> Table:
    """Return a table with the numbers of its rows, from `start` on."""
    numbers = sequence(table.num_rows, start, 1, INT64)
    return Table({**table.columns, column.id: numbers}, table.num_rows)


@on_device
def limit_rows(node: p.LimitRows, inputs: tuple[Table, ...], context: Context) -> Table:
    (table,) = inputs
    few_on_host(node, table.columns, table.num_rows, context)
    return tables.slice_rows(table, node.offset, node.count)


@on_device
def concat_rows(node: p.ConcatRows, inputs: tuple[Table, ...], context: Context) -> Table:
    few = run_on_host(node, inputs, context)
    if few is not None:
        return few
    count = check_rows(sum(t.num_rows for t in inputs), "UNION ALL")
    columns: dict[int, Held | Fetch] = {}
    known: dict[int, Bounds | None] = {}
    for i, made in enumerate(node.made):
        pairs = zip(node.inputs, inputs, strict=True)
        parts = [(t.columns, child.columns[i].id) for child, t in pairs]
        bounds = [bounds_of(*part) for part in parts]
        known[made.id] = around([b for b in bounds if b is not None]) if all(bounds) else None
        registers = [registers_of(*part) for part in parts]
        if all(r is not None for r in registers):
            one = concat_columns(registers)
            columns[made.id] = late_integers(one, made.type, known[made.id], loose=True)
        else:
            columns[made.id] = concat_held([held[column_id] for held, column_id in parts])
        context.check()
    late = [t.columns for t in inputs if type(t.columns) is LateColumns]
    return Table(lasting(columns, late[0] if late else {}, known), count)


def _lies_on_host(column: Column, cells: list[Expr]) -> bool:
    known = column.type.fits_register or column.type.kind is Kind.VARCHAR
    return known and not column.type.is_enum and all(isinstance(cell, Literal) for cell in cells)


def _array(cells: list[Expr], data_type: DataType) -> pa.Array:
    return array_from(
        [cell.value for cell in cells if isinstance(cell, Literal)], to_arrow(data_type)
    )


def _constants(cells: list[Expr], data_type: DataType) -> plc.Column:
    if all(isinstance(cell, Literal) for cell in cells):
        return to_device(_array(cells, data_type), data_type)
    one_row = Table({}, 1)
    return concat_columns([evaluate(cell, one_row) for cell in cells])
