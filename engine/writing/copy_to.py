"""COPY ... TO: runs a query and writes its rows while they are made, so that no more of them than some tables are in memory.

What a query has to give for a file of some format: the texts of CSV and JSON are made by the engine's own casts.
"""

from __future__ import annotations

import secrets
from collections.abc import Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, ExitStack
from pathlib import PurePath
from typing import TYPE_CHECKING, BinaryIO, Generic, Protocol, TypeVar
from urllib.parse import quote
from uuid import uuid4

import pyarrow as pa
import pyarrow.compute as pc

from ..answers import Answer, counted
from ..errors import InvalidQuery, Unsupported, shown, suggestion
from ..plan import infer
from ..plan.casts import cast
from ..plan.composed.json_calls import value_of
from ..plan.expr import Column, ColumnRef, Expr, Literal, SortKey, new_column
from ..plan.logical import Logical, Project, Sort
from ..plan.statements import CopyTo
from ..plan.text.quoted_name import distinct_names
from ..plan.types import INTEGER, JSON, TIMESTAMP, VARCHAR, DataType, Kind
from ..stopping import check
from ..storage.remote.urls import is_remote
from .file_writers import FileWriter, writer_of
from .new_files import NewFiles, NewObjects

if TYPE_CHECKING:
    from ..connection import Connection
    from ..reading import Reading


NULL_PARTITION = "__HIVE_DEFAULT_PARTITION__"
FOLDER_OPTIONS = ("overwrite", "overwrite_or_ignore", "append")
SEVERAL_FILES = ("per_thread_output", "file_size_bytes")
ROWS_OF_A_STEP = 8192  # between two looks at how large a file is by now
_ENDINGS = {"parquet": ".parquet", "csv": ".csv", "json": ".json", "arrow": ".arrow"}
_PACKED = {"gzip": ".gz", "zstd": ".zst"}

Place = TypeVar("Place", bound=PurePath)


class Destination(Protocol[Place]):
    """Where new files go, all of them or none: folders of this machine, or a store of objects."""

    def resolved(self, path: str) -> Place: ...

    def begin_folder(self, place: Place, asked: str, fills: bool, overwrites: bool) -> None: ...

    def make_folder(self, place: Place, asked: str) -> None: ...

    def opened(self, place: Place, asked: str) -> AbstractContextManager[BinaryIO]: ...


def copy_to(connection: Connection, copy: CopyTo) -> Answer:
    """Write the rows of a query and count them; no file is there, or changed, where that fails."""
    columns = WrittenColumns(copy)
    several = [name for name in SEVERAL_FILES if copy.options.get(name)]
    if columns.partitions and several:
        raise Unsupported(f"{several[0]} and partition_by exclude each other.")
    chosen = [name for name in FOLDER_OPTIONS if copy.options.get(name)]
    if len(chosen) > 1:
        raise InvalidQuery(f"{chosen[0]} and {chosen[1]} exclude each other.")
    if chosen == ["append"] and not (columns.partitions or several):
        raise Unsupported("append goes with PARTITION_BY: a single file is written anew.")
    rules = connection.catalog.access.rules
    if is_remote(copy.path):
        with NewObjects(rules, copy.path, connection.settings.spill_dir) as objects:
            return _written(connection, copy, columns, objects)
    with NewFiles(rules) as files:
        return _written(connection, copy, columns, files)


def _written(
    connection: Connection, copy: CopyTo, columns: WrittenColumns, files: Destination[Place]
) -> Answer:
    place = files.resolved(copy.path)
    reading = connection.stream(columns.plan)
    output = _NewOutput(files, copy, columns, reading)
    try:
        rows = output.write(place)
        return counted(rows, output.written if copy.options.get("return_files") else None)
    finally:
        reading.close()


