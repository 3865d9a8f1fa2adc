"""ComputeColumns, FilterRows and joins with a single row over a few rows that lie on the host: from registers to registers, without an array in between.

TPC-H SF10, hot on an H200, takes 8 % longer without it in the geometric mean, Q14 twice as long (`benchmarks.micro.ablate`).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pyarrow as pa

from ...codegen.groups.results import Registers
from ...plan import physical as p
from ...plan.arrow.arrow_arrays import array_from
from ...plan.join_kinds import JoinKind
from ...plan.types import DataType, Kind
from ..context import PlanMemory
from ..row_interpreter import MOST_ROWS, RowSteps, Unsure, column_of, values_of, with_nulls
from .memory.host_table import HostColumns, Lying


def row_by_row(
    node: p.ComputeColumns, columns: HostColumns, rows: int, memory: PlanMemory
) -> HostColumns | None:
    """Return a node's columns; None where its expressions or their values need arrays."""
    found = _results(node, columns, rows, memory)
    if found is None:
        return None
    made, results = found
    if len(made.passed) == len(node.columns):
        return columns.renamed(made.passed)
    held: dict[int, Lying] = {new.id: columns.held[old.id][1] for new, old in made.passed}
    for column, kind, value in made.constants:
        held[column.id] = _constant(value, kind, rows)
    for column, values in zip(made.made, results, strict=True):
        held[column.id] = column_of(values, column.type)
    return HostColumns([(column, held[column.id]) for column in node.columns], columns.move)


def kept_pairs(
    node: p.NestedLoopJoin, sides: Sequence[HostColumns], rows: Sequence[int], memory: PlanMemory
) -> tuple[HostColumns, int] | None:
    """Return the rows of a join with a single row, such as a scalar subquery's, by a condition; None for other joins, and as `kept_rows`."""
    if node.kind is not JoinKind.INNER or node.condition is None or 1 not in rows:
        return None
    count, both = rows[0] * rows[1], HostColumns((), sides[0].move)
    for side, own in zip(sides, rows, strict=True):
        both.held |= (side if own == count else side.take(np.zeros(count, np.int64))).held
    return kept_rows(node, both, count, memory)


def kept_rows(
    node: p.FilterRows | p.NestedLoopJoin, columns: HostColumns, rows: int, memory: PlanMemory
) -> tuple[HostColumns, int] | None:
    """Return the rows that a condition keeps, and how many; None where that or its values need arrays: 50 calls instead of 350 for 20 groups."""
    found = _results(node, columns, rows, memory) if node.columns else None
    if found is None or not found[1]:  # a bare column is no step
        return None
    kept = np.array([place for place, holds in enumerate(found[1][0]) if holds], np.int64)
    return columns.renamed([(c, c) for c in node.columns]).take(kept), len(kept)


def _results(
    node: p.ComputeColumns | p.FilterRows | p.NestedLoopJoin,
    columns: HostColumns,
    rows: int,
    memory: PlanMemory,
) -> tuple[RowSteps, list[list[object]]] | None:
    made = memory.row_steps(node)
    if made.compute is None or (made.made and rows > MOST_ROWS):
        return None
    if not made.made:
        return made, []
    values = [_values(columns.held[column.id][1]) for column in made.read]
    if None in values:
        return None
    table = list(zip(*values, strict=True)) if values else [()] * rows
    try:
        return made, made.compute(table)
    except Unsure:
        return None


def _values(lying: Lying) -> list[object] | None:
    """The values of a column as `row_interpreter` has them."""
    if isinstance(lying, Registers):
        if lying.strings is not None:
            return None
        values = lying.values
        found = (values != 0 if lying.type.kind is Kind.BOOLEAN else values).tolist()
        return found if lying.valid is None else with_nulls(found, lying.valid)
    return values_of(lying) if isinstance(lying, pa.Array) else None


def _constant(value: Any, kind: DataType, rows: int) -> Registers:
    """The same value, or NULL, in all rows."""
    valid = np.zeros(rows, np.bool_) if value is None else None
    if kind.kind is Kind.VARCHAR:
        return Registers(np.zeros(rows, np.int64), valid, kind, array_from([value or ""]))
    number = np.full(rows, value or 0, np.float64 if kind.is_float else np.int64)
    return Registers(number, valid, kind)
