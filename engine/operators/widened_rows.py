"""Which kernels serve other rows: those that a query's operators leave differ with its constants, and their kernels should not.

Kernels for stored rows are made for more of them, and for values further apart, than there are: what the generator is told then holds
for most of what other constants leave.  With TPC-H SF10 on an H200, 5 of 28 pipelines were generated anew for each text of new constants,
in 7 to 18 ms each.
"""

from __future__ import annotations

from dataclasses import replace
from operator import attrgetter

from ..codegen.typed_values import Input

# Kernels know whether there are no rows, or one; those for more serve fewer, too, as long as their memory is not much too large
FEWEST_ALIKE = 2
MOST_TIMES_WIDER = 64
MOST_CODES = 1 << 31  # whose registers have 32 bits
_TOLD = attrgetter("nullable", "ascending", "clustered")


def widened_count(rows: int) -> int:
    """Return a number of rows that kernels can be made for so that they serve others: the next power of four."""
    return rows if rows < FEWEST_ALIKE else 4 ** ((rows - 1).bit_length() + 1 >> 1)


def serve_rows(count: int, rows: int) -> bool:
    """Whether kernels for at most `count` stored rows serve so many."""
    return rows == count if rows < FEWEST_ALIKE else rows <= count <= MOST_TIMES_WIDER * rows


def widened(found: Input) -> Input:
    """Return what kernels are told of a column of stored rows so that they serve others.

    Sums are measured up to a power of two.  Where that is one of four, too, a greater sum had no room: TPC-H's Q15 was generated anew
    for some constants, whose best supplier sold for more than 2^34 hundredths of a cent.
    """
    if found.raw is not None:
        raw = found.raw.widened()
        if raw == found.raw and found.column.type.is_decimal:  # no key, whose tables would grow
            raw = (raw + raw).widened()
        return replace(found, raw=raw)
    if found.codes is None or found.values is not None:
        return found
    most = min(1 << 8 * found.width, MOST_CODES) if found.codes <= MOST_CODES else found.codes
    return replace(found, codes=min(widened_count(found.codes), most))


def serve_column(told: Input, now: Input) -> bool:
    """Whether what the generator was told of a column holds for what it is now."""
    if told.encoding != now.encoding or _TOLD(told) != _TOLD(now):
        return False
    if told.raw is not None and now.raw is not None:
        return now.raw.is_within(told.raw)
    if told.codes is not None and now.codes is not None:
        return now.codes <= told.codes
    return told.raw is now.raw and told.codes is now.codes
