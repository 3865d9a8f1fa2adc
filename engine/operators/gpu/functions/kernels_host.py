"""Values that libcudf computes otherwise than DuckDB, usually none: the host computes those of the rows concerned.

A kernel marks the rows of which it is not sure (a date beyond the year 9999, a number in scientific notation).  Their argument goes
to the host, and the results, or the error, come back; the query's profile counts them.
"""

from __future__ import annotations

from collections.abc import Mapping

import pylibcudf as plc

from ....plan.expr import Call, Cast, ColumnRef, Expr, new_column
from ....plan.udf.python_function import PythonCall
from .. import host_backend
from .. import table as tables
from ..columns import both, negate, sequence, true_mask
from ..table import Table, count_true, to_device
from .values import RowScope


def settled(
    expr: Expr,
    scope: RowScope,
    column: plc.Column,
    result: plc.Column,
    usual: plc.Column | None,
    argument: int = 0,
) -> plc.Column:
    """Return `result` with the values that are not NULL and not `usual` computed on the host; None stands for all.

    `expr` is a function or cast of which one argument, usually the first, is `column` and the others are literals.  Rows that are not active are
    left alone, so that they cannot fail.
    """
    if usual is None:
        return result
    odd = negate(true_mask(usual))
    if column.null_count():
        odd = both(odd, plc.unary.is_valid(column))
    if not count_true(odd):
        return result
    if scope.active is not None:
        odd = both(odd, scope.active())
    return recomputed(expr, {argument: column}, result, odd)


def recomputed(
    expr: Expr, arguments: Mapping[int, plc.Column], result: plc.Column, odd: plc.Column
) -> plc.Column:
    """Return `result` with its values where `odd` is TRUE computed on the host, of arguments by their places; the others are literals."""
    rows = plc.stream_compaction.apply_retention_mask(
        plc.Table([sequence(result.size())]), odd
    ).columns()[0]
    if not rows.size():
        return result
    given = plc.Table(list(arguments.values()))
    some = plc.copying.gather(given, rows, tables.DONT_CHECK).columns()
    values = _on_the_host(expr, dict(zip(arguments, some, strict=True)), rows.size())
    return plc.copying.scatter(plc.Table([values]), rows, plc.Table([result])).columns()[0]


def _on_the_host(expr: Expr, arguments: Mapping[int, plc.Column], rows: int) -> plc.Column:
    columns = {place: new_column("value", expr.children[place].type) for place in arguments}
    held = Table({columns[place].id: values for place, values in arguments.items()}, rows)
    named = tuple(columns.values())
    children = [
        ColumnRef(columns[place]) if place in columns else child
        for place, child in enumerate(expr.children)
    ]
    again, given = expr.with_children(children), tables.to_arrow(held, named)
    return to_device(host_backend.evaluate(_what(expr), again, named, given), expr.type)


def _what(expr: Expr) -> str:
    if isinstance(expr, Call | PythonCall):
        return f"{expr.function if isinstance(expr, Call) else expr.function.name}()"
    return f"CAST AS {expr.type}" if isinstance(expr, Cast) else type(expr).__name__
