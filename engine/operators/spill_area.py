"""Where rows lie that leave memory while a query runs: in the host's memory, or in files with a checksum for each part."""

from __future__ import annotations

import os
import shutil
import stat
import tempfile
import zlib
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import field
from io import BufferedWriter
from pathlib import Path
from typing import NamedTuple

import pyarrow as pa

from .. import stopping
from ..errors import ExecutionError
from ..plan.physical import Device
from ..records import dataclass
from ..storage.spill_folders import SpillFolder
from .host_memory import host_memory, readable

HOST_SHARE = 2  # of the host's memory, what may hold parts of joins that a GPU has no room for
BYTES_A_CHECK = 4 << 20  # that are read at a time for their checksum, and stay in a core's cache
# From which on Arrow's threads, one a core, share the compression.  Each keeps memory that it once took: 28 of them held 95 MB beside the
# 140 of a query under a limit of 100 MB.
SHARED_BYTES = 64 << 20


@dataclass(frozen=True)
class SpilledPiece:
    """Rows on the host in the order of their parts: those of part i are bounds[i]..bounds[i + 1].

    `pinned` are the bytes of memory with locked pages that they lie in, if they do.
    """

    rows: pa.RecordBatch = field(repr=False)
    bounds: Sequence[int]
    pinned: int = 0

    @property
    def place(self) -> str:
        return "pinned host memory" if self.pinned else "host memory"

    @property
    def size(self) -> int:
        return max(self.pinned, int(self.rows.nbytes))

    def parts(self, first: int, last: int) -> list[pa.RecordBatch]:
        """Return the rows of some parts."""
        begin, end = self.bounds[first], self.bounds[last]
        return [self.rows.slice(begin, end - begin)]


class _Section(NamedTuple):
    """Bytes of a file, up to `end` from the end of the section before, and their checksum."""

    end: int
    checksum: int


@dataclass(frozen=True)
class SpilledFile:
    """A piece on disk: an Arrow file with a record batch for each part.

    `sections` are its head, the parts (with the first one the dictionaries of all) and its footer.
    """

    path: Path
    sections: Sequence[_Section] = field(repr=False)
    place = "disk"

    @property
    def size(self) -> int:
        return self.sections[-1].end

    def parts(self, first: int, last: int) -> list[pa.RecordBatch]:
        """Return the rows of some parts; raises `ExecutionError` where they are not what was written."""
        try:
            if not stat.S_ISREG(self.path.lstat().st_mode):  # reading a pipe would not end
                raise ExecutionError(self._refusal("something else is in its place"))
            with pa.OSFile(str(self.path)) as file:
                wanted = {0, 1, len(self.sections) - 1, *range(first + 1, last + 1)}
                if not all(self._holds(file, number) for number in wanted):
                    raise ExecutionError(
                        self._refusal("its checksum differs from what was written")
                    )
                with pa.ipc.open_file(
                    file, options=pa.ipc.IpcReadOptions(use_threads=False)
                ) as reader:
                    return [reader.get_batch(i) for i in range(first, last)]
        except (OSError, pa.ArrowException) as error:
            raise ExecutionError(self._refusal(_reason(error))) from error

    def _holds(self, file: pa.OSFile, number: int) -> bool:
        at = self.sections[number - 1].end if number else 0
        end, expected = self.sections[number]
        found = 0
        while at < end:
            stopping.check()
            data = file.read_at(min(BYTES_A_CHECK, end - at), at)
            if not data:
                return False
            found = zlib.crc32(data, found)
            at += len(data)
        return found == expected

    def _refusal(self, reason: str) -> str:
        return (
            f'What a query had spilled to "{self.path.parent.parent}" could not be read back: {reason}. Run it again; '
            "SET spill_dir names another directory, and with a higher memory_limit less is spilled."
        )


