"""Rows of CSV files that were left out, kept as tables where `store_rejects` asks for it: `reject_errors` and `reject_scans`, as DuckDB has them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import field
from typing import Protocol

import pyarrow as pa

from ..errors import CatalogError, InvalidQuery
from ..plan.arrow.arrow_types import arrow_table
from ..plan.changes.catalog_objects import TEMP, ObjectName, SchemaPlace
from ..plan.coercion import enum_of
from ..plan.types import BOOLEAN, UBIGINT, UINTEGER, VARCHAR, DataType, to_arrow
from ..records import dataclass
from ..storage.tables.memory_table import MemoryTable
from .csv_fields import CsvFile, Options, null_texts
from .csv_rows import INVALID, TOO_LONG, UNQUOTED, CsvRow, is_text
from .text_types import Conversion

CAST, MISSING, SURPLUS, ENCODING = "CAST", "MISSING COLUMNS", "TOO MANY COLUMNS", "INVALID ENCODING"
_KINDS = enum_of([CAST, MISSING, SURPLUS, UNQUOTED, TOO_LONG, ENCODING, INVALID])
ERRORS: tuple[tuple[str, DataType], ...] = (
    ("scan_id", UBIGINT),
    ("file_id", UBIGINT),
    ("line", UBIGINT),
    ("line_byte_position", UBIGINT),
    ("byte_position", UBIGINT),
    ("column_idx", UBIGINT),
    ("column_name", VARCHAR),
    ("error_type", _KINDS),
    ("csv_line", VARCHAR),
    ("error_message", VARCHAR),
)
SCANS: tuple[tuple[str, DataType], ...] = (
    ("scan_id", UBIGINT),
    ("file_id", UBIGINT),
    ("file_path", VARCHAR),
    ("delimiter", VARCHAR),
    ("quote", VARCHAR),
    ("escape", VARCHAR),
    ("newline_delimiter", VARCHAR),
    ("skip_rows", UINTEGER),
    ("has_header", BOOLEAN),
    ("columns", VARCHAR),
    ("date_format", VARCHAR),
    ("timestamp_format", VARCHAR),
    ("user_arguments", VARCHAR),
)
Values = tuple[object, ...]
LINES = {"\n": r"\n", "\r": r"\r", "\r\n": r"\r\n", "": r"\n"}


class Tables(Protocol):
    """The catalog of a connection."""

    def entry(self, name: str) -> object: ...
    def put(self, entry: MemoryTable) -> object: ...


class RejectTable(MemoryTable):
    """What was left out so far; further readings add rows to it."""


@dataclass
class Rejects:
    """What reading some files has left out."""

    options: Options
    errors: list[Values] = field(default_factory=list)
    scans: list[Values] = field(default_factory=list)

    @property
    def names(self) -> tuple[str, str]:
        found = (self.options.get("rejects_table"), self.options.get("rejects_scan"))
        errors, scans = found
        return str(errors or "reject_errors"), str(scans or "reject_scans")

    def begin(self) -> None:
        self.errors.clear()
        self.scans.clear()

    def add_file(self, number: int, part: CsvFile) -> None:
        types = zip(part.names, part.conversions, strict=True)
        columns = "{" + ",".join(f"'{name}': '{c.type}'" for name, c in types) + "}"
        dialect = part.dialect
        self.scans.append(
            (
                number,
                part.path,
                shown_sign(dialect.delim),
                shown_sign(dialect.quote),
                shown_sign(dialect.escape),
                LINES[dialect.newline],
                part.skipped,
                part.has_header,
                columns,
                self.options.get("dateformat"),
                self.options.get("timestampformat"),
                user_arguments(self.options),
            )
        )

    def add_rows(self, number: int, part: CsvFile, found: Iterator[Values]) -> None:
        """Keep what is wrong with rows, up to `rejects_limit` for each reading."""
        most = self.options.get("rejects_limit", 0)
        for values in found:
            if isinstance(most, int) and 0 < most <= len(self.errors):
                return
            self.errors.append((number, *values))

    def store(self, tables: Tables) -> None:
        """Add the rows to the tables of the session; raises `CatalogError` where another table has a name."""
        errors, scans = self.names
        old = _known(tables, scans)
        scan = 1 + (max(old.data.column("scan_id").to_pylist(), default=0) if old else 0)
        for name, columns, rows in ((errors, ERRORS, self.errors), (scans, SCANS, self.scans)):
            _append(tables, name, columns, [(scan, *row) for row in rows])
        self.begin()


def _known(tables: Tables, name: str) -> RejectTable | None:
    found = tables.entry(ObjectName(name, SchemaPlace(TEMP)))
    if found is not None and not isinstance(found, RejectTable):
        raise CatalogError(
            f'There is a table "{name}" already, which has no rejects of CSV files: give rejects_table and rejects_scan other names.'
        )
    return found


def _append(
    tables: Tables, name: str, columns: Sequence[tuple[str, DataType]], rows: Sequence[Values]
) -> None:
    made = arrow_table(rows, pa.schema([(name, to_arrow(kind)) for name, kind in columns]))
    old = _known(tables, name)
    data = made if old is None else pa.concat_tables([old.data, made])
    place = ObjectName(name, SchemaPlace(TEMP))
    tables.put(RejectTable(place, data, [kind for _, kind in columns]))


def check_names(options: Options) -> None:
    """Raise `InvalidQuery` for options of rejects that do not go together."""
    if not options.get("store_rejects"):
        for name in ("rejects_table", "rejects_scan", "rejects_limit"):
            if name in options:
                raise InvalidQuery(f"{name} needs store_rejects = true.")
        return
    if options.get("ignore_errors") is False:
        raise InvalidQuery("store_rejects leaves out rows, which ignore_errors = false forbids.")
    if options.get("union_by_name"):
        raise InvalidQuery("store_rejects and union_by_name do not go together: leave out one.")
    errors, scans = Rejects(options).names
    if errors.lower() == scans.lower():
        raise InvalidQuery("rejects_table and rejects_scan are two tables: give them other names.")


def wrong_values(
    row: CsvRow,
    part: CsvFile,
    options: Options,
    bad: Mapping[int, Conversion],
    asked: Sequence[int],
) -> Iterator[Values]:
    """Yield what is wrong with a row: the columns in `bad` have no values of their types; whether they are text is `asked` of some."""
    text = row.text.encode(errors="surrogateescape").decode(errors="replace").replace("\ufffd", "?")
    line, columns = row.start + 1, part.columns

    def told(at: int, column: int | None, name: str | None, kind: str, message: str) -> Values:
        return (row.number, line, line + at, column, name, kind, text, message)

    places = _places(row, part)
    if row.fault == TOO_LONG:
        most, size = options.get("max_line_size"), len(row.text.encode(errors="surrogateescape"))
        message = f"Maximum line size of {most} bytes exceeded. Actual Size:{size} bytes."
        yield told(0, None, None, TOO_LONG, message)
        return
    if row.fault:
        column = max(len(row.fields) - (row.fault == UNQUOTED and len(row.fields) > 0), 0)
        column = min(column, columns - 1)
        message = (
            "Value with unterminated quote found."
            if row.fault == UNQUOTED
            else "The row has no valid state."
        )
        yield told(
            places[min(column, len(places) - 1)], column + 1, part.names[column], row.fault, message
        )
        return
    for number, conversion in bad.items():
        name, value = part.names[number], row.fields[number]
        yield told(
            places[number],
            number + 1,
            name,
            CAST,
            f'Error when converting column "{name}". Could not convert string "{value}" to \'{conversion.type}\'',
        )
    found = len(row.fields)
    for number in asked:
        if number < found and not is_text(row.fields[number] or ""):
            message = (
                "Invalid unicode (byte sequence mismatch) detected. This file is not utf-8 encoded."
            )
            yield told(places[number], number + 1, part.names[number], ENCODING, message)
    message = f"Expected Number of Columns: {columns} Found: {{}}"
    for number in range(found, columns):
        end = len(row.text.encode(errors="surrogateescape"))
        yield told(end, number, part.names[number], MISSING, message.format(number))
    surplus, nulls = columns, null_texts(options)
    for number in range(columns, found):
        if surplus > columns or row.fields[number] not in nulls:  # NULLs count behind another
            surplus += 1
            yield told(places[number] - 1, surplus, None, SURPLUS, message.format(surplus))


def _places(row: CsvRow, part: CsvFile) -> list[int]:
    """Return how many bytes of a row precede each of its values."""
    places = [0]
    dialect = part.dialect
    at = 0
    for _ in row.fields[:-1]:
        found = dialect.quoted_field.match(row.text, at) if dialect.quote else None
        found = found or dialect.bare_field.match(row.text, at)
        assert found is not None, "it may be empty"
        at = found.end() + len(dialect.delim)
        places.append(len(row.text[:at].encode(errors="surrogateescape")))
    return places


def shown_sign(sign: str) -> str:
    return sign or "(empty)"


def user_arguments(options: Options) -> str | None:
    """Return the options that a user gave, in the order of their names, but those that say what the columns are."""
    names = sorted(options.keys() - {"names", "types", "columns"})
    return ", ".join(f"{name}={literal(options[name])}" for name in names) or None


def literal(value: object) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, int):
        return str(value)
    if isinstance(value, dict):
        return "{" + ", ".join(f"'{name}': '{kind}'" for name, kind in value.items()) + "}"
    if isinstance(value, tuple):
        return literal(value[0]) if len(value) == 1 else "[" + ", ".join(map(literal, value)) + "]"
    return "'" + str(value).replace("'", "''") + "'"
