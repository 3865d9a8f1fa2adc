"""Pipelines over tables larger than memory, in chunks of row groups."""

from __future__ import annotations

from functools import partial

import numpy as np

from ....plan import physical as p
from ....plan.partial import HasAverages
from ...context import Context
from ...pipeline_backend import PipelineBackend
from ...run_pipeline import run_fused
from ...run_unfused import Operator, Operators
from ...streaming import run_pipeline
from ..aggregate.aggregate_sums import mean
from ..aggregate.groups import Sums
from ..table import Table, decimal_limbs, to_numpy
from .pipeline import Attempt


def pipelines(operators: Operators[Table]) -> Operator[Table]:
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


def with_averages(table: Table, split: HasAverages) -> Table:
    """Add the averages to a table of merged parts."""
    arrays = dict(table.arrays)
    for average in split.averages:
        array, data_type = table[average.total], average.total.type
        limbs = decimal_limbs(array).T if data_type.is_decimal else ()
        total = Sums(*map(np.ascontiguousarray, limbs)) if len(limbs) else to_numpy(array)
        made = mean(total, to_numpy(table[average.count]), 10**data_type.scale)
        arrays[average.made.id] = made
    return Table(arrays, table.num_rows)
