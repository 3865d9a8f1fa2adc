"""Statements about databases and schemas: ATTACH, DETACH, USE, CREATE and DROP SCHEMA, CHECKPOINT, INSTALL and LOAD."""

from __future__ import annotations

import re
from collections.abc import Callable

from fuseline.errors import Span, UnknownName, Unsupported
from fuseline.plan.changes.database_changes import (
    Attach,
    Checkpoint,
    CreateSchema,
    Detach,
    DropSchema,
    ExportDatabase,
    ImportDatabase,
    UseSchema,
)
from fuseline.plan.dialect import BUILT_IN
from fuseline.plan.files.write_options import WRITE_OPTIONS
from fuseline.plan.statements import NoOperation, Statement

from ..binding.scope import Scope
from ..parsing.pieces import Piece
from ..parsing.statement_words import StatementWords
from .copy_options import copy_options

_PART = r'"(?:[^"]|"")+"|\w+'
_DOTTED = rf"\s*(?:{_PART})(?:\.(?:{_PART}))?\s*"


def attach(piece: Piece, _: Scope) -> Attach:
    words = StatementWords(
        piece, "ATTACH [DATABASE] [IF NOT EXISTS] 'folder' [AS name] [(READ_ONLY)]"
    )
    words.expect("ATTACH")
    words.accepts("DATABASE")
    unless = words.accepts("IF", "NOT", "EXISTS")
    path = words.text()
    name = words.name() if words.accepts("AS") else None
    read_only = False
    if words.accepts("("):
        while True:
            read_only = _attach_option(words, read_only)
            if words.accepts(")"):
                break
            words.expect(",")
    words.end()
    return Attach(path, name, read_only, unless)


def _attach_option(words: StatementWords, read_only: bool) -> bool:
    option = words.name().upper()
    place = words.place()
    if option in ("READ_ONLY", "READ_WRITE"):
        no = words.accepts("FALSE") or words.accepts("0")
        if not no and not words.accepts("TRUE"):
            words.accepts("1")
        return (option == "READ_ONLY") != no
    if option == "TYPE":
        kind = words.text() if words.is_text() else words.name()
        if kind.lower() == "fuseline":
            return read_only
        raise Unsupported(
            f"Databases of the type {kind} are not attached: a database of Fuseline is a folder. EXPORT DATABASE there, in the format "
            "parquet, and IMPORT DATABASE here.",
            place,
        )
    raise Unsupported(f"ATTACH has no option {option}: there is READ_ONLY.", place)


def detach(piece: Piece, _: Scope) -> Detach:
    words = StatementWords(piece, "DETACH [DATABASE] [IF EXISTS] name")
    words.expect("DETACH")
    words.accepts("DATABASE")
    exists = words.accepts("IF", "EXISTS")
    name = words.name()
    words.end()
    return Detach(name, exists)


def use_schema(piece: Piece, scope: Scope) -> UseSchema:
    words = StatementWords(piece, "USE database, USE schema or USE database.schema")
    words.expect("USE")
    parts = words.dotted_name()
    place = words.place()
    words.end()
    return _schema(parts, place, scope)


def schema_named(text: str, place: Span, scope: Scope) -> UseSchema:
    """Bind SET schema and SET search_path as USE of the one place that they name."""
    found = re.fullmatch(_DOTTED, text)
    if found is None:
        raise Unsupported("search_path takes one schema: 'main', or 'database.schema'.", place)
    parts = [part.strip('"').replace('""', '"') for part in re.findall(_PART, text)]
    return _schema(tuple(parts), place, scope)


def _schema(parts: tuple[str, ...], place: Span, scope: Scope) -> UseSchema:
    if len(parts) > 2 or scope.session.catalog.place_of(parts) is None:
        shown = ".".join(parts)
        raise UnknownName(f'There is no database or schema "{shown}".', place)
    return UseSchema(parts)


