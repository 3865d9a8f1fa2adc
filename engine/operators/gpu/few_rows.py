"""Operators over few rows of kernels' results, which the host takes in less time than libcudf: each of its calls takes 0.05 ms and more.

A kernel's result lies on the host, or comes there in one copy, and what operators make of it stays there for the next one.  What was
never in a kernel stays on the device.  An aggregate of 1,000 rows with four sums takes 2.5 ms by libcudf on an H100 and 0.5 ms here.
"""

from __future__ import annotations

from collections.abc import Sequence

from ...plan import physical as p
from ..context import Context
from ..cpu.pipeline.finish import of_operators
from ..cpu.table import Table as HostTable
from . import host_backend as hosts
from .compute_few_rows import kept_pairs
from .group_few_rows import grouped
from .late_materialization import LateColumns
from .memory import to_host
from .memory.host_table import HostColumns, concatenated, note
from .memory.upload import on_host
from .table import Table

MOST_ROWS = 1 << 13
MOST_GROUPED = 1 << 12  # by keys: 6,670 rows by a text take 2.2 ms here, 11,886 take 1.2 on an H200
MOST_JOINED = 1 << 20  # rows of one side of a join times those of the other
MOST_MATCHED = 1 << 23  # the same by keys, of which few pairs are expected


def run_on_host(node: p.Physical, inputs: Sequence[Table], context: Context) -> Table | None:
    """Run a node on the host, which is noted for its profile; None where its rows are many, or none came out of a kernel."""
    operate, rows = hosts.operator(), [table.num_rows for table in inputs]
    is_grouped = isinstance(node, p.HashAggregate) and bool(node.keys)
    most = min(MOST_ROWS, MOST_GROUPED) if is_grouped else MOST_ROWS
    if operate is None or not node.columns or max(rows) > most:
        return None
    if not any(type(table.columns) in (HostColumns, LateColumns) for table in inputs):
        return None
    if isinstance(node, p.HashJoin | p.NestedLoopJoin):
        few = isinstance(node, p.HashJoin) and (node.estimate or MOST_JOINED) <= MOST_ROWS
        if rows[0] * rows[1] > (MOST_MATCHED if few else MOST_JOINED):
            return None
    held: list[HostColumns] = []
    for child, table in zip(node.children, inputs, strict=True):
        columns = to_host.on_host(table, child.columns, MOST_ROWS) if child.columns else None
        if columns is None:
            return None
        held.append(columns)
    note(node, sum(rows), context)
    if isinstance(node, p.ConcatRows):
        sources = [child.columns for child in node.inputs]
        return on_host(concatenated(held, sources, node.made), sum(rows))
    if isinstance(node, p.HashAggregate):
        groups = grouped(node, held[0], rows[0])
        if groups is not None:
            return on_host(groups, len(groups[0][1]))
    if isinstance(node, p.NestedLoopJoin):
        pairs = kept_pairs(node, held, rows, context.memory)
        if pairs is not None:
            return Table(*pairs)
    given = (
        HostTable(part.physical(child.columns), count)
        for child, part, count in zip(node.children, held, rows, strict=True)
    )
    made = operate(node, tuple(given), context)
    return on_host(
        [(c, of_operators(made.arrays[c.id], c.type)) for c in node.columns], made.num_rows
    )
