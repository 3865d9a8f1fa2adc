"""Grouping by hash table on the CPU: each thread has an open-addressing table of its own, and tables are merged at the end.

A kernel stops when its table is half full; it goes on with a larger one, into which the groups so far have moved.  Where a row
becomes several, it may stop amid them: then it starts again.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from ...storage.columns.encodings import Array
from ..compile.compiler import Signature
from ..groups.accumulate import FOLDS
from ..program import Program
from .pace import Pace

EMPTY = -1  # group numbers are not negative
SLOTS = 1 << 12  # of a table to begin with
GROWTH = 8

# Kernels too, but the same for all programs
PLACE_KEYS = '''"""Find or make the slots of group numbers in a hash table."""

from fuseline.codegen.cpu.functions_cpu import *


def place_keys(keys, state, added, slots):
    for i in range(added.size):
        slots[i] = group_slot(keys, state, added[i])
'''
PLACE_SIGNATURE: Signature = [
    ("keys", "[int64]"),
    ("state", "[int64]"),
    ("added", "[int64]"),
    ("slots", "[int64]"),
]


@dataclass
class HashTable:
    """A table as a kernel takes it: a group number or `EMPTY` a slot; how many there are, and a doubt; accumulators by slot."""

    keys: Array
    state: Array
    out_i: Array
    out_f: Array

    @property
    def used(self) -> Array:
        return np.flatnonzero(self.keys != EMPTY)


# Makes accumulators for so many groups
Blank = Callable[[int], tuple[Array, Array]]
Place = Callable[[Array, Array, Array, Array], object]


def new_table(slots: int, blank: Blank) -> HashTable:
    return HashTable(np.full(slots, EMPTY, np.int64), np.zeros(2, np.int64), *blank(slots))


def fill(
    kernel: Callable[..., int],
    start: int,
    end: int,
    blank: Blank,
    place: Place,
    again: bool = False,
) -> HashTable:
    """Return the groups of a range of rows; `again`: a full table has no row to go on from."""
    table, first, pace = new_table(SLOTS, blank), start, Pace()
    while start < end:
        goal = pace.end(start, end)
        stop = kernel(start, goal, table.keys, table.state, table.out_i, table.out_f)
        pace.done()
        if stop >= goal:
            start = goal
            continue
        larger = new_table(len(table.keys) * GROWTH, blank)
        if again:
            table, start = larger, first
            continue
        start = stop
        used = table.used
        slots = np.empty(len(used), np.int64)
        place(larger.keys, larger.state, table.keys[used], slots)
        larger.out_i[:, slots] = table.out_i[:, used]
        larger.out_f[:, slots] = table.out_f[:, used]
        larger.state[1] = table.state[1]
        table = larger
    return table


def merge(
    tables: Sequence[HashTable], program: Program, blank: Blank, place: Place
) -> tuple[list[Array], Array]:
    """Return one array an accumulator, one element a group, and the groups' numbers."""
    merged = tables[0]
    if len(tables) > 1:
        slots = SLOTS
        while slots <= 2 * sum(int(t.state[0]) for t in tables):
            slots *= 2
        merged = new_table(slots, blank)
        for table in tables:
            _add(table, merged, program, place)
    used = merged.used
    arrays = {"out_i": merged.out_i, "out_f": merged.out_f}
    return [arrays[a][at][used] for a, at in program.slots], merged.keys[used]


def _add(table: HashTable, merged: HashTable, program: Program, place: Place) -> None:
    used = table.used
    slots = np.empty(len(used), np.int64)
    place(merged.keys, merged.state, table.keys[used], slots)
    for accumulator, (name, at) in zip(program.accumulators, program.slots, strict=True):
        into, row = getattr(merged, name)[at], getattr(table, name)[at]
        into[slots] = FOLDS[accumulator.fold](into[slots], row[used])
