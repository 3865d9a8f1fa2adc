"""Pipelines: encoded columns through one generated kernel, or the body's operators where no kernel holds it."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from ...codegen import host
from ...codegen.inputs import input_of
from ...codegen.results import domain, result_columns
from ...codegen.steps import Program, program
from ...codegen.values import Input, NotFusable
from ...plan import physical as p
from ...plan.expr import Column, Expr
from ...plan.text import tree
from ...storage.cache import CacheKey
from ...storage.encode import encode
from ...storage.encodings import EncodedColumn
from ..context import Context
from .expressions import evaluate
from .table import Table, to_physical

DEVICE = "cpu"
ENCODED = "encoded"  # beside the row groups in cache keys
GROUP_LIMIT = 1 << 16  # groups that each thread addresses directly in accumulators of its own


@dataclasses.dataclass
class _Prepared:
    """A kernel made for these very columns; other columns, after a file has changed, need another."""

    columns: tuple[EncodedColumn, ...]
    program: Program
    kernel: Callable[..., bool]
    path: Path
    arguments: list[Any]


def pipeline(node: p.Pipeline, inputs: tuple[Table, ...], context: Context) -> Table:
    """Run a pipeline fused when a kernel holds it, else one operator at a time; the result is the same."""
    scan = _scan_of(node.body)
    try:
        columns, rows = _encoded(scan, context)
        prepared = _prepare(node, scan, columns, rows, context)
    except NotFusable as reason:
        context.notes[id(node)] = f"one operator at a time: {reason.message}"
        return _unfused(node.body, context)
    context.bytes_read += sum(c.nbytes for c in prepared.columns)
    arrays, doubt = host.run(
        prepared.kernel, prepared.program, prepared.arguments, rows, context.threads
    )
    if doubt:
        context.notes[id(node)] = "one operator at a time: a value was close to 64 bits"
        return _unfused(node.body, context)
    context.notes[id(node)] = f"kernel {prepared.path.name}"
    results, length = result_columns(prepared.program, arrays)
    return Table({c.id: to_physical(array, c.type) for c, array in results.items()}, length)


def _scan_of(node: p.Physical) -> p.ParquetScan | p.MemoryScan:
    while node.children:
        node = node.children[0]
    assert isinstance(node, p.ParquetScan | p.MemoryScan)
    return node


def _unfused(node: p.Physical, context: Context) -> Table:
    """Run a chain one operator at a time."""
    from . import OPERATORS  # which lists this module's operator too

    inputs = tuple(_unfused(child, context) for child in node.children)
    return OPERATORS[type(node)](node, inputs, context)


# Columns


def _encoded(
    scan: p.ParquetScan | p.MemoryScan, context: Context
) -> tuple[dict[Column, EncodedColumn], int]:
    """Return the scan's columns encoded, from the cache where they are there."""
    selection = scan.selection if isinstance(scan, p.ParquetScan) else None
    identity: Any = getattr(scan.table, "identity")  # noqa: B009 - the catalog's tables have one
    found: dict[Column, EncodedColumn] = {}
    missing: list[tuple[Column, str]] = []
    for column, source in zip(scan.made, scan.sources, strict=True):
        held = context.cache.get(CacheKey(identity, (ENCODED, selection), source, DEVICE))
        if held is None:
            missing.append((column, source))
        else:
            found[column] = held
    if missing or not scan.made:
        from . import OPERATORS

        rest = dataclasses.replace(
            scan, made=tuple(c for c, _ in missing), sources=tuple(s for _, s in missing)
        )
        table = OPERATORS[type(rest)](rest, (), context)
        for column, source in missing:
            encoded = encode(table.arrays[column.id], column.type)
            if encoded is None:
                raise NotFusable(f'"{column.name}" ({column.type}) has no narrow encoding')
            context.cache.put(CacheKey(identity, (ENCODED, selection), source, DEVICE), encoded, encoded.nbytes)
            found[column] = encoded
            context.check()
        if not scan.made:
            return {}, table.num_rows
    return found, next(iter(found.values())).rows


def _fold_column(expr: Expr, source: Input) -> pa.Array:
    """Evaluate an expression on each value of a column, in the order of its codes, and on NULL last."""
    values = to_physical(domain(source), source.column.type)
    return evaluate(expr, Table({source.column.id: values}, len(values)))


# Kernels


def _prepare(
    node: p.Pipeline,
    scan: p.Physical,
    columns: dict[Column, EncodedColumn],
    rows: int,
    context: Context,
) -> _Prepared:
    """Return the pipeline's kernel for these columns: the one of its last run, if the columns are the same."""
    held: _Prepared | None = node.prepared.get("cpu")
    given = tuple(columns.values())
    if held is not None and list(map(id, held.columns)) == list(map(id, given)):
        return held
    assert isinstance(node.body, p.HashAggregate)
    inputs = {column: input_of(column, encoded) for column, encoded in columns.items()}
    made = program(node.body, inputs, _fold_column, rows, GROUP_LIMIT)
    kernel, path = host.compiled(made, tree(node.body), context.kernel_directory)
    arguments = [part for i in made.inputs for part in _buffers(columns[i.column])]
    prepared = _Prepared(given, made, kernel, path, arguments)
    node.prepared["cpu"] = prepared
    return prepared


def _buffers(column: EncodedColumn) -> list[Any]:
    codes = column.codes.view(np.uint8) if column.codes.dtype == np.bool_ else column.codes
    return [codes] if column.validity is None else [codes, column.validity]
