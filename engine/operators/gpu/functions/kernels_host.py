"""Values that libcudf computes otherwise than DuckDB, usually none: the host computes those of the rows concerned.

A kernel marks the rows of which it is not sure (a date beyond the year 9999, a number in scientific notation).  Their argument goes
to the host, and the results, or the error, come back; the query's profile counts them.
"""

from __future__ import annotations

import pylibcudf as plc

from ....plan.expr import Call, Cast, ColumnRef, Expr, new_column
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
    rows = plc.stream_compaction.apply_retention_mask(
        plc.Table([sequence(column.size())]), odd
    ).columns()[0]
    if not rows.size():
        return result
    some = plc.copying.gather(plc.Table([column]), rows, tables.DONT_CHECK).columns()[0]
    values = _on_the_host(expr, some, argument)
    return plc.copying.scatter(plc.Table([values]), rows, plc.Table([result])).columns()[0]


def _on_the_host(expr: Expr, values: plc.Column, argument: int) -> plc.Column:
    column = new_column("value", expr.children[argument].type)
    given = tables.to_arrow(Table({column.id: values}, values.size()), (column,))
    children = (*expr.children[:argument], ColumnRef(column), *expr.children[argument + 1 :])
    again = expr.with_children(children)
    return to_device(host_backend.evaluate(_what(expr), again, column, given), expr.type)


def _what(expr: Expr) -> str:
    if isinstance(expr, Call):
        return f"{expr.function}()"
    return f"CAST AS {expr.type}" if isinstance(expr, Cast) else type(expr).__name__
