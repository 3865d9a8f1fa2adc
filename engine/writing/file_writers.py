"""One file of a format, written a table at a time.

Lines of CSV and JSON out of columns of texts, by Arrow's own functions: a line is one string, and a file their bytes.
"""

from __future__ import annotations

import gzip
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from typing import BinaryIO, Protocol, cast

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from .. import stopping
from ..database.rows_files import ROW_GROUP_ROWS
from ..plan.types import JSON, VARCHAR, DataType, Kind, nested_arrow, to_arrow
from ..records import dataclass

Options = Mapping[str, object]
FIRST_OF_A_FILE = 8192  # rows that tell how its columns are encoded
LEAST_REPEATS = 8  # of a value in those, on the whole, for a dictionary
LONGEST_INTEGER = 18  # digits of decimals that lie as integers


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

    def opened(first: pa.Table) -> pq.ParquetWriter:
        writer = pq.ParquetWriter(
            file,
            schema,
            compression="none" if codec == "uncompressed" else codec.removesuffix("_raw"),
            compression_level=options.get("compression_level"),
            store_schema=False,
            store_decimal_as_integer=True,
            **_encodings(first),
        )
        stack.enter_context(writer)
        if options.get("kv_metadata"):
            writer.add_key_value_metadata(options["kv_metadata"])
        return writer

    rows = cast("int", options.get("row_group_size", ROW_GROUP_ROWS))
    groups = _RowGroups(opened, schema, rows, cast("int | None", options.get("row_group_bytes")))
    yield groups
    groups.end()


def _encodings(first: pa.Table) -> dict[str, object]:
    """Return what keeps a writer from dictionaries of columns whose first values mostly differ.

    They cost half of the time and more bytes: whole numbers stand as differences then.  600,000 rows of lineitem take 0.5 s of CPU time
    and 23 MB with dictionaries, 0.3 s and 19 MB so.
    """
    sample = first.slice(0, FIRST_OF_A_FILE)
    nested = any(map(pa.types.is_nested, first.schema.types))
    if sample.num_rows < FIRST_OF_A_FILE or nested:  # whose columns have other names in files
        return {}
    different = [
        field
        for field, column in zip(first.schema, sample.columns, strict=True)
        if not isinstance(field.type, pa.BaseExtensionType)
        and pc.count_distinct(column).as_py() > FIRST_OF_A_FILE // LEAST_REPEATS
    ]
    names = {field.name for field in different}
    whole = [f.name for f in different if _is_whole(f.type)]
    return {
        "use_dictionary": [name for name in first.column_names if name not in names],
        "column_encoding": dict.fromkeys(whole, "DELTA_BINARY_PACKED"),
    }


def _is_whole(arrow: pa.DataType) -> bool:
    """Whether files hold values of a type as whole numbers."""
    if pa.types.is_decimal(arrow):
        return bool(arrow.precision <= LONGEST_INTEGER)
    return pa.types.is_integer(arrow) or pa.types.is_temporal(arrow)


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
        self,
        opened: Callable[[pa.Table], pq.ParquetWriter],
        schema: pa.Schema,
        rows: int,
        most: int | None = None,
    ) -> None:
        """`most` bytes wait at a time; then they are a smaller row group.  The file is begun when there are rows."""
        self._opened, self._schema, self._rows, self._most = opened, schema, rows, most
        self._writer: pq.ParquetWriter | None = None
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
                self._put(gathered.slice(start, self._rows))
            self._waiting = [gathered.slice(whole)] if rows > whole else []
        if self._most is not None and self.held > self._most:
            self.end()
            self._waiting = []

    def end(self) -> None:
        if self._waiting:
            self._put(pa.concat_tables(self._waiting))
        elif self._writer is None:
            self._writer = self._opened(self._schema.empty_table())

    def _put(self, rows: pa.Table) -> None:
        if self._writer is None:
            self._writer = self._opened(rows)
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
        forced = cast("frozenset[int]", options.get("forced", frozenset()))
        self._lines = CsvLines(**chosen, forced=forced)
        self._file = file
        if options.get("header", True):
            file.write(self._lines.header(names))

    def write(self, table: pa.Table) -> None:
        for batch in table.to_batches(LINES_OF_A_STEP):
            self._file.write(self._lines.lines(batch.columns))


