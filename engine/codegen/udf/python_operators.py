"""Python's operators as terms: exact as Python's are, or the row is in doubt.

Whole numbers carry their interval, as those of SQL do, so that both have 32 bits where these suffice.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

from ...records import dataclass
from ..expressions.arithmetic import WHOLE_I64, add, convert, doubt, multiply, subtract
from ..loop import Apply, Convert, Function, Machine, Number, Select, Term, all_together
from ..program_builder import ProgramBuilder
from ..ranges import IntegerRange
from ..typed_values import Value

EXACT = IntegerRange(-(2**53), 2**53)  # whole numbers that doubles hold
MOST_POWER = 8  # that is multiplied out
MOST_SHIFT = 62
_BIT = IntegerRange(0, 1)
_REALS = (Machine.F64, Machine.F32)
_COMPARISONS = {
    operator.lt: "<",
    operator.le: "<=",
    operator.gt: ">",
    operator.ge: ">=",
    operator.eq: "==",
    operator.ne: "!=",
}
_BITS = {operator.and_: "&", operator.or_: "|", operator.xor: "^"}


class NoTerm(Exception):
    """What a function does has no term of the loop language: the compiler of Python functions has it."""


def value_of_constant(given: object) -> Value:
    """Return a number or truth value of Python as a value; raises `NoTerm`."""
    if isinstance(given, Value):
        return given
    if isinstance(given, bool):
        return Value(Number(given, Machine.BOOL))
    if type(given) is int and WHOLE_I64.low <= given <= WHOLE_I64.high:
        interval = IntegerRange(given, given)
        return Value(
            Number(given, Machine.I32 if interval.fits_i32 else Machine.I64), None, interval
        )
    if type(given) is float and math.isfinite(given):
        return Value(Number(given, Machine.F64))
    raise NoTerm


def is_real(value: Value) -> bool:
    return value.term.type in _REALS


def as_real(value: Value) -> Value:
    """Python's float() of a number."""
    if value.term.type is Machine.BOOL:
        value = as_whole(value)
    return Value(convert(value.term, Machine.F64))


def as_whole(value: Value) -> Value:
    """A truth value or a whole number as one that can be computed with; raises `NoTerm` for a double."""
    if value.term.type is Machine.BOOL:
        return Value(Convert(value.term, Machine.I32), None, _BIT)
    if value.interval is None:
        raise NoTerm
    return value


def as_truth(value: Value) -> Term:
    """Python's bool() of a number."""
    if value.term.type is Machine.BOOL:
        return value.term
    zero = Number(0.0 if is_real(value) else 0, value.term.type)
    return Apply("!=", (value.term, zero), Machine.BOOL)


def chosen(condition: Term, yes: Value, no: Value) -> Value:
    """One of two values of a kind; raises `NoTerm` for different ones, of which Python would give either."""
    kinds = {"real" if is_real(v) else v.term.type is Machine.BOOL for v in (yes, no)}
    if len(kinds) > 1:
        raise NoTerm
    if yes.interval is None or no.interval is None:
        return Value(Select(condition, yes.term, no.term, yes.term.type))
    interval = yes.interval.union(no.interval)
    machine = Machine.I32 if interval.fits_i32 else Machine.I64
    term = Select(condition, convert(yes.term, machine), convert(no.term, machine), machine)
    return Value(term, None, interval)


