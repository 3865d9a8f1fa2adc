"""One file of a format, written a table at a time.

Lines of CSV and JSON out of columns of texts, by Arrow's own functions: a line is one string, and a file their bytes.
"""

from __future__ import annotations

import gzip
import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from typing import BinaryIO, Protocol, cast

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from .. import stopping
from ..database.rows_files import ROW_GROUP_ROWS
from ..plan.types import JSON, VARCHAR, DataType, Kind, nested_arrow, to_arrow
from ..records import dataclass

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


_ESCAPES = {"\\": "\\\\", '"': '\\"', "\n": "\\n", "\r": "\\r", "\t": "\\t", "\b": "\\b", "\f": "\\f"}  # fmt: skip
_CONTROL = "".join(map(chr, range(32)))


@dataclass(frozen=True)
class CsvLines:
    """How values stand in lines of CSV."""

    delim: str = ","
    quote: str = '"'
    escape: str = '"'
    nullstr: str = ""
    forced: frozenset[int] = frozenset()

    def header(self, names: Sequence[str]) -> bytes:
        columns = [
            self._quoted(pa.chunked_array([pa.array([name])]), number in self.forced)
            for number, name in enumerate(names)
        ]
        return _joined([c.combine_chunks() for c in columns], self.delim, "")

    def lines(self, table: pa.Table) -> bytes:
        columns = [
            self._quoted(column, number in self.forced)
            for number, column in enumerate(table.columns)
        ]
        return _joined([c.combine_chunks() for c in columns], self.delim, self.nullstr)

    def _quoted(self, texts: pa.ChunkedArray, always: bool) -> pa.ChunkedArray:
        """Quote what would be read as something else: more than one value, a line, NULL."""
        if not self.quote:
            return texts
        doubled = texts
        for sign in dict.fromkeys((self.escape, self.quote)):
            if sign:
                doubled = pc.replace_substring(doubled, sign, self.escape + sign)
        quoted = pc.binary_join_element_wise(self.quote, doubled, self.quote, "")
        if always:
            return quoted
        signs = "|".join(map(re.escape, (self.delim[:1], *self.quote, *self.escape)))
        special = pc.match_substring_regex(texts, rf"{signs}|[\n\r]")
        special = pc.or_(special, pc.equal(texts, self.nullstr))
        return pc.if_else(special, quoted, texts)


def json_lines(table: pa.Table, names: Sequence[str], types: Sequence[DataType]) -> pa.Array:
    """Return each row as an object of JSON; numbers and truth values stand there as such."""
    parts: list[object] = []
    for number, (name, column, data_type) in enumerate(
        zip(names, table.columns, types, strict=True)
    ):
        parts.append(("," if number else "{") + _json_text(name) + ":")
        parts.append(_json_values(column, data_type).combine_chunks())
    return pc.binary_join_element_wise(
        *parts, "}", "", null_handling="replace", null_replacement="null"
    )


def json_bytes(lines: pa.Array, behind: str = "\n") -> bytes:
    return _joined([lines], "", "", behind)


def _json_values(column: pa.ChunkedArray, data_type: DataType) -> pa.ChunkedArray:
    if data_type.is_numeric or data_type.kind in (Kind.BOOLEAN, Kind.NULL):
        return column  # as the plan has written it
    if data_type == JSON or data_type.is_nested:
        return column
    for sign, escaped in _ESCAPES.items():
        column = pc.replace_substring(column, sign, escaped)
    if pc.any(pc.match_substring_regex(column, r"[\x00-\x1f]")).as_py():
        for sign in _CONTROL:
            column = pc.replace_substring(column, sign, f"\\u{ord(sign):04x}")
    return pc.binary_join_element_wise('"', column, '"', "")


def _json_text(name: str) -> str:
    return str(_json_values(pa.chunked_array([pa.array([name])]), VARCHAR)[0].as_py())


def _joined(columns: Sequence[pa.Array], between: str, missing: str, behind: str = "\n") -> bytes:
    """Return the bytes of all rows, each with `behind` behind it."""
    lines = pc.binary_join_element_wise(
        *columns, between, null_handling="replace", null_replacement=missing
    )
    ended = pc.binary_join_element_wise(lines, "", behind)
    arrays = ended.chunks if isinstance(ended, pa.ChunkedArray) else [ended]
    return b"".join(map(_bytes_of, arrays))


def _bytes_of(texts: pa.Array) -> bytes:
    """Return the values of an array of texts, which lie one behind the other."""
    _, offsets, values = texts.buffers()
    if values is None or not len(texts):
        return b""
    places = pa.Array.from_buffers(pa.int32(), texts.offset + len(texts) + 1, [None, offsets])
    first, end = places[texts.offset].as_py(), places[len(places) - 1].as_py()
    return bytes(values[first:end])
