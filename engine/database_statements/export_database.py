"""EXPORT DATABASE: a file for each table, and the statements that make the database again, as DuckDB writes and reads them.

IMPORT DATABASE: carries out the CREATE and COPY statements of a folder that EXPORT DATABASE wrote, here or in DuckDB, and no others.
"""

from __future__ import annotations

import re
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from ..catalog import Catalog, View
from ..database.attached_databases import CatalogEntry
from ..errors import FileError, FuselineError, InvalidQuery, UnknownName, Unsupported
from ..metadata.objects import (
    Here,
    create_index_text,
    create_sequence_text,
    create_table_text,
    create_view_text,
    name_in_sql,
    path_in_sql,
)
from ..plan.changes import catalog_objects as co
from ..plan.changes.database_changes import ExportDatabase
from ..plan.changes.sequences import Sequence
from ..plan.statements import CopyTo, Query
from ..storage.tables.files import place_here
from ..writing.copy_to import copy_to
from ..writing.new_files import NewFiles

if TYPE_CHECKING:
    from ..connection import Connection


SCHEMA_FILE, LOAD_FILE = "schema.sql", "load.sql"
Objects = list[tuple[co.ObjectKey, CatalogEntry]]
_READ_AS = {  # the options of COPY FROM that read what COPY TO writes
    "csv": "(FORMAT 'csv', allow_quoted_nulls false, quote '\"', delimiter ',', header 1)",
    "parquet": "(FORMAT 'parquet')",
}
_TYPES_IN_ORDER = ("schema", "type", "sequence", "table", "index", "macro", "view")


def export_database(connection: Connection, statement: ExportDatabase) -> None:
    """Write a database to a folder; raises `FileError`, and `AccessDenied` for a folder that may not be written."""
    catalog = connection.catalog
    name = statement.database
    database = catalog.current.database if name is None else name.lower()
    objects = catalog.made_in(database)
    with NewFiles(catalog.access.rules) as files:
        folder = files.resolved(statement.path)
        files.make_folder(folder, statement.path)
        loads = []
        for key, entry in objects:
            if key.kind == "relation" and not isinstance(entry, View):
                path = folder / f"{_file_name(key, str(entry.name))}.{statement.format}"
                table = connection.table(co.ObjectName(entry.name, key.place))
                generated = [name for name, _ in co.rules_of(entry).generated]
                plan = (table.drop(generated) if generated else table).plan
                options = (
                    {**statement.options, "header": True}
                    if statement.format == "csv"
                    else statement.options
                )
                copy_to(connection, CopyTo(Query(plan), str(path), statement.format, options))
                place = str(path).replace("'", "''")
                loads.append(
                    f"COPY {_path(catalog, key, entry)} FROM '{place}' {_read_as(statement)};\n"
                )
        texts = {SCHEMA_FILE: _schema(connection, objects), LOAD_FILE: "".join(loads)}
        for file_name, text in texts.items():
            with files.opened(folder / file_name, statement.path) as file:
                file.write(text.encode())


def _read_as(statement: ExportDatabase) -> str:
    if statement.format == "parquet" or not statement.options:
        return _READ_AS[statement.format]
    known = {"quote": '"', "delim": ",", "escape": '"', "nullstr": ""}
    given = {name: str(statement.options.get(name, value)) for name, value in known.items()}
    options = "".join(
        f", {name} '{value.replace(chr(39), chr(39) * 2)}'"
        for name, value in given.items()
        if value
    )
    return f"(FORMAT 'csv', allow_quoted_nulls false{options}, header 1)"


def _file_name(key: co.ObjectKey, name: str) -> str:
    """Return the name of a table's file: letters and digits, with those of its schema before them."""
    whole = name if key.schema == co.MAIN else f"{key.schema}_{name}"
    plain = re.sub(r"\W", "_", whole)
    return (
        plain if plain == whole else f"{plain}_{zlib.crc32(repr((key.schema, name)).encode()):08x}"
    )


def _path(catalog: Catalog, key: co.ObjectKey, entry: CatalogEntry) -> str:
    return path_in_sql(co.ObjectName(entry.name, catalog.spelled(key.place)))


def _schema(connection: Connection, objects: Objects) -> str:
    """Return the statements that make what is in a database, those first that others may need."""
    here = Here(connection.catalog, connection.settings)
    made: dict[str, list[str]] = {kind: [] for kind in _TYPES_IN_ORDER}
    for key, entry in objects:
        for kind, text in _made(here, key, entry):
            made[kind].append(text + "\n")
    return "".join(text for texts in made.values() for text in texts)


def _made(here: Here, key: co.ObjectKey, entry: CatalogEntry) -> Iterator[tuple[str, str]]:
    name = co.ObjectName(entry.name, here.catalog.spelled(key.place))
    match entry:
        case View(plan=plan) if plan is not None:
            raise Unsupported(
                f'The view "{name}" was made by a dataframe call and has no text to export: drop it, or make it with CREATE VIEW.'
            )
        case View():
            yield "view", create_view_text(name, entry)
        case co.Macro():
            yield "macro", _macro(name, entry)
        case co.UserType(type=data_type):
            yield "type", f"CREATE TYPE {path_in_sql(name)} AS {data_type};"
        case Sequence():
            yield "sequence", create_sequence_text(path_in_sql(name), entry)
        case co.SchemaObject():
            yield "schema", f"CREATE SCHEMA {name_in_sql(entry.name)};"
        case _:
            yield "table", create_table_text(name, here.fields(entry, name), co.rules_of(entry))
            for index in co.rules_of(entry).indexes:
                yield "index", create_index_text(name, index)


def _macro(name: co.ObjectName, macro: co.Macro) -> str:
    texts = [f"({m.written_parameters}) AS {_body(m)}" for m in (macro, *macro.overloads)]
    return f"CREATE MACRO {path_in_sql(name)}{', '.join(texts)};"


def _body(macro: co.Macro) -> str:
    return f"TABLE {macro.text}" if macro.is_table else macro.text.removeprefix("SELECT ")


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
    folder = place_here(path, rules)
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
