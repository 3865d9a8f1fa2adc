"""Files and folders that a statement makes: under another name until all of it is written, and gone when it fails.

A path is judged as one that is read, once links are resolved, and what is made lies in the very folder that was judged.

Names of files until all of them is written, which tell the process that writes: what a killed one left is removed by the next that writes there.

Objects of a store that a statement makes: written to the spill folder first, and stored when all rows are there.

Each object appears whole; those of a folder appear one after the other once the query has ended, and a statement that fails before leaves
the bucket as it was.
"""

from __future__ import annotations

import os
import re
import secrets
import shutil
import stat
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from functools import lru_cache
from hashlib import sha256
from pathlib import Path, PurePosixPath
from typing import BinaryIO

from ..errors import FileError, Unsupported
from ..storage.file_identity import denied, shortened
from ..storage.remote.object_stores import ObjectStore, together
from ..storage.remote.urls import Url
from ..storage.spill_folders import Owner, SpillFolder
from ..storage.tables.access import DESCRIPTORS, AccessRules
from ..storage.tables.files import place_here

_DIRECTORY = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_NEW = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC


class NewFiles:
    """What one statement writes; leaving the `with` without an error gives all files their names, with one it removes them."""

    def __init__(self, rules: AccessRules) -> None:
        self._rules = rules
        self._written: list[tuple[int, str, Path]] = []  # folder, name of now, place to be
        self._folders: dict[str, int] = {}
        self._made: list[Path] = []  # folders, the outer ones first
        self._replaced: list[Path] = []

    def __enter__(self) -> NewFiles:
        return self

    def __exit__(self, failed: type[BaseException] | None, *_: object) -> None:
        try:
            if failed is None:
                self._publish()
            else:
                self._discard()
        finally:
            for handle in self._folders.values():
                os.close(handle)
            self._folders.clear()

    def resolved(self, path: str) -> Path:
        """Return the place that a path leads to; raises `AccessDenied`."""
        return place_here(path, self._rules)

    @contextmanager
    def opened(self, place: Path, asked: str) -> Iterator[BinaryIO]:
        """Open a file to write, which has its name when all is written; a device or pipe is written to at once."""
        with _refused(asked):
            folder = self._folder(place.parent, asked)
            name = self._name_now(folder, place.name, asked)
            flags = os.O_WRONLY | os.O_CLOEXEC if name == place.name else _NEW
            handle = os.open(name, flags, 0o666, dir_fd=folder)
        if name != place.name:
            self._written.append((folder, name, place))
        # Closing writes what the file still holds, and may be refused as well
        with _refused(asked), os.fdopen(handle, "wb") as file:
            yield file
            if not file.closed:
                file.flush()

    def make_folder(self, place: Path, asked: str) -> None:
        """Make a folder and those above it, which go again where the statement fails."""
        with _refused(asked):
            missing = []
            while not place.exists():
                missing.append(place)
                place = place.parent
            for folder in reversed(missing):
                folder.mkdir()
                self._made.append(folder)

    def begin_folder(self, place: Path, asked: str, fills: bool, overwrites: bool) -> None:
        """Make a folder whose files follow; raises `FileError` where it has some and `fills` is not said.

        With `overwrites` what it has is removed just before the new files get their names.
        """
        if place.exists() and not place.is_dir():
            raise FileError(f'"{asked}" is a file: PARTITION_BY writes a folder.')
        if place.exists() and not fills:
            remove_unfinished_below(place)
        if place.exists() and any(place.iterdir()) and not fills:
            raise FileError(
                f'The folder "{asked}" is not empty: add OVERWRITE, OVERWRITE_OR_IGNORE or APPEND.'
            )
        self.make_folder(place, asked)
        if overwrites:
            self._replaced.append(place)

    def _folder(self, place: Path, asked: str) -> int:
        """Return a handle of a folder, which is within the rules wherever its path leads to by now."""
        key = str(place)
        if key not in self._folders:
            resolved = self._rules.resolve(key, asked)
            handle = os.open(resolved, _DIRECTORY)
            self._folders[key] = handle
            with suppress(FileNotFoundError):  # a system without such names
                if not self._rules.permits(os.readlink(f"{DESCRIPTORS}{handle}")):  # noqa: PTH115
                    raise denied(asked)
            remove_unfinished(handle)
        return self._folders[key]

    def _name_now(self, folder: int, name: str, asked: str) -> str:
        try:
            mode = os.stat(name, dir_fd=folder, follow_symlinks=False).st_mode
        except FileNotFoundError:
            mode = stat.S_IFREG
        if stat.S_ISDIR(mode):
            raise FileError(f'"{shortened(asked)}" is a folder: name a file in it.')
        return unfinished_name(name) if stat.S_ISREG(mode) else name

    def _publish(self) -> None:
        new = {place.parent / now for _, now, place in self._written}
        for root in self._replaced:
            for path in sorted(root.rglob("*"), reverse=True):  # what is in a folder before it
                if path.is_dir() and not path.is_symlink():
                    with suppress(OSError):  # it has new files
                        path.rmdir()
                elif path not in new:
                    path.unlink(missing_ok=True)
        for folder, now, place in self._written:
            os.replace(now, place.name, src_dir_fd=folder, dst_dir_fd=folder)

    def _discard(self) -> None:
        for folder, now, _ in self._written:
            with suppress(OSError):
                os.unlink(now, dir_fd=folder)
        for place in reversed(self._made):
            shutil.rmtree(place, ignore_errors=True)