class _JsonFile:
    held = 0

    def __init__(
        self, file: BinaryIO, names: Sequence[str], types: Sequence[DataType], is_array: bool
    ) -> None:
        self._file, self._names, self._types, self._is_array = file, names, types, is_array
        self._begun = False

    def write(self, table: pa.Table) -> None:
        for batch in table.to_batches(LINES_OF_A_STEP):
            if not self._is_array:
                self._file.write(json_lines(batch.columns, self._names, self._types, "}\n"))
                continue
            self._file.write(b",\n\t" if self._begun else b"[\n\t")
            self._begun = True
            self._file.write(json_lines(batch.columns, self._names, self._types, "},\n\t")[:-3])

    def end(self) -> None:
        if self._is_array:
            self._file.write(b"\n]\n" if self._begun else b"[\n\t\n]\n")


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
_ESCAPES |= {chr(i): f"\\u{i:04x}" for i in range(32) if chr(i) not in _ESCAPES}
COMMENT = "#"  # with which readers would find a comment to begin
LINES_OF_A_STEP = 1 << 14  # so that their texts are in a core's cache from one step to the next


@dataclass(frozen=True)
class CsvLines:
    """How values stand in lines of CSV."""

    delim: str = ","
    quote: str = '"'
    escape: str = '"'
    nullstr: str = ""
    forced: frozenset[int] = frozenset()

    def header(self, names: Sequence[str]) -> memoryview:
        columns = [pa.array([name], pa.string()) for name in names]
        return self.lines(columns)

    def lines(self, columns: Sequence[pa.Array]) -> memoryview:
        """Return the bytes of all rows; their values are texts."""
        parts = [self._quoted(column, n in self.forced) for n, column in enumerate(columns)]
        parts[-1] = _joined(parts[-1], "", "\n", self.nullstr)
        return _bytes_of(_joined(*parts, self.delim, self.nullstr))

    def _quoted(self, texts: pa.Array, always: bool) -> pa.Array:
        """Quote what would be read as something else: more than one value, a line, a comment, NULL."""
        if not self.quote:
            return texts
        if always:
            return self._in_quotes(texts)
        special = self._special(texts)
        if special is None:
            return texts
        return pc.replace_with_mask(texts, special, self._in_quotes(texts.filter(special)))

    def _special(self, texts: pa.Array) -> pa.Array | None:
        """Return which texts are quoted; None where none is, as the bytes of most columns say at once."""
        signs = (self.delim[:1], *self.quote, COMMENT, "\n", "\r")
        special = None
        if _found_in(texts, signs):
            special = pc.match_substring_regex(texts, "|".join(map(re.escape, signs)))
        if pc.index(texts, self.nullstr).as_py() >= 0:
            null = pc.equal(texts, self.nullstr)
            special = null if special is None else pc.or_(special, null)
        return special

    def _in_quotes(self, texts: pa.Array) -> pa.Array:
        for sign in _found_in(texts, tuple(dict.fromkeys((self.escape, self.quote)))):
            texts = pc.replace_substring(texts, sign, self.escape + sign)
        return pc.binary_join_element_wise(self.quote, texts, self.quote, "")


def json_lines(
    columns: Sequence[pa.Array], names: Sequence[str], types: Sequence[DataType], end: str = "}"
) -> memoryview:
    """Return each row as an object of JSON; numbers and truth values stand there as such."""
    parts: list[object] = []
    for number, (name, column, data_type) in enumerate(zip(names, columns, types, strict=True)):
        parts.append(("," if number else "{") + _json_text(name) + ":")
        parts.append(_json_values(column, data_type))
    return _bytes_of(_joined(*parts, end, "", "null"))


def _json_values(column: pa.Array, data_type: DataType) -> pa.Array:
    if data_type.is_numeric or data_type.kind in (Kind.BOOLEAN, Kind.NULL):
        return column  # as the plan has written it
    if data_type == JSON or data_type.is_nested:
        return column
    for sign in _found_in(column, tuple(_ESCAPES)):
        column = pc.replace_substring(column, sign, _ESCAPES[sign])
    return pc.binary_join_element_wise('"', column, '"', "")


def _json_text(name: str) -> str:
    return str(_json_values(pa.array([name]), VARCHAR)[0].as_py())


def _joined(*parts: object) -> pa.Array:
    """Return texts with the last but one of `parts` between them, and the last one in place of NULL."""
    return pc.binary_join_element_wise(
        *parts[:-1], null_handling="replace", null_replacement=parts[-1]
    )


def _found_in(texts: pa.Array, signs: Sequence[str]) -> list[str]:
    """Return which signs are in any of the texts, in their order."""
    data = bytes(_bytes_of(texts))
    return [sign for sign in signs if sign and sign.encode() in data]


def _bytes_of(texts: pa.Array) -> memoryview:
    """Return the values of an array of texts, which lie one behind the other."""
    _, offsets, values = texts.buffers()
    if values is None or not len(texts):
        return memoryview(b"")
    places = np.frombuffer(offsets, np.int32)
    return memoryview(values)[places[texts.offset] : places[texts.offset + len(texts)]]
