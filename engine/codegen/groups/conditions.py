"""Conditions on groups (HAVING) as terms over accumulators, so that a group is dropped before anything of it is copied.

The term may be evaluated for slots that hold no group too, whose accumulators are still what these begin with.

Sums that a kernel adds in two parts, compared exactly: integers of up to 96 bits as two registers.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import cast

from ...plan import expr as ex
from ...plan.functions import COMPARISONS, MIRRORED, SCALAR, STRICT
from ...plan.node import transform_up
from ...plan.shapes.guards import computed
from ...plan.types import BIGINT, Kind
from ...records import dataclass
from .. import loop as ir
from ..expressions.arithmetic import convert
from ..expressions.constants import whole_constant
from ..expressions.translate import translate
from ..program import Program
from ..program_builder import ROW_LIMIT, ProgramBuilder
from ..ranges import I64_MAX, IntegerRange
from ..row_sources import LeafColumns
from ..typed_values import NotFusable, Parameter, Value, machine_of_float, truth
from .accumulate import Folded
from .grouping import GroupKey

FOLDED_ROWS = 1 << 31  # of a group, for which sums in parts are exact where rows repeat


GROUP = ir.Name("group", ir.Machine.I64)  # the number that keys make together


@dataclass(frozen=True, slots=True)
class Condition:
    """Which groups stay: `keep` over elements of accumulators, which are called `element(number)`, over parameters and over `lets`.

    `numbered`: over `GROUP` too, since it reads keys.
    """

    keep: ir.Term
    accumulators: tuple[int, ...]
    parameters: tuple[Parameter, ...]
    numbered: bool = False
    lets: tuple[ir.Let, ...] = ()  # what is read often, named before


def element(number: int) -> str:
    """The name of a group's element of an accumulator."""
    return f"a{number}"


def condition_of(predicate: ex.Expr, program: Program) -> Condition:
    """Translate a condition on a program's groups; raises `NotFusable` for what accumulators do not show.

    Where rows repeat, groups of so many rows stay that their sums may be wrong, so that somebody notices.
    """
    kernel = ProgramBuilder(cast("LeafColumns", None))  # there is no table to read of
    elements = _Elements(program)
    called = {f.column: (f, c) for f, c in zip(program.folded, program.calls, strict=True)}
    keys = {} if program.grouping is None else {k.column: k for k in program.grouping.keys}
    for column in ex.columns_of(predicate):
        if column in called:
            kernel.deferred[column] = partial(elements.value, *called[column])
        elif column in keys:
            kernel.deferred[column] = partial(elements.key, keys[column])
        else:
            raise NotFusable(f'the condition on groups reads the key "{column.name}"')
    sums = ((c, f) for c, (f, _) in called.items() if elements.term(f).type is ir.Machine.WIDE)
    wide = dict(sums)
    predicate = transform_up(predicate, partial(_compared, wide, elements, kernel))
    keep = translate(predicate, kernel).term
    if kernel.doubts:
        raise NotFusable("the condition on groups may need more than 64 bits")
    if program.counted is not None and (program.repeats or wide):
        many = ir.Number(FOLDED_ROWS, ir.Machine.I64)
        count = elements.read(program.counted)
        keep = ir.Apply(
            "|", (keep, ir.Apply(">=", (count, many), ir.Machine.BOOL)), ir.Machine.BOOL
        )
    lets = tuple(s for s in kernel.blocks[0].statements if isinstance(s, ir.Let))
    if kernel.tables or kernel.buffers or len(lets) < len(kernel.blocks[0].statements):
        raise NotFusable("the condition on groups looks values up")
    if kernel.functions:
        raise NotFusable("the condition on groups calls a Python function that has no terms")
    numbered = GROUP.text in ir.names_in(keep, *(let.value for let in lets))
    return Condition(keep, tuple(elements.used), tuple(kernel.parameters), numbered, lets)


