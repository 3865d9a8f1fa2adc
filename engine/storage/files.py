"""From what a user writes - a file, a list, a glob, a directory - to the files that it means."""

from __future__ import annotations

import glob
import os
import re
import stat
from collections.abc import Iterable, Sequence
from functools import lru_cache
from pathlib import Path
from typing import NamedTuple

from ..errors import DataError, Unsupported

SUFFIX = ".parquet"


class FileIdentity(NamedTuple):
    """A file as it was when it was looked at; one that has been written since has another identity.

    A program may set the time of the last write back; that of the last change, `ctime_ns`, it may not.
    """

    path: str
    size: int
    mtime_ns: int
    ctime_ns: int


class FoundFile(NamedTuple):
    """A file under the path that leads to it, of which hive partitions and messages speak."""

    path: str
    identity: FileIdentity


def find_files(patterns: Sequence[str]) -> tuple[FoundFile, ...]:
    """Return the files that paths, globs and directories stand for, each pattern's in the order of their names.

    A directory means all `*.parquet` below it.  Raises `DataError`, naming the pattern, where there is no file.
    """
    if not patterns:
        raise DataError(
            "read_parquet was given an empty list: name at least one file, glob or directory."
        )
    return tuple(file for pattern in patterns for file in _find(pattern))


def are_current(patterns: Sequence[str], files: Sequence[FileIdentity]) -> bool:
    """Whether paths, globs and directories stand for these files, and these are as they were; a look at each."""
    if are_paths_of(patterns, files) and are_unchanged(files):
        return True
    try:
        return [found.identity for found in find_files(patterns)] == list(files)
    except DataError:
        return False


def are_paths_of(patterns: Sequence[str], files: Sequence[FileIdentity]) -> bool:
    """Whether patterns are the very paths of files, which can be looked at without looking for them."""
    return [_local(pattern) for pattern in patterns] == [file.path for file in files]


def are_unchanged(files: Iterable[FileIdentity]) -> bool:
    """Whether files are as they were, which each query asks about each of its tables."""
    try:
        for path, size, written, changed in files:
            found = os.stat(path)  # noqa: PTH116
            now = found.st_size, found.st_mtime_ns, found.st_ctime_ns
            if now != (size, written, changed):
                return False
    except OSError:
        return False
    return True


def _find(pattern: str) -> list[FoundFile]:
    path = _local(pattern)
    found = _look(path)
    if isinstance(found, FoundFile):
        return [found]
    if found is not None and stat.S_ISDIR(found):
        below = str(Path(glob.escape(path)) / "**" / f"*{SUFFIX}")
        return _matching(below) or _nothing(f'no *{SUFFIX} file below "{pattern}"')
    if found is not None:
        raise DataError(
            f'"{pattern}" is neither a file nor a directory, so it cannot be read as Parquet.'
        )
    if glob.has_magic(path):
        return _matching(path) or _nothing(f'no file that matches "{pattern}"')
    return _nothing(f'no file "{pattern}"{_near(path)}')


@lru_cache(maxsize=4096)
def _local(pattern: str) -> str:
    """Return the path that a pattern means; remembered, since each query looks at its files again."""
    scheme = re.match(r"([a-zA-Z][a-zA-Z0-9+.-]+)://", pattern)
    if scheme and scheme[1].lower() != "file":
        raise Unsupported(
            f'"{pattern}" is a remote path, which is not read yet: copy the files to a local disk first.'
        )
    return str(Path(pattern.removeprefix("file://") if scheme else pattern).expanduser())


def check_unchanged(file: FileIdentity) -> None:
    """Raise `DataError` for a file that has been written or replaced since it was looked at."""
    now = _look(file.path)
    if not isinstance(now, FoundFile) or now.identity != file:
        raise changed(file.path, "is gone" if now is None else "has changed")


def changed(path: str, how: str = "has changed") -> DataError:
    """Return the error for a file that is another one after it was read."""
    return DataError(
        f'The file "{path}" {how} while it was read: run the query again when it is complete.'
    )


def _look(path: str) -> FoundFile | int | None:
    """Return a file's identity, the mode of what is not a file, or None for nothing.

    With `os` alone: a table of a thousand files looks at each before each query, and a `Path` takes ten times as long.
    """
    try:
        found = os.stat(path)  # noqa: PTH116
    except (OSError, ValueError):  # ValueError: a path with a zero byte
        return None
    if not stat.S_ISREG(found.st_mode):
        return found.st_mode
    absolute = os.path.abspath(path)  # noqa: PTH100
    identity = FileIdentity(absolute, found.st_size, found.st_mtime_ns, found.st_ctime_ns)
    return FoundFile(path, identity)


def _matching(pattern: str) -> list[FoundFile]:
    """Return the files of a glob, those of a folder before those of the folders in it; hidden ones count, as in DuckDB."""
    paths = glob.glob(pattern, recursive=True, include_hidden=True)  # noqa: PTH207 - Path.glob takes no absolute pattern
    paths.sort(key=_files_before_folders)
    return [found for found in map(_look, paths) if isinstance(found, FoundFile)]


def _files_before_folders(path: str) -> list[tuple[bool, str]]:
    *folders, name = path.split("/")
    return [*((True, folder) for folder in folders), (False, name)]


def _nothing(what: str) -> list[FoundFile]:
    raise DataError(f"There is {what}: check the path.")


def _near(path: str) -> str:
    """Say which folder does not exist, the usual reason for a missing file."""
    parent = Path(path).absolute().parent
    if parent.is_dir():
        return ""
    while not parent.parent.is_dir():
        parent = parent.parent
    return f', since there is no folder "{parent}"'
