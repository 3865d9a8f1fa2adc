"""Names of columns of which each is another."""

from __future__ import annotations

import itertools


def distinct_names(names: list[str]) -> list[str]:
    """Return the names with `_1`, `_2` ... behind those that repeat an earlier one but for case, as DuckDB does."""
    made: list[str] = []
    taken: set[str] = set()
    for name in names:
        free = name
        for i in itertools.count(1):
            if free.lower() not in taken:
                break
            free = f"{name}_{i}"
        taken.add(free.lower())
        made.append(free)
    return made
