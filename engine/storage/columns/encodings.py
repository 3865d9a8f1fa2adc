"""The narrow forms in which columns lie in memory for kernels.

`Narrow` keeps integers (and decimals, dates, timestamps, truth values) as base + step * code in 1, 2 or 4 bytes, or as they are in
8; `Dictionary` keeps strings as codes of sorted values, so that order and equality of codes are those of the strings;
`Plain` keeps floats.  NULLs are a bitmap as in Arrow, present only when there are any; the code of a NULL is 0.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from ...plan.types import DataType

PADDING = 64  # bytes: kernels load whole words, which must not leave the buffer
# Rows of one value in a clustered column: whoever looks for them goes through the rows around one, until the value is another
MOST_ALIKE = 64


@dataclass(frozen=True, slots=True)
class Narrow:
    """value = base + step * code; with `width` 8 the code is the value itself, signed, with base 0 and step 1."""

    base: int
    step: int
    width: int


@dataclass(frozen=True, slots=True)
class Dictionary:
    """An index into `values`, a sorted Arrow array of different strings."""

    values: Any = field(repr=False)
    width: int


@dataclass(frozen=True, slots=True)
class Plain:
    """A float of `width` bytes as it is."""

    width: int


Encoding = Narrow | Dictionary | Plain


@dataclass(frozen=True, eq=False)
class EncodedColumn:
    """A column for kernels, on the host (NumPy arrays) or on the device (buffers), with what was measured of it.

    `codes` has `rows` elements of `encoding.width` bytes, in a buffer padded to `PADDING`; `validity` is a bitmap, least
    significant bit first, or None without NULLs.  `low` and `high` are the extremes of the valid values, integers as in
    registers (unscaled, days, microseconds), None for floats, strings and columns of NULLs alone.  `ascending`: there are rows and
    no NULLs, and each value is greater than the one before (False: that is not known); `clustered` that no value is less than the one
    before, and none is that of more than `MOST_ALIKE` rows, as in a table that lies in the order of a foreign key.
    """

    type: DataType
    encoding: Encoding
    rows: int
    codes: Any = field(repr=False)
    validity: Any = field(repr=False)
    nulls: int
    low: int | None
    high: int | None
    nbytes: int
    ascending: bool = False
    clustered: bool = False

    @property
    def may_be_clustered(self) -> bool:
        """Whether there are integers enough between the extremes for the rows not to repeat too often."""
        if not self.rows or self.nulls or not isinstance(self.encoding, Narrow):
            return False
        assert self.low is not None
        assert self.high is not None
        return (self.high - self.low) // self.encoding.step >= (self.rows - 1) // MOST_ALIKE


def narrow_for(low: int, high: int, step: int) -> Narrow:
    """Return the narrowest encoding of the integers low, low + step, ... high."""
    last = (high - low) // step
    for width in (1, 2, 4):
        if last < 1 << 8 * width:
            return Narrow(low, step, width)
    return Narrow(0, 1, 8)


def useful_step(low: int, high: int, step: int) -> int:
    """Return `step`, or 1 where codes with it are no narrower: it would only have to be checked, divided and multiplied by."""
    narrower = narrow_for(low, high, step).width < narrow_for(low, high, 1).width
    return step if narrower else 1


def code_width(count: int) -> int:
    """Bytes of a code with `count` different values."""
    return 1 if count <= 1 << 8 else 2 if count <= 1 << 16 else 4
