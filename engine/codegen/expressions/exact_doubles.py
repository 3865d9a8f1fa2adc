"""Doubles that are whole numbers in every row, as what `to_timestamp` of whole seconds computes, in integer registers."""

from __future__ import annotations

from collections.abc import Callable

from ...plan.expr import Call, Cast, Expr, Literal
from ...plan.shapes.guards import SlotLiteral
from ...plan.types import Kind
from ..loop import Number
from ..program_builder import ProgramBuilder
from ..ranges import IntegerRange
from ..typed_values import Value, machine_of
from .arithmetic import checked, multiply

MOST = 1 << 53  # up to which doubles hold each integer

Translate = Callable[[Expr, ProgramBuilder], Value]


def as_integer(expr: Cast, kernel: ProgramBuilder, translate: Translate) -> Value | None:
    """Translate the cast of a DOUBLE to an integer type; None unless the intervals of what it reads prove that it is whole."""
    value = _whole(expr.operand, kernel, translate)
    return None if value is None else checked(value, expr.type, kernel)


def _whole(expr: Expr, kernel: ProgramBuilder, translate: Translate) -> Value | None:
    """Return a DOUBLE as an integer that it is equal to in every row: products of such doubles are exact, and `round` leaves them."""
    value: Value | None = None
    match expr:
        case SlotLiteral():
            return None
        case Literal(value=float() as number) if number.is_integer():
            held = IntegerRange(int(number), int(number))
            value = Value(Number(int(number), machine_of(held, expr.type)), None, held)
        case Cast(operand) if operand.type.is_integer and operand.type.fits_register:
            value = translate(operand, kernel)
        case Call("round", (operand,)) if operand.type.kind is Kind.DOUBLE:
            return _whole(operand, kernel, translate)
        case Call("mul", (left, right)):
            sides = [_whole(side, kernel, translate) for side in (left, right)]
            if sides[0] is None or sides[1] is None:
                return None
            value = multiply(sides[0], sides[1], kernel)
    held_by = None if value is None else value.interval
    return value if held_by is not None and held_by.magnitude <= MOST else None
