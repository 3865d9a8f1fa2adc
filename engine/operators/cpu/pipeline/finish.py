"""What the last kernel of a pipeline gives -> the pipeline's table: values of late columns are gathered only here."""

from __future__ import annotations

from typing import Any

import numpy as np

from ....codegen.groups.results import result_columns, rows_of_groups
from ....codegen.program import Program
from ....plan.expr import columns_of
from ....plan.pipeline_steps import Chain
from ...context import Context
from ..functions.expressions import evaluate_all
from ..table import Indices, Table, filter, to_physical
from .pipeline_inputs import Leaves


def finished(made: Program, outcome: Any, leaves: Leaves, context: Context) -> Table:
    """Return the groups of an aggregate, or the rows that a kernel lists."""
    if made.rows_out:
        found = dict(zip(made.rows_out, outcome, strict=True))
        return _late(made, found, len(outcome[0]), leaves, context)
    results, length = result_columns(made, outcome.arrays, outcome.numbers)
    table = Table({c.id: to_physical(array, c.type) for c, array in results.items()}, length)
    if not made.late:
        return table
    rows = rows_of_groups(made, outcome.arrays, outcome.numbers)
    late = _late(made, rows, length, leaves, context)
    return Table({**table.arrays, **late.arrays}, length)


def _late(
    made: Program, rows: dict[int, Any], length: int, leaves: Leaves, context: Context
) -> Table:
    """Gather what late columns read at the row numbers of each relation, and compute them."""
    read = {c for late in made.late for c in columns_of(late.expr)}
    arrays = {}
    for number, at in rows.items():
        relation = made.relations[number]
        columns = {own: alias for own, alias in relation.aliases.items() if alias in read}
        if columns:
            picked = leaves.gathered(relation.leaf, list(columns), at.astype(np.int64, copy=False))
            for alias, array in zip(columns.values(), picked, strict=True):
                arrays[alias.id] = array
    given = Table(arrays, length)
    values = evaluate_all([late.expr for late in made.late], given, context.threads)
    return Table({late.column.id: v for late, v in zip(made.late, values, strict=True)}, length)


def selected_rows(chain: Chain, chosen: Indices, leaves: Leaves) -> Table:
    """Return the rows of a scan that a selection keeps, in their order."""
    columns, scan = chain.node.columns, chain.source
    arrays = zip(columns, leaves.plain(scan, columns), strict=True)
    return filter(Table({c.id: array for c, array in arrays}, leaves.rows(scan)), chosen)
