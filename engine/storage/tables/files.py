"""From what a user writes - a file, a list, a glob, a directory - to the files that it means."""

from __future__ import annotations

import fnmatch
import glob
import os
import re
import stat
from collections.abc import Iterable, Sequence
from functools import lru_cache
from pathlib import Path
from typing import NamedTuple

from ...errors import AccessDenied, FileError, Unsupported
from ..file_identity import FileIdentity, changed, shortened
from ..remote.remote_access import SUFFIX, RemoteAccess, files_before_folders
from ..remote.remote_files import RemoteFile
from ..remote.urls import is_remote, url_of
from .access import EVERYTHING, AccessRules, look_inside, matching

LONGEST = 4096  # characters of a path, which systems take in bytes


class FoundFile(NamedTuple):
    """A file under the path that leads to it, of which hive partitions and messages speak."""

    path: str
    identity: FileIdentity


def find_files(patterns: Sequence[str], rules: AccessRules = EVERYTHING) -> tuple[FoundFile, ...]:
    """Return the files that paths, globs and directories stand for, each pattern's in the order of their names.

    A directory means all `*.parquet` below it.  Raises `FileError`, naming the pattern, where there is no file, and
    `AccessDenied` where the rules forbid one.
    """
    if not patterns:
        raise FileError(
            "read_parquet was given an empty list: name at least one file, glob or directory."
        )
    remote = list(dict.fromkeys(filter(is_remote, patterns)))
    known = dict(zip(remote, rules.remote.find(remote), strict=True)) if remote else {}
    return tuple(
        file
        for pattern in patterns
        for file in (_at(known[pattern]) if pattern in known else _find(pattern, rules))
    )


def _at(files: Iterable[RemoteFile]) -> list[FoundFile]:
    return [FoundFile(file.path, file) for file in files]


def paths_matching(pattern: str, rules: AccessRules = EVERYTHING) -> list[str]:
    """Return the files that a path or glob stands for, none where there is none; raises `AccessDenied`."""
    if is_remote(pattern):
        return rules.remote.paths_matching(pattern)
    path = local_path(pattern)
    found = _look(path, rules, pattern)
    if isinstance(found, FoundFile):
        return [found.path]
    if found is not None or not glob.has_magic(path):
        return []
    return [file.path for file in _matching(path, rules)]


def are_current(
    patterns: Sequence[str], files: Sequence[FileIdentity], rules: AccessRules = EVERYTHING
) -> bool:
    """Whether paths, globs and directories stand for these files, and these are as they were; a look at each."""
    known = named_by(patterns, files, rules)
    if known is None and fill_a_folder(patterns, files, rules):
        known = files
    if known is not None and are_unchanged(known):
        return True
    try:
        return [found.identity for found in find_files(patterns, rules)] == list(files)
    except (FileError, AccessDenied):
        return False


def named_by(
    patterns: Sequence[str], files: Sequence[FileIdentity], rules: AccessRules = EVERYTHING
) -> Sequence[FileIdentity] | None:
    """Return files under the very paths that patterns are, which can be looked at without looking for them; None where they are no paths.

    Relative ones stay so, for a process that moves: TPC-H's 22 queries on tables that were named by such took twice the calls of Python.
    """
    paths, found = [local_path(pattern) for pattern in patterns], [file.path for file in files]
    if paths == found:
        return files
    try:
        if rules.allowed is not None or list(map(os.path.abspath, paths)) != found:
            return None
    except OSError:  # the folder that the process is in is gone
        return None
    return [file._replace(path=path) for file, path in zip(files, paths, strict=True)]


def fill_a_folder(
    patterns: Sequence[str], files: Sequence[FileIdentity], rules: AccessRules
) -> bool:
    """Whether the only pattern is a folder, or a glob of names in one, with these files and no others, by the names in it.

    With a search in its place a hot Q9 of TPC-H called 1,941 functions over globs, and 471 so; 377 over files.
    """
    if rules.allowed is not None or len(patterns) != 1:
        return False
    place = _folder_of(patterns[0])
    if place is None:
        return False
    first, names = place
    folders = [first if first[:1] == "/" else os.path.abspath(first)]  # noqa: PTH100
    found: set[str] = set()
    try:
        if names:
            listed = fnmatch.filter(os.listdir(folders[0]), names)  # noqa: PTH208
            return {f"{folders[0]}/{name}" for name in listed} == {file.path for file in files}
        for folder in folders:
            with os.scandir(folder) as entries:
                for entry in entries:
                    if entry.is_dir():
                        folders.append(entry.path)
                    elif entry.name.endswith(SUFFIX):
                        found.add(entry.path)
    except (OSError, ValueError):
        return False
    return found == {file.path for file in files}


@lru_cache(maxsize=4096)
def _folder_of(pattern: str) -> tuple[str, str] | None:
    """Return the only folder of a pattern and what its names are like, "" where the pattern is that folder; None for more of them."""
    path = _path_of(pattern)
    if is_remote(pattern) or path.startswith("~"):  # the home of a process may change
        return None
    first, names = os.path.split(path) if glob.has_magic(path) else (path, "")
    first = os.path.normpath(first) if first.startswith("/") else first
    return None if glob.has_magic(first) or "**" in names else (first, names)


