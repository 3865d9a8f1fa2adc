"""The columns of files that differ: by name those of all files together, in types that hold the values of each, and the numbers of rows."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import accumulate

import pyarrow as pa
import pyarrow.parquet as pq

from ...errors import FileError
from ...plan.coercion import common
from ...plan.types import BIGINT, VARCHAR, DataType, Kind
from ..file_identity import FileIdentity
from .column_chunks import ColumnChunks
from .hive import FileConstant
from .other_types import type_in_file
from .schemas import exposed_names

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
        for shown, name in exposed_names(file.path, schema).items():
            _, known = found.setdefault(shown.lower(), (shown, []))
            known += [(None, None)] * (number - len(known))
            known.append((name, type_in_file(footer, schema.field(name), options)))
    made = {}
    for shown, known in found.values():
        names, types = zip(*known, *[(None, None)] * (len(files) - len(known)), strict=True)
        made[shown] = FileColumn(_type_of(shown, types, files), tuple(names), tuple(types))
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
