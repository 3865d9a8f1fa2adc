"""Why a plan node cannot run on the GPU, asked while planning; nothing here touches a device."""

from __future__ import annotations

from collections.abc import Iterator

from ...plan import physical as p
from ...plan.expr import ColumnRef, Expr
from ...plan.logical import CatalogTable
from ...plan.node import walk
from ...plan.types import DataType
from ...plan.window.window_operator import WindowRows
from .aggregate.aggregate import unsupported_call
from .functions.expressions import unsupported as unsupported_expression
from .table import MAX_ROWS, unsupported_type


def unsupported(node: p.Physical) -> str | None:
    """Return the first reason why this backend cannot run a node, or None; for a pipeline, any operator of its body."""
    if isinstance(node, p.Pipeline):
        return next((r for part in walk(node.body) for r in _reasons(part)), None)
    return next(_reasons(node), None)


def _reasons(node: p.Physical) -> Iterator[str]:
    for data_type in _types(node):
        reason = unsupported_type(data_type)
        if reason:
            yield f"the GPU has no {reason}"
    for expr in _expressions(node):
        reason = unsupported_expression(expr)
        if reason:
            yield f"the GPU backend does not compute {reason}"
    if isinstance(node, p.HashAggregate):
        for _, call in node.aggregates:
            reason = unsupported_call(call)
            if reason:
                yield f"the GPU backend does not compute {reason}"
    if isinstance(node, p.LimitRows) and node.keys:
        yield "the GPU backend does not limit the rows of each group"
    if isinstance(node, WindowRows):
        for _, window in node.calls:
            reason = unsupported_call(window.aggregate) if window.is_aggregate else None
            if reason:
                yield f"the GPU backend does not compute {reason}"
    if isinstance(node, p.ParquetScan | p.MemoryScan):
        yield from _reasons_of_table(node.table)


def _reasons_of_table(table: CatalogTable) -> Iterator[str]:
    reason = getattr(table, "read_by_cpu", None)
    if reason:
        yield reason
    rows = table.statistics().rows
    if rows is not None and rows > MAX_ROWS:
        yield f"{rows:,} rows are more than a GPU table holds ({MAX_ROWS:,})"


def _types(node: p.Physical) -> Iterator[DataType]:
    """Types of what goes in, what comes out, and what aggregates read."""
    for source in (node, *node.children):
        for column in source.columns:
            yield column.type
    if isinstance(node, p.HashAggregate):
        for _, call in node.aggregates:
            for arg in call.args:
                if isinstance(arg, ColumnRef):
                    yield arg.type


def _expressions(node: p.Physical) -> Iterator[Expr]:
    match node:
        case p.FilterRows(predicate=expr):
            yield expr
        case p.ComputeColumns(items=items):
            yield from (expr for _, expr in items)
        case p.ValuesScan(rows=rows):
            yield from (expr for row in rows for expr in row)
        case p.HashJoin(residual=expr) | p.NestedLoopJoin(condition=expr) if expr is not None:
            yield expr