class SpillArea:
    """Where parts lie while a query runs: those of a GPU in `host_limit` bytes of host memory, by default half of it, all others in files.

    What a GPU copied lies in pinned memory, as far as the system has it; what is written to a file gives that back.

    `directory` is by default the system's for temporary files.  The files' folder is made when there is a first one, and removed at the end of a `with` statement.
    """

    def __init__(self, directory: Path | None, host_limit: int | None) -> None:
        limit = host_memory() // HOST_SHARE if host_limit is None else host_limit
        self._parent = Path(tempfile.gettempdir()) if directory is None else directory
        self._limit = self._room = limit
        self._folder: SpillFolder | None = None
        self.is_used = False
        self._files = 0

    def __enter__(self) -> SpillArea:
        return self

    def __exit__(self, *_: object) -> None:
        self.remove()

    def remove(self) -> None:
        """Remove the files."""
        if self._folder is not None:
            self._folder.remove()
            self._folder, self.is_used = None, False

    def keep(self, piece: SpilledPiece, device: Device) -> SpilledPiece | SpilledFile:
        """Take a piece from a device; raises `ExecutionError` when it cannot be written."""
        if device == "gpu" and piece.size < self._room:
            self._room -= piece.size
            return piece
        try:
            return self._written(piece)
        except (OSError, pa.ArrowException) as error:
            raise ExecutionError(self._refusal(piece, device, error)) from error

    def _refusal(self, piece: SpilledPiece, device: Device, error: Exception) -> str:
        text = f"A query that does not fit into memory could not write to {self._parent}: {_reason(error)}. "
        with suppress(OSError):
            free = readable(shutil.disk_usage(self._parent).free)
            text += f"{readable(piece.size)} were to be written, {free} are free there. "
        if device == "gpu":
            text += f"Host memory holds {readable(self._limit - self._room)} of spill_memory = {readable(self._limit)}. "
        raised = "spill_memory or memory_limit" if device == "gpu" else "memory_limit"
        return (
            f"{text}Name a directory with more room by connect(spill_dir=...), or raise {raised}."
        )

    def drop(self, kept: SpilledPiece | SpilledFile) -> None:
        """Let go of a piece, whose place others may take."""
        if isinstance(kept, SpilledPiece):
            self._room += kept.size
        else:
            with suppress(OSError):  # the folder is removed in any case
                kept.path.unlink(missing_ok=True)

    def _written(self, piece: SpilledPiece) -> SpilledFile:
        if self._folder is None:
            self._folder, self.is_used = SpillFolder(self._parent), True
        path = self._folder.path / f"{self._files}.arrow"
        self._files += 1
        try:
            return SpilledFile(path, _write(path, piece))
        except BaseException:
            with suppress(OSError):
                path.unlink(missing_ok=True)
            raise


class _Summing:
    """A file that is written to from its beginning, with a checksum of each section of it."""

    def __init__(self, file: BufferedWriter) -> None:
        self._file, self._at, self._checksum = file, 0, 0
        self.sections: list[_Section] = []
        self.closed = False

    def write(self, data: pa.Buffer | bytes) -> int:
        with memoryview(data) as view:
            self._checksum = zlib.crc32(view, self._checksum)
            self._at += view.nbytes
            return self._file.write(view)

    def tell(self) -> int:
        return self._at

    def flush(self) -> None:
        self._file.flush()

    def end_section(self) -> None:
        self.sections.append(_Section(self._at, self._checksum))
        self._checksum = 0


def _write(path: Path, piece: SpilledPiece) -> Sequence[_Section]:
    options = pa.ipc.IpcWriteOptions(compression="lz4", use_threads=piece.size >= SHARED_BYTES)
    handle = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
    with open(handle, "wb") as file:  # noqa: PTH123 - of a descriptor
        summing = _Summing(file)
        with pa.ipc.new_file(pa.PythonFile(summing, "w"), piece.rows.schema, options=options) as to:
            summing.end_section()
            for i in range(len(piece.bounds) - 1):
                stopping.check()
                to.write_batch(*map(_with_own_text, piece.parts(i, i + 1)))
                summing.end_section()
        summing.end_section()
    return tuple(summing.sections)


def _with_own_text(rows: pa.RecordBatch) -> pa.RecordBatch:
    """Return rows of which Arrow writes no others: of a slice without rows it writes the text of all."""
    if rows.num_rows:
        return rows
    columns = [
        column if pa.types.is_dictionary(column.type) else pa.nulls(0, column.type)
        for column in rows.columns
    ]
    return pa.RecordBatch.from_arrays(columns, schema=rows.schema)


def _reason(error: Exception) -> str:
    return str(error).strip().split("\n")[0].rstrip(".") or type(error).__name__
