"""Addition, subtraction and multiplication with the proof that registers hold the result, and doubles that are whole numbers in every row.

An operation whose interval fits 64 bits cannot overflow.  Otherwise the row is put in doubt when a floating-point estimate
comes near 2**63: the kernel then cannot vouch for its answer, and the pipeline runs again one operator at a time, exactly.
"""

from __future__ import annotations

from collections.abc import Callable

from ...plan.expr import Call, Cast, Expr, Literal
from ...plan.functions import SCALAR
from ...plan.shapes.guards import SlotLiteral
from ...plan.types import DataType, Kind
from ...records import dataclass
from ..loop import Apply, Convert, Function, Machine, Number, Select, Term, true_and
from ..program_builder import ProgramBuilder
from ..ranges import I32_MAX, I64_MAX, IntegerRange
from ..typed_values import Value, machine_of, truth

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


@dataclass(frozen=True, slots=True)
class Whole:
    """An integer term; `//` and `%` round down, as Python's do, and what is computed has to fit the register.

    With it a formula is written once for terms and for Python's own integers, of which intervals are made.
    """

    term: Term

    def __add__(self, other: int | Whole) -> Whole:
        return self._with("+", other)

    def __sub__(self, other: int | Whole) -> Whole:
        return self._with("-", other)

    def __mul__(self, other: int | Whole) -> Whole:
        return self._with("*", other)

    def __floordiv__(self, other: int | Whole) -> Whole:
        return self._with("//", other)

    def __mod__(self, other: int | Whole) -> Whole:
        return self._with("%", other)

    def _with(self, sign: str, other: int | Whole) -> Whole:
        machine = self.term.type
        right = other.term if isinstance(other, Whole) else Number(other, machine)
        return Whole(Apply(sign, (self.term, right), machine))


def remainder(expr: Call, args: list[Value], kernel: ProgramBuilder) -> Value | None:
    """`a % b` of integers or decimals, which has the sign of a."""
    if len({a.type.scale for a in (*expr.args, expr)}) > 1:
        return None
    found = _parted("%", expr, args, kernel)
    if found is None:
        return None
    term, valid, a, b = found
    most = min(max(b.magnitude - 1, 0), a.magnitude)
    interval = IntegerRange(-most if a.low < 0 else 0, most if a.high > 0 else 0)
    return Value(term, valid, interval)


def quotient(expr: Call, args: list[Value], kernel: ProgramBuilder) -> Value | None:
    """`a // b` of integers, toward zero."""
    found = None if expr.type.is_decimal else _parted("//", expr, args, kernel)
    if found is None:
        return None
    term, valid, a, b = found
    least = 1 if _has_zero(b) else min(abs(b.low), abs(b.high))
    most = a.magnitude // least
    interval = IntegerRange(-most if a.low < 0 or b.low < 0 else 0, most)
    return checked(Value(term, valid, interval), expr.type, kernel)


def _parted(
    sign: str, expr: Call, args: list[Value], kernel: ProgramBuilder
) -> tuple[Term, Term | None, IntegerRange, IntegerRange] | None:
    """Apply an operator that rounds down to the sizes of two integers, and put the sign on; None where 64 bits may not do.

    A row with a divisor of zero is in doubt: the operators say which it is, if it counts.
    """
    if not all(a.type.is_integer or a.type.is_decimal for a in (*expr.args, expr)):
        return None
    a, b = args
    if a.interval is None or b.interval is None:
        return None
    least = expr.type.integer_range[0] if expr.type.is_integer else WHOLE_I64.low
    if (a.interval.low <= least and b.interval.low < 0) or not (-b.interval).fits_i64:
        return None  # the least number has no opposite
    narrow = all(i.fits_i32 and (-i).fits_i32 for i in (a.interval, b.interval))
    machine = Machine.I32 if narrow else Machine.I64
    valid = [v for v in (a.valid, b.valid) if v is not None]
    zero = Number(0, machine)
    left = kernel.name(convert(a.term, machine), "dividend")
    right = kernel.name(convert(b.term, machine), "divisor")
    above = _size(a.interval, left, machine)
    below = _size(b.interval, right, machine)
    if _has_zero(b.interval):
        none: Term = Apply("==", (right, zero), Machine.BOOL)
        doubt(none, [a.valid, b.valid], kernel)
        below = Select(none, Number(1, machine), below, machine)
    term = kernel.name(Apply(sign, (above, below), machine), expr.function)
    signs = [
        Apply("<", (side, zero), Machine.BOOL)
        for side, value, counts in ((left, a, True), (right, b, sign == "//"))
        if counts and value.interval is not None and value.interval.low < 0
    ]
    if signs:
        minus: Term = Apply("-", (term,), machine)
        turned = signs[0] if len(signs) == 1 else Apply("!=", tuple(signs), Machine.BOOL)
        term = Select(turned, minus, term, machine)
    return term, true_and(valid), a.interval, b.interval


