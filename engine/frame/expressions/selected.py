"""Columns that an expression stands for in the place of one: `all()`, `exclude("id")`, `col("a", "b")`, `col("^price_.*$")`."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence

from ...errors import InvalidQuery, UnknownColumn, nearest, shown
from ...plan.expr import Column
from ...plan.types import DataType

Choose = Callable[[Sequence[Column]], list[Column]]


class Selected(str):
    """What such an expression asks to be resolved, in the place of a column's name; `choose` says which columns it is."""

    __slots__ = ("choose",)
    choose: Choose

    def __new__(cls, label: str, choose: Choose) -> Selected:
        made = super().__new__(cls, label)
        made.choose = choose
        return made


class SeveralColumns(InvalidQuery):
    """An expression for several columns stands where one is needed, or where it first has to be expanded."""

    def __init__(self, selected: Selected) -> None:
        super().__init__(
            f"{selected!s} stands for several columns, and here is room for one: it belongs in select, with_columns, filter, sort, "
            "group_by, distinct or agg."
        )
        self.selected = selected


def by_names(names: Sequence[str]) -> Selected:
    """Return the columns of these names, in this order; raises `UnknownColumn` where one is missing."""
    if not all(isinstance(n, str) for n in names):
        wrong = next(n for n in names if not isinstance(n, str))
        raise InvalidQuery(
            f"A column is named by a string, not by {shown(wrong)}: lit(...) is a constant."
        )

    def choose(columns: Sequence[Column]) -> list[Column]:
        known = {c.name.lower(): c for c in columns}
        for name in names:
            if name.lower() not in known:
                hint = nearest(name, [c.name for c in columns])
                raise UnknownColumn(f'There is no column "{name}".{hint}')
        return [known[name.lower()] for name in names]

    return Selected(f"COLUMNS({', '.join(names)})", choose)


def by_pattern(pattern: str) -> Selected:
    """Return the columns whose names a regular expression finds."""
    try:
        found = re.compile(pattern)
    except re.error as error:
        raise InvalidQuery(f"{pattern!r} is no regular expression: {error}.") from None

    def choose(columns: Sequence[Column]) -> list[Column]:
        chosen = [c for c in columns if found.search(c.name)]
        if not chosen:
            raise UnknownColumn(f"There is no column whose name {pattern!r} finds.")
        return chosen

    return Selected(f"COLUMNS({pattern!r})", choose)


def by_types(kinds: Sequence[str], matches: Callable[[DataType], bool]) -> Selected:
    """Return the columns of some types."""
    label = f"COLUMNS({', '.join(kinds)})"

    def choose(columns: Sequence[Column]) -> list[Column]:
        return [c for c in columns if matches(c.type)]

    return Selected(label, choose)


def all_but(names: Sequence[str]) -> Selected:
    """Return all columns but those of these names or patterns (^...$)."""
    if not all(isinstance(n, str) for n in names):
        raise InvalidQuery("exclude() takes names of columns.")

    def choose(columns: Sequence[Column]) -> list[Column]:
        dropped: set[Column] = set()
        for name in names:
            one = by_pattern(name) if is_pattern(name) else by_names([name])
            dropped.update(one.choose(columns))
        return [c for c in columns if c not in dropped]

    return Selected(f"COLUMNS(* EXCLUDE ({', '.join(names)}))" if names else "COLUMNS(*)", choose)


def is_pattern(name: object) -> bool:
    """Whether a name is a regular expression, as in Polars: from ^ to $."""
    return isinstance(name, str) and len(name) > 1 and name.startswith("^") and name.endswith("$")