class _NewOutput(Generic[Place]):
    """The rows of one statement on their way into files."""

    def __init__(
        self,
        files: Destination[Place],
        copy: CopyTo,
        columns: WrittenColumns,
        reading: Reading,
    ) -> None:
        self._files, self._copy, self._columns, self._reading = files, copy, columns, reading
        first = len(columns.partitions)
        fields = [reading.schema.field(first + i) for i in range(len(columns.kept))]
        self._schema = pa.schema(
            [field.with_name(name) for field, name in zip(fields, columns.kept_names, strict=True)]
        )
        self._held = 0
        self.written: list[str] = []  # paths, as they were asked for

    def write(self, place: Place) -> int:
        if self._columns.partitions:
            return self._write_partitions(place)
        if any(self._copy.options.get(name) for name in SEVERAL_FILES):
            return self._write_several(place)
        with ExitStack() as stack:
            self.written.append(self._copy.path)
            writer, _ = self._opened(place, stack)
            return sum(self._write(writer, table) for table in self._reading)

    def _write_several(self, root: Place) -> int:
        """Write a folder of files, the next one as soon as one has so many bytes as were asked for."""
        self._begin(root)
        most = self._copy.options.get("file_size_bytes", 1 << 62)
        assert isinstance(most, int)
        rows = number = 0
        with ExitStack() as stack:
            writer, file = self._named(root, "", number, stack)
            for table in self._reading:
                for start in range(0, table.num_rows, ROWS_OF_A_STEP):
                    if file.tell() >= most:
                        stack.close()
                        number += 1
                        writer, file = self._named(root, "", number, stack)
                    rows += self._write(writer, table.slice(start, ROWS_OF_A_STEP))
        return rows

    def _begin(self, root: Place) -> None:
        options = self._copy.options
        fills = any(options.get(name) for name in FOLDER_OPTIONS)
        self._files.begin_folder(root, self._copy.path, fills, bool(options.get("overwrite")))

    def _named(
        self, root: Place, folder: str, number: int, stack: ExitStack
    ) -> tuple[FileWriter, BinaryIO]:
        """Open a file of a folder, by the pattern of its name."""
        options = self._copy.options
        extension = options.get("file_extension")
        if isinstance(extension, str):
            if "/" in extension:
                raise InvalidQuery("file_extension is a name without folders.")
            ending = f".{extension.removeprefix('.')}"
        else:
            packed = _PACKED.get(str(options.get("compression")), "")
            ending = _ENDINGS[self._copy.format] + packed
        default = secrets.token_hex(16) if options.get("append") else "data_{i}"
        name = named_by(str(options.get("filename_pattern", default)), number) + ending
        if options.get("append") and "filename_pattern" not in options:
            name = f"{default}{'' if not number else f'_{number}'}{ending}"
        below = f"{folder}/{name}" if folder else name
        self.written.append(f"{self._copy.path.rstrip('/')}/{below}")
        return self._opened(root / below, stack)

    def _write_partitions(self, root: Place) -> int:
        """Write a folder of files, one for each value of the partition columns, by which the rows are sorted."""
        self._begin(root)
        rows, known = 0, None
        with ExitStack() as stack:
            for table in self._reading:
                for folder, part in self._runs(table):
                    if folder != known:
                        stack.close()
                        known = folder
                        self._files.make_folder(root / folder, self._copy.path)
                        writer, _ = self._named(root, folder, 0, stack)
                    rows += self._write(writer, part)
        return rows

    def _opened(self, place: Place, stack: ExitStack) -> tuple[FileWriter, BinaryIO]:
        options = dict(self._copy.options)
        if options.get("compression", "auto") == "auto":
            options.pop("compression", None)
            packed = [codec for codec, ending in _PACKED.items() if place.name.endswith(ending)]
            if packed and self._copy.format in ("csv", "json"):
                options["compression"] = packed[0]
        columns = self._columns
        forced = [number for number, i in enumerate(columns.kept) if i in columns.forced]
        options["forced"] = frozenset(forced)
        file = stack.enter_context(self._files.opened(place, self._copy.path))
        writer = stack.enter_context(
            writer_of(
                self._copy.format, file, columns.kept_names, columns.types, self._schema, options
            )
        )
        return writer, file

    def _write(self, writer: FileWriter, table: pa.Table) -> int:
        check()
        kept = table.select(range(len(self._columns.partitions), table.num_columns))
        writer.write(kept.rename_columns(self._columns.kept_names))
        self._reading.hold(writer.held - self._held)
        self._held = writer.held
        return int(table.num_rows)

    def _runs(self, table: pa.Table) -> Iterator[tuple[str, pa.Table]]:
        """Yield the rows of each folder, as hive names it: `city=Oslo/year=2024`."""
        names = [self._columns.names[i] for i in self._columns.partitions]
        texts = [table.column(i).combine_chunks() for i in range(len(names))]
        ends = {table.num_rows}
        for values in texts:
            filled = pc.fill_null(pc.binary_join_element_wise("v", values, ""), "")
            runs = pc.run_end_encode(filled).run_ends
            ends.update(runs.to_pylist())
        start = 0
        for end in sorted(ends - {0}):
            values = [text[start].as_py() for text in texts]
            parts = [
                f"{quote(n, safe=' ')}={_folder(v)}" for n, v in zip(names, values, strict=True)
            ]
            yield "/".join(parts), table.slice(start, end - start)
            start = end


def _folder(value: str | None) -> str:
    return NULL_PARTITION if value is None else quote(value, safe=" ")


def named_by(pattern: str, number: int) -> str:
    """Return the name of a file by a pattern: `{i}` is its number, `{uuid}` one of its own; without either the number follows."""
    if "/" in pattern:
        raise InvalidQuery("filename_pattern is a name without folders.")
    if "{i}" not in pattern and "{uuid" not in pattern:
        pattern += "{i}"
    own = str(uuid4())
    for sign, text in (("{i}", str(number)), ("{uuid}", own), ("{uuidv4}", own)):
        pattern = pattern.replace(sign, text)
    return pattern


