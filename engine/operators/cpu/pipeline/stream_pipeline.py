"""Pipelines over tables larger than memory, in chunks of row groups."""

from __future__ import annotations

from functools import partial

from ....plan import physical as p
from ...context import Context
from ...pipeline_backend import PipelineBackend
from ...run_pipeline import run_fused
from ...run_unfused import Operator, Operators
from ...streaming import run_pipeline
from ..table import Table
from .pipeline import Attempt


def pipelines(operators: Operators[Table]) -> Operator[Table]:
    """Return the operator for pipelines, in chunks where their columns do not fit into the column cache."""

    def pipeline(node: p.Pipeline, inputs: tuple[Table, ...], context: Context) -> Table:
        return run_fused(node, inputs, context, backend)

    # The device has no memory of its own: what runs out of it comes in chunks, or leaves memory
    backend = PipelineBackend("cpu", operators, pipeline, Attempt, lambda error: False, settled)
    return partial(run_pipeline, backend=backend)


def settled(table: Table) -> Table:
    """Return a table that refers to nothing but its own arrays: as all do."""
    return table
