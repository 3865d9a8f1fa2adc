"""Expressions that are written in SQL, of columns of the frame that they are given to."""

from __future__ import annotations

from dataclasses import replace

from ...errors import Unsupported
from ...plan.expr import Column, ColumnRef, Expr, substitute
from ...plan.logical import Aggregate, Logical, Project
from ...plan.node import transform_up, walk


class SqlText(str):
    """What such an expression asks to be resolved, in the place of a column's name."""

    __slots__ = ()


def inlined(made: Logical, over: Logical) -> Expr:
    """Return the one expression that `SELECT text FROM self` has made over a plan, of that plan's own columns.

    The query has a copy of the plan below it, with other columns.  Raises `Unsupported` where it is more than a projection or an aggregate without groups.
    """
    (column,) = made.columns
    found: Expr = ColumnRef(column)
    while isinstance(made, Project) or (isinstance(made, Aggregate) and not made.keys):
        if len([*walk(made)]) == len([*walk(over)]):
            break
        values: dict[Column, Expr] = dict(
            made.items if isinstance(made, Project) else made.aggregates
        )
        found = substitute(found, lambda c, values=values: values.get(c))  # type: ignore[misc]
        made = made.input
    if len([*walk(made)]) != len([*walk(over)]):
        raise Unsupported(
            "An expression in SQL text has no window and no subquery here: write frame.sql('SELECT ... FROM self')."
        )
    own = dict(zip(made.columns, over.columns, strict=True))
    found = substitute(found, lambda c: ColumnRef(own[c]))
    # Its places are those of a text that nobody wrote
    return transform_up(found, _unplaced)


def _unplaced(expr: Expr) -> Expr | None:
    return replace(expr, span=None) if expr.span else None  # type: ignore[type-var]