@dataclass(frozen=True, slots=True)
class PythonOperators:
    """PythonOperators in a row that gets here where `reached` holds, None for all."""

    kernel: ProgramBuilder
    reached: Term | None

    def apply(self, sign: Callable[..., object], left: Value, right: Value) -> Value:
        """Return the value of an infix operator; raises `NoTerm`."""
        if sign in _COMPARISONS:
            return self._compared(_COMPARISONS[sign], left, right)
        if sign in _BITS:
            return self._of_bits(_BITS[sign], left, right)
        if sign is operator.truediv:
            return self._divided(left, right)
        if is_real(left) or is_real(right):
            return self._of_reals(sign, as_real(left), as_real(right))
        rule = _WHOLE.get(sign)
        if rule is None:
            raise NoTerm
        return rule(self, as_whole(left), as_whole(right))

    def negative(self, value: Value) -> Value:
        if is_real(value):
            return Value(Apply("-", (value.term,), value.term.type))
        return self.computed(subtract, value_of_constant(0), as_whole(value))

    def inverted(self, value: Value) -> Value:
        return self.computed(subtract, value_of_constant(-1), as_whole(value))

    def size(self, value: Value) -> Value:
        """Python's abs()."""
        if is_real(value):
            size = Function("absolute", (value.term,), Machine.F64)
            return Value(Apply("+", (size, Number(0.0, Machine.F64)), Machine.F64))  # not -0.0
        value = as_whole(value)
        assert value.interval is not None
        if value.interval.low >= 0:
            return value
        minus = self.negative(value)
        below: Term = Apply("<", (value.term, Number(0, value.term.type)), Machine.BOOL)
        found = chosen(below, minus, value)
        interval = IntegerRange(0, min(value.interval.magnitude, WHOLE_I64.high))
        return replace(found, interval=interval)

    def extreme(self, sign: Callable[..., object], args: Sequence[Value]) -> Value:
        """Python's min() and max(): the first of those that are alike, also among NaN."""
        best = args[0]
        for other in args[1:]:
            better = self.apply(sign, other, best).term
            made = chosen(better, other, best)
            best = replace(made, term=self.kernel.name(made.term, "extreme"))
        return best

    def of_math(self, name: str, args: Sequence[Value]) -> Value:
        """A function of `math` over doubles: one that has no finite result raises, if it is so."""
        terms = tuple(as_real(a).term for a in args)
        found = self.kernel.name(Function(f"math.{name}", terms, Machine.F64), name)
        nothing = Apply("-", (found, found), Machine.F64)  # NaN of what is not finite
        self.doubt(Apply("!=", (nothing, Number(0.0, Machine.F64)), Machine.BOOL))
        return Value(found)

    def doubt(self, condition: Term) -> None:
        doubt(condition, [self.reached], self.kernel)

    def computed(
        self, rule: Callable[[Value, Value, ProgramBuilder], Value], left: Value, right: Value
    ) -> Value:
        """Return the value of a rule of SQL's arithmetic, which doubts valid rows alone."""
        found = rule(replace(left, valid=self.reached), replace(right, valid=None), self.kernel)
        return replace(found, valid=None)

    def _compared(self, sign: str, left: Value, right: Value) -> Value:
        if is_real(left) or is_real(right):
            for side in (left, right):
                self._doubt_inexact(side)
            left, right = as_real(left), as_real(right)
        else:
            left, right = as_whole(left), as_whole(right)
        machine = left.term.type if left.term.type is right.term.type else Machine.I64
        operands = (self._limit(left.term, machine), self._limit(right.term, machine))
        return Value(Apply(sign, operands, Machine.BOOL))

    def _limit(self, term: Term, machine: Machine) -> Term:
        """An operand of a comparison; a constant is an argument of the kernel, as SQL's are: of one that it knows, LLVM made a branch (2.7 times the time)."""
        if not isinstance(term, Number):
            return convert(term, machine)
        return self.kernel.parameter(term.value, machine, "constant of a Python function")

    def _doubt_inexact(self, value: Value) -> None:
        """Python compares and divides whole numbers as they are, and not as doubles."""
        interval = value.interval
        if interval is None or (EXACT.low <= interval.low and interval.high <= EXACT.high):
            return
        wide = convert(value.term, Machine.I64)
        low, high = (Number(bound, Machine.I64) for bound in (EXACT.low, EXACT.high))
        below = Apply("<", (wide, low), Machine.BOOL)
        above = Apply(">", (wide, high), Machine.BOOL)
        self.doubt(Apply("|", (below, above), Machine.BOOL))

    def _of_bits(self, sign: str, left: Value, right: Value) -> Value:
        if left.term.type is right.term.type is Machine.BOOL:
            term = Apply("!=" if sign == "^" else sign, (left.term, right.term), Machine.BOOL)
            return Value(term)
        left, right = as_whole(left), as_whole(right)
        assert left.interval is not None
        assert right.interval is not None
        both = left.interval.union(right.interval)
        bits = max((~v if v < 0 else v).bit_length() for v in (both.low, both.high))
        interval = IntegerRange(0 if both.low >= 0 else -(1 << bits), (1 << bits) - 1)
        machine = Machine.I32 if interval.fits_i32 else Machine.I64
        operands = (convert(left.term, machine), convert(right.term, machine))
        return Value(Apply(sign, operands, machine), None, interval)

    def _of_reals(self, sign: Callable[..., object], left: Value, right: Value) -> Value:
        signs = {operator.add: "+", operator.sub: "-", operator.mul: "*"}
        if sign not in signs:
            raise NoTerm
        return Value(Apply(signs[sign], (left.term, right.term), Machine.F64))

    def _divided(self, left: Value, right: Value) -> Value:
        if not is_real(left) and not is_real(right):  # Python rounds their quotient once
            left, right = as_whole(left), as_whole(right)
            self._doubt_inexact(left)
            self._doubt_inexact(right)
        divisor = self.kernel.name(as_real(right).term, "divisor")
        if not _is_never_zero(right):
            self.doubt(Apply("==", (divisor, Number(0.0, Machine.F64)), Machine.BOOL))
        return Value(Apply("/", (as_real(left).term, divisor), Machine.F64))

    def parted(self, sign: str, left: Value, right: Value) -> tuple[Term, list[IntegerRange]]:
        """Return a quotient rounded down, or its remainder, and intervals of divisors, of which none holds zero."""
        a, b = left.interval, right.interval
        assert a is not None
        assert b is not None
        narrow = a.fits_i32 and b.fits_i32 and (-a).fits_i32
        machine = Machine.I32 if narrow else Machine.I64
        above = self.kernel.name(convert(left.term, machine), "dividend")
        below = self.kernel.name(convert(right.term, machine), "divisor")
        bad: list[Term] = []
        if b.low <= 0 <= b.high:
            bad.append(Apply("==", (below, Number(0, machine)), Machine.BOOL))
        if a.low == WHOLE_I64.low and b.low <= -1 <= b.high:
            least = Apply("==", (above, Number(a.low, machine)), Machine.BOOL)
            minus = Apply("==", (below, Number(-1, machine)), Machine.BOOL)
            bad.append(Apply("&", (least, minus), Machine.BOOL))
        if bad:
            none = self.kernel.name(all_together("|", bad), "no_quotient")
            self.doubt(none)
            below = Select(none, Number(1, machine), below, machine)
        sides = (IntegerRange(b.low, min(b.high, -1)), IntegerRange(max(b.low, 1), b.high))
        return Apply(sign, (above, below), machine), [s for s in sides if s.low <= s.high]


