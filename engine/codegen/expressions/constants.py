"""Constants of a query as kernels take them: as arguments, so that `< 24` and `< 25` share a kernel.

What a kernel is made for is asked of a constant by `plan.shapes.guards`, so that a kernel that serves other texts knows what of
them it depends on; an argument is computed of a constant, for each of them anew.
"""

from __future__ import annotations

from ...plan.expr import Literal, Value as Constant, physical
from ...plan.shapes.guards import SlotLiteral, computed, decided
from ...plan.types import BIGINT, DataType, Kind
from ..loop import Machine, Number, Term
from ..program_builder import ProgramBuilder
from ..ranges import IntegerRange
from ..typed_values import Value, machine_of, machine_of_float


def constant(given: Literal) -> int | float | None:
    """The register form of a literal: unscaled decimals, day numbers, microseconds; None for what has none."""
    return _in_register(given.value, given.type)


def whole_constant(given: Literal) -> Literal | None:
    """The register form of a literal that is an integer there, as a literal; None of others."""
    if not decided(_is_whole, given, given.type):
        return None
    return computed(_in_register, given, given.type, data_type=BIGINT)


def _in_register(value: Constant, data_type: DataType) -> int | float | None:
    found = physical(value, data_type)
    if isinstance(found, float):
        return found
    return int(found) if isinstance(found, int) else None


def _is_whole(value: Constant, data_type: DataType) -> bool:
    return isinstance(_in_register(value, data_type), int)


def _has_register(value: Constant, data_type: DataType) -> bool:
    return _in_register(value, data_type) is not None


def literal(expr: Literal, kernel: ProgramBuilder) -> Value | None:
    """Translate a literal; an integer's own value is known to what computes with it."""
    never: Term = Number(False, Machine.BOOL)
    if expr.is_null:
        if expr.type.kind is Kind.BOOLEAN:
            return Value(never, never)
        if expr.type.is_float:
            return Value(Number(0.0, machine_of_float(expr.type)), never)
        zero = Value(Number(0, Machine.I32), never, IntegerRange(0, 0))
        return zero if expr.type.fits_register else None
    if not decided(_has_register, expr, expr.type):
        return None
    meaning = f"{expr.type} constant"
    if not decided(_is_whole, expr, expr.type):
        machine = machine_of_float(expr.type)
        held = computed(_in_register, expr, expr.type, data_type=expr.type)
        return Value(kernel.parameter(held, machine, meaning))
    value = constant(expr)
    assert isinstance(value, int)
    if expr.type.kind is Kind.BOOLEAN:
        return Value(Number(bool(value), Machine.BOOL))
    interval = IntegerRange(value, value)
    machine = machine_of(interval, expr.type)
    if value in (0, 1):
        return Value(Number(value, machine), None, interval)
    return Value(kernel.parameter(value, machine, meaning), None, interval)


def compared_constant(given: Literal, kernel: ProgramBuilder) -> Value | None:
    """Translate an integer that is only compared, so that no more than its register's type need be known; None of what is no slot."""
    if not isinstance(given, SlotLiteral):
        return None
    whole = whole_constant(given)
    if whole is None or decided(_is_written_out, whole):
        return None
    machine = decided(_register, whole, given.type)
    return Value(kernel.parameter(whole, machine, f"{given.type} constant"))


def _is_written_out(value: int) -> bool:
    return value in (0, 1)


def _register(value: int, data_type: DataType) -> Machine:
    return machine_of(IntegerRange(value, value), data_type)