def round_decimal(expr: Call, args: list[Value], kernel: ProgramBuilder) -> Value | None:
    """A decimal with the digits that its result has; None where these are not what is asked for, as left of the point."""
    source, target = expr.args[0].type, expr.type
    digits = [a.value for a in expr.args[1:] if isinstance(a, Literal)] or [0]
    if not source.is_decimal or source.scale <= target.scale or digits != [target.scale]:
        return None
    factor = 10 ** (source.scale - target.scale)
    return rounded(args[0], factor, target, kernel, *ADDED[expr.function])


# What is added to a number before it is divided by a factor and rounded down, and whether to its size, whose sign it then gets
Addend = Callable[[int], int]
HALF: tuple[Addend, bool] = (lambda factor: factor // 2, True)
ADDED: dict[str, tuple[Addend, bool]] = {
    "round": HALF,
    "trunc": (lambda factor: 0, True),
    "floor": (lambda factor: 0, False),
    "ceil": (lambda factor: factor - 1, False),
}
RULES = {"mod": remainder, "int_div": quotient, **dict.fromkeys(ADDED, round_decimal)}


def rounded(
    value: Value,
    factor: int,
    data_type: DataType,
    kernel: ProgramBuilder,
    added: Addend = HALF[0],
    to_size: bool = True,
) -> Value | None:
    """Divide an integer by an even factor, halves away from zero by default, for decimals with fewer digits; None where 64 bits may not do.

    Six million prices cast to INTEGER as the key of groups take 33 ms of CPU time, and 91 where NumPy casts them beforehand.
    """
    interval, more = value.interval, added(factor)
    reach = max(more, factor // 2)  # 32 bits that hold a half hold a power of ten
    if interval is None or interval.magnitude > I64_MAX - reach:
        return None
    machine = Machine.I32 if interval.magnitude + reach <= I32_MAX else Machine.I64
    zero, known = Number(0, machine), kernel.name(convert(value.term, machine), "dividend")
    size = Whole(_size(interval, known, machine) if to_size else known)
    term = kernel.name(((size + more) // factor).term, "rounded")
    ends = interval.low, interval.high
    if not to_size:
        low, high = ((n + more) // factor for n in ends)
    else:
        low, high = ((abs(n) + more) // factor * (1 if n > 0 else -1) for n in ends)
        if interval.low < 0:
            below: Term = Apply("<", (known, zero), Machine.BOOL)
            term = Select(below, Apply("-", (term,), machine), term, machine)
    return checked(Value(term, value.valid, IntegerRange(low, high)), data_type, kernel)


def _size(interval: IntegerRange, term: Term, machine: Machine) -> Term:
    """The absolute value of a term."""
    if interval.low >= 0:
        return term
    below: Term = Apply("<", (term, Number(0, machine)), Machine.BOOL)
    return Select(below, Apply("-", (term,), machine), term, machine)


def _has_zero(interval: IntegerRange) -> bool:
    return interval.low <= 0 <= interval.high


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
