"""Pipelines: encoded columns through one generated kernel, or the body's operators where no kernel holds it."""

from __future__ import annotations

import dataclasses
import threading
import time
import weakref
from collections.abc import Sequence
from concurrent.futures import Future
from pathlib import Path
from typing import Any

import pyarrow as pa

from ...codegen import device
from ...codegen.inputs import input_of
from ...codegen.listing import operations
from ...codegen.loop import Machine
from ...codegen.results import domain, result_columns
from ...codegen.steps import Program, program
from ...codegen.values import Input, NotFusable
from ...plan import physical as p
from ...plan.expr import Column, Expr
from ...plan.text import tree
from ...storage.encodings import EncodedColumn
from ..context import Context, Origin, PipelineReceipt
from ..streaming import check_room
from . import launch
from .columns import INT64, reinterpret
from .device import on_device
from .encoded import DEVICE, encoded_columns
from .expressions import evaluate
from .table import Table, to_device
from .upload import on_host

GROUP_LIMIT = 1 << 16  # groups that are addressed directly; their accumulators travel to the host

MachineCode = tuple[bytes, Origin]


@dataclasses.dataclass(frozen=True)
class _Refused:
    """Why no kernel holds the pipeline over the table version of this identity."""

    identity: Any
    reason: str


@dataclasses.dataclass
class _Prepared:
    """A kernel made for these very columns; other columns, after a file has changed, need another.

    The columns are not held, so that the cache may let them go: a launch knows their addresses and is used only while they are
    the columns of the run.  It is None until the machine code is there.
    """

    columns: tuple[weakref.ref[EncodedColumn], ...]
    program: Program
    path: Path
    code: Future[MachineCode]
    pointers: list[int]
    operations: int
    launch: launch.Launch | None = None

    def fits(self, columns: Sequence[EncodedColumn]) -> bool:
        held = [ref() for ref in self.columns]
        return len(held) == len(columns) and all(map(lambda a, b: a is b, held, columns))


@on_device
def pipeline(node: p.Pipeline, inputs: tuple[Table, ...], context: Context) -> Table:
    """Run a pipeline fused when a kernel holds it, else one operator at a time; the result is the same."""
    scan = _scan_of(node.body)
    identity = getattr(scan.table, "identity", None)
    held = node.prepared.get(DEVICE)
    if isinstance(held, _Refused) and held.identity == identity is not None:
        return _unfused(node, held.reason, context)
    start = time.perf_counter()
    try:
        columns, rows, loaded = encoded_columns(scan, context)
        columns_there = time.perf_counter()
        prepared, origin = _prepare(node, columns, rows, context)
    except NotFusable as reason:
        node.prepared[DEVICE] = _Refused(identity, reason.message)
        return _unfused(node, reason.message, context)
    if prepared.launch is None:
        return _unfused(node, "the kernel is being compiled", context)
    kernel_there = time.perf_counter()
    arrays, doubt = launch.run(prepared.launch)
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
    if doubt:
        return _unfused(node, "a value was close to 64 bits", context, receipt)
    context.receipts[id(node)] = receipt
    return on_host(*result_columns(prepared.program, arrays))


def _scan_of(node: p.Physical) -> p.ParquetScan | p.MemoryScan:
    while node.children:
        node = node.children[0]
    assert isinstance(node, p.ParquetScan | p.MemoryScan)
    return node


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
    values = to_device(domain(source), source.column.type)
    result = evaluate(expr, Table({source.column.id: values}, values.size()))
    if expr.type.is_decimal and not expr.type.is_wide_decimal:
        result = reinterpret(result, INT64)
    return result.to_arrow()


# Kernels


def _prepare(
    node: p.Pipeline, columns: dict[Column, EncodedColumn], rows: int, context: Context
) -> tuple[_Prepared, Origin]:
    """Return the kernel for these columns, that of the last run if they are the same, and where its code came from."""
    held = node.prepared.get(DEVICE)
    if isinstance(held, _Prepared) and held.fits(tuple(columns.values())):
        if held.launch is None and held.code.done():
            held.launch = _launch(held, rows)
        return held, "memory"
    made = _program(node, columns, rows, context)
    pointers = [pointer for i in made.inputs for pointer in _pointers(columns[i.column])]
    refs = tuple(weakref.ref(c) for c in columns.values())
    file = device.kernel_file(
        made, tree(node.body), context.kernel_directory, launch.architecture()
    )
    code = _compiled(file, context.fuse)
    held = _Prepared(refs, made, file.path, code, pointers, operations(made))
    node.prepared[DEVICE] = held
    if not held.code.done():
        return held, "compiler"
    held.launch = _launch(held, rows)
    return held, held.code.result()[1]


def _program(
    node: p.Pipeline, columns: dict[Column, EncodedColumn], rows: int, context: Context
) -> Program:
    assert isinstance(node.body, p.HashAggregate)
    inputs = {column: input_of(column, encoded) for column, encoded in columns.items()}
    made = program(node.body, inputs, _fold_column, rows, GROUP_LIMIT)
    if context.deterministic and any(a.machine is Machine.F64 for a in made.accumulators):
        raise NotFusable("float sums would depend on the order in which threads finish")
    return made


def _compiled(file: device.KernelFile, fuse: str) -> Future[MachineCode]:
    """Find the machine code or compile it; with `auto` a thread compiles, and operators run meanwhile."""
    found: Future[MachineCode] = Future()

    def compile_now() -> None:
        try:
            found.set_result(file.cubin())
        except Exception as error:
            found.set_exception(error)

    if fuse == "auto" and not file.is_compiled:
        threading.Thread(target=compile_now, daemon=True).start()
    else:
        compile_now()
    return found


def _launch(prepared: _Prepared, rows: int) -> launch.Launch:
    """Load the machine code; a kernel that could not be compiled leaves the work to the operators."""
    error = prepared.code.exception()
    if error is not None:
        raise NotFusable(f"the kernel could not be compiled: {error}") from error
    code, _ = prepared.code.result()
    return launch.prepare(prepared.program, code, prepared.pointers, rows)


def _pointers(column: EncodedColumn) -> list[int]:
    """Addresses of a column's codes and, where it has NULLs, of its bitmap."""
    data = column.codes.data()
    codes = 0 if data is None else int(data.ptr)
    return [codes] if column.validity is None else [codes, int(column.validity.ptr)]
