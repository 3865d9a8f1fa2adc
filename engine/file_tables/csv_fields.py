"""The fields of a CSV file as texts: split by Arrow, and by Python's reader where an error has to name its line."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass

import pyarrow as pa
import pyarrow.csv as pc_csv

from ..errors import FileError
from ..storage.file_identity import FileIdentity
from ..storage.tables.access import opened
from .csv_dialect import Dialect
from .text_types import Conversion

BLOCK_BYTES = 1 << 22  # that are split at a time, at least a row
CODECS = {"gzip": "gzip", "zstd": "zstd", ".gz": "gzip", ".zst": "zstd"}
Options = Mapping[str, object]


@dataclass(frozen=True)
class CsvFile:
    """One file: how it is split, its columns in their order, and where its rows begin."""

    path: str
    identity: FileIdentity
    dialect: Dialect
    first_line: int  # of rows: so many lines precede them
    names: tuple[str, ...]
    conversions: tuple[Conversion, ...]


def null_texts(options: Options) -> tuple[str, ...]:
    """Return the fields that stand for NULL."""
    given = options.get("nullstr", ("",))
    assert isinstance(given, tuple)
    return ("", *given)


@contextmanager
def text_stream(identity: FileIdentity, options: Options) -> Iterator[pa.NativeFile]:
    codec = str(options.get("compression", "auto"))
    if codec == "auto":
        ending = next((e for e in (".gz", ".zst") if identity.path.endswith(e)), "")
        codec = CODECS.get(ending, "none")
    with opened(identity) as file:
        if codec == "none":
            yield file
        else:
            with pa.CompressedInputStream(file, CODECS[codec]) as stream:
                yield stream


def head_of(path: str, identity: FileIdentity, options: Options, size: int) -> tuple[str, bool]:
    """Return the first bytes of a file as text, and whether that is all of it."""
    encoding = str(options.get("encoding", "utf-8"))
    with _readable(path), text_stream(identity, options) as stream:
        data = b""
        while len(data) <= size and (more := stream.read(size + 1 - len(data))):
            data += more
    whole = len(data) <= size
    decoder = "utf-8-sig" if encoding == "utf-8" else encoding
    return data[:size].decode(decoder, errors="replace"), whole


def split_fields(part: CsvFile, options: Options) -> Iterator[pa.Table]:
    """Yield the fields of a file as texts, some rows at a time."""
    dialect = part.dialect
    ragged: list[int] = []

    def on_ragged(row: pc_csv.InvalidRow) -> str:
        if options.get("ignore_errors"):
            return "skip"
        ragged.append(row.actual_columns)
        return "error"

    doubled = dialect.escape in ("", dialect.quote)
    parse = pc_csv.ParseOptions(
        delimiter=dialect.delim,
        quote_char=dialect.quote or False,
        double_quote=doubled,
        escape_char=False if doubled else dialect.escape,
        newlines_in_values=True,
        ignore_empty_lines=dialect.columns > 1,
        invalid_row_handler=on_ragged,
    )
    names = [str(i) for i in range(dialect.columns)]
    read = pc_csv.ReadOptions(
        use_threads=False,
        block_size=BLOCK_BYTES,
        skip_rows=part.first_line,
        column_names=names,
        encoding=str(options.get("encoding", "utf-8")),
    )
    # Only here it is known which fields stood in quotes
    unquoted = options.get("allow_quoted_nulls") is False
    convert_all = pc_csv.ConvertOptions(
        column_types=dict.fromkeys(names, pa.string()),
        strings_can_be_null=unquoted,
        quoted_strings_can_be_null=False,
        null_values=list(null_texts(options)) if unquoted else None,
    )
    if part.identity.size == 0:
        return
    with text_stream(part.identity, options) as stream:
        try:
            with pc_csv.open_csv(stream, read, parse, convert_all) as reader:
                for batch in reader:
                    yield pa.Table.from_batches([batch])
        except pa.ArrowInvalid as error:
            if "Empty CSV" in str(error) or "file is too short" in str(error):
                return
            raise _malformed(part, options, ragged, error) from error
        except (OSError, UnicodeError) as error:
            raise FileError(f'The file "{part.path}" cannot be read: {error}.') from error


def _malformed(
    part: CsvFile, options: Options, ragged: Sequence[int], error: Exception
) -> FileError:
    columns = part.dialect.columns
    for line, row in _rows(part, options):
        if len(row) != columns and (row or columns == 1):
            return FileError(
                f'The row at line {line} of the file "{part.path}" has {len(row)} columns instead of {columns}: '
                "ignore_errors = true leaves such rows out."
            )
    if "UTF8" in str(error) or "UTF-8" in str(error):
        return FileError(
            f"The file \"{part.path}\" is not UTF-8{_not_text(part, options)}: give its encoding, such as encoding = 'latin-1'."
        )
    return FileError(f'The file "{part.path}" cannot be read as CSV: {error}')


def _not_text(part: CsvFile, options: Options) -> str:
    """Say where the first row is that has bytes which are no text."""
    for line, row in _rows(part, options):
        for name, value in zip(part.names, row, strict=False):
            if "\udc80" <= max(value, default="") <= "\udcff":
                return f', at line {line}, column "{name}"'
    return ""


def line_of(part: CsvFile, options: Options, number: int) -> int:
    """Return the line in which a row ends: found by reading the file again, since only errors ask for it."""
    columns = part.dialect.columns
    at = 0
    with suppress(csv.Error):
        for line, row in _rows(part, options):
            if len(row) != columns and not (columns == 1 and not row):
                continue
            if at == number:
                return line
            at += 1
    return part.first_line + number + 1


def _rows(part: CsvFile, options: Options) -> Iterator[tuple[int, list[str]]]:
    """Yield the rows of a file with the lines that they end in, by Python's reader, which counts lines."""
    encoding = str(options.get("encoding", "utf-8"))
    decoder = "utf-8-sig" if encoding == "utf-8" else encoding
    with text_stream(part.identity, options) as stream:
        lines = io.TextIOWrapper(stream, decoder, errors="surrogateescape", newline="")
        for _ in range(part.first_line):
            lines.readline()
        reader = part.dialect.rows(lines)
        with suppress(csv.Error):
            for row in reader:
                yield part.first_line + reader.line_num, row
        with suppress(ValueError):
            lines.detach()


@contextmanager
def _readable(path: str) -> Iterator[None]:
    try:
        yield
    except (OSError, ValueError, pa.ArrowException) as error:
        raise FileError(f'The file "{path}" cannot be read: {error}.') from error
