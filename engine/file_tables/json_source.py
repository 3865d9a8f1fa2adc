"""JSON files as a table: records of lines, of an array or one after the other, whose columns a sample tells."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice

import pyarrow as pa

from ..errors import ConversionError, FileError, InvalidQuery, Unsupported
from ..plan.composed.json_calls import type_of_text
from ..plan.distinct_names import distinct_names
from ..plan.types import DATE, JSON, TIMESTAMP, VARCHAR, DataType, Kind, to_arrow
from ..storage.file_identity import FileIdentity
from ..storage.tables.access import AccessRules
from ..storage.tables.files import find_files
from .csv_fields import Options
from .json_records import MALFORMED, Record, records
from .json_types import Shape, is_map, type_of_shape
from .json_values import BadRecord, BadValue, ValueReader
from .text_types import NOT_KEPT, Conversion

SAMPLED_VALUES = 20_480  # as DuckDB's
ROWS_AT_A_TIME = 4096
VALUE_COLUMN = "json"  # of values that are no objects


@dataclass(frozen=True)
class JsonColumn:
    """A column, and the key of objects that it has the values of; None for the values themselves."""

    name: str
    type: DataType
    key: str | None


@dataclass(frozen=True)
class JsonSource:
    """JSON files that are read as one table."""

    name: str
    patterns: tuple[str, ...]
    options: Options
    rules: AccessRules
    parts: tuple[tuple[str, FileIdentity], ...]
    columns: tuple[JsonColumn, ...]  # also those of types that queries do not have
    constant: str | None  # the name of the column of paths

    @classmethod
    def open(cls, patterns: Sequence[str], options: Options, rules: AccessRules) -> JsonSource:
        """Find the files and look at their first values; raises `FileError` and `AccessDenied`."""
        parts = tuple((f.path, f.identity) for f in find_files(patterns, rules))
        columns = _columns(_sampled(parts, options), parts[0][0], options)
        wanted = options.get("filename")
        constant = "filename" if wanted is True else wanted if isinstance(wanted, str) else None
        if constant and constant.lower() in (c.name.lower() for c in columns):
            raise InvalidQuery(
                f'The files have a column "{constant}" already: give filename another name.'
            )
        if not constant and all(c.type.kind is Kind.OTHER for c in columns):
            name, kind = columns[0].name, columns[0].type
            records_said = ", records = false" if columns[0].key is None else ""
            raise Unsupported(
                f'The values of the file "{parts[0][0]}" are {kind}, which queries do not read: '
                f"give columns = {{'{name}': 'VARCHAR'}}{records_said}, or the keys of its objects with their types."
            )
        return cls(parts[0][0], tuple(patterns), options, rules, parts, columns, constant)

    @property
    def files(self) -> tuple[FileIdentity, ...]:
        return tuple(identity for _, identity in self.parts)

    @property
    def fields(self) -> tuple[tuple[str, DataType], ...]:
        constant = [(self.constant, VARCHAR)] if self.constant else []
        return (*((c.name, c.type) for c in self._kept), *constant)

    @property
    def unsupported(self) -> Mapping[str, DataType]:
        return {c.name: c.type for c in self.columns if c.type.kind is Kind.OTHER}

    @property
    def _kept(self) -> list[JsonColumn]:
        return [c for c in self.columns if c.type.kind is not Kind.OTHER]

    def anew(self, rules: AccessRules) -> JsonSource:
        return JsonSource.open(self.patterns, self.options, rules)

    def tables(self) -> Iterator[pa.Table]:
        schema = pa.schema([(name, to_arrow(t)) for name, t in self.fields])
        reader = self._reader()
        for path, identity in self.parts:
            rows = records(path, identity, self.options)
            while batch := list(islice(rows, ROWS_AT_A_TIME)):
                try:
                    arrays = self._arrays(reader, batch)
                except BadValue as error:
                    raise self._refused(reader, batch, path) from error
                if self.constant:
                    arrays.append(pa.repeat(path, len(batch)))
                yield pa.table(arrays, schema=schema)

    def _reader(self) -> ValueReader:
        forms = {conversion.type: conversion for conversion in _formats(self.options)}
        lenient = bool(self.options.get("ignore_errors"))
        return ValueReader(lenient, "columns" not in self.options, forms)

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


def _sampled(parts: Sequence[tuple[str, FileIdentity]], options: Options) -> Shape:
    """Return what the first values are: of all files together, or of each where they are united by name."""
    size = options.get("sample_size", SAMPLED_VALUES)
    most = size if isinstance(size, int) and size >= 0 else None
    shape = Shape()
    for path, identity in parts:
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
    forms = _formats(options)
    depth = options.get("maximum_depth", -1)
    assert isinstance(depth, int)
    most = None if depth < 0 else depth
    if not is_record or most == 0 or is_map(shape):
        kind = type_of_shape(shape, forms, most) if shape.count else JSON
        return (JsonColumn(VALUE_COLUMN, kind, None),)
    names = distinct_names(list(shape.fields))
    below = None if most is None else most - 1
    return tuple(
        JsonColumn(name, type_of_shape(part, forms, below), key)
        for name, (key, part) in zip(names, shape.fields.items(), strict=True)
    )


def _asked_type(asked: str | DataType) -> DataType:
    found = type_of_text(asked) if isinstance(asked, str) else asked
    if found.kind in NOT_KEPT:
        raise Unsupported(f"read_json makes no columns of {found}: read VARCHAR and cast it.")
    return found


def _formats(options: Options) -> list[Conversion]:
    given = ((DATE, options.get("dateformat")), (TIMESTAMP, options.get("timestampformat")))
    return [Conversion(kind, str(form)) for kind, form in given if form]
