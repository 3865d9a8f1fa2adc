"""The catalog of a folder as a log: a line of JSON for each commit, behind its checksum;
and files that are there whole or not at all, also after the power failed.

A commit is there when the line break behind it is.  What follows the last line break was never committed: a process that was killed
while it wrote leaves it, and the next writer cuts it off.  A segment of the log begins with a header that has the whole catalog; CHECKPOINT
begins a new segment, under a higher number, and removes the one before.
"""

from __future__ import annotations

import json
import os
import re
import secrets
import zlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, BinaryIO

from ..errors import FileError
from ..records import dataclass
from ..storage.spill_folders import open_plain

WRITING = ".writing-"  # between a file's name and a random one, until all of it is written
UNFINISHED = re.compile(rf".+{re.escape(WRITING)}[0-9a-f]{{16}}")
_NEW = os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC


def write_new(place: Path, write: Callable[[BinaryIO], object]) -> int:
    """Write a file and give it its name; returns its size.  `sync_folder` makes the name last.

    Raises `FileError` where there is no room or right for it, and leaves nothing behind.
    """
    unfinished = place.with_name(f"{place.name}{WRITING}{secrets.token_hex(8)}")
    with refused(place):
        try:
            with os.fdopen(os.open(unfinished, _NEW, 0o600), "wb") as file:
                write(file)
                file.flush()
                os.fsync(file.fileno())
                size = file.tell()
            os.replace(unfinished, place)  # noqa: PTH105 - beside fsync, of the same module
        except BaseException:
            with suppress(OSError):
                unfinished.unlink()
            raise
    return size


def sync_folder(folder: Path) -> None:
    """Make the names of files in a folder last."""
    with refused(folder):
        handle = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)


def append(place: Path, data: bytes, end: int) -> None:
    """Write behind the first `end` bytes of a file and sync it; where that fails the file is cut off there again.

    Raises `FileError`; where the file is longer than before then, it could not be cut off.
    """
    with refused(place):
        handle = os.open(place, os.O_WRONLY | os.O_NOFOLLOW | os.O_CLOEXEC)
        try:
            try:
                written = 0
                while written < len(data):
                    written += os.pwrite(handle, data[written:], end + written)
                os.fsync(handle)
            except BaseException:
                cut(handle, end)
                raise
        finally:
            os.close(handle)


def cut(handle: int, end: int) -> None:
    """Cut a file off behind its first bytes, for good."""
    os.ftruncate(handle, end)
    os.fsync(handle)


@contextmanager
def refused(place: Path) -> Iterator[None]:
    """Say in our words what the system says of a file that cannot be written."""
    try:
        yield
    except OSError as error:
        reason = error.strerror or str(error)
        raise FileError(f'"{place}" cannot be written: {reason}.') from error


FORMAT, VERSION = "fuseline database", 1
SEGMENT = re.compile(r"catalog-(\d{8})\.log")

Change = Mapping[str, Any]  # of a commit, as JSON has it


@dataclass
class LogSegment:
    """A segment as far as it has been read: `end` is the byte behind the last commit, `commits` counts them."""

    path: Path
    end: int = 0
    commits: int = 0
    header_bytes: int = 0

    def new_commits(self) -> list[list[Change]]:
        """Return the changes of each commit since the last look, those of the header first.

        Raises `FileError` for a damaged line or another version, and `FileNotFoundError` where another segment has replaced it.
        """
        with open_plain(self.path) as file:
            size = os.fstat(file.fileno()).st_size
            if size < self.end:
                raise FileNotFoundError(self.path)
            file.seek(self.end)
            data = file.read()
        *lines, _ = data.split(b"\n")
        found = []
        for i, line in enumerate(lines):
            is_last = i == len(lines) - 1
            if is_last and b"\0" in line:  # written in part when the power failed
                break
            found.append(self._changes(line))
            self.end += len(line) + 1
            self.header_bytes = self.header_bytes or self.end
            self.commits += 1
        if not self.commits:
            raise self._damaged("it has no header")
        return found

    def is_behind(self) -> bool:
        """Whether there may be commits that were not read; raises `FileNotFoundError` as `new_commits`."""
        return os.stat(self.path).st_size != self.end  # noqa: PTH116 - before each statement

    def cut_unfinished(self) -> None:
        """Remove what a process that was killed has left behind the last commit."""
        if self.is_behind():
            with refused(self.path):
                handle = os.open(self.path, os.O_WRONLY | os.O_NOFOLLOW | os.O_CLOEXEC)
                try:
                    cut(handle, self.end)
                finally:
                    os.close(handle)

    def commit(self, changes: Sequence[Change]) -> None:
        """Write a commit, for good; raises `FileError` and leaves the log as it was."""
        line = _line({"changes": changes})
        append(self.path, line, self.end)
        self.end += len(line)
        self.commits += 1

    def _changes(self, line: bytes) -> list[Change]:
        checksum, _, text = line.partition(b" ")
        try:
            if int(checksum, 16) != zlib.crc32(text):
                raise self._damaged("its checksum is another")
            record = json.loads(text)
            if not self.commits:
                self._check_header(record)
            changes: list[Change] = record["changes"]
        except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
            raise self._damaged("it is no commit") from error
        return changes

    def _check_header(self, record: Mapping[str, object]) -> None:
        if record.get("format") != FORMAT:
            raise self._damaged("it is not the header")
        if record.get("version") != VERSION:
            raise FileError(
                f'The database "{self.path.parent}" has the version {record.get("version")} of the format, and this Fuseline reads '
                f"version {VERSION}: read it with the Fuseline that wrote it, EXPORT DATABASE there and IMPORT DATABASE here."
            )

    def _damaged(self, why: str) -> FileError:
        return FileError(
            f'The catalog "{self.path}" is damaged at byte {self.end}: {why}. Restore the file from a backup; '
            'the rows are Parquet files in the folder "data" beside it.'
        )


def newest_segment(folder: Path) -> Path | None:
    """Return the segment with the highest number, None where there is none."""
    names = [name for name in os.listdir(folder) if SEGMENT.fullmatch(name)]  # noqa: PTH208
    return folder / max(names) if names else None


def begin_segment(folder: Path, before: Path | None, changes: Sequence[Change]) -> LogSegment:
    """Write a segment that has the whole catalog in its header, and remove the one before; raises `FileError`."""
    number = 1
    if before is not None:
        found = SEGMENT.fullmatch(before.name)
        assert found is not None
        number = int(found[1]) + 1
    place = folder / f"catalog-{number:08}.log"
    line = _line({"format": FORMAT, "version": VERSION, "changes": changes})
    write_new(place, lambda file: file.write(line))
    sync_folder(folder)
    if before is not None:
        remove_segments(folder, place)
    return LogSegment(place, len(line), 1, len(line))


def remove_segments(folder: Path, kept: Path) -> None:
    """Remove the segments before one; a process that was killed may have left some."""
    for name in os.listdir(folder):  # noqa: PTH208
        if SEGMENT.fullmatch(name) and name < kept.name:
            (folder / name).unlink(missing_ok=True)


def _line(record: Mapping[str, object]) -> bytes:
    text = json.dumps(record, ensure_ascii=True, separators=(",", ":")).encode()
    return b"%08x %s\n" % (zlib.crc32(text), text)
