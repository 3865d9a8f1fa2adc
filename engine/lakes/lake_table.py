"""A snapshot of a table format as a table: of its Parquet files, or where rows of them are deleted, of the rows that are left."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import field
from typing import Protocol, TypeAlias

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from ..errors import Unsupported
from ..file_tables.converted_table import ConversionSpace, UnreadTable, check_columns
from ..file_tables.file_source import FileSource
from ..operators.cpu.scan.read_parts import read_part
from ..operators.cpu.table import to_logical
from ..plan.expr import Value
from ..plan.physical import RowGroups
from ..plan.types import DataType, Kind, to_arrow
from ..records import dataclass
from ..stopping import check
from ..storage.tables.access import Access, AccessRules
from ..storage.tables.files import FoundFile, are_current, find_files
from ..storage.tables.footers import read_footers
from ..storage.tables.hive import FileConstant
from ..storage.tables.other_types import type_in_file
from ..storage.tables.parquet import ParquetTable
from ..storage.tables.schemas import FileColumn, schemas_of

RowNumbers: TypeAlias = npt.NDArray[np.int64 | np.intp]


@dataclass(frozen=True)
class LakeFile:
    """A file of a snapshot: the values of its partition, and the numbers of its deleted rows, if there are some."""

    path: str
    values: Mapping[str, Value] = field(default_factory=dict)
    deleted: RowNumbers | None = None  # ascending


class LakeSnapshot(Protocol):
    """What a library says of a table at a version."""

    @property
    def name(self) -> str: ...
    @property
    def rules(self) -> AccessRules: ...
    @property
    def fields(self) -> tuple[tuple[str, DataType], ...]:
        """All columns, in their order, with their types of now."""

    @property
    def partitions(self) -> tuple[str, ...]:
        """Columns that are not in the files."""

    @property
    def data(self) -> tuple[LakeFile, ...]: ...
    def name_in(self, column: str, schema: pa.Schema, file: LakeFile) -> str | None:
        """Return what a column is called in a file of a schema, None where it is NULL there; raises `Unsupported`."""

    def is_newest(self) -> bool:
        """Whether the table has still this snapshot, or the snapshot was asked for."""

    def anew(self, rules: AccessRules) -> LakeSnapshot: ...


@dataclass(frozen=True, eq=False)
class LakeTable(ParquetTable):
    """The files of a snapshot, of which no row is deleted."""

    snapshot: LakeSnapshot = field(kw_only=True, repr=False)
    space: ConversionSpace | None = field(kw_only=True, repr=False)

    def has_its_files(self) -> bool:
        same = self.rules is self.access.rules and self.snapshot.is_newest()
        return same and are_current(self.patterns, self.files, self.rules)

    def anew(self) -> LakeTable | UnreadTable:  # type: ignore[override]
        assert self.space is not None
        made = open_snapshot(self.snapshot.anew(self.access.rules), self.access, self.space)
        return made.renamed(self.name)  # type: ignore[return-value]

    def reopened(self) -> LakeTable | UnreadTable:  # type: ignore[override]
        new = self.anew()
        check_columns(self.fields, new if isinstance(new, LakeTable) else new.source)  # type: ignore[arg-type]
        return new


def open_snapshot(
    snapshot: LakeSnapshot, access: Access, space: ConversionSpace
) -> LakeTable | UnreadTable:
    """Return the table of a snapshot; one with deleted rows, or without files, is read once and kept as Parquet."""
    if not snapshot.data or any(file.deleted is not None for file in snapshot.data):
        return UnreadTable(RemainingRows.of(snapshot), access, space)
    return _table(snapshot, access, space)


def _table(snapshot: LakeSnapshot, access: Access, space: ConversionSpace | None) -> LakeTable:
    paths = [file.path for file in snapshot.data]
    files = tuple(found.identity for found in find_files(paths, snapshot.rules))
    footers = read_footers(files)
    schemas = schemas_of(files, footers)
    columns: dict[str, FileColumn] = {}
    for name, kind in snapshot.fields:
        if name in snapshot.partitions or kind.kind is Kind.OTHER:
            continue
        own = [snapshot.name_in(name, s, f) for s, f in zip(schemas, snapshot.data, strict=True)]
        types = [
            None if n is None else type_in_file(footer, schema.field(n), {})
            for n, footer, schema in zip(own, footers, schemas, strict=True)
        ]
        _check_nested(name, kind, types, snapshot)
        columns[name] = FileColumn(kind, tuple(own), tuple(types))
    constants = {
        name: FileConstant(name, kind, tuple(file.values.get(name) for file in snapshot.data))
        for name, kind in snapshot.fields
        if name in snapshot.partitions
    }
    alike = {n: c for n, c in columns.items() if c.is_alike and len(set(c.names)) == 1}
    present = {n: c.names[0] for n, c in alike.items() if c.names[0] is not None}
    return LakeTable(
        name=snapshot.name,
        patterns=tuple(paths),
        options={},
        files=files,
        footers=footers,
        fields=tuple((n, t) for n, t in snapshot.fields if t.kind is not Kind.OTHER),
        parquet_names=present,
        constants=constants,
        unsupported={n: t for n, t in snapshot.fields if t.kind is Kind.OTHER},
        settled=True,
        access=access,
        rules=snapshot.rules,
        by_file={n: c for n, c in columns.items() if n not in present},
        snapshot=snapshot,
        space=space,
    )


def _check_nested(
    name: str, kind: DataType, types: Sequence[DataType | None], snapshot: LakeSnapshot
) -> None:
    """Refuse what a cast by position or name could get wrong: nested columns that have changed."""
    if kind.is_nested and any(t not in (None, kind) for t in types):
        raise Unsupported(
            f'The column "{name}" of "{snapshot.name}" is nested and has another type in some of its files, which is not '
            "supported: write the table anew with the library that keeps it."
        )


@dataclass(frozen=True)
class RemainingRows(FileSource):
    """A snapshot as a source of rows, without those that are deleted."""

    parts: tuple[FoundFile, ...]
    snapshot: LakeSnapshot

    @classmethod
    def of(cls, snapshot: LakeSnapshot) -> RemainingRows:
        paths = tuple(file.path for file in snapshot.data)
        found = find_files(paths, snapshot.rules) if paths else ()
        return cls(snapshot.name, paths, {}, snapshot.rules, found, snapshot)

    @property
    def fields(self) -> tuple[tuple[str, DataType], ...]:
        return tuple((n, t) for n, t in self.snapshot.fields if t.kind is not Kind.OTHER)

    @property
    def unsupported(self) -> Mapping[str, DataType]:
        return {n: t for n, t in self.snapshot.fields if t.kind is Kind.OTHER}

    def is_newest(self) -> bool:
        return self.snapshot.is_newest()

    def anew(self, rules: AccessRules) -> RemainingRows:
        return RemainingRows.of(self.snapshot.anew(rules))

    def tables(self, columns: frozenset[str]) -> Iterator[pa.Table]:
        schema = pa.schema([(name, to_arrow(kind)) for name, kind in self.fields])
        if not self.snapshot.data:
            yield schema.empty_table()
            return
        table = _table(self.snapshot, Access(self.rules), None)
        sources = [name for name, _ in self.fields if name not in table.constants]
        for number, file in enumerate(self.snapshot.data):
            first = 0
            for group, rows in enumerate(table.stored_rows[number]):
                check()
                kept = _kept(file.deleted, first, rows)
                first += rows
                arrays = read_part(table, RowGroups(number, (group,)), sources, set())
                read = {
                    s: to_logical(a, table.types[s]) for s, a in zip(sources, arrays, strict=True)
                }
                for name, constant in table.constants.items():
                    value = pa.scalar(constant.values[number], to_arrow(constant.type))
                    read[name] = pa.repeat(value, rows)
                made = pa.table([read[name] for name in schema.names], schema=schema)
                yield made if kept is None else made.filter(kept)


def _kept(deleted: RowNumbers | None, first: int, rows: int) -> pa.Array | None:
    """Return which rows of a row group are left; None for all."""
    if deleted is None:
        return None
    inside = deleted[np.searchsorted(deleted, first) : np.searchsorted(deleted, first + rows)]
    if not len(inside):
        return None
    kept = np.ones(rows, bool)
    kept[inside - first] = False
    return pa.array(kept)
