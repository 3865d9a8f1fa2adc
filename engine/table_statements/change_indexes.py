"""CREATE INDEX and DROP INDEX: an index is part of the rules of its table, and its name is one of the table's schema."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import TYPE_CHECKING

from ..answers import Answer, done
from ..change_tables import changed
from ..errors import UnknownName, nearest
from ..plan.changes.catalog_objects import SchemaPlace, is_left
from ..plan.changes.stand_in import StandIn
from ..plan.changes.table_rules import TableIndex, rules_of
from ..plan.statements import AlteredColumn, AlterTable, CreateIndex, DropIndex

if TYPE_CHECKING:
    from ..catalog import Catalog
    from ..connection import Connection
    from ..plan.logical import CatalogTable

Found = tuple[SchemaPlace, "CatalogTable", TableIndex]


def create_index(connection: Connection, statement: CreateIndex) -> Answer:
    """Make an index; raises `CatalogError` for a name that is taken, and `ConstraintError` where rows are not unique."""
    catalog = connection.catalog
    own = next(
        key.place
        for key, entry in catalog.objects("relation")
        if entry is catalog.entry(statement.change.table)
    )
    taken = any(
        place == own and index.name.lower() == statement.name.lower()
        for place, _, index in _indexes(catalog)
    )
    if taken and is_left("index", statement.name, statement.if_there):
        return done()
    return changed(connection, statement.change)


def drop_index(connection: Connection, statement: DropIndex) -> Answer:
    """Remove an index; raises `UnknownName`."""
    catalog, (*schema, name) = connection.catalog, statement.parts
    where = catalog.place_of(schema) if schema else None
    known = list(_indexes(catalog))
    here = [
        found
        for found in known
        if found[2].name.lower() == name.lower() and (not schema or found[0] == where)
    ]
    current = catalog.current
    here.sort(key=lambda found: found[0] != current)
    if not here:
        if statement.if_exists:
            return done()
        hint = nearest(name, [index.name for _, _, index in known])
        raise UnknownName(f'There is no index "{name}".{hint}')
    _, table, index = here[0]
    rules = rules_of(table)
    rules = replace(rules, indexes=tuple(each for each in rules.indexes if each != index))
    columns = tuple(AlteredColumn(column, kind, column) for column, kind in table.fields)
    rows = StandIn(table.name, table.fields)
    return changed(connection, AlterTable(table.name, table.name, columns, rules, rows))


def _indexes(catalog: Catalog) -> Iterator[Found]:
    for key, entry in catalog.objects("relation"):
        for index in (getattr(entry, "table_rules", None) and rules_of(entry).indexes) or ():
            yield key.place, entry, index
