"""IMPORT DATABASE: carries out the CREATE and COPY statements of a folder that EXPORT DATABASE wrote, here or in DuckDB, and no others."""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING

from ..errors import FileError, FuselineError, InvalidQuery, UnknownName
from ..storage.tables.files import local_path
from .export_database import LOAD_FILE, SCHEMA_FILE

if TYPE_CHECKING:
    from ..connection import Connection

_CREATES = re.compile(
    r"\s*create\s+(?:or\s+replace\s+)?(?:unique\s+)?(?:schema|type|table|view|macro|function|index|sequence)\b",
    re.IGNORECASE,
)
_COPIES = re.compile(
    r"\s*copy\s+(?P<table>(?:\"(?:[^\"]|\"\")*\"|[^\"'(])+?)\s+from\s+'(?P<path>(?:[^']|'')*)'\s*(?P<options>\(.*\))?\s*",
    re.IGNORECASE | re.DOTALL,
)
# Of columns that are NOT NULL, whose files have no NULL
_NEEDLESS = re.compile(
    r",?\s*force_not_null\s+(?:\([^)]*\)|'(?:[^']|'')*'|\"[^\"]*\"|\w+)(?:\s*,\s*(?='))?",
    re.IGNORECASE,
)


def import_database(connection: Connection, path: str) -> None:
    """Make what a folder describes, all or nothing; raises `FileError`, `AccessDenied`, and what its statements raise."""
    rules = connection.catalog.access.rules
    folder = Path(rules.resolve(local_path(path), path))
    creates = _statements(folder / SCHEMA_FILE, rules.resolve(f"{folder}/{SCHEMA_FILE}", path))
    loads = _statements(folder / LOAD_FILE, rules.resolve(f"{folder}/{LOAD_FILE}", path))
    for statement in creates:
        if not _CREATES.match(statement):
            raise InvalidQuery(
                f'"{folder / SCHEMA_FILE}" has a statement that makes no part of a database: {statement.strip()[:100]}'
            )
    copies = [_copy(statement, folder) for statement in loads]
    is_own = not connection.catalog.in_transaction
    if is_own:
        connection.begin()
    try:
        _create(connection, creates)
        for statement in copies:
            connection.execute(statement)
        if is_own:
            connection.commit()
    except BaseException:
        if is_own and connection.catalog.in_transaction:
            connection.rollback()
        raise


def _statements(file: Path, resolved: str) -> list[str]:
    from ..sql import split

    try:
        text = Path(resolved).read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise FileError(
            f'"{file}" cannot be read ({error}): IMPORT DATABASE takes a folder that EXPORT DATABASE wrote.'
        ) from error
    return [piece.sql for piece in split(text)]


def _copy(statement: str, folder: Path) -> str:
    """Return a COPY that reads the file of the same name in this folder, wherever it was written."""
    found = _COPIES.fullmatch(statement)
    if found is None:
        raise InvalidQuery(
            f'"{folder / LOAD_FILE}" has a statement that is no COPY of a file: {statement.strip()[:100]}'
        )
    name = re.split(r"[/\\]", found["path"].replace("''", "'"))[-1]
    path = str(folder / name).replace("'", "''")
    options = _NEEDLESS.sub("", found["options"] or "")
    return f"COPY {found['table']} FROM '{path}' {options}"


def _create(connection: Connection, statements: list[str]) -> None:
    """Carry out CREATE statements; one that names what another makes waits for it."""
    while statements:
        waiting: list[str] = []
        last: FuselineError | None = None
        for statement in statements:
            try:
                connection.execute(statement)
            except UnknownName as error:
                connection.catalog.failed = False  # nothing was changed
                waiting.append(statement)
                last = error
        if last is not None and len(waiting) == len(statements):
            connection.catalog.fail()
            raise last
        statements = waiting
