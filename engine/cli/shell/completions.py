"""What may follow a text: keywords, functions, tables, columns by the alias of their table, files, settings, and commands."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING

from ...errors import FuselineError

if TYPE_CHECKING:
    from ...connection import Connection
    from ...sql import NamedRelation

MOST_OFFERED = 200  # that are offered
# Words that begin statements or clauses and that may be names too, so that they are not reserved
MORE_KEYWORDS = (
    "ALTER ANALYZE ATTACH BEGIN BETWEEN BY COMMIT COPY DELETE DROP EXCLUDE EXPLAIN FILTER IF INSERT INTO IS JOIN LIKE OVER PARTITION "
    "PIVOT PREPARE REPLACE RESET ROLLBACK SET SHOW SUMMARIZE TABLE UNPIVOT UPDATE VALUES VIEW INNER LEFT RIGHT FULL CROSS NATURAL "
    "COALESCE EXTRACT INTERVAL FIRST LAST NULLS RECURSIVE ROWS RANGE"
)
_WORD = re.compile(r"[A-Za-z_][A-Za-z_0-9]*$|$")
_QUALIFIED = re.compile(r'(?:"((?:[^"]|"")+)"|([A-Za-z_][A-Za-z_0-9]*))\.([A-Za-z_0-9]*)$')
_TABLE_NEXT = re.compile(
    r"\b(from|join|into|update|table|describe|summarize|view)\s+[A-Za-z_0-9]*$", re.IGNORECASE
)
_SETTING_NEXT = re.compile(r"\b(set|reset|pragma)\s+[A-Za-z_0-9]*$", re.IGNORECASE)
_FILES = (".read", ".output", ".once", ".open")

Found = tuple[
    int, list[str]
]  # where in the text what is written so far begins, and the words that may be there


def completions(text: str, connection: Connection) -> Found:
    """Return what may be written at the end of a text; nothing is run for it."""
    from ...sql import unfinished

    if text.lstrip().startswith(".") and "\n" not in text:
        return _of_command(text, connection)
    begun = unfinished(text)
    if begun is not None:
        return _files(begun[1:], text, connection) if begun.startswith("'") else (len(text), [])
    qualified = _QUALIFIED.search(text)
    if qualified is not None:
        name = (qualified[1] or "").replace('""', '"') or qualified[2]
        return _starting(qualified[3], text, _columns_of(name, text, connection))
    word = _word(text)
    if _SETTING_NEXT.search(text):
        return _starting(word, text, _settings(connection))
    if _TABLE_NEXT.search(text):
        return _starting(word, text, _tables(connection))
    return _anything(word, text, connection)


def _anything(word: str, text: str, connection: Connection) -> Found:
    """Names of the statement first, then functions and keywords, in the case in which the word was begun."""
    if not word:
        return len(text), [*_names(text, connection)][:MOST_OFFERED]
    at, own = _starting(word, text, [*_names(text, connection), *_tables(connection)])
    at, functions = _starting(word, text, _functions(connection))
    _, keywords = _starting(word, text, _keywords())
    cased = [k.lower() for k in keywords] if word.islower() else keywords
    return at, list(dict.fromkeys([*own, *cased, *functions]))[:MOST_OFFERED]


def _word(text: str) -> str:
    found = _WORD.search(text)
    return found.group() if found else ""


def _starting(word: str, text: str, words: Iterable[str]) -> Found:
    low = word.lower()
    found = [w for w in words if w.lower().lstrip('"').startswith(low)]
    return len(text) - len(word), list(dict.fromkeys(found))[:MOST_OFFERED]


def _names(text: str, connection: Connection) -> list[str]:
    """The columns of all relations of the statement, and the relations' names."""
    from ...sql import quoted, relations

    found: list[str] = []
    for relation in relations(text):
        found += [quoted(relation.name), *_columns(relation, connection)]
    return found


def _columns_of(name: str, text: str, connection: Connection) -> list[str]:
    from ...sql import relations

    named = [r for r in relations(text) if r.name.lower() == name.lower()]
    return [column for relation in named for column in _columns(relation, connection)]


def _columns(relation: NamedRelation, connection: Connection) -> Sequence[str]:
    """Return the columns of a relation: a table's, or those of a file, function or query, which is planned for it."""
    from ...sql import quoted

    catalog = connection.catalog
    name = relation.text.strip('"')
    table = catalog.table(name)
    if table is not None:
        return [quoted(column) for column, _ in table.fields]
    # A text that fails would end a transaction, and one with a ; could be a statement
    if catalog.in_transaction or ";" in relation.text:
        return []
    with suppress(FuselineError):
        columns = connection.sql(f"FROM {relation.text}").plan.columns
        return [quoted(column.name) for column in columns]
    return []


def _tables(connection: Connection) -> list[str]:
    from ...plan.files.read_options import TABLE_FUNCTIONS
    from ...sql import quoted

    names = [quoted(name) for name in connection.catalog.names()]
    functions = (
        *TABLE_FUNCTIONS,
        "range",
        "generate_series",
        *connection.catalog.table_functions(),
    )
    return [*names, *(f"{name}(" for name in sorted(functions))]


def _functions(connection: Connection) -> list[str]:
    from ...plan.functions import spellings

    macros = [f"{macro.name}(" for _, macro in connection.catalog.objects("macro")]
    return [*macros, *(f"{name}(" for name, *_ in spellings())]


def _keywords() -> list[str]:
    from ...sql import RESERVED

    return sorted({*(word.upper() for word in RESERVED), *MORE_KEYWORDS.split()})


def _settings(connection: Connection) -> list[str]:
    from ...settings import DUCKDB_NAMES

    return sorted((*connection.settings.names(), *DUCKDB_NAMES))


def _of_command(text: str, connection: Connection) -> Found:
    from .dot_commands import COMMANDS, STAGES
    from .output_modes import MODES, OTHER_NAMES

    command, blank, rest = text.lstrip().partition(" ")
    if not blank:
        return _starting(command, text, COMMANDS)
    word = rest.lstrip()
    match command:
        case ".mode":
            return _starting(word, text, (*MODES, *OTHER_NAMES))
        case ".explain":
            return _starting(word, text, STAGES)
        case ".schema" | ".tables":
            return _starting(word, text, connection.catalog.names())
        case ".help":
            return _starting(word, text, COMMANDS)
    if command in _FILES:
        return _files(word, text, connection)
    takes = COMMANDS[command].takes if command in COMMANDS else ""
    return _starting(word, text, ("on", "off") if takes == "[on|off]" else ())


def _files(begun: str, text: str, connection: Connection) -> Found:
    """Return the files and folders that begin so, of those that queries may open."""
    folder, name = os.path.split(begun)
    start = len(text) - len(begun)
    rules = connection.catalog.access.rules
    found = []
    with suppress(OSError, FuselineError):
        resolved = rules.resolve(os.path.expanduser(folder) or ".", folder)  # noqa: PTH111
        with os.scandir(resolved) as entries:
            for entry in sorted(entries, key=lambda e: e.name):
                hidden = entry.name.startswith(".") and not name.startswith(".")
                if (
                    entry.name.startswith(name)
                    and not hidden
                    and rules.permits(os.path.realpath(entry.path))
                ):
                    end = "/" if entry.is_dir() else ""
                    found.append(f"{begun[: len(begun) - len(name)]}{entry.name}{end}")
    return start, found[:MOST_OFFERED]
