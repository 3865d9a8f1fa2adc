"""COMMENT ON."""

from __future__ import annotations

import copy
from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from ..answers import Answer, done
from ..catalog import View
from ..change_tables import TRIES
from ..database.stored_table import StoredTable
from ..errors import CatalogError, TransactionError, UnknownName, nearest
from ..plan.changes.session_objects import Macro, UserType
from ..plan.changes.table_rules import Comments, rules_of
from ..plan.statements import CommentOn
from ..storage.tables.memory_table import MemoryTable

if TYPE_CHECKING:
    from ..catalog import Catalog
    from ..plan.logical import CatalogTable


def comment_on(catalog: Catalog, statement: CommentOn) -> Answer:
    """Say something about an object; raises `UnknownName`, and `CatalogError` for a table of files."""
    if statement.kind != "relation":
        _on_named(catalog, statement)
        return done()
    name = catalog.located(statement.parts)
    if name is None:
        raise catalog.unknown(".".join(statement.parts))
    for _ in range(TRIES):
        entry = catalog.view(name) or catalog.table(name)
        if entry is None:
            raise catalog.unknown(name)
        if catalog.exchange(entry, _commented(entry, statement)):
            return done()
    raise TransactionError(f'Other statements change "{name}" all the time: try again.')


def _commented(entry: CatalogTable | View, statement: CommentOn) -> CatalogTable | View:
    if isinstance(entry, View):
        return replace(entry, comments=_comments(entry.comments, statement))
    rules = rules_of(entry)
    column = _spelled(statement.column, [name for name, _ in entry.fields], entry.name)
    rules = replace(rules, comments=rules.comments.with_text(column, statement.text))
    if isinstance(entry, StoredTable):
        made = entry.changed(rules=rules)
        made.rows = entry.rows
        return made
    if not isinstance(entry, MemoryTable):
        raise CatalogError(f'"{entry.name}" is made of files, which have no comments here.')
    table = copy.copy(entry)  # with the cached columns of the same rows
    table.table_rules = rules
    return table


def _comments(comments: Comments, statement: CommentOn) -> Comments:
    return comments.with_text(statement.column, statement.text)


def _spelled(column: str | None, names: Sequence[str], table: str) -> str | None:
    if column is None:
        return None
    for name in names:
        if name.lower() == column.lower():
            return name
    raise UnknownName(f'The table "{table}" has no column "{column}".{nearest(column, names)}')


def _on_named(catalog: Catalog, statement: CommentOn) -> None:
    name = ".".join(statement.parts)
    found = catalog.named_entry(statement.parts, statement.kind)
    if found is None:
        hint = nearest(name, [key.name for key, _ in catalog.objects(statement.kind)])
        raise UnknownName(f'There is no {statement.kind} "{name}".{hint}')
    key, entry = found
    assert isinstance(entry, Macro | UserType), "of this kind"
    catalog.change({key: replace(entry, comment=statement.text)})
