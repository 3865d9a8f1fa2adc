"""Comparisons: of values, and of a column's code with a constant that was translated into codes beforehand."""

from __future__ import annotations

from ...plan.expr import Literal
from ...plan.functions import COMPARISONS, SCALAR, STRICT
from ...plan.shapes.guards import computed
from ...plan.text.concealed_text import concealed_name
from ...plan.types import BIGINT
from ..loop import Apply, Function, Machine, Name, Number, Term, negated, true_and
from ..program_builder import ProgramBuilder
from ..ranges import I32_MAX
from ..typed_values import Input, NotFusable, Value, truth
from .arithmetic import convert

SIGNS = {name: {"=": "==", "<>": "!="}.get(s := SCALAR[name].sign, s) for name in COMPARISONS}


def compare(name: str, left: Value, right: Value) -> Value:
    """Compare two values of one SQL type; NaN equals NaN and is above every number."""
    if left.values is not right.values:
        raise NotFusable("a comparison of strings of different dictionaries")
    valid = true_and([v for v in (left.valid, right.valid) if v is not None])
    if name not in STRICT:
        return _distinct(name, left, right)
    return truth(_ordered(name, left, right), valid)


def _code_bound(value: int, sign: str, base: int, step: int, last: int) -> int:
    floor, exact = (value - base) // step, (value - base) % step == 0
    if sign in ("<", ">="):
        bound = floor if exact else floor + 1
    elif sign in ("<=", ">"):
        bound = floor
    else:
        bound = floor if exact else -1
    # A bound outside of the codes keeps its meaning when it is moved next to them
    return min(max(bound, -1), last + 1)


def _ordered(name: str, left: Value, right: Value) -> Term:
    if left.term.type in (Machine.F32, Machine.F64):
        # Order-preserving integers of the bits: -0.0 becomes 0.0, NaN the largest
        a: Term = Function("order_of_double", (convert(left.term, Machine.F64),), Machine.I64)
        b: Term = Function("order_of_double", (convert(right.term, Machine.F64),), Machine.I64)
        return Apply(SIGNS[name], (a, b), Machine.BOOL)
    machine = _common(left.term.type, right.term.type)
    operands = (convert(left.term, machine), convert(right.term, machine))
    return Apply(SIGNS[name], operands, Machine.BOOL)


def _common(left: Machine, right: Machine) -> Machine:
    if left is right:
        return Machine.I32 if left is Machine.BOOL else left
    return Machine.I64 if Machine.I64 in (left, right) else Machine.I32


def _distinct(name: str, left: Value, right: Value) -> Value:
    same = _ordered("eq", left, right)
    if left.valid is not None or right.valid is not None:
        always: Term = Number(True, Machine.BOOL)
        a, b = left.valid or always, right.valid or always
        both = true_and([same, a, b])
        neither = true_and([negated(a), negated(b)])
        assert both is not None
        assert neither is not None
        same = Apply("|", (both, neither), Machine.BOOL)
    return Value(same if name == "is_not_distinct" else negated(same))


def compare_with_constant(
    name: str, code: Name, source: Input, value: Literal, valid: Term | None, kernel: ProgramBuilder
) -> Value:
    """Column <op> value as code <op> constant: base + step * code < value is code < ceil((value - base) / step)."""
    last = (source.codes or 1) - 1
    sign = SIGNS[name if name in STRICT else "eq" if name == "is_not_distinct" else "ne"]
    described = sign, source.base, source.step, last
    limited = computed(_code_bound, value, *described, data_type=BIGINT)
    machine = Machine.I64 if last + 1 > I32_MAX else code.type
    wanted = f"{SCALAR[name].sign.upper()} constant, as a code"
    meaning = f"{concealed_name(source.column.name)} {wanted}"
    constant = kernel.parameter(limited, machine, meaning)
    term: Term = Apply(sign, (convert(code, machine), constant), Machine.BOOL)
    if name == "is_not_distinct":
        return Value(term if valid is None else Apply("&", (term, valid), Machine.BOOL))
    if name == "is_distinct":
        return Value(term if valid is None else Apply("|", (term, negated(valid)), Machine.BOOL))
    return truth(term, valid)