@contextmanager
def _refused(asked: str) -> Iterator[None]:
    """Say in our words what the system says of a file that cannot be written."""
    try:
        yield
    except OSError as error:
        reason = error.strerror or str(error)
        remedy = " Make its folder first." if isinstance(error, FileNotFoundError) else ""
        raise FileError(f'"{shortened(asked)}" cannot be written: {reason}.{remedy}') from error


MOST_BYTES = 255  # of a name, in nearly all file systems
_MARK = ".writing-"
_NAME = re.compile(
    rf".+{re.escape(_MARK)}(?P<host>[0-9a-f]{{8}})(?P<boot>[0-9a-f]{{8}})(?P<namespace>[0-9a-f]{{8}})"
    r"-(?P<pid>\d{1,9})-(?P<started>\d{1,18})-[0-9a-f]{8}",
    re.DOTALL,
)


def unfinished_name(name: str) -> str:
    """Return what a file is called that gets this name when it is whole."""
    here = _here(os.getpid())
    origin = f"{_short(here.host)}{_short(here.boot)}{_short(here.namespace)}"
    ending = f"{_MARK}{origin}-{here.pid}-{here.started}-{secrets.token_hex(4)}"
    begin = os.fsencode(name)[: MOST_BYTES - len(ending)].decode(errors="ignore")
    return begin + ending


def remove_unfinished(folder: int) -> int:
    """Remove from an open folder what processes left that have ended for certain; returns how many files.

    They are files of this user, alone under their names, of this boot and its processes or of an earlier boot of this machine.
    """
    removed = 0
    with suppress(OSError):
        for name in os.listdir(folder):
            found = _NAME.fullmatch(name) if _MARK in name else None
            if found is None or not _has_ended(found):
                continue
            with suppress(OSError):
                status = os.stat(name, dir_fd=folder, follow_symlinks=False)
                mine = status.st_uid == os.geteuid() and status.st_nlink == 1
                if mine and stat.S_ISREG(status.st_mode):
                    os.unlink(name, dir_fd=folder)
                    removed += 1
    return removed


