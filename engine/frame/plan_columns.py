"""Columns of plans by their names, and cast to types that two plans share."""

from __future__ import annotations

import re
from collections.abc import Sequence

from ..errors import NAMES_SHOWN, AmbiguousName, InvalidQuery, UnknownColumn, nearest, shown
from ..plan import infer
from ..plan.expr import Column, ColumnRef, new_column
from ..plan.logical import Item, Logical, Project
from ..plan.types import DataType
from .expressions.selected import Selected, SeveralColumns

_OPERATORS = re.compile(r"[<>=+*/(),]|\s(as|asc|desc)\b", re.IGNORECASE)
EXPRESSIONS = (
    'A string names a column: an expression is made of columns, as col("x") > 2, and text of SQL is taken '
    'by project("x + 1, y"), order("x DESC") and frame.sql("SELECT ... FROM self").'
)


def cast_columns(plan: Logical, types: Sequence[DataType]) -> Logical:
    """Return the plan with its columns cast, by position; itself when nothing changes."""
    if all(c.type == t for c, t in zip(plan.columns, types, strict=True)):
        return plan
    items: list[Item] = []
    for c, t in zip(plan.columns, types, strict=True):
        same = c.type == t
        items.append((c if same else new_column(c.name, t), infer.coerce(ColumnRef(c), t)))
    return Project(plan, tuple(items))


def find_column(columns: Sequence[Column], name: str) -> Column:
    """Return the one column of that name; raises `AmbiguousName` or `UnknownColumn` with the nearest names."""
    if isinstance(name, Selected):
        raise SeveralColumns(name)
    if not isinstance(name, str):
        raise InvalidQuery(f"A column is named by a string, not by {shown(name)}.")
    found = [c for c in columns if c.name.lower() == name.lower()]
    if len(found) == 1:
        return found[0]
    if found:
        raise AmbiguousName(f'More than one column is called "{name}": rename one of them first.')
    names = [c.name for c in columns]
    hint = nearest(name, names)
    if not hint and 0 < len(names) <= NAMES_SHOWN:
        hint = " There are " + ", ".join(f'"{n}"' for n in names) + "."
    if not name.isidentifier() and _OPERATORS.search(name):
        hint = f" {EXPRESSIONS}"
    raise UnknownColumn(f'There is no column "{name}".{hint}')
