"""How many bytes operators are about to take: asked for before they take them, from row counts that they know."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from ...codegen.stages import Stages
from ...plan import physical as p
from ...plan.expr import Column, ColumnRef
from ..context import Context
from .table import Table

BYTES_A_CODE = 8  # of a key as an integer
BYTES_A_PLACE = 8  # of a row number
BYTES_A_VALUE = 8  # of what an expression computes, about
CODES_A_ROW = 4  # arrays of keys or row numbers that grouping and sorting have at a time


def row_bytes(table: Table, columns: Iterable[Column]) -> float:
    """Return how many bytes a row of some columns takes."""
    size = sum(table.arrays[c.id].nbytes for c in columns if c.id in table.arrays)
    return size / max(1, table.num_rows)


def ask_computed(node: p.ComputeColumns, rows: int, context: Context) -> None:
    computed = sum(not isinstance(expr, ColumnRef) for _, expr in node.items)
    context.ask(node, rows * computed * BYTES_A_VALUE)


def ask_kept(node: p.FilterRows, table: Table, count: int, context: Context) -> None:
    """Ask for rows that a filter keeps, unless it keeps all."""
    if count < table.num_rows:
        size = BYTES_A_PLACE + row_bytes(table, node.columns)
        context.ask(node, int(count * size))


def ask_groups(node: p.Physical, table: Table, keys: Sequence[Column], context: Context) -> None:
    """Ask for the codes of keys and what is made while they are numbered."""
    if keys:
        context.ask(node, table.num_rows * BYTES_A_CODE * CODES_A_ROW)


def ask_order(node: p.Physical, table: Table, columns: Sequence[Column], context: Context) -> None:
    """Ask for the keys of a sort, the order and the rows in it."""
    size = BYTES_A_CODE * CODES_A_ROW + row_bytes(table, columns)
    context.ask(node, int(table.num_rows * size))


def ask_index(node: p.HashJoin, build: int, probe: int, slots: int, context: Context) -> None:
    """Ask for an index of the build side, and for the matches of probe rows where each has one."""
    index = build * (BYTES_A_CODE + 3 * BYTES_A_PLACE) + slots * (BYTES_A_PLACE // 2)
    context.ask(node, index + probe * 2 * BYTES_A_PLACE)


def ask_pairs(
    node: p.HashJoin | p.NestedLoopJoin, left: Table, right: Table, count: int, context: Context
) -> None:
    """Ask for pairs of rows, and the columns that are gathered for them."""
    row = row_bytes(left, node.columns) + row_bytes(right, node.columns)
    context.ask(node, int(count * (2 * BYTES_A_PLACE + row)))


def ask_kernels(node: p.Pipeline, stages: Stages, context: Context) -> None:
    """Ask for the indexes of a pipeline's kernels, and for the accumulators of each of its threads."""
    indexes = sum(b.length * BYTES_A_VALUE for index in stages.indexes for b in index.buffers)
    grouping = stages.main.grouping
    groups = 0 if grouping is None or grouping.hashed else grouping.groups
    accumulators = groups * len(stages.main.accumulators) * BYTES_A_VALUE * context.threads
    context.ask(node, indexes + accumulators)
