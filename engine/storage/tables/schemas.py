"""The columns that the files of one table have: their names, that they are the same in each, and those with one value a file;
and the columns of files that differ, by name those of all together.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from itertools import accumulate

import pyarrow as pa
import pyarrow.parquet as pq

from ...errors import FileError, InvalidQuery, UnknownName, Unsupported, nearest, printable, shown
from ...plan.coercion import common
from ...plan.expr import Value
from ...plan.types import BIGINT, VARCHAR, DataType, Kind
from ...records import dataclass
from ..file_identity import FileIdentity
from .column_chunks import ColumnChunks
from .footers import decoding, unreadable
from .hive import FileConstant, partition_columns
from .other_types import type_in_file, with_logical_types

OPTIONS = (
    "hive_partitioning",
    "hive_types",
    "hive_types_autocast",
    "filename",
    "file_row_number",
    "binary_as_string",
    "union_by_name",
)
REFUSED = ("schema", "encryption_config", "compression", "explicit_cardinality", "parquet_version", "can_have_nan", "debug_use_openssl")  # fmt: skip


def check_options(options: Mapping[str, object]) -> None:
    for option, value in options.items():
        if option in REFUSED:
            raise Unsupported(
                f"The option {option} of read_parquet is not supported: leave it out."
            )
        if option == "hive_types":
            _check_types(value)
            continue
        if option not in OPTIONS:
            hint = nearest(option, OPTIONS) or f" The options are {', '.join(OPTIONS)}."
            raise UnknownName(f'read_parquet has no option "{option}".{hint}')
        if not isinstance(value, bool) and not (option == "filename" and isinstance(value, str)):
            raise InvalidQuery(
                f"The option {option} of read_parquet is true or false, not {shown(value)}."
            )


def _check_types(value: object) -> None:
    named = isinstance(value, dict) and all(isinstance(t, str) for t in value.values())
    if not named:
        raise InvalidQuery(
            f"The option hive_types of read_parquet is a struct of types: {{'year': 'INTEGER'}}, not {shown(value)}."
        )


def schemas_of(
    files: Sequence[FileIdentity], footers: Iterable[pq.FileMetaData]
) -> list[pa.Schema]:
    schemas = []
    for file, footer in zip(files, footers, strict=True):
        with decoding(file.path):
            schema = footer.schema.to_arrow_schema()
        try:
            schemas.append(with_logical_types(schema, footer))
        except (UnicodeError, pa.ArrowException) as error:
            raise unreadable(file.path, error) from error
    return schemas


def exposed_names(path: str, schema: pa.Schema) -> dict[str, str]:
    """Return SQL name -> name in the file: names that differ in case alone get a number, as in DuckDB."""
    if len(set(schema.names)) < len(schema.names):
        twice = next(n for n in schema.names if schema.names.count(n) > 1)
        raise FileError(
            f'The file "{path}" has two columns named "{twice}": write it with distinct names.'
        )
    exposed: dict[str, str] = {}
    taken: set[str] = set()
    for name in schema.names:
        numbered = (f"{name}_{i}" for i in itertools.count(1))
        free = (
            name
            if name.lower() not in taken
            else next(n for n in numbered if n.lower() not in taken)
        )
        taken.add(free.lower())
        exposed[free] = name
    return exposed


def check_same(
    files: Sequence[FileIdentity],
    footers: Sequence[pq.FileMetaData],
    schemas: Sequence[pa.Schema],
    types: Mapping[str, DataType],
    options: Mapping[str, object],
) -> None:
    """Raise `FileError` for a file that lacks a column of the first file or has it in another type.

    The order of the columns does not matter, and further columns are not read.
    """
    for file, footer, schema in list(zip(files, footers, schemas, strict=True))[1:]:
        if schema.equals(schemas[0]):
            continue
        for name, expected in types.items():
            position = schema.get_field_index(name)
            if position < 0:
                raise FileError(
                    f'The file "{file.path}" has no column "{name}", which "{files[0].path}" has: '
                    "files that are read as one table need the same columns, or union_by_name = true."
                )
            found = str(type_in_file(footer, schema.field(position), options))
            if found != str(expected):
                raise FileError(
                    f'The column "{name}" is {found} in the file "{file.path}" and {expected} in '
                    f'"{files[0].path}": files that are read as one table need the same types, or union_by_name = true.'
                )


def constants_of(paths: Sequence[str], options: Mapping[str, object]) -> list[FileConstant]:
    asked = options.get("hive_partitioning")
    autocast = options.get("hive_types_autocast") is not False
    types = options.get("hive_types")
    given = dict(types) if isinstance(types, dict) else {}
    if given and asked is None:
        asked = True
    found = list(
        partition_columns(paths, asked if isinstance(asked, bool) else None, autocast, given)
    )
    wanted = options.get("filename")
    if wanted:
        name = wanted if isinstance(wanted, str) else "filename"
        values: tuple[Value, ...] = tuple(paths)
        found.append(FileConstant(name, VARCHAR, values))
    for constant in found:
        for value in constant.values:
            if isinstance(value, str) and printable(value) != value:
                raise FileError(
                    f'The path "{value}" is not UTF-8, so that it gives no value of the column "{constant.name}": rename it.'
                )
    return found


ROW_NUMBER = "file_row_number"


@dataclass(frozen=True)
class FileColumn:
    """What a column is called in each file, and of which type it is there; None in a file that has it not, where it is NULL."""

    type: DataType
    names: tuple[str | None, ...]
    types: tuple[DataType | None, ...]

    @property
    def is_alike(self) -> bool:
        """Whether it has one type in all files that have it."""
        return all(t in (None, self.type) for t in self.types)


def columns_by_name(
    files: Sequence[FileIdentity],
    footers: Sequence[pq.FileMetaData],
    schemas: Sequence[pa.Schema],
    options: Mapping[str, object],
) -> dict[str, FileColumn]:
    """Return the columns of all files together, in the order in which files name them, without regard to case.

    Raises `FileError` where two files have a column in types that no type holds both of.
    """
    found: dict[str, tuple[str, list[tuple[str | None, DataType | None]]]] = {}
    for number, (file, footer, schema) in enumerate(zip(files, footers, schemas, strict=True)):
        for exposed, name in exposed_names(file.path, schema).items():
            _, known = found.setdefault(exposed.lower(), (exposed, []))
            known += [(None, None)] * (number - len(known))
            known.append((name, type_in_file(footer, schema.field(name), options)))
    made = {}
    for exposed, known in found.values():
        names, types = zip(*known, *[(None, None)] * (len(files) - len(known)), strict=True)
        made[exposed] = FileColumn(_type_of(exposed, types, files), tuple(names), tuple(types))
    return made


def _type_of(
    name: str, types: Sequence[DataType | None], files: Sequence[FileIdentity]
) -> DataType:
    present = [t for t in types if t is not None]
    other = next((t for t in present if t.kind is Kind.OTHER), None)
    shared = present[0] if len(set(present)) == 1 else other or common(present)
    if shared is None and not any(t.is_nested for t in present):
        shared = VARCHAR  # as DuckDB
    if shared is None:
        first = present[0]
        at, found = next((i, t) for i, t in enumerate(types) if t not in (None, first))
        raise FileError(
            f'The column "{name}" is {found} in the file "{files[at].path}" and {first} in another one: '
            "no type holds the values of both."
        )
    return shared


def with_made_columns(
    fields: Sequence[tuple[str, DataType]],
    constants: Sequence[FileConstant],
    options: Mapping[str, object],
) -> list[tuple[str, DataType]]:
    """Return the columns of files with those that are no part of them: row numbers, and what has one value a file."""
    by_name = {c.name.lower(): c for c in constants}
    # A partition column stands in the place of a file's column of that name
    merged = [(n, by_name.pop(n.lower()).type if n.lower() in by_name else t) for n, t in fields]
    if options.get(ROW_NUMBER):
        if ROW_NUMBER in {n.lower() for n, _ in merged}:
            raise FileError(
                f'The files have a column "{ROW_NUMBER}" of their own: leave out the option.'
            )
        merged.append((ROW_NUMBER, BIGINT))
    merged.extend((c.name, c.type) for c in by_name.values())
    return merged


def chunks_that_differ(
    chunks: ColumnChunks, column: FileColumn, groups: Sequence[Sequence[int]]
) -> ColumnChunks:
    """Return what is known of a column by the footers where not all files have it, or in another type: it is NULL in some row groups, or without bounds."""
    if not column.is_alike:
        nothing = [None] * len(chunks.rows)
        return replace(chunks, lows=nothing, highs=nothing, values=0, coded=False)
    missing = [name is None for name, rows in zip(column.names, groups, strict=True) for _ in rows]
    nulls = [
        rows if absent else n
        for rows, n, absent in zip(chunks.rows, chunks.nulls, missing, strict=True)
    ]
    return replace(chunks, nulls=nulls)


def chunks_of_row_numbers(groups: Sequence[Sequence[int]]) -> ColumnChunks:
    rows = [count for of_file in groups for count in of_file]
    lows: list[int] = []
    for of_file in groups:
        lows += list(accumulate(of_file, initial=0))[: len(of_file)]
    highs = [low + max(0, count - 1) for low, count in zip(lows, rows, strict=True)]
    return ColumnChunks(rows, [0] * len(rows), lows, highs, lambda value: value)