def _compared(
    wide: Mapping[ex.Column, Folded], elements: _Elements, kernel: ProgramBuilder, node: ex.Expr
) -> ex.Expr | None:
    """Have a comparison with a sum in two parts made of the parts."""
    if not isinstance(node, ex.Call) or node.function not in COMPARISONS & STRICT:
        return None
    name, (left, right) = node.function, node.args
    sums = [isinstance(e, ex.ColumnRef) and e.column in wide for e in (left, right)]
    if not any(sums) or left.type.scale != right.type.scale:
        return None

    def parts(expr: ex.Expr) -> Parts:
        if isinstance(expr, ex.ColumnRef) and expr.column in wide:
            return elements.parts(wide[expr.column])
        number = whole_constant(expr) if isinstance(expr, ex.Literal) else None
        if number is not None:
            return parts_of_constant(number, f"{expr.type} constant", kernel)
        value = translate(expr, kernel)
        if value.interval is None:
            raise NotFusable("the condition on groups reads a sum of more than 64 bits")
        return parts_of_value(value)

    made = ex.new_column("compared", node.type)
    kernel.deferred[made] = lambda: compare_parts(name, parts(left), parts(right))
    return ex.ColumnRef(made)


class _Elements:
    """Results of aggregates as values over their accumulators; `used` are those that are read."""

    def __init__(self, program: Program) -> None:
        self.program = program
        self.used: dict[int, None] = {}

    def read(self, number: int) -> ir.Name:
        self.used.setdefault(number)
        return ir.Name(element(number), self.program.accumulators[number].machine)

    def term(self, folded: Folded) -> ir.Term:
        """A call's value in a group."""
        machines = [self.program.accumulators[n].machine for n in folded.accumulators]
        pairs = zip(folded.accumulators, machines, strict=True)
        return folded.finish([ir.Name(element(n), machine) for n, machine in pairs])

    def value(self, folded: Folded, call: ex.AggregateCall) -> Value:
        if folded.distinct is not None or folded.values is not None:
            raise NotFusable(f"the condition on groups reads {call.function}()")
        term = self.term(folded)
        for number in folded.accumulators:
            if element(number) in ir.names_in(term):
                self.read(number)
        valid = self.valid(folded)
        match term:
            case ir.Name(type=ir.Machine.I64):
                return Value(term, valid, self.interval(folded.accumulators[0]))
            case ir.Function("mean", (total, count, ir.Number() as unit)):
                term = _quotient(total, count, unit)
            case ir.Function("mean" | "whole"):
                raise NotFusable("the condition on groups reads a sum of more than 64 bits")
        if term.type is ir.Machine.BOOL:
            return truth(term, valid)
        return Value(convert(term, machine_of_float(folded.column.type)), valid)

    def key(self, key: GroupKey) -> Value:
        """A group key, which is a part of the group's number."""
        if key.values is not None:
            raise NotFusable(f'the condition on groups reads the key "{key.column.name}"')
        grouping = self.program.grouping
        assert grouping is not None
        part: ir.Term = GROUP
        if key.stride != 1:
            part = ir.Apply("//", (part, ir.Number(key.stride, ir.Machine.I64)), ir.Machine.I64)
        if key.size * key.stride < grouping.groups:
            part = ir.Apply("%", (part, ir.Number(key.size, ir.Machine.I64)), ir.Machine.I64)
        last = key.size - 1
        valid = None
        if key.nullable:
            valid = ir.Apply("<", (part, ir.Number(last, ir.Machine.I64)), ir.Machine.BOOL)
        if key.step != 1:
            part = ir.Apply("*", (part, ir.Number(key.step, ir.Machine.I64)), ir.Machine.I64)
        term: ir.Term = ir.Apply("+", (part, ir.Number(key.low, ir.Machine.I64)), ir.Machine.I64)
        if key.column.type.kind is Kind.BOOLEAN:
            return truth(
                ir.Apply("!=", (term, ir.Number(0, ir.Machine.I64)), ir.Machine.BOOL), valid
            )
        if key.column.type.is_float:  # a whole number
            return Value(convert(term, machine_of_float(key.column.type)), valid)
        high = key.low + (last - key.nullable) * key.step
        return Value(term, valid, IntegerRange(key.low, high), step=key.step)

    def parts(self, folded: Folded) -> Parts:
        """A sum in two parts."""
        low, high = (self.read(number) for number in folded.accumulators[:-1])
        return parts_of_sum(low, high, self.valid(folded))

    def valid(self, folded: Folded) -> ir.Term | None:
        """Whether any value of a group counted; None where its existence says so."""
        grouping = self.program.grouping
        count, least = folded.accumulators[-1], folded.least
        if least == 0 or (least == 1 and grouping is not None and count == grouping.rows):
            return None
        return ir.Apply(
            ">", (self.read(count), ir.Number(least - 1, ir.Machine.I64)), ir.Machine.BOOL
        )

    @property
    def rows(self) -> int:
        """How many rows a group may have."""
        return I64_MAX if self.program.repeats else max(self.program.relations[0].rows, 1)

    def interval(self, number: int) -> IntegerRange:
        """What an accumulator of integers may hold."""
        accumulator = self.program.accumulators[number]
        if accumulator.term == ir.Number(1, ir.Machine.I64):
            return IntegerRange(0, self.rows)
        most = accumulator.magnitude
        if accumulator.fold == "add":
            rows = ROW_LIMIT if self.program.repeats else self.rows
            most = I64_MAX if most is None else min(most * rows, I64_MAX)
        return IntegerRange(-I64_MAX - 1, I64_MAX) if most is None else IntegerRange(-most, most)


