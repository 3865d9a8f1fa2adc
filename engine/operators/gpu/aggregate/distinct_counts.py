"""count(DISTINCT) of integers of a small range: a bit for each value in each group.

Different suppliers and parts of 60 M line items in seven groups take 4.7 ms on an H200, where rows of each combination took 9.
"""

from __future__ import annotations

from ..columns import as_integers
from ..sort.packed_keys import numbered
from ..value_marks import counted, marked, most_marks, words_of
from .groups import Answer, GroupedArgument, Groups, pick


def distinct_count(argument: GroupedArgument, groups: Groups) -> Answer | None:
    """Ask for the number of different values in each group; None for what are no integers, have too many places, or are few, and without the kernels."""
    limit = most_marks(argument.column.size())
    places = groups.key_places() if limit else None
    if groups.keys and places is None:
        return None
    values = numbered([as_integers(argument.column)], [(False, True)], limit)
    words = 0 if values is None else words_of(values.places)
    if values is None or 32 * words * (places.places if places else 1) > limit:
        return None
    found = counted(marked(values.numbers, words, int(values.digits[0].nulls), places), words)
    groups.need()
    return lambda: found if places is None else pick(found, places.at(groups.group_keys))
