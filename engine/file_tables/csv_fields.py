"""The fields of a CSV file as texts: split by Arrow where it has the dialect, else row by row, as are errors, which name their line."""

from __future__ import annotations

from codecs import getincrementaldecoder
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager

import pyarrow as pa
import pyarrow.csv as pc_csv

from ..errors import FileError
from ..plan.arrow.arrow_arrays import array_from
from ..records import dataclass
from ..storage.file_identity import FileIdentity
from ..storage.tables.access import opened
from .csv_rows import (
    LONGEST_ROW,
    TOO_LONG,
    UNQUOTED,
    CsvRow,
    Dialect,
    fitted_row,
    is_row_of_null,
    is_text,
    rows_of,
)
from .text_types import Conversion

BLOCK_BYTES = 1 << 22  # that are split at a time, at least a row
CHUNK_BYTES = 1 << 18  # that are read at a time where rows are split one by one
SPLIT_ROWS = 4096
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
    is_regular: bool  # whether Arrow splits such rows
    has_header: bool
    skipped: int  # lines before the header, or before the rows where there is none

    @property
    def columns(self) -> int:
        return len(self.names)


@dataclass(frozen=True)
class Fields:
    """Some rows as texts, a column for each value that is asked for, called by its place; where they were split one by one, what they are in the file too."""

    count: int
    texts: pa.Table
    rows: Sequence[CsvRow] = ()
    wrong: Sequence[CsvRow] = ()  # rows that have not as many values, or are none


def null_texts(options: Options) -> tuple[str, ...]:
    """Return the fields that stand for NULL."""
    given = options.get("nullstr", ("",))
    assert isinstance(given, tuple)
    return given


def switched(options: Options, name: str) -> bool:
    return options.get(name) is True


def skips_errors(options: Options) -> bool:
    return switched(options, "ignore_errors") or switched(options, "store_rejects")


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
    with _readable(path), text_stream(identity, options) as stream:
        data = b""
        while len(data) <= size and (more := stream.read(size + 1 - len(data))):
            data += more
    whole = len(data) <= size
    decoder = _decoder(options)
    errors = "replace" if decoder == "utf-16" else "surrogateescape"
    return data[:size].decode(decoder, errors=errors), whole


def split_fields(part: CsvFile, options: Options, places: Sequence[int]) -> Iterator[Fields]:
    """Yield the fields at some places as texts, some rows at a time; raises `FileError` for rows that are none."""
    if part.identity.size == 0:
        return
    done = 0
    if part.is_regular and _is_plain(options):
        try:
            for table in _split_by_arrow(part, options, places):
                done += table.num_rows
                yield Fields(table.num_rows, table)
            return
        except pa.ArrowInvalid as error:
            if "Empty CSV" in str(error) or "file is too short" in str(error):
                return
        except (OSError, UnicodeError) as error:
            raise FileError(f'The file "{part.path}" cannot be read: {error}.') from error
    yield from _split_by_rows(part, options, places, done)


def _is_plain(options: Options) -> bool:
    """Whether nothing is asked for that Arrow does not do."""
    asked = ("null_padding", "store_rejects", "max_line_size")
    return not any(options.get(name) for name in asked) and options.get("strict_mode") is not False


def _split_by_arrow(part: CsvFile, options: Options, places: Sequence[int]) -> Iterator[pa.Table]:
    dialect = part.dialect
    parse = pc_csv.ParseOptions(
        delimiter=dialect.delim,
        quote_char=dialect.quote or False,
        double_quote=dialect.escape in ("", dialect.quote),
        newlines_in_values=True,
        ignore_empty_lines=not is_row_of_null(part.columns, null_texts(options)),
    )
    names = [str(i) for i in range(part.columns)]
    read = pc_csv.ReadOptions(
        use_threads=False,
        block_size=BLOCK_BYTES,
        skip_rows=part.first_line,
        column_names=names,
        encoding=str(options.get("encoding", "utf-8")),
    )
    # Only here it is known which fields stood in quotes
    unquoted = options.get("allow_quoted_nulls") is False
    convert_some = pc_csv.ConvertOptions(
        column_types=dict.fromkeys(names, pa.string()),
        include_columns=[str(place) for place in places],
        strings_can_be_null=unquoted,
        quoted_strings_can_be_null=False,
        null_values=list(null_texts(options)) if unquoted else None,
    )
    with (
        text_stream(part.identity, options) as stream,
        pc_csv.open_csv(stream, read, parse, convert_some) as reader,
    ):
        for batch in reader:
            yield pa.Table.from_batches([batch])


def _split_by_rows(
    part: CsvFile, options: Options, places: Sequence[int], done: int
) -> Iterator[Fields]:
    """Yield rows behind the first so many; those that are none are an error, or left out where that is asked for."""
    kept: list[CsvRow] = []
    wrong: list[CsvRow] = []
    lenient = skips_errors(options)
    for row in rows_in_file(part, options):
        fitted = fitted_to(row, part, options)
        if fitted is None:
            if not lenient:
                raise malformed(part, row, places)
            wrong.append(row)
        elif done:
            done -= 1
        else:
            kept.append(fitted)
        if len(kept) + len(wrong) >= SPLIT_ROWS:
            yield _as_fields(part, options, places, kept, wrong)
            kept, wrong = [], []
    if kept or wrong:
        yield _as_fields(part, options, places, kept, wrong)


