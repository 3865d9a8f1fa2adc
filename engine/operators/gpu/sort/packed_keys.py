"""Several sort keys as one integer: libcudf sorts one by radix, where it merges rows of several that it compares key by key."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from math import prod

import pylibcudf as plc
from rmm.pylibrmm.device_buffer import DeviceBuffer

from ....codegen.handwritten import sort_kernels as kernels
from ....records import dataclass
from ....storage.columns.encodings import Array
from ..column_extremes import WORDS_OF, measured
from ..columns import INT32, INT64, binary, cast, scalar, width_of, without_nulls
from ..pipeline import launch
from ..pipeline.fixed_kernels import machine_code

Op = plc.binaryop.BinaryOperator
Direction = tuple[bool, bool]  # descending, NULLs first

# Of fewer rows the extremes of keys are measured in more time than sorting by one number spares
LEAST_ROWS = 1 << 17
NARROW = 1 << 31
LIMIT = 1 << 63  # of the numbers of places in the order, which is no number of 64 bits itself
LOWEST, HIGHEST = -(1 << 63), (1 << 63) - 1


@dataclass(frozen=True)
class KeyDigit:
    """A key whose values are between two bounds; NULL, if there are `nulls`, has a place below or above all of them."""

    key: plc.Column
    direction: Direction
    low: int
    high: int
    nulls: bool

    @property
    def size(self) -> int:
        return self.high - self.low + 1 + self.nulls

    def behind(self, code: bytes, before: plc.Column | None, short: bool) -> plc.Column:
        """Return numbers that have this digit behind those before, by a kernel; in 32 bits if they are `short`."""
        descending, nulls_first = self.direction
        key, first = self.key, int(self.nulls and nulls_first)
        nullable = bool(key.null_count())
        if key.type().id() not in (INT32.id(), INT64.id()):
            key = cast(key, INT64 if key.type().id() == plc.TypeId.UINT32 else INT32)
        width = width_of(key.type().id())
        data = int(key.data().ptr) + int(key.offset()) * width
        rows = int(key.size())
        out = plc.Column(
            INT32 if short else INT64, rows, _memory(rows * (4 if short else 8)), None, 0, 0, []
        )
        numbers, made = (data if c is None else int(c.data().ptr) for c in (before, out))
        given = {
            "rows": rows, "narrow": int(width == 4), "keys32": data, "keys64": data,
            "bits": int(key.null_mask().ptr) if nullable else data, "first_bit": int(key.offset()),
            "nullable": int(nullable), "turned": int(descending),
            "base": self.high + first if descending else self.low - first,
            "null": 0 if nulls_first else self.size - 1, "size": self.size, "begun": int(before is not None),
            "numbers": numbers, "short": int(short), "out32": made, "out64": made,
        }  # fmt: skip
        launch.run_fixed(code, kernels.DIGIT, kernels.SIGNATURE, rows, given)
        return out

    def numbers(self) -> plc.Column:
        """Return integers from 0 on in the order of the key."""
        (descending, nulls_first), wide = self.direction, cast(self.key, INT64)
        first = int(self.nulls and nulls_first)
        if descending:
            found = binary(scalar(self.high + first, INT64), wide, Op.SUB, INT64)
        else:
            found = binary(wide, scalar(self.low - first, INT64), Op.SUB, INT64)
        return without_nulls(found, 0 if nulls_first else self.size - 1)

    def values(self, numbers: Array) -> Array:
        """Return the values of numbers of a key without NULL."""
        return self.high - numbers if self.direction[0] else self.low + numbers


@dataclass(frozen=True)
class PackedKeys:
    """Integers without NULL in the ascending order of several keys, of each of which they have a digit."""

    numbers: plc.Column
    digits: tuple[KeyDigit, ...]

    @property
    def places(self) -> int:
        """How many numbers there can be."""
        return self.below(0)

    def at(self, keys: Sequence[plc.Column]) -> plc.Column:
        """Return the numbers of other rows, whose keys were numbered `beside` these or have values that these have, NULL among them."""
        digits = [replace(d, key=key) for d, key in zip(self.digits, keys, strict=True)]
        return _made(digits, self.places < NARROW)

    def below(self, width: int) -> int:
        """Return how many numbers there are for each combination of the first `width` keys."""
        return prod(digit.size for digit in self.digits[width:])


def packed(keys: Sequence[plc.Column], directions: Sequence[Direction]) -> PackedKeys | None:
    """Return integers without NULL in the ascending order of several keys; None where they take more than 63 bits, or rows are few."""
    if len(keys) == 1 and not keys[0].null_count():
        return None
    return numbered(keys, directions, LIMIT)


def numbered(
    keys: Sequence[plc.Column],
    directions: Sequence[Direction],
    limit: int,
    beside: Sequence[plc.Column] = (),
) -> PackedKeys | None:
    """Return integers from 0 on in the ascending order of keys; None for keys of `limit` places and more, of other types, and of few rows.

    There are places for the keys of the rows `beside`, too, of which `PackedKeys.at` gives the numbers.
    """
    sides = list(zip(keys, beside, strict=True)) if beside else [(key,) for key in keys]
    if max(column.size() for column in sides[0]) < LEAST_ROWS:
        return None
    if any(column.type().id() not in WORDS_OF for side in sides for column in side):
        return None
    digits: list[KeyDigit] = []
    size = 1
    found = iter(measured([column for side in sides for column in side]))
    for side, direction in zip(sides, directions, strict=True):
        bounds = [next(found) or (0, 0) for _ in side]
        low, high = min(low for low, _ in bounds), max(high for _, high in bounds)
        nulls = any(column.null_count() for column in side)
        digits.append(KeyDigit(side[0], direction, low, high, nulls))
        size *= digits[-1].size
        if size >= limit or low == LOWEST or high == HIGHEST:
            return None
    return PackedKeys(_made(digits, size < NARROW), tuple(digits))


def _made(digits: Sequence[KeyDigit], narrow: bool) -> plc.Column:
    """Return the numbers that digits make, in 32 bits if they are `narrow`: half the passes of a radix sort."""
    code = machine_code(kernels.DIGIT, partial(kernels.sort_kernel, kernels.DIGIT))
    if code is not None:
        return _by_kernel(digits, code, narrow)
    found = digits[0].numbers()
    for digit in digits[1:]:
        found = binary(found, scalar(digit.size, INT64), Op.MUL, INT64)
        found = binary(found, digit.numbers(), Op.ADD, INT64)
    return cast(found, INT32) if narrow else found


def _by_kernel(digits: Sequence[KeyDigit], code: bytes, narrow: bool) -> plc.Column:
    """Return the numbers that digits make, one pass each: those before the last in 64 bits."""
    found = None
    for digit in digits:
        found = digit.behind(code, found, narrow and digit is digits[-1])
    return found


def _memory(size: int) -> plc.gpumemoryview:
    return plc.gpumemoryview(DeviceBuffer(size=size))
