"""CREATE SEQUENCE and DROP SEQUENCE."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..answers import Answer, done
from ..errors import CatalogError, UnknownName, nearest
from ..plan.changes.catalog_objects import ObjectKey, is_left
from ..plan.changes.sequences import (
    DropSequence,
    Sequence,
    SequenceStatement,
    named_sequences,
)
from ..plan.changes.table_rules import rules_of

if TYPE_CHECKING:
    from ..catalog import Catalog


def change_sequences(catalog: Catalog, statement: SequenceStatement) -> Answer:
    """Make a sequence or remove one; raises `CatalogError` for one that defaults of tables need."""
    if isinstance(statement, DropSequence):
        _drop(catalog, statement)
        return done()
    name = statement.name
    known = catalog.sequence([*name.place, name])
    if known is not None:
        if is_left("sequence", name, statement.if_there):
            return done()
        _check(known[1], _dependents(catalog, known[0]))
    catalog.put_named(Sequence.new(name, statement.values))
    return done()


def _drop(catalog: Catalog, statement: DropSequence) -> None:
    known = catalog.sequence(statement.parts)
    if known is None:
        if statement.if_exists:
            return
        name = statement.parts[-1]
        hint = nearest(name, catalog.sequence_names())
        raise UnknownName(f'There is no sequence "{name}".{hint}')
    key, sequence = known
    tables = _dependents(catalog, key)
    if not statement.cascade:
        _check(sequence, tables)
    catalog.change({key: None, **dict.fromkeys(tables)})


def _dependents(catalog: Catalog, sequence: ObjectKey) -> dict[ObjectKey, str]:
    """Return the tables that have a default of a sequence's values."""
    found = {}
    for key, entry in catalog.objects("relation"):
        texts = [default.text for _, default in rules_of(entry).defaults]
        asked = [
            catalog.sequence(parts, key.place) for text in texts for parts in named_sequences(text)
        ]
        if any(known is not None and known[0] == sequence for known in asked):
            found[key] = str(entry.name)
    return found


def _check(sequence: Sequence, tables: dict[ObjectKey, str]) -> None:
    if tables:
        first = next(iter(tables.values()))
        raise CatalogError(
            f'The default of a column of "{first}" needs the sequence "{sequence.name}": drop the default first, or write '
            "DROP SEQUENCE ... CASCADE, which drops the table too."
        )
