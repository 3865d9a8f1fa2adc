"""JSON files as a table, whose values stand in lines, in an array or one after the other.

`JsonSource` has the columns that a sample tells, `JsonObjectsSource` one column with the text of each value as it is in the file.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import islice
from typing import Self

import pyarrow as pa

from ..errors import ConversionError, FileError, InvalidQuery, Unsupported
from ..plan.arrow.arrow_arrays import array_from
from ..plan.composed.json_calls import type_of_text
from ..plan.text.quoted_name import distinct_names
from ..plan.types import DATE, JSON, TIMESTAMP, DataType, Kind, to_arrow
from ..records import dataclass
from ..storage.file_identity import FileIdentity
from ..storage.tables.access import AccessRules
from ..storage.tables.files import FoundFile, find_files
from .csv_fields import Options
from .file_source import FormatSource, PathColumn, path_columns
from .json_lines import LinesReader, line_columns
from .json_records import MALFORMED, Record, TextRead, records
from .json_types import (
    LEAST_APPEARANCE,
    MOST_FIELDS,
    MOST_LEVELS,
    Guessing,
    Shape,
    is_map,
    type_of_shape,
)
from .json_values import BadRecord, BadValue, ValueReader
from .text_types import NOT_KEPT, Conversion

SAMPLED_VALUES = 20_480  # as DuckDB's
SAMPLED_FILES = 32
ROWS_AT_A_TIME = 4096
VALUE_COLUMN = "json"  # of values that are no objects


@dataclass(frozen=True)
class JsonColumn:
    """A column, and the key of objects that it has the values of; None for the values themselves."""

    name: str
    type: DataType
    key: str | None


@dataclass(frozen=True)
class JsonSource(FormatSource):
    """JSON files that are read as one table."""

    parts: tuple[FoundFile, ...]
    columns: tuple[JsonColumn, ...]  # also those of types that queries do not have
    of_paths: tuple[PathColumn, ...]  # a folder's value stands for that of a column with its name

    @classmethod
    def open(cls, patterns: Sequence[str], options: Options, rules: AccessRules) -> Self:
        """Find the files and look at their first values; raises `FileError` and `AccessDenied`."""
        parts = find_files(patterns, rules)
        columns = _columns(_sampled(parts, options), parts[0].path, options)
        of_paths = path_columns([part.path for part in parts], options, [c.name for c in columns])
        if not of_paths and all(c.type.kind is Kind.OTHER for c in columns):
            name, kind = columns[0].name, columns[0].type
            records_said = ", records = false" if columns[0].key is None else ""
            raise Unsupported(
                f'The values of the file "{parts[0].path}" are {kind}, which queries do not read: '
                f"give columns = {{'{name}': 'VARCHAR'}}{records_said}, or the keys of its objects with their types."
            )
        return cls(parts[0].path, tuple(patterns), options, rules, parts, columns, of_paths)

    @property
    def fields(self) -> tuple[tuple[str, DataType], ...]:
        return tuple((column.name, column.type) for column in self._shown)

    @property
    def unsupported(self) -> Mapping[str, DataType]:
        return {c.name: c.type for c in self.columns if c.type.kind is Kind.OTHER}

    @property
    def _shown(self) -> list[JsonColumn | PathColumn]:
        """The columns of the table in their order."""
        instead = {column.name.lower(): column for column in self.of_paths}
        found = [instead.pop(column.name.lower(), column) for column in self._kept]
        return [*found, *instead.values()]

    @property
    def _kept(self) -> list[JsonColumn]:
        return [c for c in self.columns if c.type.kind is not Kind.OTHER]

    def tables(self, columns: frozenset[str]) -> Iterator[pa.Table]:
        schema = pa.schema([(name, to_arrow(t)) for name, t in self.fields])
        for number, (path, identity) in enumerate(self.parts):
            for arrays, count in self._read(self._reader(number), path, identity):
                found = dict(zip((c.name for c in self._kept), arrays, strict=True))
                found |= {c.name: c.array(number, count) for c in self.of_paths}
                yield pa.table([found[name] for name in schema.names], schema=schema)

    def _read(
        self, reader: ValueReader, path: str, identity: FileIdentity
    ) -> Iterator[tuple[list[pa.Array], int]]:
        """Yield columns of some rows of a file, and how many these are."""

        def made(batch: Sequence[Record]) -> list[pa.Array]:
            try:
                return self._arrays(reader, batch)
            except BadValue as error:
                raise self._refused(reader, batch, path) from error

        columns, done = [(c.key, c.type) for c in self._kept], TextRead()
        lines = LinesReader.of(columns, reader, made, self.options)
        if lines is not None:
            yield from line_columns(lines, identity, self.options, done)
        rows = records(path, identity, self.options, done=done)
        while batch := list(islice(rows, ROWS_AT_A_TIME)):
            yield made(batch), len(batch)

    def _reader(self, number: int) -> ValueReader:
        """Return what reads the values of a file; keys that no sampled file has are an error in these alone."""
        forms = {conversion.type: conversion for conversion in _guessing(self.options).formats}
        most = _sampled_files(self.options)
        is_sampled = "columns" not in self.options and (most is None or number < most)
        return ValueReader(bool(self.options.get("ignore_errors")), is_sampled, forms)

    def _arrays(self, reader: ValueReader, batch: Sequence[Record]) -> list[pa.Array]:
        values = [None if value is MALFORMED else value for _, value in batch]
        if self.columns[0].key is None:
            return [reader.array(values, column.type) for column in self._kept]
        objects = [value if isinstance(value, dict) else None for value in values]
        if not reader.lenient:
            for value in values:
                if value is not None and not isinstance(value, dict):
                    raise BadRecord("There is a value that is no object")
        reader.check_fields(objects, frozenset(str(column.key) for column in self.columns))
        arrays = []
        for column in self._kept:
            key = str(column.key)
            found = [None if o is None else o.get(key) for o in objects]
            try:
                arrays.append(reader.array(found, column.type))
            except BadRecord:
                raise
            except BadValue as error:
                raise BadValue(f'"{error}" is no {column.type}', column.name) from error
        return arrays

    def _refused(self, reader: ValueReader, batch: Sequence[Record], path: str) -> ConversionError:
        """Find the record in a batch that has a value which is none of its type."""
        for record in batch:
            try:
                self._arrays(reader, [record])
            except BadValue as error:
                column = f', column "{error.column}"' if error.column else ""
                return ConversionError(
                    f'{error}: file "{path}", line {record[0]}{column}. '
                    "Give columns = {'name': 'TYPE', ...}, a larger sample_size, or ignore_errors = true."
                )
        raise AssertionError("one of them was refused before")


def _sampled(parts: Sequence[FoundFile], options: Options) -> Shape:
    """Return what the first values are: of all files together, or of each where they are united by name."""
    size = options.get("sample_size", SAMPLED_VALUES)
    most = size if isinstance(size, int) and size >= 0 else None
    shape = Shape()
    for path, identity in parts[: _sampled_files(options)]:
        left = None if most is None else most - (0 if options.get("union_by_name") else shape.count)
        for _, value in islice(records(path, identity, options), left):
            shape.add(None if value is MALFORMED else value)
    return shape


def _columns(shape: Shape, path: str, options: Options) -> tuple[JsonColumn, ...]:
    asked = options.get("columns")
    known = asked if isinstance(asked, dict) else None
    is_record = shape.is_record and options.get("records", "auto") != "false"
    if options.get("records") == "true" and shape.kinds and not shape.is_record:
        raise FileError(f'The values of the file "{path}" are no objects: leave out records.')
    if options.get("auto_detect") is False and known is None:
        raise InvalidQuery("auto_detect = false needs columns = {'name': 'TYPE', ...}.")
    if known is not None:
        # Without objects the values are those of one column
        if not is_record and shape.kinds and len(known) > 1:
            raise FileError(
                f'The values of the file "{path}" are no objects, and columns has {len(known)}.'
            )
        alone = not is_record and bool(shape.kinds)
        return tuple(
            JsonColumn(name, _asked_type(kind), None if alone else name)
            for name, kind in known.items()
        )
    guessing = _guessing(options)
    depth = options.get("maximum_depth", -1)
    assert isinstance(depth, int)
    most = min(depth, MOST_LEVELS) if depth >= 0 else MOST_LEVELS
    if not is_record or most == 0 or is_map(shape, guessing):
        kind = type_of_shape(shape, guessing, most) if shape.count else JSON
        return (JsonColumn(VALUE_COLUMN, kind, None),)
    names = distinct_names(list(shape.fields))
    return tuple(
        JsonColumn(name, type_of_shape(part, guessing, most - 1), key)
        for name, (key, part) in zip(names, shape.fields.items(), strict=True)
    )


def _asked_type(asked: str | DataType) -> DataType:
    found = type_of_text(asked) if isinstance(asked, str) else asked
    if found.kind in NOT_KEPT:
        raise Unsupported(f"read_json makes no columns of {found}: read VARCHAR and cast it.")
    return found


_ISO = {DATE: "%Y-%m-%d", TIMESTAMP: "%Y-%m-%dT%H:%M:%S.%fZ"}


def _guessing(options: Options) -> Guessing:
    given = ((DATE, options.get("dateformat")), (TIMESTAMP, options.get("timestampformat")))
    most = options.get("map_inference_threshold", MOST_FIELDS)
    least = options.get("field_appearance_threshold", LEAST_APPEARANCE)
    assert isinstance(most, int)
    assert isinstance(least, float)
    return Guessing(
        tuple(
            Conversion(kind, _ISO[kind] if form == "iso" else str(form))
            for kind, form in given
            if form
        ),
        None if most < 0 else most,
        least,
        bool(options.get("convert_strings_to_integers")),
    )


def _sampled_files(options: Options) -> int | None:
    """Return how many files tell columns and types, None for all."""
    most = options.get("maximum_sample_files", SAMPLED_FILES)
    assert isinstance(most, int)
    return None if most < 0 or options.get("union_by_name") else most


@dataclass(frozen=True)
class JsonObjectsSource(FormatSource):
    """JSON files of which each value is a row."""

    parts: tuple[FoundFile, ...]
    of_paths: tuple[PathColumn, ...]

    @classmethod
    def open(cls, patterns: Sequence[str], options: Options, rules: AccessRules) -> Self:
        """Find the files, of which none is read yet; raises `FileError` and `AccessDenied`."""
        parts = find_files(patterns, rules)
        of_paths = path_columns([part.path for part in parts], options, [VALUE_COLUMN])
        return cls(parts[0].path, tuple(patterns), options, rules, parts, of_paths)

    @property
    def fields(self) -> tuple[tuple[str, DataType], ...]:
        named = {VALUE_COLUMN: JSON} | {column.name: column.type for column in self.of_paths}
        return tuple(named.items())

    def tables(self, columns: frozenset[str]) -> Iterator[pa.Table]:
        schema = pa.schema([(name, to_arrow(t)) for name, t in self.fields])
        for number, (path, identity) in enumerate(self.parts):
            rows = records(path, identity, self.options, as_text=True)
            while batch := list(islice(rows, ROWS_AT_A_TIME)):
                texts = [None if value is MALFORMED else value for _, value in batch]
                found = {VALUE_COLUMN: array_from(texts, to_arrow(JSON))}
                found |= {c.name: c.array(number, len(batch)) for c in self.of_paths}
                yield pa.table(found, schema=schema)
