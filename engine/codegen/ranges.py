"""Intervals of integers: the proof that 32 or 64 bits suffice.

Every integer term carries the smallest and largest value that it can take, from the columns' statistics upward.  Python's
integers have no limit, so the interval itself is exact.
"""

from __future__ import annotations

from ..records import dataclass

I32_MAX = 2**31 - 1
I64_MAX = 2**63 - 1


@dataclass(frozen=True, slots=True)
class IntegerRange:
    """All integers from `low` to `high`."""

    low: int
    high: int

    @property
    def magnitude(self) -> int:
        """The largest absolute value."""
        return max(abs(self.low), abs(self.high))

    @property
    def fits_i32(self) -> bool:
        return self.low >= -I32_MAX - 1 and self.high <= I32_MAX

    @property
    def fits_i64(self) -> bool:
        return self.low >= -I64_MAX - 1 and self.high <= I64_MAX

    @property
    def size(self) -> int:
        """How many integers it holds."""
        return self.high - self.low + 1

    def __add__(self, other: IntegerRange) -> IntegerRange:
        return IntegerRange(self.low + other.low, self.high + other.high)

    def __sub__(self, other: IntegerRange) -> IntegerRange:
        return IntegerRange(self.low - other.high, self.high - other.low)

    def __neg__(self) -> IntegerRange:
        return IntegerRange(-self.high, -self.low)

    def __mul__(self, other: IntegerRange) -> IntegerRange:
        corners = [a * b for a in (self.low, self.high) for b in (other.low, other.high)]
        return IntegerRange(min(corners), max(corners))

    def is_within(self, other: IntegerRange) -> bool:
        return other.low <= self.low and self.high <= other.high

    def widened(self) -> IntegerRange:
        """Return an interval of a few times the size, in which values for other constants of a query are likely to lie.

        As counts of rows are raised to powers of four, so is the size: a key may differ in all rows if it did before.
        """
        bits = (self.high - self.low).bit_length()
        unit = 1 << bits + bits % 2
        low = 0 if 0 <= self.low <= 2 * unit else self.low // unit * unit
        high = (self.high // unit + 1) * unit - 1
        most = I32_MAX if self.fits_i32 else I64_MAX
        return IntegerRange(max(low, -most - 1), min(high, most))

    def union(self, other: IntegerRange) -> IntegerRange:
        return IntegerRange(min(self.low, other.low), max(self.high, other.high))

    def absolute(self) -> IntegerRange:
        if self.low >= 0:
            return self
        if self.high <= 0:
            return -self
        return IntegerRange(0, self.magnitude)


def sum_fits_i64(interval: IntegerRange, rows: int) -> bool:
    """Whether any `rows` values of the interval add up to an int64, in any order."""
    return interval.magnitude * max(rows, 1) <= I64_MAX
