"""Lambdas over the elements of lists: all elements of a chunk are the rows of one table, and what a body captures is taken to them."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
import pyarrow as pa

from .....errors import ExecutionError
from .....plan.arrow.arrow_arrays import from_numpy, null_as, truth_values
from .....plan.expr import Cast, Column, ColumnRef, Expr, ListMap, ListReduce
from ... import table as tables
from ...nested_arrays import Ints, Lists, list_array
from ...table import Table
from ..vectors import Vector

Evaluate = Callable[[Expr, Table], pa.Array]


def mapped(expr: ListMap, args: Sequence[Vector], evaluate: Evaluate) -> Vector:
    """Return the lists of what the body is for the elements that the condition keeps."""
    operand, *captures = _arrays(args)
    lists = Lists.of(operand)
    lengths, rows = lists.lengths, lists.rows
    elements = _table(
        {expr.element: lists.elements, expr.place: from_numpy(lists.places + 1)},
        dict(zip(expr.captured, captures, strict=True)),
        rows,
    )
    if expr.condition is not None:
        kept = np.flatnonzero(_true(evaluate(expr.condition, elements)))
        elements = tables.take(elements, kept, (expr.element, expr.place, *expr.captured))
        lengths = np.bincount(rows[kept], minlength=len(lengths))
    arrow = tables.physical_type(expr.type)
    made = tables.as_element(evaluate(expr.body, elements), arrow.value_type)
    return _vector(list_array(lengths, made, lists.valid, arrow), expr, args)


def reduced(expr: ListReduce, args: Sequence[Vector], evaluate: Evaluate) -> Vector:
    """Fold all lists by one element at a time; the longest are first, so that those that go on are always the first rows."""
    operand, *others = _arrays(args)
    lists = Lists.of(operand)
    initial = None if expr.initial is None else others.pop(0)
    arrow = tables.physical_type(expr.type)
    accumulated, element, number = expr.parameters
    known = np.ones(len(lists.lengths), bool) if lists.valid is None else lists.valid
    rows = np.flatnonzero(known)
    rows = rows[np.argsort(-lists.lengths[rows], kind="stable")]
    lengths, starts = lists.lengths[rows], lists.starts[rows]
    if initial is None:
        if len(rows) and lengths[-1] == 0:
            raise ExecutionError(
                "list_reduce of an empty list has no value: give it an initial one."
            )
        first = Table({element.id: tables.take_array(lists.elements, starts)}, len(rows))
        value = evaluate(Cast(ColumnRef(element), expr.type), first)
    else:
        value = tables.take_array(initial, rows)
    value = tables.as_element(value, arrow)
    captures = dict(zip(expr.captured, others, strict=True))
    finished: list[pa.Array] = []
    place = int(initial is None)
    while len(value):
        active = int(np.searchsorted(-lengths, -place))  # those that are longer
        finished.append(value.slice(active))
        value = value.slice(0, active)
        if not active:
            break
        own = {
            accumulated: value,
            element: tables.take_array(lists.elements, starts[:active] + place),
            number: from_numpy(np.full(active, place + 1)),
        }
        made = evaluate(expr.body, _table(own, captures, rows[:active]))
        value = tables.as_element(made, arrow)
        place += 1
    folded = tables.concat_arrays([*reversed(finished), pa.nulls(0, arrow)])
    places = np.full(len(known), -1)
    places[rows] = np.arange(len(rows))
    return _vector(tables.take_array(folded, places), expr, args)


def _arrays(args: Sequence[Vector]) -> list[pa.Array]:
    count = next((len(v.data) for v in args if not v.is_constant), 1)
    return [v.to_arrow(count) for v in args]


def _table(own: dict[Column, pa.Array], captures: dict[Column, pa.Array], rows: Ints) -> Table:
    """Return a table of elements, with what the rows of their lists have."""
    arrays = {column.id: array for column, array in own.items()}
    for column, array in captures.items():
        arrays[column.id] = tables.take_array(array, rows)
    return Table(arrays, len(rows))


def _true(condition: pa.Array) -> tables.Mask:
    return truth_values(null_as(tables.decode(condition), False))


def _vector(made: pa.Array, expr: Expr, args: Sequence[Vector]) -> Vector:
    vector = Vector.from_arrow(made, expr.type)
    return vector.first() if all(v.is_constant for v in args) else vector