def fitted_to(row: CsvRow, part: CsvFile, options: Options) -> CsvRow | None:
    """Return a row with a value for each column, None for one that has not as many."""
    fitted = fitted_row(row, part.columns, switched(options, "null_padding"), null_texts(options))
    if fitted is None and not part.dialect.strict and len(row.fields) > part.columns:
        return None if row.fault else row._replace(fields=row.fields[: part.columns])
    return fitted


def is_too_long(row: CsvRow, options: Options) -> bool:
    most = options.get("max_line_size")
    return isinstance(most, int) and len(row.text.encode(errors="surrogateescape")) >= most


def _as_fields(
    part: CsvFile,
    options: Options,
    places: Sequence[int],
    rows: list[CsvRow],
    wrong: list[CsvRow],
) -> Fields:
    try:
        columns = [array_from([row.fields[i] for row in rows], pa.string()) for i in places]
    except UnicodeEncodeError:
        bad = {row.number for row in rows if not all(is_text(row.fields[i] or "") for i in places)}
        if not skips_errors(options):
            raise malformed(part, next(row for row in rows if row.number in bad), places) from None
        wrong = [*wrong, *(row for row in rows if row.number in bad)]
        return _as_fields(
            part, options, places, [row for row in rows if row.number not in bad], wrong
        )
    if options.get("allow_quoted_nulls") is False:
        nulls = set(null_texts(options))
        columns = [
            array_from(
                [
                    None if v in nulls and i not in r.quoted else v
                    for v, r in zip(c.to_pylist(), rows, strict=True)
                ],
                pa.string(),
            )
            for i, c in zip(places, columns, strict=True)
        ]
    table = pa.table(columns, names=[str(i) for i in places])
    return Fields(len(rows), table, rows, sorted(wrong, key=lambda row: row.start))


def malformed(part: CsvFile, row: CsvRow, places: Sequence[int]) -> FileError:
    """Return what is wrong with a row: a value at some places that is no text, else what else it is."""
    at = f'The row at line {row.line} of the file "{part.path}"'
    bad = [i for i in places if i < len(row.fields) and not is_text(row.fields[i] or "")]
    if bad:
        return FileError(
            f'The file "{part.path}" is not UTF-8, at line {row.line}, column "{part.names[bad[0]]}": '
            "give its encoding, such as encoding = 'latin-1'."
        )
    if row.fault == UNQUOTED:
        name = part.names[min(len(row.fields), part.columns) - 1] if row.fields else part.names[0]
        return FileError(
            f'{at} has a quote that does not end its value, in column "{name}": '
            "strict_mode = false reads such values, ignore_errors = true leaves such rows out."
        )
    if row.fault:
        what = (
            "is longer than max_line_size"
            if row.fault == TOO_LONG
            else "ends its line in another way than the first"
        )
        return FileError(f"{at} {what}: ignore_errors = true leaves such rows out.")
    return FileError(
        f"{at} has {len(row.fields)} columns instead of {part.columns}: "
        "ignore_errors = true leaves such rows out, null_padding = true fills them with NULL."
    )


def line_of(part: CsvFile, options: Options, number: int) -> int:
    """Return the line in which a row begins: found by reading the file again, since only errors ask for it."""
    for at, row in enumerate(
        r for r in rows_in_file(part, options) if fitted_to(r, part, options) is not None
    ):
        if at == number:
            return row.line
    return part.first_line + number + 1


def rows_in_file(part: CsvFile, options: Options) -> Iterator[CsvRow]:
    """Yield the rows of a file behind its header, but comments and empty lines; they may be too long, or none."""
    most = options.get("max_line_size")
    longest = max(most, BLOCK_BYTES) if isinstance(most, int) else LONGEST_ROW
    keeps_empty = is_row_of_null(part.columns, null_texts(options))
    with text_stream(part.identity, options) as stream:
        chunks = _chunks(part.path, stream, options)
        for row in rows_of(part.dialect, chunks, part.first_line, longest):
            if row.comment == "line":
                continue
            if not row.text and not keeps_empty:
                continue
            yield row._replace(fault=TOO_LONG) if is_too_long(row, options) else row


def _chunks(path: str, stream: pa.NativeFile, options: Options) -> Iterator[str]:
    decoder = getincrementaldecoder(_decoder(options))(errors="surrogateescape")
    with _readable(path):
        while data := stream.read(CHUNK_BYTES):
            if text := decoder.decode(data):
                yield text
        if text := decoder.decode(b"", final=True):
            yield text


def _decoder(options: Options) -> str:
    encoding = str(options.get("encoding", "utf-8"))
    return "utf-8-sig" if encoding == "utf-8" else encoding


@contextmanager
def _readable(path: str) -> Iterator[None]:
    try:
        yield
    except (OSError, UnicodeError, pa.ArrowException) as error:
        raise FileError(f'The file "{path}" cannot be read: {error}.') from error
