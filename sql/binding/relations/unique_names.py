"""Names of columns that differ from each other, as DuckDB makes them."""

from __future__ import annotations

from collections.abc import Sequence


def unique_names(names: Sequence[str]) -> list[str]:
    """Return `names` with _1, _2 ... behind those that came before, as DuckDB names the columns of a subquery."""
    if len({name.lower() for name in names}) == len(names):
        return list(names)
    taken: set[str] = set()
    result = []
    for name in names:
        new, count = name, 0
        while new.lower() in taken:
            count += 1
            new = f"{name}_{count}"
        taken.add(new.lower())
        result.append(new)
    return result