def _is_never_zero(value: Value) -> bool:
    if value.interval is None:
        return isinstance(value.term, Number) and value.term.value != 0
    return value.interval.low > 0 or value.interval.high < 0


def _floor(at: PythonOperators, left: Value, right: Value) -> Value:
    term, divisors = at.parted("//", left, right)
    assert left.interval is not None
    ends = (left.interval.low, left.interval.high)
    found = [a // b for side in divisors for a in ends for b in (side.low, side.high)] or [0]
    return Value(term, None, IntegerRange(min(found), min(max(found), WHOLE_I64.high)))


def _remainder(at: PythonOperators, left: Value, right: Value) -> Value:
    term, divisors = at.parted("%", left, right)
    low = min((side.low + 1 for side in divisors if side.low < 0), default=0)
    high = max((side.high - 1 for side in divisors if side.low > 0), default=0)
    return Value(term, None, IntegerRange(low, high))


def _power(at: PythonOperators, left: Value, right: Value) -> Value:
    """A constant power multiplied out: where a part overflows, the whole does."""
    if not isinstance(right.term, Number) or not 1 <= right.term.value <= MOST_POWER:
        raise NoTerm
    base, found, left_over = left, None, int(right.term.value)
    while left_over:
        if left_over & 1:
            found = base if found is None else at.computed(multiply, found, base)
        left_over >>= 1
        if left_over:
            base = at.computed(multiply, base, base)
            base = replace(base, term=at.kernel.name(base.term, "power"))
    assert found is not None
    return found


def _shifted_back(at: PythonOperators, left: Value, right: Value) -> Value:
    if not isinstance(right.term, Number) or not 0 <= right.term.value <= MOST_SHIFT:
        raise NoTerm
    by = int(right.term.value)
    assert left.interval is not None
    if left.term.type is Machine.I32:
        by = min(by, 31)
    interval = IntegerRange(left.interval.low >> by, left.interval.high >> by)
    term = Apply(">>", (left.term, Number(by, left.term.type)), left.term.type)
    return Value(term, None, interval)


_Rule = Callable[[PythonOperators, Value, Value], Value]
_WHOLE: Mapping[Callable[..., object], _Rule] = {
    operator.add: lambda at, a, b: at.computed(add, a, b),
    operator.sub: lambda at, a, b: at.computed(subtract, a, b),
    operator.mul: lambda at, a, b: at.computed(multiply, a, b),
    operator.floordiv: _floor,
    operator.mod: _remainder,
    operator.pow: _power,
    operator.rshift: _shifted_back,
}
