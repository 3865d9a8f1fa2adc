"""Buckets of hashed indexes: as many as are worth it for the rows that an earlier run put in, where it found them far from that.

Any number of buckets gives the right answer, so that kernels are neither made anew nor run again for another one.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from ....codegen.indexes.choose import CACHED_SLOTS, buckets
from ....codegen.indexes.layers import Buckets, Index

FAR = 4  # times too many, or too few


def with_buckets(indexes: Sequence[Index], built: Mapping[int, int]) -> tuple[Index, ...]:
    """Return indexes with buckets for so many rows, by the numbers of those of which that is known."""
    return tuple(
        replace(i, slots=buckets(built[i.number])) if i.form is Buckets and i.number in built else i
        for i in indexes
    )


def far_off(
    indexes: Sequence[Index], rows: Sequence[int], built: Mapping[int, int]
) -> dict[int, int]:
    """Return for how many rows large hashed indexes should rather have buckets, by number, given how many they hold now.

    Runs with other parameters hold other rows; what has once been found is not gone below.
    """
    found = {}
    for index, count in zip(indexes, rows, strict=True):
        if index.form is not Buckets:
            continue
        most = max(count, built.get(index.number, 0))
        wanted = buckets(most)
        large = max(index.slots, wanted) > CACHED_SLOTS
        if large and (index.slots >= FAR * wanted or wanted >= FAR * index.slots):
            found[index.number] = most
    return found