def _quotient(total: ir.Term, count: ir.Term, unit: ir.Number) -> ir.Term:
    """A mean, divided once as finished ones are."""
    one = ir.Number(1, ir.Machine.I64)
    some = ir.Apply(">", (count, one), ir.Machine.BOOL)
    divisor = convert(ir.Select(some, count, one, ir.Machine.I64), ir.Machine.F64)
    if unit.value != 1:
        divisor = ir.Apply("*", (divisor, unit), ir.Machine.F64)
    return ir.Apply("/", (convert(total, ir.Machine.F64), divisor), ir.Machine.F64)


LOW_BITS = 32
LOW = (1 << LOW_BITS) - 1
LARGEST = 1 << 95  # beyond which no sum is


@dataclass(frozen=True, slots=True)
class Parts:
    """An integer as `high` * 2**32 + `low`, of which the latter is below 2**32; `valid` as that of a `Value`."""

    high: ir.Term
    low: ir.Term
    valid: ir.Term | None = None


def parts_of_sum(low: ir.Term, high: ir.Term, valid: ir.Term | None) -> Parts:
    """What two accumulators hold: the low 32 bits of all values added, and all that is above them."""
    carried = ir.Apply("+", (high, _shifted(low)), ir.Machine.I64)
    return Parts(carried, _masked(low), valid)


def parts_of_value(value: Value) -> Parts:
    wide = convert(value.term, ir.Machine.I64)
    return Parts(_shifted(wide), _masked(wide), value.valid)


def parts_of_constant(number: ex.Literal, meaning: str, kernel: ProgramBuilder) -> Parts:
    """A constant of a query."""
    high, low = (computed(part, number, data_type=BIGINT) for part in (_high, _low))
    first = kernel.parameter(high, ir.Machine.I64, f"{meaning}, above 32 bits")
    last = kernel.parameter(low, ir.Machine.I64, f"{meaning}, its 32 bits")
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
    same = ir.Apply("==", (left.high, right.high), ir.Machine.BOOL)
    if SCALAR[name].bound != "upper":
        lows = ir.Apply("==", (left.low, right.low), ir.Machine.BOOL)
        term: ir.Term = ir.Apply("&", (same, lows), ir.Machine.BOOL)
        term = ir.negated(term) if name == "ne" else term
    else:
        lows = ir.Apply("<" if name == "lt" else "<=", (left.low, right.low), ir.Machine.BOOL)
        below = ir.Apply("<", (left.high, right.high), ir.Machine.BOOL)
        term = ir.Apply("|", (below, ir.Apply("&", (same, lows), ir.Machine.BOOL)), ir.Machine.BOOL)
    valid = ir.true_and([v for v in (left.valid, right.valid) if v is not None])
    return truth(term, valid)


def _shifted(term: ir.Term) -> ir.Term:
    return ir.Apply(">>", (term, ir.Number(LOW_BITS, ir.Machine.I64)), ir.Machine.I64)


def _masked(term: ir.Term) -> ir.Term:
    return ir.Apply("&", (term, ir.Number(LOW, ir.Machine.I64)), ir.Machine.I64)
