"""Values of few groups by their ranks without a sort: digit by digit, kernels count the values that may be the wanted ones.

Alabi, Blanchard, Gordon and Steinbach, Fast k-selection algorithms for graphics processing units, 2012.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial

import numpy as np
import pylibcudf as plc
from rmm.pylibrmm.device_buffer import DeviceBuffer

from ....codegen.handwritten import sort_kernels as kernels
from ....storage.columns.encodings import Array
from .. import few_rows
from ..columns import INT32, INT64, as_integers, is_float, width_of
from ..memory.buffers import zeros
from ..memory.host_values import address_of
from ..memory.to_host import numbers_on_host
from ..memory.upload import column_of
from ..pipeline import launch
from ..pipeline.fixed_kernels import machine_code
from ..sort.packed_keys import LIMIT, PackedKeys, numbered
from .groups import GroupedArgument, Groups

COUNTERS = 1 << 18  # of a digit, in all: 1 MB, so that threads seldom wait for one another
MOST_BITS = 11  # of a digit
MOST_RANKS = 2  # of a group at a time


@dataclass(frozen=True)
class RadixSelection:
    """Values as numbers from 0 on, in groups that have a slot each, and how often the first digits occur in each slot.

    `sizes`, of which NULL is no part, and `slot` are those of the groups in the order of the result.
    """

    values: PackedKeys
    places: PackedKeys | None
    slots: int
    bits: int
    shifts: tuple[int, ...]
    first: plc.Column
    sizes: Array
    slot: Array

    def at(self, ranks: Array) -> Array:
        """Return the values that groups have at ranks: one of each group, or one after the other `MOST_RANKS`; anything where there are none."""
        wanted = np.zeros((len(ranks) // len(self.slot), self.slots), np.int64)
        wanted[:, self.slot] = ranks.reshape(len(wanted), -1)
        given, counted, slots = column_of(wanted.ravel(), None, INT64), self.first, self.slots
        prefixes = _column(zeros(8 * wanted.size), wanted.size, INT64)
        for shift in self.shifts:
            if shift != self.shifts[0]:
                slots = wanted.size
                counted = _counted(self.values, self.places, self.bits, shift, prefixes)
            _run(
                kernels.CHOOSE, wanted.size * 32,
                items=wanted.size, slots=slots, bits=self.bits, ranks=address_of(given, 8),
                prefixes=address_of(prefixes, 8), counters=address_of(counted, 4),
            )  # fmt: skip
        (found,) = numbers_on_host(prefixes)
        return self.values.digits[0].values(found.reshape(wanted.shape)[:, self.slot].ravel())


def radix_selection(
    argument: GroupedArgument, groups: Groups, descending: bool
) -> RadixSelection | None:
    """Make what a group's values are selected from; None for few rows, for many groups, for what are no integers, and without the kernels."""
    column = argument.column
    if is_float(column) or None in map(_code, kernels.SELECTING):
        return None
    places = groups.key_places()
    slots = places.places if places else 1
    if (groups.keys and places is None) or slots > few_rows.MOST_ROWS:
        return None
    values = numbered([as_integers(column)], [(descending, False)], LIMIT)
    if values is None:
        return None
    width = max((values.places - 1).bit_length(), 1)
    most = min((COUNTERS // (MOST_RANKS * slots)).bit_length() - 1, MOST_BITS)
    turns = -(-width // most)
    bits = -(-width // turns)
    shifts = tuple(bits * turn for turn in reversed(range(turns)))
    prefixes = _column(zeros(8 * slots), slots, INT64)
    first = _counted(values, places, bits, shifts[0], prefixes)
    there = [first] if places is None else [first, places.at(groups.group_keys)]
    counts, *held = numbers_on_host(*there)
    slot = held[0] if held else np.zeros(1, np.int32)
    sizes = counts.reshape(slots, -1).sum(axis=1, dtype=np.int64)[slot]
    return RadixSelection(values, places, slots, bits, shifts, first, sizes, slot)


def _counted(
    values: PackedKeys, places: PackedKeys | None, bits: int, shift: int, prefixes: plc.Column
) -> plc.Column:
    """Return how often digits occur behind the prefixes of ranks, which lie slot by slot."""
    items, rows = prefixes.size(), values.numbers.size()
    size = items << bits
    copies = max(COUNTERS // size, 1)
    counters = zeros(4 * size * copies)
    width = width_of(values.numbers.type().id())
    numbers, (digit,) = address_of(values.numbers, width), values.digits
    _run(
        kernels.COUNT, rows,
        rows=rows, grouped=int(places is not None), width=width, values32=numbers, values64=numbers,
        keys=address_of(places.numbers, 4) if places else numbers, end=digit.size - digit.nulls,
        shift=shift, bits=bits, slots=places.places if places else 1, items=items, copies=copies,
        prefixes=address_of(prefixes, 8), counters=launch.array_at(int(counters.ptr), size * copies, 4),
    )  # fmt: skip
    if copies > 1:
        _run(kernels.FOLD, size, size=size, copies=copies, counters=int(counters.ptr))
    return _column(counters, size, INT32)


def _run(name: str, turns: int, **given: launch.Given) -> None:
    code = _code(name)
    assert code is not None
    launch.run_fixed(code, name, kernels.SELECTING[name], turns, given)


def _code(name: str) -> bytes | None:
    return machine_code(name, partial(kernels.sort_kernel, name))


def _column(memory: DeviceBuffer, size: int, data_type: plc.DataType) -> plc.Column:
    return plc.Column(data_type, size, plc.gpumemoryview(memory), None, 0, 0, [])
