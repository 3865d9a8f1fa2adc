"""Whole numbers in kernels: a term with Python's operators, remainders and quotients as SQL has them.

`Whole` lets a formula be written once for terms and for Python's own integers, of which intervals are made.
"""

from __future__ import annotations

from dataclasses import dataclass

from ...plan.expr import Call
from ..loop import Apply, Machine, Number, Select, Term, true_and
from ..program_builder import ProgramBuilder
from ..ranges import IntegerRange
from ..typed_values import Value
from .arithmetic import checked, convert, doubt


@dataclass(frozen=True, slots=True)
class Whole:
    """An integer term; `//` and `%` round down, as Python's do, and what is computed has to fit the register."""

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
    """`a % b` of integers, which has the sign of a."""
    found = _parted("%", expr, args, kernel)
    if found is None:
        return None
    term, valid, a, b = found
    most = min(max(b.magnitude - 1, 0), a.magnitude)
    interval = IntegerRange(-most if a.low < 0 else 0, most if a.high > 0 else 0)
    return Value(term, valid, interval)


def quotient(expr: Call, args: list[Value], kernel: ProgramBuilder) -> Value | None:
    """`a // b` of integers, toward zero."""
    found = _parted("//", expr, args, kernel)
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
    if not all(a.type.is_integer for a in (*expr.args, expr)):
        return None
    a, b = args
    if a.interval is None or b.interval is None:
        return None
    least = expr.type.integer_range[0]
    if (a.interval.low <= least and b.interval.low < 0) or not (-b.interval).fits_i64:
        return None  # the least number has no opposite
    narrow = all(i.fits_i32 and (-i).fits_i32 for i in (a.interval, b.interval))
    machine = Machine.I32 if narrow else Machine.I64
    valid = [v for v in (a.valid, b.valid) if v is not None]
    zero = Number(0, machine)
    left = kernel.name(convert(a.term, machine), "dividend")
    right = kernel.name(convert(b.term, machine), "divisor")
    above = _size(a, left, machine)
    below = _size(b, right, machine)
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


def _size(value: Value, term: Term, machine: Machine) -> Term:
    """The absolute value of a term."""
    assert value.interval is not None
    if value.interval.low >= 0:
        return term
    below: Term = Apply("<", (term, Number(0, machine)), Machine.BOOL)
    return Select(below, Apply("-", (term,), machine), term, machine)


def _has_zero(interval: IntegerRange) -> bool:
    return interval.low <= 0 <= interval.high
