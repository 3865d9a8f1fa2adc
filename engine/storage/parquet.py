"""Tables of Parquet files: their schema, statistics and row groups, from the footers alone."""

from __future__ import annotations

import itertools
from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import pyarrow as pa

from ..errors import DataError, InvalidQuery, TypeMismatch, UnknownName, nearest
from ..plan.expr import Column, Expr, Value
from ..plan.physical import RowGroups
from ..plan.statistics import ColumnStatistics, TableStatistics
from ..plan.types import VARCHAR, DataType, Kind, from_arrow
from .bounds import UNKNOWN, Bounds, excluded
from .files import FileIdentity, check_unchanged, find_files
from .footers import read_footers, unreadable
from .hive import FileConstant, partition_columns
from .sizes import ColumnSizes
from .statistics import (
    LazyColumns,
    column_positions,
    constant_bounds,
    group_bounds,
    likely_distinct,
    merge,
)

OPTIONS = ("hive_partitioning", "hive_types_autocast", "filename")
# A dictionary page with small codes behind it: few values.  What overflowed its dictionary takes more bytes a value.
DICTIONARY_BYTES_A_VALUE = 4.0


@dataclass(frozen=True, eq=False)
class ParquetTable:
    """The columns of one or many Parquet files with one schema, as the files were when this was made.

    `constants` are columns with one value a file (hive partitions, the file's name).  `unsupported` gives for columns
    whose type has no SQL type the reason; they are no `fields`, and only a query that names one fails.
    """

    name: str
    patterns: tuple[str, ...]
    options: Mapping[str, object]
    files: tuple[FileIdentity, ...]
    footers: tuple[Any, ...] = field(repr=False)
    fields: tuple[tuple[str, DataType], ...]
    parquet_names: Mapping[str, str] = field(repr=False)
    constants: Mapping[str, FileConstant] = field(repr=False)
    unsupported: Mapping[str, str] = field(repr=False)
    _bounds: dict[str, list[list[Bounds]]] = field(default_factory=dict, repr=False)

    @classmethod
    def open(
        cls, patterns: Sequence[str], options: Mapping[str, object] | None = None, name: str = ""
    ) -> ParquetTable:
        """Find the files and read their footers.

        Options: hive_partitioning (true, false, or nothing: where all folders agree), hive_types_autocast, filename
        (true, or the column's name).  Raises `DataError`, naming the file.
        """
        options = dict(options or {})
        _check_options(options)
        found = find_files(patterns)
        paths, files = tuple(f.path for f in found), tuple(f.identity for f in found)
        footers = read_footers(files)
        schemas = _schemas(files, footers)
        parquet_names = _exposed_names(files[0].path, schemas[0])
        fields, unsupported = _fields(schemas[0], parquet_names)
        _check_same(files, schemas, {parquet_names[n]: t for n, t in fields})
        constants = _constants(paths, options)
        by_name = {c.name.lower(): c for c in constants}
        # A partition column stands in the place of a file's column of that name
        merged = [
            (n, by_name.pop(n.lower()).type if n.lower() in by_name else t) for n, t in fields
        ]
        merged.extend((c.name, c.type) for c in by_name.values())
        taken = {c.name.lower(): c for c in constants}
        return cls(
            name=name or paths[0],
            patterns=tuple(patterns),
            options=options,
            files=files,
            footers=footers,
            fields=tuple(merged),
            parquet_names=parquet_names,
            constants={n: taken[n.lower()] for n, _ in merged if n.lower() in taken},
            unsupported={n: r for n, r in unsupported.items() if n.lower() not in taken},
        )

    @cached_property
    def identity(self) -> Hashable:
        """What cached columns of this table are kept under; another one after any file has changed."""
        kind = tuple(sorted(self.constants))
        return (
            self.files[0] if len(self.files) == 1 and not kind else SourceIdentity(self.files, kind)
        )

    @cached_property
    def types(self) -> Mapping[str, DataType]:
        return dict(self.fields)

    @cached_property
    def num_rows(self) -> int:
        return sum(footer.num_rows for footer in self.footers)

    @cached_property
    def all_row_groups(self) -> tuple[RowGroups, ...]:
        return tuple(
            RowGroups(i, tuple(range(footer.num_row_groups)))
            for i, footer in enumerate(self.footers)
        )

    @cached_property
    def group_rows(self) -> tuple[tuple[int, ...], ...]:
        """Rows of each row group of each file."""
        return tuple(
            tuple(footer.row_group(g).num_rows for g in range(footer.num_row_groups))
            for footer in self.footers
        )

    @cached_property
    def _positions(self) -> list[dict[str, int]]:
        return [column_positions(footer) for footer in self.footers]

    def is_current(self) -> bool:
        """Whether the files are still the ones that were read; a look at each, and at globs and folders anew."""
        try:
            return tuple(f.identity for f in find_files(self.patterns)) == self.files
        except DataError:
            return False

    def check_unchanged(self, parts: Iterable[RowGroups]) -> None:
        """Raise `DataError` when a file has changed, of which row groups have been read: they may be a mix of old and new."""
        for file in {part.file for part in parts}:
            check_unchanged(self.files[file])

    def reopened(self) -> ParquetTable:
        """Return the table of the files as they are now; raises `DataError` when they no longer fit the columns."""
        new = ParquetTable.open(self.patterns, self.options, self.name)
        for name, data_type in self.fields:
            if new.types.get(name) != data_type:
                raise DataError(
                    f'The file "{new.files[0].path}" has changed and its column "{name}" is no longer {data_type}: '
                    "make the query anew."
                )
        return new

    @cached_property
    def sizes(self) -> ColumnSizes:
        """What columns take in memory."""
        return ColumnSizes(self)

    def statistics(self) -> TableStatistics:
        return self._statistics

    @cached_property
    def _statistics(self) -> TableStatistics:
        names = tuple(name for name, _ in self.fields)
        return TableStatistics(self.num_rows, LazyColumns(names, self._column_statistics))

    def _column_statistics(self, name: str) -> ColumnStatistics:
        known = merge([b for groups in self.bounds(name) for b in groups])
        if name in self.constants:
            return known
        return replace(
            known, likely_distinct=likely_distinct(self.footers, self.parquet_names[name])
        )

    def bounds(self, name: str) -> list[list[Bounds]]:
        """Return what is known of a column in each row group of each file."""
        if name not in self._bounds:
            data_type = self.types[name]
            constant = self.constants.get(name)
            if constant is not None:
                found = [
                    [constant_bounds(value, rows, data_type) for rows in groups]
                    for value, groups in zip(constant.values, self.group_rows, strict=True)
                ]
            else:
                files = range(len(self.files))
                found = [self._file_bounds(file, name, data_type) for file in files]
            self._bounds[name] = found
        return self._bounds[name]

    def _file_bounds(self, file: int, name: str, data_type: DataType) -> list[Bounds]:
        footer, position = self.footers[file], self._positions[file].get(self.parquet_names[name])
        if position is None:
            return [UNKNOWN] * int(footer.num_row_groups)
        return [
            group_bounds(footer, group, position, data_type)
            for group in range(footer.num_row_groups)
        ]

    def select_row_groups(
        self, predicate: Expr, sources: Mapping[Column, str]
    ) -> tuple[tuple[RowGroups, ...], int]:
        """Return the row groups in which a row may satisfy `predicate`, and how many others there are.

        `sources` maps the columns of the predicate to names of this table.
        """
        selected, pruned = [], 0
        for i, rows in enumerate(self.group_rows):
            kept = []
            for group in range(len(rows)):

                def bounds_of(column: Column, file: int = i, group: int = group) -> Bounds | None:
                    name = sources.get(column)
                    return None if name is None else self.bounds(name)[file][group]

                if rows[group] == 0 or excluded(predicate, bounds_of):
                    pruned += 1
                else:
                    kept.append(group)
            if kept:
                selected.append(RowGroups(i, tuple(kept)))
        return tuple(selected), pruned

    def has_small_dictionary(self, name: str) -> bool:
        """Whether a text column has few values, all in dictionaries, as far as the footers show."""
        if self.types[name].kind is not Kind.VARCHAR or name in self.constants:
            return False
        size = values = 0
        for footer, positions in zip(self.footers, self._positions, strict=True):
            position = positions[self.parquet_names[name]]
            for group in range(footer.num_row_groups):
                chunk = footer.row_group(group).column(position)
                if not chunk.has_dictionary_page:
                    return False
                size += chunk.total_uncompressed_size
                values += chunk.num_values
        return values > 0 and size / values <= DICTIONARY_BYTES_A_VALUE


