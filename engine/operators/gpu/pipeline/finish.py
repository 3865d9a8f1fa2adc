"""Accumulators of many groups, which stay on the device, as result columns: keys, exact aggregates.

What more than 128 bits may be needed for (a correlation of large numbers) is finished on the host, as that of few groups is.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cached_property

import pylibcudf as plc

from ....codegen.cuda import emit_groups
from ....codegen.cuda.emit_picks import Component, Wanted
from ....codegen.groups.accumulate import Folded
from ....codegen.groups.grouping import GroupKey
from ....codegen.groups.results import arrow_array, finished
from ....codegen.loop import Name
from ....codegen.program import Program
from ....plan.expr import Column
from ....plan.types import DataType, Kind
from ....records import dataclass
from ....storage.columns.device_decode import REGISTERS
from ....storage.columns.encodings import REGISTER, numbers, rounded
from ...integer_bounds import INT64_RANGE
from .. import columns as col
from ..aggregate.groups import pick
from ..dictionaries import Held, numbered, width_of_codes
from ..late_materialization import Bounds, Fetch, LateColumns, together
from ..memory.buffers import Memory
from ..table import Table, device_type, to_device
from .exact_terms import evaluated, fits, magnitudes
from .gather import late_columns
from .picking import PickedGroups, Picking
from .pipeline_inputs import Relations
from .ready_pipeline import ComingOut
from .stored import keys_of

Op = plc.binaryop.BinaryOperator
ROW = Component(1, 0, 0, 4)  # where groups are rows of a relation


def wanted_of(program: Program, columns: tuple[Column, ...]) -> Wanted:
    """Return what these columns of a program's result are made of."""
    grouping = program.grouping
    assert grouping is not None
    calls = [folded for folded in program.folded if folded.column in columns]
    wide = dict.fromkeys(at for folded in calls for at in folded.accumulators)
    if not any(folded.reads(grouping.rows) for folded in calls):
        wide.pop(grouping.rows, None)
    keys = (key for key in grouping.keys if key.column in columns)
    components = [_component(key, key is grouping.keys[0]) for key in keys]
    if grouping.row is not None:
        components.append(ROW)
    narrow = tuple(at for _, at in grouping.rows_of)
    types = emit_groups.types_of(program)
    return Wanted(tuple(components), tuple(wide), narrow, types, grouping.hashed)


def _component(key: GroupKey, is_first: bool) -> Component:
    """How a key is picked: strings as codes of the width in which columns have them."""
    size = 0 if is_first else key.size
    if key.values is None:
        return Component(key.stride, size, key.moved, 8)
    most = max(len(key.values), key.low + key.size - 1)
    return Component(key.stride, size, key.low, width_of_codes(most))


@dataclass(eq=False)
class Finisher:
    """How these columns of a program's result are made of the groups that exist, of what `picking` picks."""

    program: Program
    columns: tuple[Column, ...]
    picking: Picking | ComingOut

    @cached_property
    def _keys(self) -> list[GroupKey]:
        grouping = self.program.grouping
        return [] if grouping is None else [k for k in grouping.keys if k.column in self.columns]

    @cached_property
    def _calls(self) -> list[Folded]:
        return [folded for folded in self.program.folded if folded.column in self.columns]

    def table(
        self, memory: Memory, count: int, bounds: Mapping[int, Bounds], relations: Relations
    ) -> Table:
        """Return the result of a run that found `count` groups, and intervals that hold some of their accumulators.

        Integers stay 64 bits wide until an operator asks for what they stand for.
        """
        grouping = self.program.grouping
        assert grouping is not None
        groups = self.picking.pick(memory, count)
        made: dict[int, Held | Fetch] = {}
        for key, part in zip(self._keys, groups.components, strict=False):
            made[key.column.id] = _key(key, part)
        for folded in self._calls:
            interval = bounds.get(folded.accumulators[0])
            known = None if interval is None else rounded(interval, count)
            most = magnitudes(folded, grouping.rows, bounds)
            made[folded.column.id] = _finished(folded, groups, grouping.rows, known, most)
        columns = LateColumns.of_one(made)
        if grouping.row is None:
            return Table(columns, count)
        rows = {grouping.row: groups.components[-1]}
        rows |= {number: groups.accumulators[at] for number, at in grouping.rows_of}
        alone = not (grouping.keys or self.program.relations[grouping.row].optional)
        distinct = grouping.row if alone else None
        late = late_columns(self.program, relations, rows, count, distinct=distinct)
        return Table(together(columns, late), count)


