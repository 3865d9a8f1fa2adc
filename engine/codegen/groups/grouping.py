"""How a row finds its group: by a number, dense or hashed, that the group keys make together.

Each key takes part in the number with its value less its interval's low end, times the sizes of the keys after it.  A domain
of few numbers addresses accumulators directly; in a larger one, up to 63 bits, numbers are looked up in a hash table.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import cached_property
from typing import TYPE_CHECKING

import pyarrow as pa

from ...plan.expr import Column, ColumnRef, Expr
from ...plan.node import walk
from ...plan.text.concealed_text import concealed_name
from ...records import dataclass
from ..expressions.arithmetic import convert
from ..expressions.translate import translate
from ..loop import Apply, Convert, Machine, Number, Select, Term
from ..program_builder import ProgramBuilder, RelationReading
from ..ranges import I64_MAX, IntegerRange
from ..typed_values import Input, NotFusable, Value
from .accumulate import Accumulator, Accumulators
from .double_keys import numbered

if TYPE_CHECKING:
    from .accumulate import Folded
    from .conditions import Condition


@dataclass(frozen=True, slots=True)
class GroupKey:
    """A group key as a component of the group number: (value - low) / `step`, times `stride`; NULL is `size - 1`.

    `moved`: what is added to the component where kernels pick it, which is all there is to do without a step.
    """

    column: Column
    low: int
    size: int
    stride: int
    nullable: bool
    values: pa.Array | None = None
    step: int = 1

    @property
    def moved(self) -> int:
        return self.low if self.step == 1 else 0


@dataclass(frozen=True, slots=True)
class OrderedGroups:
    """The rows of a group follow one another, since codes of column `key` ascend and decide the group's number.

    A group is then done when the next one begins, and needs no place in a table: what fulfils `condition` comes out.
    """

    key: Input
    condition: Condition | None


@dataclass(frozen=True)
class Grouping:
    """How a row finds its group: the term of its number below `groups`, and the way back to key values.

    `rows` is the accumulator that says whether a group exists: it counts the rows, or adds what is above 0.  `distinct` are the arguments
    of DISTINCT aggregates, the fastest components of the number: the kernel groups by them too, and `results` joins the
    groups that differ in them alone.  `hashed`: the numbers are many and are keys of a hash table, an I64 each.

    `row`: the group is a row of the relation of this number, and there are no `keys`: what they are is `Program.late`, over
    columns of that relation at the group's number and of the relations of `rows_of` (relation, accumulator) at the row
    number that the accumulator holds for the group.

    `ordered`: the kernel makes use of the order of the rows (`groups.ordered`).  `columns` are those that are keys as they are.
    """

    keys: tuple[GroupKey, ...]
    slot: Term
    groups: int
    rows: int
    distinct: tuple[GroupKey, ...] = ()
    hashed: bool = False
    row: int | None = None
    rows_of: tuple[tuple[int, int], ...] = ()
    ordered: OrderedGroups | None = None
    columns: frozenset[Column] = frozenset()

    @cached_property
    def inner(self) -> int:
        """How many numbers belong to one group: the product of the domains of `distinct`."""
        product = 1
        for key in self.distinct:
            product *= key.size
        return product


def grouping_of(
    keys: Sequence[Column],
    values: Sequence[Expr],
    distinct: Sequence[Expr],
    kernel: ProgramBuilder,
    limit: int,
    rows: int,
    hash_limit: int,
) -> Grouping:
    """Number the groups by the product of the keys' intervals; raises `NotFusable` where that is too large.

    `values` are the keys over what the kernel reads, `limit` is how many groups may be addressed directly; `rows` the accumulator that counts rows.
    """
    found: list[tuple[GroupKey, Value, IntegerRange]] = []
    domain = 1
    for place, expr in reversed(list(enumerate([*values, *distinct]))):
        column = keys[place] if place < len(keys) else Column(-1, str(expr), expr.type)
        value = numbered(expr, kernel) if expr.type.is_float else translate(expr, kernel)
        interval = IntegerRange(0, 1) if value.term.type is Machine.BOOL else value.interval
        if interval is None:
            raise NotFusable(f'the group key "{column.name}" is a {column.type}')
        nullable = value.valid is not None
        size = (interval.size - 1) // value.step + 1 + nullable
        key = GroupKey(column, interval.low, size, domain, nullable, value.values, value.step)
        found.append((key, value, interval))
        domain *= key.size
    hashed = domain > limit
    if domain > I64_MAX:
        raise NotFusable("the group keys have a domain of more than 63 bits")
    if hashed and (domain > hash_limit or distinct):
        most = limit if distinct else max(limit, hash_limit)
        raise NotFusable(f"the group keys have a domain of more than {most} values")
    machine = Machine.I64 if hashed else Machine.I32
    made = [k for k, _, _ in reversed(found)]
    return Grouping(
        tuple(made[: len(keys)]),
        _number(found, machine, kernel),
        domain,
        rows,
        tuple(made[len(keys) :]),
        hashed,
        columns=frozenset(e.column for e in values if isinstance(e, ColumnRef)),
    )


def _number(
    parts: list[tuple[GroupKey, Value, IntegerRange]], machine: Machine, kernel: ProgramBuilder
) -> Term:
    """The number of a row's group; what depends on the values of rows are arguments, since each chunk of a table has its own."""
    slot: Term | None = None
    for key, value, interval in parts:
        part = _component(value, interval, key, machine, kernel)
        if key.stride != 1:
            stride = _argument(key.stride, machine, "stride of", key, kernel)
            part = Apply("*", (part, stride), machine)
        slot = part if slot is None else Apply("+", (slot, part), machine)
    assert slot is not None
    return slot


