"""The number that the key columns of a join make together, on the build side and on the probe side.

Both sides number a key by the build side's intervals and dictionaries.  What lies outside of them, and what is NULL, gets
the number -1.  A single key that may need all 64 bits (floats, by `order_of_double`) is the number itself.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ...plan.arrow.arrow_arrays import null_as
from ...plan.text.concealed_text import concealed_name
from ...records import dataclass
from ...storage.columns.encodings import values_of
from .. import loop as ir
from ..expressions.arithmetic import convert
from ..program_builder import ProgramBuilder
from ..ranges import I64_MAX, IntegerRange
from ..typed_values import NotFusable, Value

WHOLE = 1 << 64  # the values of a raw key


@dataclass(frozen=True, slots=True)
class KeyNumber:
    """The number of a row's key: a variable, what follows it as an argument of index functions, and where it is no NULL."""

    number: ir.Name
    valid: ir.Term | None
    raw: bool

    @property
    def args(self) -> tuple[ir.Term, ...]:
        if not self.raw:
            return (self.number,)
        return self.number, self.valid or ir.Number(True, ir.Machine.BOOL)


@dataclass(frozen=True, slots=True)
class Domain:
    """The build side's values of one key, low to low + size - 1: (value - low) * stride is its part of the number.

    `null`: the last of them is NULL, which equals NULL.
    """

    name: str
    low: int
    size: int
    stride: int
    null: bool
    values: Any = None


@dataclass(frozen=True, slots=True)
class Domains:
    """The build side's values of all keys, and the first's sizes multiplied."""

    keys: tuple[Domain, ...]
    size: int

    @property
    def raw(self) -> bool:
        return self.size == WHOLE


class TooWide(NotFusable):
    """Join keys that no 64 bits hold together; those at `kept` do."""

    def __init__(self, kept: tuple[int, ...]) -> None:
        super().__init__("the join keys have a domain of more than 63 bits")
        self.kept = kept


def domains(values: Sequence[Value], names: Sequence[str], null_equal: Sequence[bool]) -> Domains:
    """Return what the build side's keys may be; raises `TooWide` for keys that have to be compared apart."""
    found: list[Domain] = []
    kept: list[int] = []
    stride = 1
    for place, (value, name) in reversed(list(enumerate(zip(values, names, strict=True)))):
        null = null_equal[place] and value.valid is not None
        interval = _integer(value).interval
        if interval is None or stride * (interval.size + null) > I64_MAX:
            continue
        size = interval.size + null
        found.append(Domain(name, interval.low, size, stride, null, value.values))
        kept.append(place)
        stride *= size
    if len(kept) == len(values):
        return Domains(tuple(reversed(found)), stride)
    if kept:
        raise TooWide(tuple(reversed(kept)))
    if len(values) > 1:
        raise TooWide((0,))
    if null_equal[0] and values[0].valid is not None:
        raise NotFusable(f'"{names[0]}" takes 64 bits, and its NULLs are equal')
    return Domains((Domain(names[0], 0, WHOLE, 1, False),), WHOLE)


def key_number(
    values: Sequence[Value],
    build: Domains,
    machine: ir.Machine,
    name: ir.Name,
    kernel: ProgramBuilder,
) -> KeyNumber:
    """State the number of a row's key, on either side."""
    if build.raw:
        (value,) = values
        kernel.state(ir.Let(name, convert(_integer(value).term, ir.Machine.I64)))
        return KeyNumber(name, value.valid, raw=True)
    number: ir.Term | None = None
    inside: list[ir.Term] = []
    for value, key in zip(values, build.keys, strict=True):
        part, within = _component(_coded(value, key, kernel), key, machine, kernel)
        inside += within
        number = part if number is None else ir.Apply("+", (number, part), machine)
    assert number is not None
    valid = ir.true_and(
        [
            v.valid
            for v, key in zip(values, build.keys, strict=True)
            if v.valid is not None and not key.null
        ]
    )
    found = ir.true_and([*([] if valid is None else [valid]), *inside])
    if found is not None:
        number = ir.Select(found, number, ir.Number(-1, machine), machine)
    kernel.state(
        ir.Let(
            name, number, f"number of {', '.join(concealed_name(key.name) for key in build.keys)}"
        )
    )
    return KeyNumber(name, valid, raw=False)


def _component(
    value: Value, key: Domain, machine: ir.Machine, kernel: ProgramBuilder
) -> tuple[ir.Term, list[ir.Term]]:
    """What one key adds to the number, and the conditions under which it lies in the domain."""
    value = _integer(value)
    assert value.interval is not None
    held = IntegerRange(key.low, key.low + key.size - 1 - key.null)
    wide = value.term.type if value.interval.fits_i32 and held.fits_i32 else ir.Machine.I64
    if machine is ir.Machine.I64:
        wide = machine
    term = convert(value.term, wide)
    within: list[ir.Term] = []
    for sign, bound, crosses in (
        (">=", held.low, value.interval.low < held.low),
        ("<=", held.high, value.interval.high > held.high),
    ):
        if crosses:
            end = "least" if sign == ">=" else "largest"
            meaning = f"{end} {concealed_name(key.name)} of the build side"
            limit = kernel.parameter(bound, wide, meaning)
            within.append(ir.Apply(sign, (term, limit), ir.Machine.BOOL))
    if key.low != 0:
        meaning = f"least {concealed_name(key.name)} of the build side"
        low = kernel.parameter(key.low, wide, meaning)
        term = ir.Apply("-", (term, low), wide)
    term = convert(term, machine)
    if key.null:
        valid = value.valid or ir.Number(True, ir.Machine.BOOL)
        last = kernel.parameter(key.size - 1, machine, f"{concealed_name(key.name)} NULL")
        term = ir.Select(valid, term, last, machine)
        absent = ir.Apply("not", (valid,), ir.Machine.BOOL)
        within = [ir.Apply("|", (absent, test), ir.Machine.BOOL) for test in within]
    if key.stride != 1:
        meaning = f"stride of {concealed_name(key.name)}"
        stride = kernel.parameter(key.stride, machine, meaning)
        term = ir.Apply("*", (term, stride), machine)
    return term, within


def _integer(value: Value) -> Value:
    """A key as an integer: floats as what orders them, where equal ones are equal."""
    if value.interval is not None:
        return value
    if value.term.type is ir.Machine.BOOL:
        return Value(ir.Convert(value.term, ir.Machine.I32), value.valid, IntegerRange(0, 1))
    order = ir.Function("order_of_double", (convert(value.term, ir.Machine.F64),), ir.Machine.I64)
    return Value(order, value.valid)


def _coded(value: Value, key: Domain, kernel: ProgramBuilder) -> Value:
    """A string by its code in the build side's dictionary, -1 where that does not have it."""
    if value.values is key.values:
        return value
    if value.values is None or key.values is None:
        raise NotFusable(f'the join key "{key.name}" has no dictionary')
    import numpy as np
    import pyarrow.compute as pc

    places = null_as(pc.index_in(value.values, value_set=key.values), -1)
    codes = np.append(values_of(places, np.int32), np.int32(-1))
    index = convert(value.term, ir.Machine.I32)
    if value.valid is not None:
        index = ir.Select(
            value.valid, index, ir.Number(len(codes) - 1, ir.Machine.I32), ir.Machine.I32
        )
    term = ir.Lookup(kernel.table(codes, ir.Machine.I32), index, ir.Machine.I32)
    return Value(term, value.valid, IntegerRange(-1, max(len(key.values) - 1, 0)))