def change_schema(piece: Piece, scope: Scope) -> Statement:
    """Bind CREATE SCHEMA or DROP SCHEMA."""
    words = StatementWords(
        piece,
        "CREATE SCHEMA [IF NOT EXISTS] name or DROP SCHEMA [IF EXISTS] name [CASCADE]",
    )
    if words.accepts("CREATE"):
        if words.accepts("OR", "REPLACE"):
            raise Unsupported(
                "CREATE OR REPLACE SCHEMA is not supported: DROP SCHEMA ... CASCADE first, or write IF NOT EXISTS.",
                words.place(),
            )
        words.expect("SCHEMA")
        unless = words.accepts("IF", "NOT", "EXISTS")
        parts = words.dotted_name()
        _check_schema(parts, words.place(), words, scope)
        words.end()
        return CreateSchema(parts, unless)
    words.expect("DROP", "SCHEMA")
    named = words.dropped()
    _check_schema(named.parts, named.place, words, scope)
    return DropSchema(named.parts, named.exists, named.how == "CASCADE")


def _check_schema(parts: tuple[str, ...], place: Span, words: StatementWords, scope: Scope) -> None:
    if len(parts) > 2:
        raise words.error()
    if len(parts) == 2:
        _check_database(parts[0], place, scope)


def _check_database(name: str, place: Span, scope: Scope) -> None:
    if scope.session.catalog.place_of((name, "main")) is None:
        raise UnknownName(f'There is no database "{name}".', place)


def checkpoint(piece: Piece, scope: Scope) -> Checkpoint:
    words = StatementWords(piece, "[FORCE] CHECKPOINT [database]")
    words.accepts("FORCE")
    words.expect("CHECKPOINT")
    if words.read == len(words.tokens):
        return Checkpoint()
    name = words.name()
    place = words.place()
    words.end()
    _check_database(name, place, scope)
    return Checkpoint(name)


def export_database(piece: Piece, scope: Scope) -> ExportDatabase:
    words = StatementWords(piece, "EXPORT DATABASE [name TO] 'folder' [(options of COPY)]")
    words.expect("EXPORT", "DATABASE")
    name = None
    if not words.is_text():
        name = words.name()
        _check_database(name, words.place(), scope)
        words.expect("TO")
    path = words.text()
    rest = words.tokens[words.read :]
    form, options = copy_options(rest, piece, scope, "csv", WRITE_OPTIONS)
    for option in ("partition_by", "write_partition_columns", "overwrite", "append"):
        if options.get(option):
            raise Unsupported(f"EXPORT DATABASE does not take {option}.", words.place())
    if form not in ("csv", "parquet"):
        raise Unsupported("EXPORT DATABASE writes csv or parquet.", words.place())
    return ExportDatabase(path, name, form, options)


def import_database(piece: Piece, _: Scope) -> ImportDatabase:
    words = StatementWords(piece, "IMPORT DATABASE 'folder'")
    words.expect("IMPORT", "DATABASE")
    path = words.text()
    words.end()
    return ImportDatabase(path)


def load(piece: Piece, _: Scope) -> NoOperation:
    """Bind INSTALL and LOAD, which do nothing for what is built in."""
    words = StatementWords(piece, "INSTALL name [FROM repository] or LOAD name")
    words.accepts("FORCE")
    if not words.accepts("INSTALL"):
        words.expect("LOAD")
    name = words.text() if words.is_text() else words.name()
    place = words.place()
    if words.accepts("FROM") and not words.is_text():
        words.name()
    elif words.is_text():
        words.text()
    words.end()
    if name.lower() not in BUILT_IN:
        raise Unsupported(
            f'There are no extensions, and "{name}" is not built in; {", ".join(BUILT_IN)} are.',
            place,
        )
    return NoOperation()


def _forced(piece: Piece, scope: Scope) -> Statement:
    found = re.match(r"\s*force\s+install\b", piece.sql, re.IGNORECASE)
    return checkpoint(piece, scope) if found is None else load(piece, scope)


DATABASE_BINDERS: dict[str, Callable[[Piece, Scope], Statement]] = {
    "ATTACH": attach,
    "DETACH": detach,
    "USE": use_schema,
    "CHECKPOINT": checkpoint,
    "EXPORT": export_database,
    "IMPORT": import_database,
    "FORCE": _forced,
    "INSTALL": load,
    "LOAD": load,
}
