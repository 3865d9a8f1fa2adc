"""Groups by a row of a build side: where group keys follow from one row, its number is the number of the group.

The keys themselves are then read once a group, after the kernel, and need no encoding.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from ...plan.expr import Column, ColumnRef, Expr
from ...plan.node import walk
from ..loop import Convert, Machine
from ..program_builder import ProgramBuilder, RelationReading
from .accumulate import Accumulator, Accumulators
from .grouping import Grouping


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
