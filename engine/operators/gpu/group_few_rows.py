"""Groups of a few rows that lie on the host as in registers: groups of a ROLLUP or of several sources, made of finer ones.

What comes of them lies so too, text as codes, so that what follows compares integers.  An aggregate of some 20 rows takes 0.08 ms of CPU time and
by arrays 0.25 to 0.45, what puts its groups below others and orders them 0.1 instead of 0.5 (`benchmarks/adhoc`, a GPU that does nothing).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from ...codegen.groups.accumulate import FOLDS, IDENTITY
from ...codegen.groups.results import Registers
from ...codegen.loop import Machine
from ...codegen.ranges import I64_MAX
from ...plan import physical as p
from ...plan.expr import AggregateCall, Column, ColumnRef, Expr
from ...plan.functions import AGGREGATE

if TYPE_CHECKING:
    from ...storage.columns.encodings import Array
    from .memory.host_table import HostColumns


def grouped(
    node: p.HashAggregate, columns: HostColumns, rows: int
) -> list[tuple[Column, Registers]] | None:
    """Return a node's columns; None where keys or arguments are no integers, or calls do more than fold them."""
    keys = [_integers(columns, ColumnRef(key)) for key in node.keys]
    known = [key for key in keys if key is not None]
    if not rows or len(known) < len(keys):
        return None
    order, starts = _groups(known, rows)
    first = order[starts]
    made = [(column, key.take(first)) for column, key in zip(node.keys, known, strict=True)]
    for column, call in node.aggregates:
        found = _folded(call, columns, order, starts)
        if found is None:
            return None
        made.append((column, found))
    return made


def _integers(columns: HostColumns, expr: Expr) -> Registers | None:
    if not isinstance(expr, ColumnRef) or expr.type.is_float:
        return None
    held = columns.registers(expr.column)
    return held if held is not None and held.values.dtype.kind in "ib" else None


def _groups(keys: Sequence[Registers], rows: int) -> tuple[Array, Array]:
    """Return row numbers in the order of groups, and where among them each group begins."""
    parts = []
    for key in keys:
        if key.valid is not None:
            parts.append(key.valid)
        parts.append(key.values if key.valid is None else np.where(key.valid, key.values, 0))
    begins = np.zeros(rows, np.bool_)
    begins[0] = True
    if not parts:
        return np.arange(rows), begins.nonzero()[0]
    order = np.lexsort(parts)
    for part in parts:
        values = part[order]
        begins[1:] |= values[1:] != values[:-1]
    return order, begins.nonzero()[0]


def _folded(
    call: AggregateCall, columns: HostColumns, order: Array, starts: Array
) -> Registers | None:
    row, rows = AGGREGATE[call.function], len(order)
    if call.distinct or call.filter is not None or call.order:
        return None
    if row.counts and not call.args:
        return Registers(np.diff(starts, append=rows), None, call.type)
    if not (row.counts or row.merge == call.function) or (row.fold, Machine.I64) not in IDENTITY:
        return None
    held = _integers(columns, call.args[0])
    if held is None or len(call.args) > 1:
        return None
    valid = np.ones(rows, np.bool_) if held.valid is None else held.valid[order]
    counts = np.add.reduceat(valid, starts, dtype=np.int64)
    if row.counts:
        return Registers(counts, None, call.type)
    # Codes of texts may be narrow, and no identity is
    values = np.where(valid, held.values[order].astype(np.int64), IDENTITY[row.fold, Machine.I64])
    if row.fold == "add" and max(-int(values.min()), int(values.max())) * rows > I64_MAX:
        return None
    there = None if held.valid is None else counts > 0
    return Registers(FOLDS[row.fold].reduceat(values, starts), there, call.type, held.strings)
