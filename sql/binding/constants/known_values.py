"""Values that have to be known while a query is bound: LIMIT, formats, separators, paths, options, settings.

An expression of constants is run once, by the engine that would compute it for rows: `1 + 1`, `'a' || 'b'`, a parameter.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from decimal import ROUND_HALF_UP, Decimal
from typing import TYPE_CHECKING

from fuseline.errors import DataError, InvalidQuery, OutOfRange, TypeMismatch, Unsupported
from fuseline.plan.composed.nested_literals import as_told, constant_told
from fuseline.plan.composed.nested_values import listed_constants
from fuseline.plan.expr import AggregateCall, Call, Expr, Literal, Subquery, Value, new_column
from fuseline.plan.functions import SCALAR
from fuseline.plan.functions.constant_arguments import places_of_constants
from fuseline.plan.logical import Logical, Project, Values
from fuseline.plan.node import transform_up, walk
from fuseline.plan.shapes.guards import SlotLiteral
from fuseline.plan.types import BIGINT
from fuseline.plan.udf.python_function import PythonCall, PythonFold
from fuseline.plan.window.window_call import Over, WindowCall

from ..scope import Scope

if TYPE_CHECKING:
    import pyarrow as pa

_OF_ROWS = (AggregateCall, Over, WindowCall, PythonFold, Subquery)


def known(expr: Expr, scope: Scope) -> Expr:
    """Return an expression of constants as the constant that it is, or a list of them; another one as it is."""
    if isinstance(expr, Literal) or listed_constants(expr) is not None or not _is_constant(expr):
        return expr
    return answered(expr, scope)


def rows_now(plan: Logical, scope: Scope) -> pa.Table:
    """Return the rows of a query that tells what is to be bound: the plan ends with the next change of any table."""
    if scope.session.slots is not None:
        scope.session.slots.reads_rows = True
    return scope.session.catalog.rows(plan)


def _is_constant(expr: Expr) -> bool:
    return not expr.reads and all(map(_is_of_no_rows, walk(expr)))


def _is_of_no_rows(node: Expr) -> bool:
    if isinstance(node, Call):
        return node.function in SCALAR  # and neither grouping() nor unnest()
    drawn = isinstance(node, PythonCall) and node.drawn
    return not drawn and not isinstance(node, _OF_ROWS)


def answered(expr: Expr, scope: Scope) -> Expr:
    """Return the value that an expression without columns has now."""
    told = as_told(transform_up(expr, _without_slot))
    one = Project(Values((), ((),)), ((new_column("value", told.type), told),))
    found = constant_told(scope.session.catalog.rows(one).column(0)[0].as_py(), expr.type)
    return dataclasses.replace(found, span=expr.span)  # type: ignore[type-var]


def _without_slot(node: Expr) -> Expr | None:
    """Tie the plan to the value of a slot, which is looked at here."""
    if not isinstance(node, SlotLiteral):
        return None
    return Literal(node.value, node.type, node.span)


def with_known(name: str, args: Sequence[Expr], scope: Scope) -> list[Expr]:
    """Return the arguments of a function, known where it takes constants; one that fails is left for rows, of which there may be none."""
    wanted = places_of_constants(name)
    return [
        _known_or_left(arg, scope) if place in wanted else arg for place, arg in enumerate(args)
    ]


def _known_or_left(expr: Expr, scope: Scope) -> Expr:
    try:
        return known(expr, scope)
    except DataError:
        return expr


def known_value(expr: Expr, what: str, scope: Scope) -> Value:
    """Return the value of a constant; `what` begins the error where it is none."""
    found = known(expr, scope)
    if isinstance(found, Literal):
        return found.value
    raise Unsupported(f"{what} must be a constant.", expr.span)


def known_or_listed(expr: Expr, what: str, scope: Scope) -> object:
    """Return the value of a constant, or those of a list of constants."""
    found = known(expr, scope)
    listed = listed_constants(found)
    if listed is None:
        return known_value(found, what, scope)
    return [known_value(element, what, scope) for element in listed]


def known_integer(expr: Expr, what: str, scope: Scope) -> int | None:
    """Return the BIGINT that `expr` is, rounded as a cast rounds; None for NULL."""
    value = known_value(expr, what, scope)
    if value is None:
        return None
    if isinstance(value, bool) or not isinstance(value, int | float | Decimal):
        raise TypeMismatch(f"{what} must be an integer, not {expr.type}.", expr.span)
    if isinstance(value, Decimal) and not expr.type.is_float:
        value = int(value.to_integral_value(ROUND_HALF_UP))
    low, high = BIGINT.integer_range
    if not low <= value <= high:  # nor is NaN
        raise OutOfRange(f"{what} must be a BIGINT, and {value} is none.", expr.span)
    return round(value)


def known_count(expr: Expr, what: str, scope: Scope) -> int | None:
    """Return the number of rows that LIMIT or OFFSET names; None for NULL."""
    count = known_integer(expr, what, scope)
    if count is not None and count < 0:
        raise InvalidQuery(f"{what} cannot be negative.", expr.span)
    return count
