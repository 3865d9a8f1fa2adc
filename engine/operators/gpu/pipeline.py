"""Pipelines: encoded columns through one generated kernel, or the body's operators where no kernel holds it."""

from __future__ import annotations

import dataclasses
import time
import weakref
from collections.abc import Hashable, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa

from ...codegen import device
from ...codegen.inputs import input_of
from ...codegen.listing import operations
from ...codegen.results import domain, result_columns
from ...codegen.steps import Program, program
from ...codegen.values import Input, NotFusable
from ...plan import physical as p
from ...plan.expr import Column, Expr
from ...plan.text import tree
from ...storage.cache import CacheKey
from ...storage.device_encode import encode_on_device
from ...storage.encodings import EncodedColumn
from ..context import Context, Origin, PipelineReceipt
from . import launch
from .columns import INT64, reinterpret
from .device import on_device
from .expressions import evaluate
from .table import Table, to_device
from .upload import upload

DEVICE = "gpu"
ENCODED = "encoded"  # beside the row groups in cache keys
GROUP_LIMIT = 1 << 16  # groups that are addressed directly; their accumulators travel to the host


@dataclasses.dataclass(frozen=True)
class _Prepared:
    """What became of a pipeline over these very columns: a launch, or the reason why there is none.

    The columns are not held, so that the cache may let them go; a launch knows their addresses and is used only while they are
    the columns of the run.
    """

    columns: tuple[weakref.ref[EncodedColumn], ...]
    program: Program | None = None
    launch: launch.Launch | None = None
    path: Path | None = None
    operations: int = 0
    refused: str | None = None

    def fits(self, columns: Sequence[EncodedColumn]) -> bool:
        held = [ref() for ref in self.columns]
        return len(held) == len(columns) and all(map(lambda a, b: a is b, held, columns))


@on_device
def pipeline(node: p.Pipeline, inputs: tuple[Table, ...], context: Context) -> Table:
    """Run a pipeline fused when a kernel holds it, else one operator at a time; the result is the same."""
    scan = _scan_of(node.body)
    start = time.perf_counter()
    try:
        columns, rows, loaded = _encoded(node, scan, context)
        columns_there = time.perf_counter()
        prepared, origin = _prepare(node, columns, rows, context)
    except NotFusable as reason:
        context.receipts[id(node)] = PipelineReceipt(reason.message)
        return _unfused(node.body, context)
    assert prepared.program is not None
    assert prepared.launch is not None
    kernel_there = time.perf_counter()
    arrays, doubt = launch.run(prepared.launch)
    size = sum(columns[i.column].nbytes for i in prepared.program.inputs)
    context.bytes_read += size
    context.receipts[id(node)] = PipelineReceipt(
        "a value was close to 64 bits" if doubt else None,
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
    if doubt:
        return _unfused(node.body, context)
    return upload(*result_columns(prepared.program, arrays))


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
    node: p.Pipeline, scan: p.ParquetScan | p.MemoryScan, context: Context
) -> tuple[dict[Column, EncodedColumn], int, bool]:
    """Return the scan's columns encoded, from the cache where they are there; their rows; whether any had to be loaded."""
    selection = scan.selection if isinstance(scan, p.ParquetScan) else None
    identity: Any = getattr(scan.table, "identity")  # noqa: B009 - the catalog's tables have one
    _check_known(node, (identity, selection))
    keys = [CacheKey(identity, (ENCODED, selection), source, DEVICE) for source in scan.sources]
    found: dict[Column, EncodedColumn] = {}
    for column, key in zip(scan.made, keys, strict=True):
        held = context.cache.get(key)
        if held is not None:
            found[column] = held
    missing = [(c, k) for c, k in zip(scan.made, keys, strict=True) if c not in found]
    if not missing and found:
        return found, next(iter(found.values())).rows, False
    from . import OPERATORS

    rest = dataclasses.replace(
        scan, made=tuple(c for c, _ in missing), sources=tuple(k.column for _, k in missing)
    )
    table = OPERATORS[type(rest)](rest, (), context)
    for column, key in missing:
        encoded = encode_on_device(table[column], column.type)
        if encoded is None:
            reason = f'"{column.name}" ({column.type}) has no narrow encoding'
            node.prepared[f"{DEVICE} refused"] = ((identity, selection), reason)
            raise NotFusable(reason)
        context.cache.put(key, encoded, encoded.nbytes)
        found[column] = encoded
        context.check()
    return {c: found[c] for c in scan.made}, table.num_rows, bool(missing)


def _check_known(node: p.Pipeline, version: Hashable) -> None:
    """Raise again what kept a column from being encoded, while the table is the same."""
    known = node.prepared.get(f"{DEVICE} refused")
    if known is not None and known[0] == version:
        raise NotFusable(known[1])


def _fold_column(expr: Expr, source: Input) -> pa.Array:
    """Evaluate an expression on each value of a column, in the order of its codes, and on NULL last."""
    values = to_device(domain(source), source.column.type)
    result = evaluate(expr, Table({source.column.id: values}, values.size()))
    if expr.type.is_decimal and not expr.type.is_wide_decimal:
        result = reinterpret(result, INT64)
    return result.to_arrow()


# Kernels


def _prepare(
    node: p.Pipeline, columns: dict[Column, EncodedColumn], rows: int, context: Context
) -> tuple[_Prepared, Origin]:
    """Return the launch for these columns, that of the last run if they are the same; raises `NotFusable`."""
    given = tuple(columns.values())
    held: _Prepared | None = node.prepared.get(DEVICE)
    origin: Origin = "memory"
    if held is None or not held.fits(given):
        held, origin = _made(node, columns, rows, context)
        node.prepared[DEVICE] = held
    if held.refused is not None:
        raise NotFusable(held.refused)
    return held, origin


def _made(
    node: p.Pipeline, columns: dict[Column, EncodedColumn], rows: int, context: Context
) -> tuple[_Prepared, Origin]:
    assert isinstance(node.body, p.HashAggregate)
    refs = tuple(weakref.ref(c) for c in columns.values())
    try:
        inputs = {column: input_of(column, encoded) for column, encoded in columns.items()}
        made = program(node.body, inputs, _fold_column, rows, GROUP_LIMIT)
    except NotFusable as reason:
        return _Prepared(refs, refused=reason.message), "memory"
    code, path, origin = device.cubin(
        made, tree(node.body), context.kernel_directory, launch.architecture()
    )
    pointers = [pointer for i in made.inputs for pointer in _pointers(columns[i.column])]
    prepared = launch.prepare(made, code, pointers, rows)
    return _Prepared(refs, made, prepared, path, operations(made)), origin


def _pointers(column: EncodedColumn) -> list[int]:
    """Addresses of a column's codes and, where it has NULLs, of its bitmap."""
    data = column.codes.data()
    codes = 0 if data is None else int(data.ptr)
    return [codes] if column.validity is None else [codes, int(column.validity.ptr)]