def _key(key: GroupKey, part: plc.Column) -> Held | Fetch:
    """The values of a group key, which is a component of the groups' numbers."""
    there = None
    if key.nullable:
        # NULL is the last of the component's values, where 64 bits begin again below
        last = (key.size - 1 + key.moved + 2**63) % 2**64 - 2**63
        there = col.binary(part, col.scalar(last, part.type()), Op.NOT_EQUAL, col.BOOL)
    if key.step != 1:
        steps = col.binary(part, col.scalar(key.step, col.INT64), Op.MUL, col.INT64)
        part = col.binary(steps, col.scalar(key.low, col.INT64), Op.ADD, col.INT64)
    if there is not None or key.values is not None or key.column.type.is_float:
        return _as_type(part, there, key.column.type, key.values)
    return late_integers(part, key.column.type, (key.low, key.low + (key.size - 1) * key.step))


def late_integers(
    registers: plc.Column, data_type: DataType, bounds: Bounds | None, loose: bool = False
) -> Held | Fetch:
    """Return integers as in registers, as values when they are asked for; the rest is as for `Fetch`.

    Those of 128 bits stay so whatever is known of them: to widen 1.5 M sums and to measure them took 0.3 ms of TPC-H Q13's 2.0 (SF10, H200).
    """
    lying = device_type(data_type)
    if bounds is None and data_type.is_wide_decimal:
        bounds, loose = INT64_RANGE, True
    if bounds is None or data_type.kind is Kind.BOOLEAN or not registers.size():
        return from_registers(registers, lying)
    size = int(registers.device_buffer_size())
    return Fetch(registers, REGISTER, lambda r: from_registers(r, lying), size, bounds, loose)


def _as_type(
    registers: plc.Column, there: plc.Column | None, data_type: DataType, strings: object
) -> Held:
    """Integers as in registers (codes of `strings`, days, unscaled decimals, whole floats or codes of others) in physical form, NULL where they are not there."""
    if data_type.is_float:
        if strings is not None:
            return pick(to_device(strings, data_type), col.cast(registers, col.INT32), nullify=True)
        values = col.cast(registers, device_type(data_type))
        return values if there is None else col.where_true(values, there)
    if strings is not None:
        codes = registers if there is None else col.where_true(registers, there)
        if not len(strings):  # type: ignore[arg-type]
            return col.constant(None, device_type(data_type), registers.size())
        return numbered(codes, keys_of(strings))
    values = from_registers(registers, device_type(data_type))
    return values if there is None else col.where_true(values, there)


def from_registers(registers: plc.Column, data_type: plc.DataType) -> plc.Column:
    """Return INT64 values as a type of numbers, dates or truth values."""
    kind = data_type.id()
    if kind == plc.TypeId.DECIMAL128:
        return col.reinterpret(col.cast(registers, col.HUGE), data_type)
    lying = plc.DataType(REGISTERS.get(kind, kind))
    return col.reinterpret(col.cast(registers, lying), data_type)


# Aggregates


def _finished(
    folded: Folded,
    groups: PickedGroups,
    rows: int,
    bounds: Bounds | None,
    most: Mapping[int, int],
) -> Held | Fetch:
    """The values of a call; where it counted too few values of a group, it is NULL.

    `rows` is the accumulator that counts the groups' rows, `bounds` are known to hold the first one of the call, `most` what is
    known of the magnitudes of all.
    """
    kind, term = folded.column.type, folded.term
    arrays = [groups.accumulators.get(at) for at in folded.accumulators]
    if not folded.least:
        return late_integers(arrays[0], kind, bounds)
    if not fits(term, most):
        return _on_host(folded, arrays)
    there = None
    # Groups exist by having rows: where all rows count, none has no value, though it may have too few
    if folded.accumulators[-1] != rows or folded.least > 1:
        there = col.binary(
            arrays[-1], col.scalar(folded.least, col.INT64), Op.GREATER_EQUAL, col.BOOL
        )
    if folded.values is not None:
        codes = arrays[0]
        if there is not None:
            codes = col.select(there, codes, col.scalar(0, col.INT64))
        return _as_type(codes, there, kind, folded.values)
    if isinstance(term, Name) and not kind.is_float:
        integers = arrays[0] if there is None else col.where_true(arrays[0], there)
        return late_integers(integers, kind, bounds)
    values = evaluated(term, groups.accumulators, most)
    if kind.is_float:
        values = col.cast(values, device_type(kind))
    elif kind.kind is not Kind.BOOLEAN:
        values = from_registers(values, device_type(kind))
    return values if there is None else col.where_true(values, there)


def _on_host(folded: Folded, columns: Sequence[plc.Column]) -> plc.Column:
    kind = folded.column.type
    values, valid = finished(folded, [numbers(c.to_arrow()) for c in columns])
    return to_device(arrow_array(values, valid, kind, None), kind)
