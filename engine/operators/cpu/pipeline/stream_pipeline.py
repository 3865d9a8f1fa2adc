"""Pipelines over tables larger than memory, in chunks of row groups."""

from __future__ import annotations

from functools import partial

import numpy as np

from ....plan import physical as p
from ....plan.partial import Average, PartialAggregate
from ...context import Context
from ...pipeline_backend import PipelineBackend
from ...run_pipeline import run_fused
from ...run_unfused import Operator, Operators
from ...streaming import run_pipeline
from ..aggregate.groups import Sums
from ..table import Table, decimal_limbs, from_numpy, to_numpy
from .pipeline import Attempt


def pipelines(operators: Operators) -> Operator:
    """Return the operator for pipelines, in chunks where their columns do not fit into the column cache."""

    def pipeline(node: p.Pipeline, inputs: tuple[Table, ...], context: Context) -> Table:
        return run_fused(node, inputs, context, backend)

    # The device has no memory of its own: what runs out of it comes in chunks, or leaves memory
    backend = PipelineBackend(
        "cpu", operators, pipeline, Attempt, lambda error: False, with_averages, settled
    )
    return partial(run_pipeline, backend=backend)


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
