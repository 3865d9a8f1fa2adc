"""Pipelines over tables larger than device memory, in chunks of row groups."""

from __future__ import annotations

from functools import partial

from ....plan import physical as p
from ...context import Context
from ...pipeline_backend import PipelineBackend
from ...run_pipeline import run_fused
from ...run_unfused import Operator, Operators
from ...streaming import run_pipeline
from ..late_materialization import LateColumns
from ..memory.device import is_out_of_memory, on_device
from ..table import Table
from .pipeline import Attempt


def pipelines(operators: Operators[Table]) -> Operator[Table]:
    """Return the operator for pipelines, in chunks where their columns do not fit into the column cache or into device memory."""

    @on_device
    def pipeline(node: p.Pipeline, inputs: tuple[Table, ...], context: Context) -> Table:
        return run_fused(node, inputs, context, backend)

    backend = PipelineBackend("gpu", operators, pipeline, Attempt, is_out_of_memory, settled)
    return partial(run_pipeline, backend=backend)


def settled(table: Table) -> Table:
    """Return a table without late columns, which keep all rows of what they are fetched from."""
    columns = table.columns
    if not isinstance(columns, LateColumns):
        return table
    columns.fetch(list(columns))
    return Table(dict(columns.there), table.num_rows)
