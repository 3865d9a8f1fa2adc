"""Aggregates of the elements of lists: each list is a group of the rows that its elements are."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable

import numpy as np
import pyarrow as pa

from .....plan.expr import (
    AggregateCall,
    Column,
    ColumnRef,
    Expr,
    ListAggregate,
    Literal,
    new_column,
)
from .....plan.node import transform_up
from ... import table as tables
from ...aggregate.aggregate import aggregate_groups
from ...aggregate.groups import Groups
from ...nested_arrays import Lists
from ...table import Table
from ..vectors import Vector, null_constant

Evaluate = Callable[[Expr, Table], pa.Array]


def aggregated(expr: ListAggregate, operand: Vector, evaluate: Evaluate) -> Vector:
    """Return the aggregate of each list, NULL of one that is NULL."""
    if operand.is_null:
        return null_constant(expr.type)
    lists = Lists.of(operand.to_arrow(operand.length))
    count = len(lists.lengths)
    elements = Table({expr.element.id: lists.elements}, len(lists.elements))
    groups = Groups(lists.rows, count, elements.num_rows)
    results: dict[int, pa.Array] = {}

    def in_column(node: Expr) -> Expr | None:
        """Compute an aggregate of all lists, and stand for it by a column."""
        if not isinstance(node, AggregateCall):
            return None
        arrays = dict(elements.arrays)
        args = []
        for arg in node.args:
            if not isinstance(arg, Literal):
                column: Column = new_column("argument", arg.type)
                arrays[column.id] = evaluate(arg, elements)
                arg = ColumnRef(column)  # noqa: PLW2901 - an argument as aggregates have it
            args.append(arg)
        made = new_column("aggregate", node.type)
        call = dataclasses.replace(node, args=tuple(args))
        results[made.id] = aggregate_groups(call, Table(arrays, elements.num_rows), groups)
        return ColumnRef(made)

    body = transform_up(expr.body, in_column)
    found = tables.take_array(evaluate(body, Table(results, count)), _valid_places(lists))
    vector = Vector.from_arrow(tables.decode(found), expr.type)
    return vector.first() if operand.is_constant else vector


def _valid_places(lists: Lists) -> tables.Indices:
    places = np.arange(len(lists.lengths))
    return places if lists.valid is None else np.where(lists.valid, places, -1)
