"""Parquet footers: read once for each state of a file, many files at a time;
and text whose values come again though files keep no dictionary of them: some writers stop at a megabyte or a share of different values.

Such columns are dictionaries in memory (`encode.most_values`), so that kernels tell groups of them apart, and a plan has to know it.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager, contextmanager
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from ...errors import FileError
from ...plan.types import Kind
from ...stopping import carried
from ..columns.encode import most_values
from ..file_identity import FileIdentity, changed
from ..recent import Recent
from ..remote.remote_files import RemoteFile
from .access import opened
from .column_chunks import decoded_bytes
from .column_statistics import column_positions
from .footer_check import check_footer

if TYPE_CHECKING:
    from .parquet import ParquetTable


SECONDS = 2.0  # for small files; time stamps are as coarse as 10 ms, on some file systems 2 s
WRITE_RATE = 100e6  # bytes a second, of a disk that holds back who writes faster
LARGEST_WRITE = 0x7FFFF000  # bytes that Linux takes in one call
KEPT = 4096  # files that were seen

_seen: Recent[FileIdentity, float] = Recent(KEPT)


def is_settled(file: FileIdentity) -> bool:
    """Whether no write that gave the file its times can still go on; asked before it is read.

    A remote file appears whole: it is settled where its store tells its versions apart.
    """
    if isinstance(file, RemoteFile):
        return file.is_tagged
    needed = SECONDS + min(file.size, LARGEST_WRITE) / WRITE_RATE
    age = time.time() - max(file.mtime_ns, file.ctime_ns) / 1e9
    return age >= needed or time.monotonic() - _seen.find_or_make(file, time.monotonic) >= needed


KEPT_FOOTERS = 4096
READERS = 8  # footers wait for the disk more than for a core
SMALLEST_FILE = 12  # bytes: the magic word twice and the length of the footer
MAGIC, ENCRYPTED_MAGIC = b"PAR1", b"PARE"
TAIL = 8  # bytes behind the footer: its length and the magic word

_footers: Recent[FileIdentity, pq.FileMetaData] = Recent(KEPT_FOOTERS)


def read_footers(files: Sequence[FileIdentity]) -> tuple[pq.FileMetaData, ...]:
    """Return the `pyarrow.parquet.FileMetaData` of each file, from memory where it is known and the file has settled.

    Raises `FileError`, naming the file, for one that is empty, corrupt or not Parquet.
    """
    known = {f: footer for f in files if (footer := _footers.find(f)) is not None}
    missing = [f for f in dict.fromkeys(files) if f not in known]
    settled = [f for f in missing if is_settled(f)]
    if len(missing) > 1:
        with ThreadPoolExecutor(min(READERS, len(missing))) as pool:
            known.update(zip(missing, pool.map(carried(_read), missing), strict=True))
    elif missing:
        known[missing[0]] = _read(missing[0])
    for file in settled:
        _footers.keep(file, known[file])
    return tuple(known[f] for f in files)


def _read(file: FileIdentity) -> pq.FileMetaData:
    if file.size == 0:
        raise FileError(f'The file "{file.path}" is empty: it is no Parquet file.')
    if file.size < SMALLEST_FILE:
        raise FileError(
            f'The file "{file.path}" has {file.size} bytes: too few for a Parquet file.'
        )
    try:
        with _opened_at_end(file) as source:
            footer = _footer(source, file.path)
            # Of the bytes that are checked below, whatever becomes of the file meanwhile
            with decoding(file.path):
                metadata = pq.read_metadata(pa.BufferReader(footer) if footer else source)
    except (OSError, pa.ArrowException) as error:
        raise unreadable(file.path, error) from error
    if not footer:
        raise changed(file.path)
    check_footer(footer[len(MAGIC) :], metadata, file.path)
    return metadata


def footer_of(file: FileIdentity) -> bytes:
    """Return the footer of a file that `read_footers` has read; raises `FileError`."""
    try:
        with _opened_at_end(file) as source:
            return _footer(source, file.path)[len(MAGIC) : -TAIL]
    except (OSError, pa.ArrowException) as error:
        raise unreadable(file.path, error) from error


def _opened_at_end(file: FileIdentity) -> AbstractContextManager[pa.NativeFile]:
    return file.opened(from_end=True) if isinstance(file, RemoteFile) else opened(file)


def _footer(file: pa.NativeFile, path: str) -> bytes:
    """Return a file's footer as a file of its own without rows; nothing where the file has none."""
    size = file.size()
    tail = file.read_at(TAIL, size - TAIL)
    length = int.from_bytes(tail[:4], "little")
    if tail[4:] == ENCRYPTED_MAGIC:
        raise FileError(
            f'The file "{path}" is encrypted, so it cannot be read: write it without encryption.'
        )
    if tail[4:] != MAGIC or length + TAIL + len(MAGIC) > size:
        return b""
    return MAGIC + file.read_at(length + TAIL, size - TAIL - length)


