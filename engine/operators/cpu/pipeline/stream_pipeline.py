"""Pipelines over tables larger than memory, in chunks of row groups."""

from __future__ import annotations

import numpy as np

from ....plan import physical as p
from ....plan.partial import Average, PartialAggregate
from ...context import Context
from ...run_unfused import Operators
from ...streaming import Streaming, run_pipeline
from ..aggregate.groups import Sums
from ..table import Table, decimal_limbs, from_numpy, to_numpy
from .pipeline import pipeline


def stream_pipeline(node: p.Pipeline, inputs: tuple[Table, ...], context: Context) -> Table:
    """Run a pipeline; in chunks where its columns do not fit into the column cache."""
    from .. import OPERATORS, num_bytes  # which list this module's operator too

    operators = Operators(OPERATORS, num_bytes)
    return run_pipeline(
        node, inputs, context, Streaming("cpu", operators, pipeline, with_averages, settled)
    )


def settled(table: Table) -> Table:
    """Return a table that refers to nothing but its own arrays: as all do."""
    return table


def with_averages(table: Table, split: PartialAggregate) -> Table:
    """Add the averages to a table of merged parts."""
    arrays = dict(table.arrays)
    for average in split.averages:
        arrays[average.made.id] = _divided(table, average)
    return Table(arrays, table.num_rows)


def _divided(table: Table, average: Average) -> object:
    """The exact sum divided once, as `aggregate_sums.avg` does."""
    total, counts = table[average.total], to_numpy(table[average.count])
    with np.errstate(all="ignore"):
        if average.total.type.is_float:
            averages = to_numpy(total) / counts
        else:
            low, high = decimal_limbs(total).T
            divisor = counts.astype(np.longdouble) * np.longdouble(10**average.total.type.scale)
            limbs = np.ascontiguousarray(low), np.ascontiguousarray(high)
            averages = Sums(*limbs).as_longdouble() / divisor
    return from_numpy(averages.astype(np.float64), counts > 0)
