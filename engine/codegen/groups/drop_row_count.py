"""Groups whose rows need no count: a sum of values above 0 says as well whether there are any.

An accumulator less is to be filled, changed by every row and read by what looks for groups.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from .accumulate import Accumulator, Folded
from .grouping import Grouping


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
