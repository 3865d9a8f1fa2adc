"""Addition, subtraction and multiplication with the proof that registers hold the result.

An operation whose interval fits 64 bits cannot overflow.  Otherwise the row is put in doubt when a floating-point estimate
comes near 2**63: the kernel then cannot vouch for its answer, and the pipeline runs again one operator at a time, exactly.
"""

from __future__ import annotations

from ...plan.expr import Call
from ...plan.functions import SCALAR
from ...plan.types import DataType, Kind
from ..loop import Apply, Convert, Function, Machine, Number, Term, true_and
from ..program_builder import ProgramBuilder
from ..ranges import I64_MAX, IntegerRange
from ..typed_values import Value, truth

# Below 2**63 = 9.223e18 by far more than the rounding error of two conversions and one operation
DOUBT_LIMIT = 9.2e18
WHOLE_I64 = IntegerRange(-I64_MAX - 1, I64_MAX)


def add(left: Value, right: Value, kernel: ProgramBuilder) -> Value:
    return _operate("+", left, right, kernel)


def subtract(left: Value, right: Value, kernel: ProgramBuilder) -> Value:
    return _operate("-", left, right, kernel)


def multiply(left: Value, right: Value, kernel: ProgramBuilder) -> Value:
    return _operate("*", left, right, kernel)


def negate(value: Value) -> Value:
    if value.interval is None:
        return Value(Apply("-", (value.term,), value.term.type), value.valid)
    interval = -value.interval
    machine = Machine.I32 if interval.fits_i32 else Machine.I64
    term = Apply("-", (convert(value.term, machine),), machine)
    return Value(term, value.valid, interval)


def convert(term: Term, machine: Machine) -> Term:
    """Return a term in another register type, itself where nothing changes."""
    return term if term.type is machine else Convert(term, machine)


def checked(value: Value, data_type: DataType, kernel: ProgramBuilder) -> Value:
    """Put in doubt what `data_type` cannot hold, unless the interval proves that it holds everything."""
    interval = value.interval
    bounds = type_bounds(data_type)
    if (
        interval is None
        or bounds is None
        or (bounds.low <= interval.low and interval.high <= bounds.high)
    ):
        return value
    parts: list[Term] = []
    for operator, bound, crosses in (
        ("<", bounds.low, interval.low < bounds.low),
        (">", bounds.high, interval.high > bounds.high),
    ):
        if crosses and WHOLE_I64.low <= bound <= WHOLE_I64.high:
            wide = convert(value.term, Machine.I64)
            parts.append(Apply(operator, (wide, Number(bound, Machine.I64)), Machine.BOOL))
    for part in parts:
        doubt(part, [value.valid], kernel)
    return Value(value.term, value.valid, _held(interval, bounds))


def _held(interval: IntegerRange, bounds: IntegerRange) -> IntegerRange:
    """What of an interval is within bounds; all of these when nothing is, since every row is in doubt then."""
    held = IntegerRange(max(interval.low, bounds.low), min(interval.high, bounds.high))
    return held if held.low <= held.high else bounds


def type_bounds(data_type: DataType) -> IntegerRange | None:
    """The integers that a type's register form may hold; None for floats and booleans."""
    if data_type.is_integer or data_type.is_decimal:
        return IntegerRange(*data_type.integer_range)
    if data_type.kind is Kind.DATE:
        return IntegerRange(-(2**31) + 2, 2**31 - 2)  # the two ends are DuckDB's infinities
    if data_type.is_ticks:
        return IntegerRange(-(2**63) + 2, 2**63 - 2)
    return None


def doubt(condition: Term, valid: list[Term | None], kernel: ProgramBuilder) -> None:
    """Make the kernel give up its answer when the condition holds for a valid value of a kept row."""
    term = true_and([condition, *(v for v in valid if v is not None)])
    assert term is not None
    kernel.doubts.append(term)


def _operate(operator: str, left: Value, right: Value, kernel: ProgramBuilder) -> Value:
    valid = true_and([v for v in (left.valid, right.valid) if v is not None])
    if left.interval is None or right.interval is None:
        machine = left.term.type
        return Value(Apply(operator, (left.term, convert(right.term, machine)), machine), valid)
    interval = {
        "+": left.interval.__add__,
        "-": left.interval.__sub__,
        "*": left.interval.__mul__,
    }[operator](right.interval)
    if not interval.fits_i64:
        _doubt_overflow(operator, left, right, kernel)
        interval = _held(interval, WHOLE_I64)
    machine = Machine.I32 if interval.fits_i32 and _fit_i32(left, right) else Machine.I64
    term = Apply(operator, (convert(left.term, machine), convert(right.term, machine)), machine)
    return Value(term, valid, interval)


def _fit_i32(*values: Value) -> bool:
    return all(v.interval is not None and v.interval.fits_i32 for v in values)


def _doubt_overflow(operator: str, left: Value, right: Value, kernel: ProgramBuilder) -> None:
    estimate: Term = Apply(
        operator, (convert(left.term, Machine.F64), convert(right.term, Machine.F64)), Machine.F64
    )
    size = Function("absolute", (estimate,), Machine.F64)
    near: Term = Apply(">=", (size, Number(DOUBT_LIMIT, Machine.F64)), Machine.BOOL)
    doubt(near, [left.valid, right.valid], kernel)


def of_doubles(expr: Call, args: list[Value]) -> Value:
    """A function or test of the mathematical library, which targets know by Python's name."""
    is_test = expr.type.kind is Kind.BOOLEAN
    machine = Machine.BOOL if is_test else Machine.F64
    term = Function(f"math.{SCALAR[expr.function].math}", tuple(a.term for a in args), machine)
    valid = true_and([a.valid for a in args if a.valid is not None])
    return truth(term, valid) if is_test else Value(term, valid)
