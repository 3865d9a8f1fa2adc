"""Accumulators of many groups, which stay on the device, as result columns: the groups that exist, their keys, exact aggregates.

What few aggregates need that libcudf has not (variances of more than 64 bits) is finished on the host, as that of few groups is.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import pylibcudf as plc

from ...codegen.accumulate import Folded
from ...codegen.grouping import Grouping, Key
from ...codegen.results import arrow_array
from ...codegen.steps import Program
from ...plan.expr import AggregateCall
from ...plan.types import DataType
from ...storage.device_decode import REGISTERS
from .buffers import Memory
from .columns import (
    BOOL,
    FLOAT64,
    HUGE,
    INT32,
    INT64,
    binary,
    cast,
    constant,
    reinterpret,
    scalar,
    select,
    sequence,
    where_true,
)
from .dictionaries import Held, numbered
from .gather import late_columns
from .prepared import Sink
from .relations import Relations
from .stored import keys_of
from .table import Table, device_type, to_device

Op = plc.binaryop.BinaryOperator
I64_MAX = 2**63 - 1


@dataclass(frozen=True)
class Groups:
    """The groups that exist: their numbers (INT64), and accumulators by number."""

    numbers: plc.Column
    accumulators: Mapping[int, plc.Column]

    @property
    def count(self) -> int:
        return int(self.numbers.size())


def many_groups(program: Program, groups: Groups, relations: Relations) -> Table:
    """Return the result of an aggregate whose groups are on the device."""
    grouping = program.grouping
    assert grouping is not None
    columns: dict[int, Held] = {}
    for key in grouping.keys:
        columns[key.column.id] = _key(key, grouping, groups)
    for folded, call in zip(program.folded, program.calls, strict=True):
        columns[folded.column.id] = _finished(folded, call, program, groups)
    if grouping.row is None:
        return Table(columns, groups.count)
    rows = {grouping.row: cast(groups.numbers, INT32)}
    for number, at in grouping.rows_of:
        rows[number] = cast(groups.accumulators[at], INT32)
    return Table(late_columns(program, relations, rows, groups.count, columns), groups.count)


def existing_groups(program: Program, sink: Sink, memory: Memory) -> Groups:
    """Pick the groups that rows fell into."""
    grouping = program.grouping
    assert grouping is not None
    places = sink.where.results()
    arrays = {"out_i": (sink.out_i, INT64), "out_f": (sink.out_f, FLOAT64)}
    found: list[plc.Column] = []
    for number in range(len(program.accumulators)):
        array, row = places[number]
        span, data_type = arrays[array]
        found.append(memory.column(span.part(row * sink.groups, sink.groups), data_type))
    if sink.keys is not None:
        numbers = memory.column(sink.keys, INT64)
        there = binary(numbers, scalar(0, INT64), Op.GREATER_EQUAL, BOOL)
    else:
        numbers = sequence(sink.groups, data_type=INT64)
        there = binary(found[grouping.rows], scalar(0, INT64), Op.GREATER, BOOL)
    kept = plc.stream_compaction.apply_retention_mask(plc.Table([numbers, *found]), there)
    numbers, *accumulators = kept.columns()
    return Groups(numbers, dict(enumerate(accumulators)))


def _key(key: Key, grouping: Grouping, groups: Groups) -> Held:
    """The values of a group key, which is a component of the groups' numbers."""
    whole = len(grouping.keys) == 1 and grouping.inner == 1
    part = groups.numbers
    if key.stride != 1:
        part = binary(part, scalar(key.stride, INT64), Op.DIV, INT64)
    if not whole:
        part = binary(part, scalar(key.size, INT64), Op.MOD, INT64)
    there = None
    if key.nullable:
        there = binary(part, scalar(key.size - 1, INT64), Op.NOT_EQUAL, BOOL)
    if key.values is None and key.low:
        part = binary(part, scalar(key.low, INT64), Op.ADD, INT64)
    return _as_type(part, there, key.column.type, key.values)


def _as_type(
    registers: plc.Column, there: plc.Column | None, data_type: DataType, strings: object
) -> Held:
    """Integers as in registers (codes of `strings`, days, unscaled decimals) in physical form, NULL where they are not there."""
    if strings is not None:
        codes = registers if there is None else where_true(registers, there)
        if not len(strings):  # type: ignore[arg-type]
            return constant(None, device_type(data_type), registers.size())
        return numbered(codes, keys_of(strings))
    values = from_registers(registers, device_type(data_type))
    return values if there is None else where_true(values, there)


