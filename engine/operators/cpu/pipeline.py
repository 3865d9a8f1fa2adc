"""Pipelines: encoded columns through one generated kernel, or the body's operators where no kernel holds it."""

from __future__ import annotations

import dataclasses
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from ...codegen import host
from ...codegen.inputs import input_of
from ...codegen.listing import operations
from ...codegen.results import domain, result_columns
from ...codegen.steps import Program, program, selection
from ...codegen.values import Input, NotFusable
from ...plan import physical as p
from ...plan.expr import Column, Expr, columns_of
from ...plan.text import tree
from ...storage.encodings import EncodedColumn
from ..context import Context, Origin, PipelineReceipt
from ..streaming import check_room
from .encoded import encoded_columns, row_count
from .expressions import evaluate
from .table import Table, filter, to_physical

GROUP_LIMIT = 1 << 16  # groups that each thread addresses directly, whatever the number of rows
ROWS_A_GROUP = 8  # at least, of more groups: their memory must be worth it
LARGEST_GROUP_LIMIT = 1 << 22  # 32 MB for each accumulator of each thread
# Rows that operators get through while a kernel of some steps compiles
UNFUSED_FIRST_ROWS = 10_000_000


@dataclasses.dataclass
class _Prepared:
    """A kernel made for these very columns; other columns, after a file has changed, need another.

    `origin` is None until its machine code is there, or `error` says why it will never be.
    """

    columns: tuple[EncodedColumn, ...]
    program: Program
    kernel: Callable[..., Any]
    path: Path
    arguments: list[Any]
    operations: int
    origin: Origin | None = None
    error: Exception | None = None


@dataclasses.dataclass(frozen=True)
class _Refused:
    """Why no kernel holds the pipeline over the table version of this identity."""

    identity: Any
    reason: str


def pipeline(node: p.Pipeline, inputs: tuple[Table, ...], context: Context) -> Table:
    """Run a pipeline fused when a kernel holds it, else one operator at a time; the result is the same."""
    scan = _scan_of(node.body)
    identity = getattr(scan.table, "identity", None)
    held = node.prepared.get("cpu")
    if isinstance(held, _Refused) and held.identity == identity is not None:
        return _unfused(node, held.reason, context)
    start = time.perf_counter()
    try:
        columns, rows, loaded = encoded_columns(_read_by_kernel(node.body, scan), context)
        columns_there = time.perf_counter()
        prepared, origin = _prepare(node, columns, rows, context)
    except NotFusable as reason:
        node.prepared["cpu"] = _Refused(identity, reason.message)
        return _unfused(node, reason.message, context)
    if origin is None:
        return _unfused(node, "the kernel is being compiled", context)
    kernel_there = time.perf_counter()
    table = _run(node.body, scan, prepared, rows, context)
    size = sum(columns[i.column].nbytes for i in prepared.program.inputs)
    context.bytes_read += size
    receipt = PipelineReceipt(
        None,
        prepared.path,
        origin,
        rows,
        size,
        time.perf_counter() - kernel_there,
        columns_there - start if loaded else 0.0,
        kernel_there - columns_there,
        prepared.operations,
        prepared.program,
    )
    if table is None:
        return _unfused(node, "a value was close to 64 bits", context, receipt)
    context.receipts[id(node)] = receipt
    return table


def _run(
    body: p.Physical,
    scan: p.ParquetScan | p.MemoryScan,
    prepared: _Prepared,
    rows: int,
    context: Context,
) -> Table | None:
    """Launch the kernel and finish its result; None when that is in doubt."""
    made, kernel, arguments = prepared.program, prepared.kernel, prepared.arguments
    if isinstance(body, p.FilterRows):
        chosen = host.select_rows(kernel, made, arguments, rows, context.threads)
        if chosen is None:
            return None
        return filter(_operators(_rows_of(scan, set(body.columns), rows), context), chosen)
    outcome = host.run(kernel, made, arguments, rows, context.threads, context.deterministic)
    if outcome.doubt:
        return None
    results, length = result_columns(made, outcome.arrays, outcome.numbers)
    return Table({c.id: to_physical(array, c.type) for c, array in results.items()}, length)


def _scan_of(node: p.Physical) -> p.ParquetScan | p.MemoryScan:
    while node.children:
        node = node.children[0]
    assert isinstance(node, p.ParquetScan | p.MemoryScan)
    return node