def are_unchanged(files: Sequence[FileIdentity]) -> bool:
    """Whether files are as they were, which each query asks about each of its tables."""
    remote: list[RemoteFile] = []
    try:
        for file in files:
            if type(file) is RemoteFile:  # which is no call, of each file of each query
                remote.append(file)
                continue
            path, size, written, changed_at, inode = file
            found = os.stat(path)  # noqa: PTH116
            now = found.st_size, found.st_mtime_ns, found.st_ctime_ns, found.st_ino
            if now != (size, written, changed_at, inode):
                return False
    except OSError:
        return False
    return not remote or RemoteAccess().are_unchanged(remote)


def _find(pattern: str, rules: AccessRules) -> list[FoundFile]:
    path = local_path(pattern)
    found = _look(path, rules, pattern)
    if isinstance(found, FoundFile):
        return [found]
    if found is not None and stat.S_ISDIR(found):
        return _below(path, rules) or _nothing(f'no *{SUFFIX} file below "{pattern}"')
    if found is not None:
        raise FileError(
            f'"{pattern}" is neither a file nor a directory, so it cannot be read as Parquet.'
        )
    if glob.has_magic(path):
        return _matching(path, rules) or _nothing(f'no file that matches "{pattern}"')
    # Of the resolved path: which of the folders are there that `..` leads out of is nobody's business
    near = path if rules.allowed is None else rules.resolve(path, pattern)
    return _nothing(f'no file "{pattern}"{_near(near)}')


def local_path(pattern: str) -> str:
    """Return the path that a pattern means."""
    if len(pattern) > LONGEST:
        raise FileError(
            f'There is no file "{shortened(pattern)}": a path has at most {LONGEST} characters.'
        )
    path = _path_of(pattern)
    if not path.startswith("~"):
        return path
    try:
        return str(Path(path).expanduser())
    except RuntimeError:  # neither HOME nor a line in passwd
        raise FileError(f'There is no home directory for "{path}": write the path out.') from None


def place_here(path: str, rules: AccessRules) -> Path:
    """Return the place on this machine that a path leads to; raises `AccessDenied`, and `Unsupported` for one of a store."""
    if is_remote(path):
        raise Unsupported(
            f'"{url_of(path).text}" is in a store, and databases, exports and files of the shell lie on this machine: name a local path.'
        )
    return Path(rules.resolve(local_path(path), path))


@lru_cache(maxsize=4096)
def _path_of(pattern: str) -> str:
    """Return the path of a pattern; remembered, since each query looks at its files again."""
    if is_remote(pattern):
        return url_of(pattern).text
    return str(Path(re.sub(r"^(?i:file)://(localhost(?=/))?", "", pattern)))


def check_unchanged(file: FileIdentity) -> None:
    """Raise `FileError` for a file that has been written or replaced since it was looked at."""
    if isinstance(file, RemoteFile):
        file.check_unchanged()
        return
    now = _look(file.path, EVERYTHING, file.path)
    if not isinstance(now, FoundFile) or now.identity != file:
        raise changed(file.path, "is gone" if now is None else "has changed")


def _look(path: str, rules: AccessRules, asked: str) -> FoundFile | int | None:
    """Return a file's identity, the mode of what is not a file, or None for nothing.

    With `os` alone: a table of a thousand files looks at each before each query, and a `Path` takes ten times as long.
    """
    if rules.allowed is None:
        try:
            found = os.stat(path)  # noqa: PTH116
        except (OSError, ValueError):  # ValueError: a path with a zero byte
            return None
        place = os.path.abspath(path)  # noqa: PTH100
    else:
        place = rules.resolve(path, asked)
        inside = look_inside(place, rules, asked)
        if inside is None:
            return None
        found = inside
    if not stat.S_ISREG(found.st_mode):
        return found.st_mode
    return FoundFile(path, FileIdentity.of(place, found))


def _below(folder: str, rules: AccessRules) -> list[FoundFile]:
    """Return the Parquet files of a folder and of those in it."""
    folder = "" if folder == "." else folder
    if rules.allowed is None:
        # No `Path`, which takes half as long as the look at a folder of some files, and each query looks twice
        within = f"{glob.escape(folder.rstrip('/'))}/" if folder else ""
        return _matching(f"{within}**/*{SUFFIX}", rules)
    return _looked_at(list(matching(folder, f"**/*{SUFFIX}", rules)), rules)


def _matching(pattern: str, rules: AccessRules) -> list[FoundFile]:
    """Return the files of a glob; hidden ones count, as in DuckDB."""
    if rules.allowed is not None:
        fixed = re.match(r"(?:[^*?[/]*/)*", pattern)
        assert fixed
        return _looked_at(list(matching(fixed[0], pattern[fixed.end() :], rules)), rules)
    try:
        paths = glob.glob(pattern, recursive=True, include_hidden=True)  # noqa: PTH207 - Path.glob takes no absolute pattern
    except ValueError:  # a zero byte, half a character
        return []
    return _looked_at(paths, rules)


def _looked_at(paths: list[str], rules: AccessRules) -> list[FoundFile]:
    """Return the files among paths, those of a folder before those of the folders in it."""
    paths.sort(key=files_before_folders)
    looked = (_look(path, rules, path) for path in paths)
    return [found for found in looked if isinstance(found, FoundFile)]


def _nothing(what: str) -> list[FoundFile]:
    raise FileError(f"There is {what}: check the path.")


def _near(path: str) -> str:
    """Say which folder does not exist, the usual reason for a missing file."""
    parent = Path(path).absolute().parent
    if parent.is_dir():
        return ""
    while not parent.parent.is_dir():
        parent = parent.parent
    return f', since there is no folder "{parent}"'
