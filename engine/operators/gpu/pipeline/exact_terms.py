"""Terms over the accumulators of many groups, in device columns: integers exactly, in 64 or 128 bits, as far as both are known to hold them.

Deviations of a million groups take some 12 passes of 0.05 ms here, where the host takes 50 ms for them (TPC-DS Q39 at SF10, H200).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import pylibcudf as plc

from ....codegen.groups.accumulate import Folded
from ....codegen.loop import Apply, Convert, Function, Machine, Name, Number, Select, Term, subterms
from ..columns import BOOL, FLOAT64, HUGE, INT64, binary, cast, mean, reinterpret, scalar, select
from ..late_materialization import Bounds

Op = plc.binaryop.BinaryOperator

OPERATORS = {
    "+": Op.ADD,
    "-": Op.SUB,
    "*": Op.MUL,
    "/": Op.DIV,
    "^": Op.BITWISE_XOR,
    "<": Op.LESS,
    ">": Op.GREATER,
    "!=": Op.NOT_EQUAL,
}
TYPES = {Machine.I64: INT64, Machine.F64: FLOAT64, Machine.BOOL: BOOL}
WORD, WIDE = 1 << 63, 1 << 127  # which magnitudes have to be below in 64 and in 128 bits


def magnitudes(folded: Folded, rows: int, bounds: Mapping[int, Bounds]) -> Mapping[int, int]:
    """Return bounds of the magnitudes of accumulators, of intervals that hold some of them.

    `rows` is the one that counts the groups' rows: no call counts more values.
    """
    most = {number: max(abs(low), abs(high)) for number, (low, high) in bounds.items()}
    if rows in most:
        counted = folded.accumulators[-1]
        most[counted] = min(most.get(counted, WORD), most[rows])
    return most


def fits(term: Term, most: Mapping[int, int]) -> bool:
    """Whether all integers that a term is made of have 128 bits."""
    return all(
        largest(part, most) < WIDE
        for part in subterms(term)
        if isinstance(part, Apply) and part.type is Machine.WIDE and part.operator != "/"
    )


def largest(term: Term, most: Mapping[int, int]) -> int:
    """Return a bound of the magnitudes of a term of integers."""
    match term:
        case Name(text):
            return most.get(int(text), WORD)
        case Number(value):
            return abs(int(value))
        case Apply(sign, (left, right)):
            one, other = largest(left, most), largest(right, most)
            return one * other if sign == "*" else one + other
        case Select(_, yes, no):
            return max(largest(yes, most), largest(no, most))
        case Convert(part):
            return largest(part, most)
        case Function("whole", parts):
            return WORD if len(parts) == 1 else WORD + (WORD << 32)
    raise AssertionError(term)


def evaluated(
    term: Term, columns: Mapping[int, plc.Column], most: Mapping[int, int]
) -> plc.Column | plc.Scalar:
    """Compute a term that `fits` over variables that are called by the accumulators' numbers: a column, or a scalar."""
    match term:
        case Name(text):
            return columns[int(text)]
        case Number(value, machine):
            return scalar(value, TYPES[machine])
        case Convert(part, Machine.WIDE):
            return evaluated(part, columns, most)
        case Convert(part, machine):
            return cast(evaluated(part, columns, most), TYPES[machine])
        case Apply(_, (_, _), Machine.WIDE):
            return _exact(term, columns, most)
        case Select(condition, yes, no, Machine.WIDE):
            width = _width(term, most)
            chosen = (_in(part, width, columns, most) for part in (yes, no))
            return select(evaluated(condition, columns, most), *chosen)
    operands = [evaluated(part, columns, most) for part in term.parts]
    match term:
        case Apply(operator, _, machine):
            left, right = operands
            return binary(left, right, OPERATORS[operator], TYPES[machine])
        case Select():
            return select(*operands)
        case Function("mean", (*_, Number(unit))):
            *parts, count, _ = operands
            return mean(_whole(parts), count, unit)
        case Function("double_of_bits"):
            return reinterpret(operands[0], FLOAT64)
        case Function("sqrt"):
            return plc.unary.unary_operation(operands[0], plc.unary.UnaryOperator.SQRT)
        case Function("whole"):
            return _whole(operands)
    raise AssertionError(term)


def _exact(term: Apply, columns: Mapping[int, plc.Column], most: Mapping[int, int]) -> plc.Column:
    """Apply an operator to integers in the fewest bits that hold them and the result; quotients are doubles."""
    left, right = term.args
    if term.operator == "*" and isinstance(right, Number) and right.value == 1:
        return evaluated(left, columns, most)
    width = FLOAT64 if term.operator == "/" else _width(term, most)
    one, other = (_in(part, width, columns, most) for part in (left, right))
    return binary(one, other, OPERATORS[term.operator], width)


def _width(term: Term, most: Mapping[int, int]) -> plc.DataType:
    """The type that holds a term of integers and what it is made of."""
    parts = [term, *(term.args if isinstance(term, Apply) else ())]
    return INT64 if all(largest(part, most) < WORD for part in parts) else HUGE


def _in(
    term: Term, width: plc.DataType, columns: Mapping[int, plc.Column], most: Mapping[int, int]
) -> plc.Column | plc.Scalar:
    """The value of a term of integers in a type."""
    if isinstance(term, Number):
        return scalar(float(term.value) if width is FLOAT64 else int(term.value), width)
    return cast(evaluated(term, columns, most), width)


def _whole(parts: Sequence[plc.Column]) -> plc.Column:
    """A sum: FLOAT64, INT64, or two limbs put together."""
    low, *rest = parts
    if not rest:
        return low
    upper = binary(cast(rest[0], HUGE), scalar(1 << 32, HUGE), Op.MUL, HUGE)
    return binary(upper, cast(low, HUGE), Op.ADD, HUGE)