_MOMENTS = (
    Kind.TIMESTAMP,
    Kind.TIMESTAMPTZ,  # CSV has a format of these two alone
    Kind.TIMESTAMP_S,
    Kind.TIMESTAMP_MS,
    Kind.TIMESTAMP_NS,
)


# Signs of CSV, and others that they would cut in two
_APART = {"quote": ("delim", "nullstr"), "escape": ("delim", "nullstr"), "delim": ("nullstr",)}


def _refuse_ambiguous(options: Mapping[str, object]) -> None:
    signs = {"delim": ",", "quote": '"', "escape": '"', "nullstr": "", **options}
    for name, others in _APART.items():
        sign = str(signs[name])
        for other in others:
            if sign and sign in str(signs[other]):
                raise InvalidQuery(
                    f"The {name} of CSV, {shown(sign)}, is within its {other}, {shown(signs[other])}: take another."
                )


class WrittenColumns:
    """The plan of a file's columns: first the texts of partitions, by which its rows are sorted, then what files hold.

    Raises `InvalidQuery` and `Unsupported` for columns that cannot be written so.
    """

    def __init__(self, copy: CopyTo) -> None:
        if copy.format == "csv":
            _refuse_ambiguous(copy.options)
        source = copy.query.plan
        own = list(source.columns)
        self.names = distinct_names([c.name for c in own])
        self.partitions = [self._position(name, copy) for name in _given(copy, "partition_by")]
        kept = list(range(len(own)))
        if self.partitions and not copy.options.get("write_partition_columns"):
            kept = [i for i in kept if i not in self.partitions]
            if not kept:
                raise InvalidQuery(
                    "No column is left to write: name fewer in PARTITION_BY, or add WRITE_PARTITION_COLUMNS."
                )
        self.kept = kept
        self.types = [own[i].type for i in kept]
        self.forced = {self._position(name, copy) for name in _forced(copy, self.names)}
        items = [
            (new_column(self.names[i], VARCHAR), cast(ColumnRef(own[i]), VARCHAR))
            for i in self.partitions
        ]
        keys = tuple(SortKey(ColumnRef(column)) for column, _ in items)
        for i in kept:
            value = _with_written(own[i], copy)
            items.append((new_column(self.names[i], value.type), value))
        plan: Logical = Project(source, tuple(items))
        self.plan = Sort(plan, keys) if keys else plan

    @property
    def kept_names(self) -> list[str]:
        return [self.names[i] for i in self.kept]

    def _position(self, name: str, copy: CopyTo) -> int:
        lower = [n.lower() for n in self.names]
        if name.lower() not in lower:
            raise InvalidQuery(
                f'There is no column "{name}" to write.{suggestion(name, self.names)}'
            )
        return lower.index(name.lower())


def _given(copy: CopyTo, option: str) -> Sequence[str]:
    found = copy.options.get(option, ())
    assert isinstance(found, tuple)
    return found


def _forced(copy: CopyTo, names: list[str]) -> Sequence[str]:
    found = _given(copy, "force_quote")
    return names if "*" in found else found


def _with_written(column: Column, copy: CopyTo) -> Expr:
    """Return a column as a format holds it."""
    value, kind = ColumnRef(column), column.type.kind
    as_json = column.type.is_nested or column.type == JSON or column.type.is_float
    if copy.format == "json" and (as_json or kind is Kind.DECIMAL):
        return infer.call("to_json", [value_of(value)])
    if column.type.is_nested and copy.format not in ("parquet", "csv"):
        raise Unsupported(
            f'The column "{column.name}" is a {column.type}, which {copy.format} files are not written with: write Parquet, or cast it to VARCHAR.'
        )
    if copy.format in ("csv", "json"):
        return value if kind is Kind.VARCHAR else _text(value, column.type, copy)
    if kind is Kind.NULL:
        return Literal(None, INTEGER)
    if kind is Kind.INTERVAL and copy.format == "parquet":
        raise Unsupported(
            f'The column "{column.name}" is an INTERVAL, which Parquet files are not written with: cast it to VARCHAR.'
        )
    return value


def _text(value: Expr, data_type: DataType, copy: CopyTo) -> Expr:
    formatted = _MOMENTS[:2] if copy.format == "csv" else _MOMENTS
    moment = data_type.kind in formatted
    form = copy.options.get("timestampformat" if moment else "dateformat")
    if form is not None and (moment or data_type.kind is Kind.DATE):
        return infer.call("strftime", [cast(value, TIMESTAMP), Literal(form, VARCHAR)])  # type: ignore[arg-type]
    return cast(value, VARCHAR)
