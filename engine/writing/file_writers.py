"""One file of a format, written a table at a time."""

from __future__ import annotations

import gzip
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from typing import BinaryIO, Protocol, cast

import pyarrow as pa
import pyarrow.parquet as pq

from .. import stopping
from ..database.rows_files import ROW_GROUP_ROWS
from ..plan.types import JSON, DataType, Kind, nested_arrow, to_arrow
from .text_lines import CsvLines, json_bytes, json_lines

Options = Mapping[str, object]


class FileWriter(Protocol):
    """Writes tables of the columns that `writer_of` was told."""

    def write(self, table: pa.Table) -> None: ...

    @property
    def held(self) -> int:
        """Return how many bytes of rows it holds in memory until there are more."""


@contextmanager
def writer_of(
    form: str,
    file: BinaryIO,
    names: Sequence[str],
    types: Sequence[DataType],
    schema: pa.Schema,
    options: Options,
) -> Iterator[FileWriter]:
    """Give what writes a file of a format; the file is complete when the `with` ends without an error.

    `schema` is that of the tables, in which values of CSV and JSON are texts; `types` are those that they had.
    """
    with ExitStack() as stack:
        if form == "parquet":
            yield from _parquet(file, stored_schema(schema, types), options, stack)
        elif form == "arrow":
            yield from _arrow(file, schema, options, stack)
        else:
            stream = stack.enter_context(_compressed(file, str(options.get("compression", "none"))))
            if form == "csv":
                yield _CsvFile(stream, names, options)
            else:
                lines = _JsonFile(stream, names, types, bool(options.get("array")))
                yield lines
                lines.end()


def _parquet(
    file: BinaryIO, schema: pa.Schema, options: Options, stack: ExitStack
) -> Iterator[FileWriter]:
    codec = str(options.get("compression", "snappy"))
    writer = pq.ParquetWriter(
        file,
        schema,
        compression="none" if codec == "uncompressed" else codec.removesuffix("_raw"),
        compression_level=options.get("compression_level"),
        store_schema=False,
    )
    stack.enter_context(writer)
    if options.get("kv_metadata"):
        writer.add_key_value_metadata(options["kv_metadata"])
    rows = cast("int", options.get("row_group_size", ROW_GROUP_ROWS))
    groups = _RowGroups(writer, schema, rows, cast("int | None", options.get("row_group_bytes")))
    yield groups
    groups.end()


def _arrow(
    file: BinaryIO, schema: pa.Schema, options: Options, stack: ExitStack
) -> Iterator[FileWriter]:
    codec = options.get("compression", "uncompressed")
    chosen = pa.ipc.IpcWriteOptions(compression=None if codec == "uncompressed" else codec)
    yield _ArrowFile(stack.enter_context(pa.ipc.new_file(file, schema, options=chosen)))


@contextmanager
def _compressed(file: BinaryIO, codec: str) -> Iterator[BinaryIO]:
    if codec == "gzip":
        with gzip.GzipFile(fileobj=file, mode="wb", mtime=0) as packed:
            yield cast("BinaryIO", packed)
    elif codec == "zstd":
        with pa.CompressedOutputStream(pa.PythonFile(file, "w"), "zstd") as stream:
            yield cast("BinaryIO", stream)
    else:
        yield file


class _RowGroups:
    """Rows gathered until they are a row group of Parquet."""

    def __init__(
        self, writer: pq.ParquetWriter, schema: pa.Schema, rows: int, most: int | None = None
    ) -> None:
        """`most` bytes wait at a time; then they are a smaller row group."""
        self._writer, self._schema, self._rows, self._most = writer, schema, rows, most
        self._waiting: list[pa.Table] = []

    @property
    def held(self) -> int:
        return sum(table.nbytes for table in self._waiting)

    def write(self, table: pa.Table) -> None:
        self._waiting.append(table if table.schema == self._schema else table.cast(self._schema))
        rows = sum(t.num_rows for t in self._waiting)
        if rows >= self._rows:
            whole = rows - rows % self._rows
            gathered = pa.concat_tables(self._waiting)
            for start in range(0, whole, self._rows):
                stopping.check()
                self._writer.write_table(gathered.slice(start, self._rows), self._rows)
            self._waiting = [gathered.slice(whole)] if rows > whole else []
        if self._most is not None and self.held > self._most:
            self.end()
            self._waiting = []

    def end(self) -> None:
        if self._waiting:
            rows = pa.concat_tables(self._waiting)
            self._writer.write_table(rows, row_group_size=self._rows)


class _ArrowFile:
    held = 0

    def __init__(self, writer: pa.RecordBatchWriter) -> None:
        self._writer = writer

    def write(self, table: pa.Table) -> None:
        self._writer.write_table(table)


class _CsvFile:
    held = 0

    def __init__(self, file: BinaryIO, names: Sequence[str], options: Options) -> None:
        chosen = {
            n: str(options[n]) for n in ("delim", "quote", "escape", "nullstr") if n in options
        }
        chosen.setdefault("escape", chosen.get("quote", '"'))
        forced = cast("frozenset[int]", options.get("forced", frozenset()))
        self._lines = CsvLines(**chosen, forced=forced)
        self._file = file
        if options.get("header", True):
            file.write(self._lines.header(names))

    def write(self, table: pa.Table) -> None:
        self._file.write(self._lines.lines(table))


class _JsonFile:
    held = 0

    def __init__(
        self, file: BinaryIO, names: Sequence[str], types: Sequence[DataType], is_array: bool
    ) -> None:
        self._file, self._names, self._types, self._is_array = file, names, types, is_array
        self._begun = False

    def write(self, table: pa.Table) -> None:
        if not table.num_rows:
            return
        lines = json_lines(table, self._names, self._types)
        if not self._is_array:
            self._file.write(json_bytes(lines))
            return
        self._file.write(b",\n\t" if self._begun else b"[\n\t")
        self._begun = True
        self._file.write(json_bytes(lines, ",\n\t")[:-3])

    def end(self) -> None:
        if self._is_array:
            self._file.write(b"\n]\n" if self._begun else b"[\n]\n")


def stored_schema(schema: pa.Schema, types: Sequence[DataType]) -> pa.Schema:
    """Return the schema in which Parquet files hold tables of `schema`, whose columns are of `types`."""
    fields = [
        field.with_type(_stored(kind)) if _is_other(kind) else field
        for field, kind in zip(schema, types, strict=True)
    ]
    return pa.schema(fields)


def _is_other(data_type: DataType) -> bool:
    """Whether JSON, or an ARRAY, which is a list in files as those of DuckDB, is in values of a type."""
    return data_type == JSON or data_type.is_array or any(map(_is_other, data_type.children))


def _stored(data_type: DataType) -> pa.DataType:
    if data_type == JSON:
        return pa.json_(pa.string())
    if data_type.kind is Kind.MAP:
        return pa.map_(*map(_stored, data_type.children[0].children))
    if not data_type.is_nested:
        return to_arrow(data_type)
    return nested_arrow(data_type, [_stored(child) for child in data_type.children])
