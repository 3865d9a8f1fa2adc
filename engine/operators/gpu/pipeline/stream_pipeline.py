"""Pipelines over tables larger than device memory, in chunks of row groups."""

from __future__ import annotations

from functools import partial

import pylibcudf as plc

from ....plan import physical as p
from ....plan.partial import Average, PartialAggregate
from ...context import Context
from ...pipeline_backend import PipelineBackend
from ...run_pipeline import run_fused
from ...run_unfused import Operator, Operators
from ...streaming import run_pipeline
from ..columns import FLOAT64, HUGE, binary, cast, reinterpret, scalar
from ..late_materialization import LateColumns
from ..memory.device import is_out_of_memory, on_device
from ..table import Table
from .pipeline import Attempt

Op = plc.binaryop.BinaryOperator


def pipelines(operators: Operators) -> Operator:
    """Return the operator for pipelines, in chunks where their columns do not fit into the column cache or into device memory."""

    @on_device
    def pipeline(node: p.Pipeline, inputs: tuple[Table, ...], context: Context) -> Table:
        return run_fused(node, inputs, context, backend)

    backend = PipelineBackend(
        "gpu", operators, pipeline, Attempt, is_out_of_memory, with_averages, settled
    )
    return partial(run_pipeline, backend=backend)


def settled(table: Table) -> Table:
    """Return a table without late columns, which keep all rows of what they are fetched from."""
    columns = table.columns
    if not isinstance(columns, LateColumns):
        return table
    columns.fetch(list(columns))
    return Table(dict(columns.there), table.num_rows)


def with_averages(table: Table, split: PartialAggregate) -> Table:
    """Add the averages to a table of merged parts."""
    columns = dict(table.columns)
    for average in split.averages:
        columns[average.made.id] = _divided(table, average)
    return Table(columns, table.num_rows)


def _divided(table: Table, average: Average) -> plc.Column:
    """The exact sum divided once, as `aggregate_sums.avg` does."""
    total, divisor = table[average.total], cast(table[average.count], FLOAT64)
    data_type = average.total.type
    if data_type.is_decimal:
        total = cast(reinterpret(total, HUGE), FLOAT64)
        if data_type.scale:
            divisor = binary(divisor, scalar(float(10**data_type.scale), FLOAT64), Op.MUL, FLOAT64)
    return binary(total, divisor, Op.DIV, FLOAT64)