def wrong_count(path: str, found: int, expected: int) -> FileError:
    """Return the `FileError` for a file whose columns have not as many rows as its footer says."""
    return FileError(
        f'The file "{path}" cannot be read as Parquet, it may be damaged: a column has {found:,} rows where the footer '
        f"says {expected:,}."
    )


@contextmanager
def decoding(path: str) -> Iterator[None]:
    """Raise `FileError` for what the Parquet library raises inside, among it a ValueError: for calls of that library alone."""
    try:
        yield
    except MemoryError:  # Arrow's is one of its exceptions too
        raise
    except (OSError, ValueError, pa.ArrowException) as error:
        raise unreadable(path, error) from error


def unreadable(path: str, error: Exception) -> FileError:
    """Return the `FileError` for a file that the Parquet reader refuses."""
    if isinstance(error, FileNotFoundError | PermissionError):
        return FileError(f'The file "{path}" cannot be opened: {error.strerror}.')
    reason = str(error).strip().split("\n")[0].rstrip(".")
    return FileError(
        f'The file "{path}" cannot be read as Parquet, it may be damaged or cut off: {reason}.'
    )


COLUMNS_LOOKED_AT = 4096
LARGEST_CHUNK = 1 << 25  # bytes of a column chunk, beyond which a plan would wait for the disk

_known: Recent[tuple[FileIdentity, str], bool] = Recent(COLUMNS_LOOKED_AT)


def comes_again(table: ParquetTable, source: str) -> bool:
    """Whether text of a local table will probably be a dictionary once it is loaded, by the first rows of its first file.

    It is a guess: a kernel that finds the column in no dictionary leaves its work to operators.  18,000 item ids of TPC-DS
    take 2.4 ms, 65,536 customers' ids 9 and addresses 12, once for each file and column that groups are asked by.
    """
    name = table.name_in(source, 0)
    if table.is_remote or name is None or table.type_in(source, 0).kind is not Kind.VARCHAR:
        return False
    if source in table.constants or not table.footers[0].num_row_groups:
        return False
    key = table.files[0], name
    found = _known.find(key)
    if found is None:
        found = _most_values(table, name) > 0
        if table.settled:
            _known.keep(key, found)
    return found


def _most_values(table: ParquetTable, name: str) -> int:
    """What `most_values` says of the first row group; 0 for what cannot be read, of which the query itself will tell."""
    footer, file = table.footers[0], table.files[0]
    place = column_positions(footer).get(name)
    if place is None or decoded_bytes(footer.row_group(0).column(place)) > LARGEST_CHUNK:
        return 0

    def sample(rows: int) -> tuple[int, int]:
        batches = reader.iter_batches(rows, [0], [name], use_threads=False)
        first = next(iter(batches)).column(0)
        return len(first), int(pc.count_distinct(first).as_py())

    try:
        with (
            opened(file) as handle,
            pq.ParquetFile(handle, metadata=footer) as reader,
            decoding(file.path),
        ):
            return most_values(table.num_rows, sample)
    except (FileError, OSError, UnicodeError, StopIteration, pa.ArrowException):
        return 0