@dataclass(frozen=True)
class SourceIdentity:
    """The identity of several files; hashed once, since each look into the column cache asks for it."""

    files: tuple[FileIdentity, ...]
    constants: tuple[str, ...]

    @cached_property
    def _hash(self) -> int:
        return hash((self.files, self.constants))

    def __hash__(self) -> int:
        return self._hash


def _check_options(options: Mapping[str, object]) -> None:
    for option, value in options.items():
        if option not in OPTIONS:
            hint = nearest(option, OPTIONS) or f" The options are {', '.join(OPTIONS)}."
            raise UnknownName(f'read_parquet has no option "{option}".{hint}')
        if not isinstance(value, bool) and not (option == "filename" and isinstance(value, str)):
            raise InvalidQuery(
                f"The option {option} of read_parquet is true or false, not {value!r}."
            )


def _schemas(files: Sequence[FileIdentity], footers: Iterable[Any]) -> list[pa.Schema]:
    schemas = []
    for file, footer in zip(files, footers, strict=True):
        try:
            schemas.append(footer.schema.to_arrow_schema())
        except (OSError, ValueError, pa.ArrowException) as error:
            raise unreadable(file.path, error) from error
    return schemas


def _exposed_names(path: str, schema: pa.Schema) -> dict[str, str]:
    """Return SQL name -> name in the file: names that differ in case alone get a number, as in DuckDB."""
    if len(set(schema.names)) < len(schema.names):
        twice = next(n for n in schema.names if schema.names.count(n) > 1)
        raise DataError(
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


def _fields(
    schema: pa.Schema, parquet_names: Mapping[str, str]
) -> tuple[list[tuple[str, DataType]], dict[str, str]]:
    fields, unsupported = [], {}
    for name, source in parquet_names.items():
        try:
            fields.append((name, from_arrow(schema.field(source).type, name)))
        except TypeMismatch as error:
            unsupported[name] = error.message
    return fields, unsupported


def _check_same(
    files: Sequence[FileIdentity], schemas: Sequence[pa.Schema], types: Mapping[str, DataType]
) -> None:
    """Raise `DataError` for a file that lacks a column of the first file or has it in another type.

    The order of the columns does not matter, and further columns are not read.
    """
    for file, schema in zip(files[1:], schemas[1:], strict=True):
        if schema.equals(schemas[0]):
            continue
        for name, expected in types.items():
            position = schema.get_field_index(name)
            if position < 0:
                raise DataError(
                    f'The file "{file.path}" has no column "{name}", which "{files[0].path}" has: '
                    "files that are read as one table need the same columns."
                )
            found = _type_name(schema.field(position).type)
            if found != str(expected):
                raise DataError(
                    f'The column "{name}" is {found} in the file "{file.path}" and {expected} in '
                    f'"{files[0].path}": files that are read as one table need the same types.'
                )


def _type_name(arrow: pa.DataType) -> str:
    try:
        return str(from_arrow(arrow))
    except TypeMismatch:
        return str(arrow)


def _constants(paths: Sequence[str], options: Mapping[str, object]) -> list[FileConstant]:
    asked = options.get("hive_partitioning")
    autocast = options.get("hive_types_autocast") is not False
    found = list(partition_columns(paths, asked if isinstance(asked, bool) else None, autocast))
    wanted = options.get("filename")
    if wanted:
        name = wanted if isinstance(wanted, str) else "filename"
        values: tuple[Value, ...] = tuple(paths)
        found.append(FileConstant(name, VARCHAR, values))
    return found
