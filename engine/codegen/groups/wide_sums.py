"""Sums that a kernel adds in two parts, compared exactly: integers of up to 96 bits as two registers."""

from __future__ import annotations

from dataclasses import dataclass

from ...plan.expr import Literal
from ...plan.functions import MIRRORED, SCALAR
from ...plan.shapes.guards import computed
from ...plan.types import BIGINT
from ..expressions.arithmetic import convert
from ..loop import Apply, Machine, Number, Term, negated, true_and
from ..program_builder import ProgramBuilder
from ..typed_values import Value, truth

LOW_BITS = 32
LOW = (1 << LOW_BITS) - 1
LARGEST = 1 << 95  # beyond which no sum is


@dataclass(frozen=True, slots=True)
class Parts:
    """An integer as `high` * 2**32 + `low`, of which the latter is below 2**32; `valid` as that of a `Value`."""

    high: Term
    low: Term
    valid: Term | None = None


def parts_of_sum(low: Term, high: Term, valid: Term | None) -> Parts:
    """What two accumulators hold: the low 32 bits of all values added, and all that is above them."""
    carried = Apply("+", (high, _shifted(low)), Machine.I64)
    return Parts(carried, _masked(low), valid)


def parts_of_value(value: Value) -> Parts:
    wide = convert(value.term, Machine.I64)
    return Parts(_shifted(wide), _masked(wide), value.valid)


def parts_of_constant(number: Literal, meaning: str, kernel: ProgramBuilder) -> Parts:
    """A constant of a query."""
    high, low = (computed(part, number, data_type=BIGINT) for part in (_high, _low))
    first = kernel.parameter(high, Machine.I64, f"{meaning}, above 32 bits")
    last = kernel.parameter(low, Machine.I64, f"{meaning}, its 32 bits")
    return Parts(first, last)


def _high(number: int) -> int:
    return _reachable(number) >> LOW_BITS


def _low(number: int) -> int:
    return _reachable(number) & LOW


def _reachable(number: int) -> int:
    """Return a number, or what no sum reaches either for one that none reaches."""
    return min(max(number, -LARGEST), LARGEST - 1)


def compare_parts(name: str, left: Parts, right: Parts) -> Value:
    if SCALAR[name].bound == "lower":
        return compare_parts(MIRRORED[name], right, left)
    same = Apply("==", (left.high, right.high), Machine.BOOL)
    if SCALAR[name].bound != "upper":
        lows = Apply("==", (left.low, right.low), Machine.BOOL)
        term: Term = Apply("&", (same, lows), Machine.BOOL)
        term = negated(term) if name == "ne" else term
    else:
        lows = Apply("<" if name == "lt" else "<=", (left.low, right.low), Machine.BOOL)
        below = Apply("<", (left.high, right.high), Machine.BOOL)
        term = Apply("|", (below, Apply("&", (same, lows), Machine.BOOL)), Machine.BOOL)
    valid = true_and([v for v in (left.valid, right.valid) if v is not None])
    return truth(term, valid)


def _shifted(term: Term) -> Term:
    return Apply(">>", (term, Number(LOW_BITS, Machine.I64)), Machine.I64)


def _masked(term: Term) -> Term:
    return Apply("&", (term, Number(LOW, Machine.I64)), Machine.I64)