def _argument(
    value: int, machine: Machine, what: str, key: GroupKey, kernel: ProgramBuilder
) -> Term:
    return kernel.parameter(value, machine, f"{what} {concealed_name(key.column.name)}")


def _component(
    value: Value, interval: IntegerRange, key: GroupKey, machine: Machine, kernel: ProgramBuilder
) -> Term:
    """A key's value less the low end; computed in the value's own register, where it cannot overflow."""
    wide = value.term.type if value.term.type is not Machine.BOOL else Machine.I32
    if machine is Machine.I64:
        wide = machine
    if key.step != 1 and value.code is not None:
        term = value.code
    else:
        term = convert(value.term, wide)
        if interval.low != 0:
            low = _argument(interval.low, wide, "least", key, kernel)
            term = Apply("-", (term, low), wide)
        if key.step != 1:
            term = Apply("//", (term, Number(key.step, wide)), wide)
    term = convert(term, machine)
    if value.valid is None:
        return term
    null = _argument(key.size - 1, machine, "NULL of", key, kernel)
    return Select(value.valid, term, null, machine)


@dataclass(frozen=True, slots=True)
class FoldSink:
    """What rows are folded into, and how results come of it."""

    grouping: Grouping
    accumulators: tuple[Accumulator, ...]
    folded: tuple[Folded, ...]


def without_count(sink: FoldSink) -> FoldSink:
    """Have a positive sum over all rows stand for the count of rows, where nothing takes the count's value.

    The caller sees to it that no group has too many rows for its sums.
    """
    count = sink.grouping.rows
    if any(folded.reads(count) for folded in sink.folded):
        return sink
    sums = [
        (a.magnitude or 0, i)
        for i, a in enumerate(sink.accumulators)
        if a.positive and a.condition is None and i != count
    ]
    if not sums:
        return sink
    _, chosen = min(sums)  # the smallest may have the smallest cells
    kept = [i for i in range(len(sink.accumulators)) if i != count]
    place = {old: new for new, old in enumerate(kept)}
    place[count] = place[chosen]
    rows_of = tuple((relation, place[i]) for relation, i in sink.grouping.rows_of)
    return FoldSink(
        replace(sink.grouping, rows=place[count], rows_of=rows_of),
        tuple(sink.accumulators[i] for i in kept),
        tuple(
            replace(f, accumulators=tuple(place[i] for i in f.accumulators)) for f in sink.folded
        ),
    )


@dataclass(frozen=True, slots=True)
class GroupsByRow:
    """A grouping by a relation's row, and each key as an expression over what is read at that row."""

    grouping: Grouping
    keys: tuple[Expr, ...]


def row_groups(
    keys: Sequence[Expr], kernel: ProgramBuilder, accumulators: Accumulators, rows: int
) -> GroupsByRow | None:
    """Group by the row of the smallest relation that decides all keys, and that they decide; None without one.

    A row is decided by keys that include those of its join, if these are unique.  `rows` is the accumulator that counts.
    """
    found = [
        (reading.rows, place)
        for place, reading in enumerate(_readings(kernel))
        if reading.inner
        and reading.unique
        and not reading.optional
        and _has_keys(keys, reading)
        and all(_decided(key, reading, kernel) is not None for key in keys)
    ]
    if not found:
        return None
    _, place = min(found)
    row = _readings(kernel)[place]
    number = kernel.found(row)
    made = []
    for key in keys:
        expr = _decided(key, row, kernel)
        assert expr is not None
        made.append(expr)
    others = dict.fromkeys(kernel.origin(c) for expr in made for c in _columns(expr))
    rows_of = []
    for other in others:
        if other is not None and other is not row:
            at = kernel.found(other)
            term = Convert(other.row, Machine.I64)
            rows_of.append((at, accumulators.add(Accumulator("put", Machine.I64, term))))
    grouping = Grouping((), row.row, max(row.rows, 1), rows, row=number, rows_of=tuple(rows_of))
    return GroupsByRow(grouping, tuple(made))


def _has_keys(keys: Sequence[Expr], reading: RelationReading) -> bool:
    """Whether the group keys tell the rows of a relation apart: by what its join compares, of either side."""
    pairs = zip(reading.keys, reading.stored_keys, strict=True)
    return bool(reading.keys) and all(probe in keys or stored in keys for probe, stored in pairs)


def _readings(kernel: ProgramBuilder) -> list[RelationReading]:
    """All readings, also of relations that nothing has read yet."""
    return list(dict.fromkeys(kernel.readings.values()))


def _decided(expr: Expr, row: RelationReading, kernel: ProgramBuilder) -> Expr | None:
    """Return an expression over columns of relations that a row decides: its own, and those probed with keys of it."""
    equal = dict(zip(row.keys, row.stored_keys, strict=True))
    decided: dict[RelationReading, bool] = {row: True}

    def is_decided(reading: RelationReading) -> bool:
        if reading not in decided:
            decided[reading] = False  # while its keys are looked at
            joined = reading.unique and reading is not kernel.relations[0]
            decided[reading] = joined and all(over_row(k) is not None for k in reading.keys)
        return decided[reading]

    def over_row(part: Expr) -> Expr | None:
        made = _replaced(part, equal)
        stored = [kernel.origin(c) for c in _columns(made)]
        return made if all(r is not None and is_decided(r) for r in stored) else None

    return over_row(expr)


def _replaced(expr: Expr, equal: dict[Expr, Expr]) -> Expr:
    if expr in equal:
        return equal[expr]
    return expr.with_children([_replaced(child, equal) for child in expr.children])


def _columns(expr: Expr) -> list[Column]:
    """The columns that an expression reads, in the order in which it does."""
    return [node.column for node in walk(expr) if isinstance(node, ColumnRef)]
