"""The files that hold the rows of a folder's tables: written once, never changed, and looked at before they are read."""

from __future__ import annotations

import base64
import os
import re
import secrets
import zlib
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import BinaryIO, NamedTuple

import pyarrow as pa
import pyarrow.parquet as pq

from ..errors import FileError
from ..plan.types import DataType, Kind, to_arrow
from ..records import dataclass
from ..stopping import check
from .commit_log import write_new

NAME = re.compile(r"[0-9a-f]{32}\.(parquet|arrow)")
ROW_GROUP_ROWS = 122_880  # as DuckDB writes them
# Types that Parquet gives back as it was given them: tables that have others lie in Arrow files
_IN_PARQUET = frozenset(
    [
        *(Kind.BOOLEAN, Kind.TINYINT, Kind.SMALLINT, Kind.INTEGER, Kind.BIGINT),
        *(Kind.UTINYINT, Kind.USMALLINT, Kind.UINTEGER, Kind.UBIGINT),
        *(Kind.DECIMAL, Kind.FLOAT, Kind.DOUBLE, Kind.DATE, Kind.TIME, Kind.TIMESTAMP),
        *(Kind.TIMESTAMP_NS, Kind.TIMESTAMPTZ, Kind.VARCHAR, Kind.BLOB),
        *(Kind.LIST, Kind.STRUCT, Kind.MAP),
    ]
)

Fields = Sequence[tuple[str, DataType]]


class RowsFile(NamedTuple):
    """A file of rows; `checksum` is that of an Arrow file, whose pages have none."""

    name: str
    bytes: int
    rows: int
    checksum: int = 0

    @property
    def is_parquet(self) -> bool:
        return self.name.endswith(".parquet")


def schema_of(fields: Fields) -> pa.Schema:
    return pa.schema([(name, to_arrow(data_type)) for name, data_type in fields])


def fit_parquet(fields: Fields) -> bool:
    """Whether Parquet gives the values of all columns back as they were."""
    return all(_fits(data_type) for _, data_type in fields)


def _fits(data_type: DataType) -> bool:
    known = data_type.kind in _IN_PARQUET and not (data_type.is_enum or data_type.is_array)
    return known and all(map(_fits, data_type.children))


def write_rows(folder: Path, fields: Fields, tables: Iterable[pa.Table]) -> RowsFile:
    """Write rows, which have the columns of `fields` in the types of results, to a new file; raises `FileError`."""
    is_parquet = fit_parquet(fields)
    name = f"{secrets.token_hex(16)}.{'parquet' if is_parquet else 'arrow'}"
    count = 0

    def write(file: BinaryIO) -> None:
        nonlocal count
        writer = _parquet(file, fields) if is_parquet else pa.ipc.new_file(file, schema_of(fields))
        with writer:
            for table in tables:
                check()
                count += table.num_rows
                if is_parquet:
                    writer.write_table(table, row_group_size=ROW_GROUP_ROWS)
                else:
                    writer.write_table(table)

    size = write_new(folder / name, write)
    checksum = 0 if is_parquet else zlib.crc32((folder / name).read_bytes())
    return RowsFile(name, size, count, checksum)


def _parquet(file: BinaryIO, fields: Fields) -> pq.ParquetWriter:
    return pq.ParquetWriter(
        file, schema_of(fields), compression="zstd", store_schema=False, write_page_checksum=True
    )


def row_groups(table: pa.Table) -> Iterator[pa.Table]:
    """Yield the rows of a table as many at a time as a row group has."""
    for start in range(0, table.num_rows, ROW_GROUP_ROWS):
        yield table.slice(start, ROW_GROUP_ROWS)


def check_file(folder: Path, file: RowsFile, table: str) -> None:
    """Raise `FileError` for a file that is gone or has lost bytes."""
    path = folder / file.name
    try:
        size = os.stat(path, follow_symlinks=False).st_size  # noqa: PTH116
    except OSError:
        raise FileError(
            f'The file "{path}" with rows of the table "{table}" is gone: restore it from a backup, or drop the table.'
        ) from None
    if size != file.bytes:
        raise damaged(path, table, f"it has {size:,} bytes where {file.bytes:,} were written")


def damaged(path: Path, table: str, why: str) -> FileError:
    return FileError(
        f'The file "{path}" with rows of the table "{table}" is damaged: {why}. Restore it from a backup, or drop the table.'
    )


def read_arrow(folder: Path, file: RowsFile, fields: Fields, table: str) -> pa.Table:
    """Return the rows of an Arrow file, which stay on disk until they are asked for."""
    path = folder / file.name
    try:
        source = pa.memory_map(str(path))
        if zlib.crc32(source.read_buffer()) != file.checksum:
            raise damaged(path, table, "its checksum is another")
        return pa.ipc.open_file(source).read_all().cast(schema_of(fields))
    except (OSError, pa.ArrowException) as error:
        raise damaged(path, table, str(error).split("\n")[0].rstrip(".")) from error


def read_parquet(folder: Path, file: RowsFile, fields: Fields, table: str) -> Iterator[pa.Table]:
    """Yield the rows of a Parquet file, a row group at a time."""
    path = folder / file.name
    try:
        with pq.ParquetFile(path, page_checksum_verification=True) as source:
            for number in range(source.num_row_groups):
                check()
                yield source.read_row_group(number).cast(schema_of(fields))
    except (OSError, ValueError, pa.ArrowException) as error:
        raise damaged(path, table, str(error).split("\n")[0].rstrip(".")) from error


@dataclass(eq=False)
class InlineRows:
    """Rows that are few enough to stand in the catalog's log: text there, and a table once they are read."""

    count: int
    _text: str | None = None
    _table: pa.Table | None = None

    @classmethod
    def of(cls, table: pa.Table) -> InlineRows:
        return cls(table.num_rows, None, table)

    @property
    def size(self) -> int:
        """Return some number of bytes that they take, in whichever form is at hand."""
        return len(self._text) if self._table is None else self._table.nbytes  # type: ignore[arg-type]

    def text(self) -> str:
        if self._text is None:
            assert self._table is not None
            sink = pa.BufferOutputStream()
            with pa.ipc.new_stream(sink, self._table.schema) as writer:
                writer.write_table(self._table)
            self._text = base64.b64encode(sink.getvalue()).decode()
        return self._text

    def table(self, fields: Fields) -> pa.Table:
        """Return the rows; raises `FileError` for a text that is not of these columns."""
        try:
            if self._table is None:
                assert self._text is not None
                data = base64.b64decode(self._text, validate=True)
                self._table = pa.ipc.open_stream(data).read_all()
                self._table.validate(full=True)  # what Arrow reads it takes at its word
            return self._table.rename_columns([name for name, _ in fields]).cast(schema_of(fields))
        except (OSError, ValueError, pa.ArrowException) as error:
            raise FileError(f"Rows in a catalog cannot be read: {error}.") from error