def from_registers(registers: plc.Column, data_type: plc.DataType) -> plc.Column:
    """Return INT64 values as a type of numbers, dates or truth values."""
    kind = data_type.id()
    if kind == plc.TypeId.DECIMAL128:
        return reinterpret(cast(registers, HUGE), data_type)
    lying = plc.DataType(REGISTERS.get(kind, kind))
    return reinterpret(cast(registers, lying), data_type)


# Aggregates

Finish = Callable[["Call"], plc.Column]


@dataclass(frozen=True)
class Call:
    """An aggregate call with its accumulators, in the order of `Folded.accumulators`."""

    folded: Folded
    call: AggregateCall
    arrays: Sequence[plc.Column]

    @property
    def type(self) -> DataType:
        return self.folded.column.type

    @property
    def total(self) -> plc.Column:
        """The sum of all parts but the count: FLOAT64, INT64, or two limbs put together."""
        low, *rest = self.arrays[:-1]
        if not rest:
            return low
        upper = binary(cast(rest[0], HUGE), scalar(1 << 32, HUGE), Op.MUL, HUGE)
        return binary(upper, cast(low, HUGE), Op.ADD, HUGE)


def _finished(folded: Folded, call: AggregateCall, program: Program, groups: Groups) -> Held:
    """The values of a call; where it counted no value of a group, it is NULL."""
    arrays = [groups.accumulators[at] for at in folded.accumulators]
    given = Call(folded, call, arrays)
    if call.function in COUNTS:
        return from_registers(arrays[0], device_type(given.type))
    if call.function not in FINISHES:
        return _on_host(given)
    there = None
    # Groups exist by having rows: where all rows count, none has no value
    assert program.grouping is not None
    if folded.accumulators[-1] != program.grouping.rows:
        there = binary(arrays[-1], scalar(0, INT64), Op.GREATER, BOOL)
    if folded.values is not None:
        codes = arrays[0]
        if there is not None:
            codes = select(there, codes, scalar(0, INT64))
        return _as_type(codes, there, given.type, folded.values)
    values = FINISHES[call.function](given)
    return values if there is None else where_true(values, there)


def _sum(given: Call) -> plc.Column:
    if given.type.is_float:
        return cast(given.total, device_type(given.type))
    return reinterpret(cast(given.total, HUGE), device_type(given.type))


def _average(given: Call) -> plc.Column:
    """The exact sum divided once, as `aggregate_sums.avg` does."""
    divisor = cast(given.arrays[-1], FLOAT64)
    scale = given.call.args[0].type.scale
    if scale:
        divisor = binary(divisor, scalar(float(10**scale), FLOAT64), Op.MUL, FLOAT64)
    return binary(cast(given.total, FLOAT64), divisor, Op.DIV, FLOAT64)


def _extreme(given: Call) -> plc.Column:
    best = given.arrays[0]
    if not given.type.is_float:
        return from_registers(best, device_type(given.type))
    # The inverse of the kernels' `order_of_double`
    flipped = binary(best, scalar(I64_MAX, INT64), Op.BITWISE_XOR, INT64)
    bits = select(binary(best, scalar(0, INT64), Op.LESS, BOOL), flipped, best)
    return cast(reinterpret(bits, FLOAT64), device_type(given.type))


def _truth(given: Call) -> plc.Column:
    return binary(given.arrays[0], scalar(0, INT64), Op.NOT_EQUAL, BOOL)


def _bits(given: Call) -> plc.Column:
    return from_registers(given.arrays[0], device_type(given.type))


def _on_host(given: Call) -> plc.Column:
    arrays = [np.asarray(a.to_arrow()) for a in given.arrays]
    values, valid = given.folded.finish(arrays)
    return to_device(arrow_array(values, valid, given.type, None), given.type)


COUNTS = ("count_star", "count")
FINISHES: dict[str, Finish] = {
    "sum": _sum,
    "avg": _average,
    "min": _extreme,
    "max": _extreme,
    "bool_and": _truth,
    "bool_or": _truth,
    "bit_and": _bits,
    "bit_or": _bits,
    "bit_xor": _bits,
    "count_if": _bits,
}
