"""Parquet footers: read once for each state of a file, many files at a time."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager, contextmanager

import pyarrow as pa
import pyarrow.parquet as pq

from ...errors import FileError
from ...stopping import carried
from ..file_identity import FileIdentity, changed
from ..recent import Recent
from ..remote.remote_files import RemoteFile
from .access import opened
from .footer_check import check_footer

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
