"""Tables of Parquet files: their schema, statistics and row groups, from the footers alone."""

from __future__ import annotations

import itertools
from bisect import bisect_left
from contextlib import suppress
from dataclasses import field, fields, replace
from functools import cached_property, partial
from itertools import accumulate, chain
from typing import TYPE_CHECKING

from ...errors import FileError
from ...plan.logical import ColumnStatistics, TableStatistics
from ...plan.physical import RowGroups
from ...plan.types import DataType, Kind
from ...records import dataclass
from ..columns.cache import PartOf
from ..file_identity import FileIdentity, SourceIdentity
from ..remote.remote_files import RemoteFile
from .access import Access, AccessRules
from .column_chunks import ColumnChunks, chunks_of_constant, chunks_of_files
from .column_statistics import Bounds, LazyColumns, column_positions, excluded
from .files import (
    are_current,
    are_unchanged,
    check_unchanged,
    fill_a_folder,
    find_files,
    named_by,
)
from .footers import comes_again, is_settled, read_footers
from .hive import FileConstant
from .other_types import type_in_file
from .schemas import (
    ROW_NUMBER,
    FileColumn,
    check_options,
    check_same,
    chunks_of_row_numbers,
    chunks_that_differ,
    columns_by_name,
    constants_of,
    exposed_names,
    schemas_of,
    with_made_columns,
)
from .sizes import ColumnSizes

if TYPE_CHECKING:
    from collections.abc import Hashable, Iterable, Mapping, Sequence

    import pyarrow.parquet as pq

    from ...plan.expr import Column, Expr

_openings = itertools.count(1)  # of tables that serve one query


