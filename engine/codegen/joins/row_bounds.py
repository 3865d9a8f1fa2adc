"""Rows of which an order keeps the first few: a kernel leaves out those that are beyond a bound, an argument that a sample tells."""

from __future__ import annotations

from collections.abc import Sequence

from ...plan.all_values import never_raises
from ...plan.expr import ColumnRef
from ...plan.physical import Order
from ...plan.text.concealed_text import concealed_name
from ..expressions.translate import translate
from ..loop import Apply, Machine, Term, negated
from ..program import LateColumn
from ..program_builder import Scope
from ..ranges import I32_MAX, I64_MAX
from ..typed_values import NotFusable, Value
from .chains import ChainStatements


def bounded(
    order: Order, late: Sequence[LateColumn], scope: Scope, stating: ChainStatements
) -> str:
    """Have a kernel list only rows up to a bound in an order, and return the bound's parameter, which leaves all rows in.

    NULLs stay in wherever they stand.  Raises `NotFusable` where the order is not by whole numbers, of which operators compute the same
    ones, and where a column beside it may be an error in a row that is left out.
    """
    kernel, column = stating.kernel, order.column
    if not all(never_raises(made.expr) for made in late if made.column != column):
        raise NotFusable("a column may raise in a row that the order leaves out")
    value = translate(scope[column], kernel)
    if not _is_ordered(value, isinstance(scope[column], ColumnRef)):
        raise NotFusable(f'"{column.name}" ({column.type}) is no whole number')
    machine = value.term.type
    meaning = f"{concealed_name(column.name)} of the last row that is kept"
    bound = kernel.parameter(_unbounded(machine, order.descending), machine, meaning)
    # NaN, which stands above all numbers, is in
    comparison = "<" if order.descending else ">"
    beyond: Term = Apply(comparison, (value.term, bound), Machine.BOOL)
    if value.valid is not None:
        beyond = Apply("&", (beyond, value.valid), Machine.BOOL)
    stating.require(negated(beyond), f"not beyond the last by {concealed_name(column.name)}", None)
    kernel.guard()
    return bound.text


def _unbounded(machine: Machine, descending: bool) -> int | float:
    if machine in (Machine.F32, Machine.F64):
        return float("-inf" if descending else "inf")
    last = I32_MAX if machine is Machine.I32 else I64_MAX
    return -last - 1 if descending else last


def _is_ordered(value: Value, is_stored: bool) -> bool:
    """Whether a term has the order of its values, and operators the very same ones."""
    if value.term.type in (Machine.F32, Machine.F64):
        return is_stored
    return value.interval is not None and value.values is None