def _read_by_kernel(
    body: p.Physical, scan: p.ParquetScan | p.MemoryScan
) -> p.ParquetScan | p.MemoryScan:
    """The scan of those columns that must be encoded: for a selection of rows, what its predicates read."""
    if not isinstance(body, p.FilterRows):
        return scan
    wanted: set[Column] = set()
    node: p.Physical = body
    while isinstance(node, p.FilterRows):
        wanted |= set(columns_of(node.predicate))
        node = node.input
    return _narrowed(scan, wanted)


def _narrowed(
    scan: p.ParquetScan | p.MemoryScan, wanted: set[Column]
) -> p.ParquetScan | p.MemoryScan:
    pairs = [pair for pair in zip(scan.made, scan.sources, strict=True) if pair[0] in wanted]
    return dataclasses.replace(
        scan, made=tuple(c for c, _ in pairs), sources=tuple(s for _, s in pairs)
    )


def _rows_of(
    scan: p.ParquetScan | p.MemoryScan, wanted: set[Column], rows: int
) -> p.ParquetScan | p.MemoryScan:
    """The scan of columns as they are, of the same rows as the encoded ones: of all, where those stood for a selection."""
    scan = _narrowed(scan, wanted)
    if isinstance(scan, p.ParquetScan) and row_count(scan) != rows:
        scan = dataclasses.replace(scan, selection=None)
    return scan


def _unfused(
    node: p.Pipeline, reason: str, context: Context, receipt: PipelineReceipt | None = None
) -> Table:
    """Run a chain one operator at a time; raises `TooLarge` when it should rather run in chunks."""
    check_room(node.body, context)
    context.receipts[id(node)] = (
        PipelineReceipt(reason) if receipt is None else dataclasses.replace(receipt, reason=reason)
    )
    return _operators(node.body, context)


def _operators(node: p.Physical, context: Context) -> Table:
    from . import OPERATORS  # which lists this module's operator too

    inputs = tuple(_operators(child, context) for child in node.children)
    return OPERATORS[type(node)](node, inputs, context)


def _fold_column(expr: Expr, source: Input) -> pa.Array:
    """Evaluate an expression on each value of a column, in the order of its codes, and on NULL last."""
    values = to_physical(domain(source), source.column.type)
    return evaluate(expr, Table({source.column.id: values}, len(values)))


# Kernels


def _prepare(
    node: p.Pipeline, columns: dict[Column, EncodedColumn], rows: int, context: Context
) -> tuple[_Prepared, Origin | None]:
    """Return the pipeline's kernel for these columns: the one of its last run, if the columns are the same.

    Its origin is None while another thread compiles it.
    """
    held = node.prepared.get("cpu")
    given = tuple(columns.values())
    if isinstance(held, _Prepared) and list(map(id, held.columns)) == list(map(id, given)):
        if held.error is not None:
            raise held.error
        return held, None if held.origin is None else "memory"
    inputs = {column: input_of(column, encoded) for column, encoded in columns.items()}
    made = _program(node.body, inputs, rows, context)
    kernel, path = host.compiled(made, tree(node.body), context.kernel_directory)
    arguments = [part for i in made.inputs for part in _buffers(columns[i.column])]
    prepared = _Prepared(given, made, kernel, path, arguments, operations(made))
    node.prepared["cpu"] = prepared
    if context.fuse == "auto" and rows < UNFUSED_FIRST_ROWS and not host.is_stored(kernel, path):
        threading.Thread(target=_load_later, args=(prepared,)).start()
        return prepared, None
    _load(prepared)
    return prepared, prepared.origin


def _load(prepared: _Prepared) -> None:
    prepared.origin = host.load(prepared.kernel, prepared.program, prepared.arguments)


def _load_later(prepared: _Prepared) -> None:
    """Compile in a thread of its own; the next run raises what went wrong."""
    try:
        _load(prepared)
    except Exception as error:
        prepared.error = error


def _program(body: p.Physical, inputs: dict[Column, Input], rows: int, context: Context) -> Program:
    if isinstance(body, p.FilterRows):
        return selection(body, inputs, _fold_column)
    assert isinstance(body, p.HashAggregate)
    limit = max(GROUP_LIMIT, min(rows // ROWS_A_GROUP, LARGEST_GROUP_LIMIT))
    # The operators' grouping takes as long as hash tables do (SF1, 6 M rows, 0.8 M groups: 0.48 s of CPU time to 0.57 s)
    may_hash = context.fuse == "always"
    return program(body, inputs, _fold_column, rows, limit, may_hash)


def _buffers(column: EncodedColumn) -> list[Any]:
    codes = column.codes.view(np.uint8) if column.codes.dtype == np.bool_ else column.codes
    return [codes] if column.validity is None else [codes, column.validity]