@dataclass(frozen=True, eq=False)
class ParquetTable:
    """The columns of one or many Parquet files with one schema, as the files were when this was made.

    `constants` are columns with one value a file (hive partitions, the file's name).  `unsupported` are columns
    of types that no query can read; they are no `fields`, and only a query that names one fails.  Before the files have
    settled a table serves one query.  Of a `part` of a table, row groups have the rows that lie in it, those outside none; its
    statistics are those of the whole table.
    """

    name: str
    patterns: tuple[str, ...]
    options: Mapping[str, object]
    files: tuple[FileIdentity, ...]
    footers: tuple[pq.FileMetaData, ...] = field(repr=False)
    fields: tuple[tuple[str, DataType], ...]
    parquet_names: Mapping[str, str] = field(repr=False)
    constants: Mapping[str, FileConstant] = field(repr=False)
    unsupported: Mapping[str, DataType] = field(repr=False)
    settled: bool
    access: Access = field(repr=False)
    rules: AccessRules = field(repr=False)
    by_file: Mapping[str, FileColumn] = field(
        default_factory=dict, repr=False
    )  # where files differ
    rows: tuple[int, int] | None = None  # of a part: the first, and the one behind the last
    has_checksums: bool = False  # of pages, which are looked at when they are read
    _chunks: dict[str, ColumnChunks] = field(default_factory=dict, repr=False)

    @classmethod
    def open(
        cls,
        patterns: Sequence[str],
        options: Mapping[str, object] | None = None,
        name: str = "",
        access: Access | None = None,
    ) -> ParquetTable:
        """Find the files and read their footers.

        Options: hive_partitioning (true, false, or nothing: where all folders agree), hive_types_autocast, filename
        (true, or the column's name), binary_as_string (bytes are text).  Raises `FileError`, naming the file, and `AccessDenied` for what `access` forbids.
        """
        options = dict(options or {})
        check_options(options)
        access = access or Access()
        rules = access.rules
        found = find_files(patterns, rules)
        paths, files = tuple(f.path for f in found), tuple(f.identity for f in found)
        settled = all(map(is_settled, files))  # before anything is read
        footers = read_footers(files)
        schemas = schemas_of(files, footers)
        parquet_names = exposed_names(files[0].path, schemas[0])
        by_file: dict[str, FileColumn] = {}
        if options.get("union_by_name") and len(files) > 1:
            by_file = columns_by_name(files, footers, schemas, options)
            found_types = {n: c.type for n, c in by_file.items()}
        else:
            found_types = {
                n: type_in_file(footers[0], schemas[0].field(s), options)
                for n, s in parquet_names.items()
            }
        fields = [(n, t) for n, t in found_types.items() if t.kind is not Kind.OTHER]
        if not by_file:
            check_same(files, footers, schemas, {parquet_names[n]: t for n, t in fields}, options)
        constants = constants_of(paths, options)
        merged = with_made_columns(fields, constants, options)
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
            unsupported={
                n: t
                for n, t in found_types.items()
                if t.kind is Kind.OTHER and n.lower() not in taken
            },
            settled=settled,
            access=access,
            rules=rules,
            by_file=by_file,
        )

    def __getstate__(self) -> dict[str, object]:
        """Its fields: another process reads the same files by paths, footers and rules that it is sent, while they are unchanged."""
        return {f.name: getattr(self, f.name) for f in fields(self)} | {"_chunks": {}}

    def part(self, first: int, end: int) -> ParquetTable:
        """Return the table of the rows from `first` to before `end`, in the order of the files, which is cached for itself."""
        return replace(self, rows=(first, end))

    @cached_property
    def identity(self) -> Hashable:
        """What cached columns of this table are kept under; another one after any file has changed."""
        if self.rows is not None:
            return PartOf(replace(self, rows=None).identity, self.rows)
        kind = tuple(sorted(self.constants))
        if self.by_file:
            kind = (*kind, "columns by name")
        if not self.settled:
            return SourceIdentity(self.files, (*kind, f"opened {next(_openings)}"))
        return (
            self.files[0] if len(self.files) == 1 and not kind else SourceIdentity(self.files, kind)
        )

    @cached_property
    def is_remote(self) -> bool:
        return any(isinstance(file, RemoteFile) for file in self.files)

    @cached_property
    def read_by_cpu(self) -> str | None:
        """Why no GPU reads it."""
        if self.is_remote:
            return "remote files are read by the CPU"
        if self.by_file or self.options.get(ROW_NUMBER):
            return "columns by name and numbers of rows are read by the CPU"
        return None

    def name_in(self, source: str, file: int) -> str | None:
        """Return what a column is called in a file, None where it is not in it."""
        if source in self.by_file:
            return self.by_file[source].names[file]
        return self.parquet_names.get(source)

    def type_in(self, source: str, file: int) -> DataType:
        """Return the type that a column has in a file that has it."""
        known = self.by_file[source].types[file] if source in self.by_file else None
        return known or self.types[source]

    @cached_property
    def all_fields(self) -> tuple[tuple[str, DataType], ...]:
        """The columns with those that no query can read, in the order of the first file."""
        known = {**self.types, **self.unsupported}
        names = dict.fromkeys([*(n for n in self.parquet_names if n in known), *self.types])
        return tuple((name, known[name]) for name in names)

    @cached_property
    def types(self) -> Mapping[str, DataType]:
        return dict(self.fields)

    @cached_property
    def num_rows(self) -> int:
        return sum(map(sum, self.group_rows))

    @cached_property
    def all_row_groups(self) -> tuple[RowGroups, ...]:
        """Those of a part that have rows in it, of a whole table all."""
        if self.rows is None:
            counts = [footer.num_row_groups for footer in self.footers]
            return tuple(RowGroups(i, tuple(range(count))) for i, count in enumerate(counts))
        with_rows = [[g for g, rows in enumerate(groups) if rows] for groups in self.group_rows]
        return tuple(RowGroups(i, tuple(groups)) for i, groups in enumerate(with_rows) if groups)

    @cached_property
    def stored_rows(self) -> tuple[tuple[int, ...], ...]:
        """Rows of each row group of each file."""
        return tuple(tuple(group.num_rows for group in groups) for groups in self._groups)

    @cached_property
    def group_rows(self) -> tuple[tuple[int, ...], ...]:
        """Those of them that are the table's."""
        if self.rows is None:
            return self.stored_rows
        first, end = self.rows
        begins = iter(accumulate(chain.from_iterable(self.stored_rows), initial=0))
        return tuple(
            tuple(max(0, min(b + rows, end) - max(b, first)) for rows, b in zip(groups, begins))  # noqa: B905
            for groups in self.stored_rows
        )

    def within(self, part: RowGroups) -> tuple[int, int] | None:
        """Return how many rows to skip and to take of what a file holds of some row groups, None where all are the table's."""
        stored = sum(self.stored_rows[part.file][g] for g in part.groups)
        taken = sum(self.group_rows[part.file][g] for g in part.groups)
        if stored == taken:
            return None
        assert self.rows is not None
        counts = chain.from_iterable(self.stored_rows[: part.file])
        before = sum(counts) + sum(self.stored_rows[part.file][: part.groups[0]])
        return max(0, self.rows[0] - before), taken

    @cached_property
    def _groups(self) -> list[list[pq.RowGroupMetaData]]:
        return [[f.row_group(g) for g in range(f.num_row_groups)] for f in self.footers]

    @cached_property
    def _positions(self) -> list[dict[str, int]]:
        return [column_positions(footer) for footer in self.footers]

    def is_current(self) -> bool:
        """Whether the files are still the ones that were read; a look at each, and at globs and folders anew."""
        return self.settled and self.has_its_files()

    def has_its_files(self) -> bool:
        """The same also where a write that was going on when they were read may still be: for one query."""
        if self.rules is not self.access.rules:
            return False
        given = self.patterns, self.files, self.rules
        known = self._named or (fill_a_folder(*given) and self.files)
        return bool(known and are_unchanged(known)) or are_current(*given)

    @cached_property
    def _named(self) -> Sequence[FileIdentity] | None:
        """The files under the paths by which the table was opened; None where those stand for more than a file."""
        return named_by(self.patterns, self.files, self.rules)

    @cached_property
    def named_files(self) -> Sequence[FileIdentity] | None:
        """The files whose looks alone say whether it is current, under the rules that it was opened by; None where there is more to find out."""
        looks_at_files = type(self).has_its_files is ParquetTable.has_its_files
        return self._named if looks_at_files and self.settled else None

    def check_unchanged(self, parts: Iterable[RowGroups]) -> None:
        """Raise `FileError` when a file has changed, of which row groups have been read: they may be a mix of old and new."""
        for file in {part.file for part in parts}:
            check_unchanged(self.files[file])

    def reopened(self) -> ParquetTable:
        """Return the table of the files as they are now; raises `FileError` when they no longer fit the columns."""
        new = self.anew()
        for name, data_type in self.fields:
            if new.types.get(name) != data_type:
                raise FileError(
                    f'The file "{new.files[0].path}" has changed and its column "{name}" is no longer {data_type}: '
                    "make the query anew."
                )
        return new

    def renamed(self, name: str) -> ParquetTable:
        return replace(self, name=name)

    def anew(self) -> ParquetTable:
        """Return the table of the files as they are now, with the columns that they have now."""
        return ParquetTable.open(self.patterns, self.options, self.name, self.access)

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
        chunks = self.chunks(name)
        known = chunks.within(0, len(chunks.rows))
        return ColumnStatistics(
            known.low,
            known.high,
            known.nulls,
            likely_distinct=chunks.likely_distinct,
            likely_sorted=chunks.likely_sorted,
            comes_again=partial(comes_again, self, name),
        )

    def chunks(self, name: str) -> ColumnChunks:
        """Return what is known of a column in each row group of each file."""
        if name not in self._chunks:
            constant = self.constants.get(name)
            if constant is not None:
                found = chunks_of_constant(constant.values, self.group_rows, self.types[name])
            elif name not in self.by_file and name not in self.parquet_names:
                found = chunks_of_row_numbers(self.stored_rows)
            else:
                names = [self.name_in(name, i) for i in range(len(self.files))]
                places = [p.get(n or "") for p, n in zip(self._positions, names, strict=True)]
                found = chunks_of_files(self.footers, self._groups, places, self.types[name])
                if name in self.by_file:
                    found = chunks_that_differ(found, self.by_file[name], self.stored_rows)
            self._chunks[name] = found
        return self._chunks[name]

    @cached_property
    def _rows_of_groups(self) -> list[int]:
        return [rows for groups in self.group_rows for rows in groups]

    def select_row_groups(
        self, predicate: Expr, sources: Mapping[Column, str]
    ) -> tuple[tuple[RowGroups, ...], int]:
        """Return the row groups in which a row may satisfy `predicate`, and how many others there are.

        `sources` maps the columns of the predicate to names of this table.
        """
        rows = self._rows_of_groups
        kept = list(self._kept(predicate, sources, 0, len(rows)))
        selected = []
        start = 0
        for file, groups in enumerate(self.group_rows):
            end = start + len(groups)
            part = kept[bisect_left(kept, start) : bisect_left(kept, end)]
            if part:
                selected.append(RowGroups(file, tuple(group - start for group in part)))
            start = end
        return tuple(selected), len(rows) - len(kept)

    def _kept(
        self, predicate: Expr, sources: Mapping[Column, str], start: int, end: int
    ) -> Iterable[int]:
        """The row groups of a run that cannot be left out: all or none of them where their bounds say so together, else of each half."""

        def within(column: Column) -> Bounds | None:
            name = sources.get(column)
            return None if name is None else self.chunks(name).within(start, end)

        def narrowest(column: Column) -> Bounds | None:
            name = sources.get(column)
            found = None if name is None else self.chunks(name).narrowest(start, end)
            if name is not None and found is None:
                raise _NoBounds
            return found

        rows = self._rows_of_groups[start:end]
        if not any(rows) or excluded(predicate, within):
            return ()
        if end - start == 1:
            return (start,)
        with suppress(_NoBounds):
            if all(rows) and not excluded(predicate, narrowest):
                return range(start, end)
        middle = (start + end) // 2
        halves = (start, middle), (middle, end)
        return chain.from_iterable(self._kept(predicate, sources, *half) for half in halves)

    def has_small_dictionary(self, name: str) -> bool:
        """Whether a text column has few values, all in dictionaries, as far as the footers show."""
        if self.types[name].kind is not Kind.VARCHAR or name in self.constants:
            return False
        return self.chunks(name).has_few_values


class _NoBounds(Exception):
    """There are no bounds within those of each row group."""
