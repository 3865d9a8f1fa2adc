"""WITH whose entries change tables: one after the other, then the statement behind them, all of them or none."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields, is_dataclass, replace
from typing import TYPE_CHECKING, TypeVar, cast

from ..answers import Answer
from ..change_tables import changed
from ..plan import statements as st
from ..plan.changes.stand_in import filled
from ..plan.logical import CatalogTable, Logical
from ..storage.tables.memory_table import MemoryTable
from .merge_tables import merge

if TYPE_CHECKING:
    from ..connection import Connection

T = TypeVar("T")


def with_changes(connection: Connection, statement: st.WithChanges) -> Answer:
    """Carry out the changes and what is behind them; after an error nothing has changed."""
    catalog = connection.catalog
    if catalog.in_transaction:  # which an error ends
        return _in_turn(connection, statement)
    catalog.begin()
    try:
        answer = _in_turn(connection, statement)
        catalog.commit()
    except BaseException:
        for entry in catalog.roll_back():
            connection.forget(entry)
        raise
    return answer


def _in_turn(connection: Connection, statement: st.WithChanges) -> Answer:
    """Each statement reads the tables as those before it left them, and what these returned."""
    catalog = connection.catalog
    bound = {name: catalog.table(name) for name in _changed_tables(statement)}
    read: dict[CatalogTable, CatalogTable] = {}
    for rows, change in statement.changes:
        answer = changed(connection, _reading(change, read))
        types = [kind for _, kind in rows.fields]
        read[rows] = MemoryTable(rows.name, answer.table, types)
        for name, before in bound.items():
            now = catalog.table(name)
            if before is not None and now is not None:
                read[before] = now
    then = _reading(statement.then, read)
    if isinstance(then, st.Merge):
        return merge(connection, then)
    if not isinstance(then, st.Query):
        return changed(connection, then)
    found = connection.run(then.plan).to_arrow()
    return Answer(found, is_asked=True, types=tuple(c.type for c in then.plan.columns))


def _changed_tables(statement: st.WithChanges) -> set[str]:
    return {change.table for _, change in statement.changes}


def _reading(part: T, tables: Mapping[CatalogTable, CatalogTable]) -> T:
    """Return a part of a statement whose plans read other tables."""
    found: object = part
    if isinstance(part, Logical):
        found = filled(part, tables)
    elif isinstance(part, tuple):
        found = tuple(_reading(each, tables) for each in part)
    elif is_dataclass(part) and type(part).__module__ == st.__name__:
        found = replace(
            part, **{f.name: _reading(getattr(part, f.name), tables) for f in fields(part)}
        )  # type: ignore[type-var]
    return cast("T", found)