def remove_unfinished_below(root: Path) -> None:
    """Remove what such processes left in a folder and those below, and the folders that are empty then."""
    for place, _, files, folder in os.fwalk(root, topdown=False):
        emptied = any(_MARK in name for name in files) and remove_unfinished(folder) == len(files)
        below = Path(place)
        while emptied and below != root:
            try:
                below.rmdir()
            except OSError:  # it has other files
                break
            below = below.parent


def _has_ended(found: re.Match[str]) -> bool:
    here = _here(os.getpid())
    if found["host"] != _short(here.host):
        return False
    if found["boot"] != _short(here.boot):
        return True
    owner = Owner(here.host, here.boot, here.namespace, int(found["pid"]), found["started"])
    return found["namespace"] == _short(here.namespace) and not owner.runs


@lru_cache(1)
def _here(_pid: int) -> Owner:
    """Return this process, which is another one after a fork."""
    return Owner.current()


def _short(text: str) -> str:
    return sha256(text.encode()).hexdigest()[:8]


class NewObjects:
    """What one statement writes; leaving the `with` without an error stores all of it."""

    def __init__(self, rules: AccessRules, url: str, spill_dir: Path) -> None:
        self._rules = rules
        self._url, self._store = _writable(rules, url)
        self._folder = SpillFolder(spill_dir)
        self._written: dict[str, Path] = {}
        self._before: frozenset[str] = frozenset()  # objects of a folder that is written
        self._replaces = False

    def __enter__(self) -> NewObjects:
        return self

    def __exit__(self, failed: type[BaseException] | None, *_: object) -> None:
        try:
            if failed is None:
                self._publish()
        finally:
            self._folder.remove()

    def resolved(self, path: str) -> PurePosixPath:
        """Return the key that a path means, as a place of files."""
        if not self._url.key or self._url.key.endswith("/"):
            raise FileError(f'"{self._url.text}" is a folder: name a file in it.')
        return PurePosixPath(self._url.key)

    @contextmanager
    def opened(self, place: PurePosixPath, asked: str) -> Iterator[BinaryIO]:
        """Open what is stored later."""
        self._rules.remote.judged(self._store.root + str(place))
        file = self._folder.path / f"object-{len(self._written)}"
        try:
            with file.open("wb") as opened:
                yield opened
        except OSError as error:
            raise FileError(
                f'"{self._url.text}" cannot be written: {error.strerror or error} in spill_dir.'
            ) from error
        self._written[str(place)] = file

    def begin_folder(self, place: PurePosixPath, asked: str, fills: bool, overwrites: bool) -> None:
        """Look at a folder before its files are made; raises `FileError` where it has some and `fills` is not said."""
        (found,) = together(self._keys_below, [str(place)])
        if found and not fills:
            raise FileError(
                f'The folder "{self._url.text}" is not empty: add OVERWRITE, OVERWRITE_OR_IGNORE or APPEND.'
            )
        self._before, self._replaces = frozenset(found), overwrites

    def make_folder(self, place: PurePosixPath, asked: str) -> None:
        """Do nothing: folders of a store are parts of names."""

    def _keys_below(self, folder: str) -> list[str]:
        return [found.key for found in self._store.below(folder)]

    def _publish(self) -> None:
        stored: list[str] = []

        def store(item: tuple[str, Path]) -> None:
            self._store.put(*item)
            stored.append(item[0])

        try:
            together(store, list(self._written.items()))
        except BaseException:
            new = [key for key in stored if len(self._written) > 1 and key not in self._before]
            together(self._store.delete, [new] if new else [])
            raise
        gone = sorted(self._before - self._written.keys()) if self._replaces else []
        together(self._store.delete, [gone] if gone else [])


def _writable(rules: AccessRules, path: str) -> tuple[Url, ObjectStore]:
    url, store = rules.remote.judged(path), rules.remote.store_of(path)
    if url.is_web or not isinstance(store, ObjectStore):
        raise Unsupported(
            f'"{url.text}" is at a web server, which takes no files: write to a store such as s3://.'
        )
    return url, store
