"""The folder of a user's kernels: sources to read, machine code to run, and how much of both is kept.

Several processes share a folder.  A file is replaced in one step, and there are no locks.  Where a folder cannot be used, or is not
its user's alone, kernels are kept in the memory of the process, with one warning.
"""

from __future__ import annotations

import hmac
import os
import secrets
import struct
import time
import warnings
from collections.abc import Iterator
from contextlib import suppress
from functools import cache, cached_property
from pathlib import Path

from ...records import dataclass
from ...settings import state_folder
from ...storage.spill_folders import NotPrivate, check_folder, make_folder, read_file, write_file
from ...threads.fork_locks import new_lock

SECRET_BYTES = 32
NAME = "kernel-secret"


def secret_file() -> Path:
    """Where it lies: in the user's state directory, which no setting names."""
    return state_folder() / NAME


def secret_for(folder: Path) -> Secret:
    """Return the secret, which is made if there is none; raises `OSError` where it cannot be kept from others.

    It must not lie in the folder whose files it proves: who can write these could replace it.
    """
    path = secret_file()
    if path.resolve().is_relative_to(folder.resolve()):
        raise NotPrivate(f"{path} lies in the folder of the kernels")
    make_folder(path.parent)
    check_folder(path.parent)
    try:
        return _read(path)
    except FileNotFoundError:
        _make(path)
    return _read(path)


def _read(path: Path) -> Secret:
    found = read_file(path, secret=True)
    if len(found) != SECRET_BYTES:
        raise NotPrivate(f"{path} is damaged: remove it")
    return Secret(found)


def _make(path: Path) -> None:
    """Another process may make it at the same time: the first one's stays."""
    made = secrets.token_bytes(SECRET_BYTES)
    try:
        write_file(path, made, replace=False)
    except FileExistsError:
        return
    except OSError:  # a file system without hard links
        handle = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW, 0o600)
        with os.fdopen(handle, "wb") as file:
            file.write(made)


MAGIC = b"FUSELINE KERNEL1"
_HEADER = struct.Struct("<16s32sQ")
TAG_BYTES = 32


@dataclass(frozen=True, repr=False)
class Secret:
    """Only who knows the secret can make the tag of a body."""

    key: bytes

    def tag(self, body: bytes) -> bytes:
        return hmac.digest(self.key, body, "sha256")


def sealed(code: bytes, key: bytes, secret: Secret) -> bytes:
    """Return the content of a file: its header, the code, and the tag of both."""
    body = _HEADER.pack(MAGIC, key, len(code)) + code
    return body + secret.tag(body)


def unsealed(content: bytes, key: bytes, secret: Secret) -> bytes | None:
    """Return the code of a file, or None unless it is whole, was made for this key, and the secret vouches for it."""
    body, tag = content[:-TAG_BYTES], content[-TAG_BYTES:]
    if len(body) < _HEADER.size or not hmac.compare_digest(secret.tag(body), tag):
        return None
    magic, found, length = _HEADER.unpack_from(body)
    if (magic, found, length) != (MAGIC, key, len(body) - _HEADER.size):
        return None
    return body[_HEADER.size :]


CODE, SOURCE = ".kernel", ".py"
OLD = (
    ".cubin",
    ".o",
    ".tmp",
    SOURCE,
)  # of older versions, or left by a process that was killed; a source without its code
DEFAULT_LIMIT = 1 << 30  # bytes
STALE_SECONDS = 3600  # after which nobody is about to finish what is unfinished
KEPT_SHARE = 0.9  # of the limit, when something has to go: so that not each new kernel looks through the folder
HINT = "Set FUSELINE_CACHE_DIR to a folder of yours that can be written."


class Folder:
    """A folder, and this process's view of it."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.limit = DEFAULT_LIMIT  # what the setting `kernel_cache_limit` says
        self._size: int | None = None  # None until it was looked through
        self._lock = new_lock()
        self._told = False

    @cached_property
    def _secret(self) -> Secret | None:
        """What proves its files; None where nothing is kept in it or read from it."""
        try:
            if self.path.exists():
                check_folder(self.path)
            else:
                make_folder(self.path)
            return secret_for(self.path)
        except OSError as error:
            self._tell(error)
            return None

    def load(self, name: str, key: bytes) -> bytes | None:
        """Return the machine code of a name and key; None where there is none that is proved to be the user's."""
        if self._secret is not None:
            with suppress(OSError):
                content = read_file(self.path / (name + CODE), touch=True)
                return unsealed(content, key, self._secret)
        return None

    def keep(self, name: str, key: bytes, code: bytes) -> None:
        """Keep machine code, if it can be; what was used longest ago goes where that is too much."""
        if self._secret is None:
            return
        content = sealed(code, key, self._secret)
        if len(content) > self.limit:
            return
        try:
            make_folder(self.path)
            write_file(self.path / (name + CODE), content)
            self._make_room(len(content))
        except OSError as error:
            self._tell(error)

    def show(self, name: str, source: str) -> None:
        """Write a source for people to read, unless there is one."""
        path = self.path / (name + SOURCE)
        if self._secret is None or self.limit == 0 or os.path.lexists(path):
            return
        try:
            make_folder(self.path)
            content = source.encode("utf-8", "replace")
            write_file(path, content)
            with self._lock:  # the machine code, which comes next, makes room for both
                self._size = None if self._size is None else self._size + len(content)
        except OSError as error:
            self._tell(error)

    def _tell(self, error: OSError) -> None:
        """Warn once."""
        if not self._told:
            self._told = True
            reason = (
                str(error) if isinstance(error, NotPrivate) else f"{type(error).__name__}: {error}"
            )
            warnings.warn(
                f"Kernels cannot be kept in {self.path}, so this process keeps them in memory alone: {reason}. {HINT}",
                RuntimeWarning,
                stacklevel=2,
            )

    def _make_room(self, added: int) -> None:
        with self._lock:
            if self._size is not None:
                self._size += added
                if self._size <= self.limit:
                    return
            found = sorted(self._kernels(), reverse=True)  # the last used first
            room = self.limit
            if sum(size for _, size, _ in found) > room:
                room = int(room * KEPT_SHARE)
            self._size = 0
            for _, size, name in found:
                if self._size + size <= room:
                    self._size += size
                else:
                    room = self._size  # nothing older stays either
                    self._remove(name + CODE, name + SOURCE)

    def _kernels(self) -> Iterator[tuple[float, int, str]]:
        """When each kernel was last used, its bytes, and its name; removes what no kernel is."""
        files: dict[str, os.stat_result] = {}
        with os.scandir(self.path) as entries:
            for entry in filter(_is_ours, entries):
                with suppress(FileNotFoundError):  # another process was faster
                    files[entry.name] = entry.stat(follow_symlinks=False)
        for name, found in files.items():
            stem, kind = name.removesuffix(Path(name).suffix), Path(name).suffix
            if kind == CODE:
                source = files.get(stem + SOURCE)
                yield found.st_mtime, found.st_size + (source.st_size if source else 0), stem
            elif stem + CODE not in files and found.st_mtime < time.time() - STALE_SECONDS:
                self._remove(name)

    def _remove(self, *names: str) -> None:
        for name in names:
            with suppress(OSError):
                (self.path / name).unlink()


def _is_ours(entry: os.DirEntry[str]) -> bool:
    kind = Path(entry.name).suffix
    return (
        entry.name.startswith("q_")
        and (kind == CODE or kind in OLD)
        and not entry.is_dir(follow_symlinks=False)
    )


@cache
def folder(path: Path) -> Folder:
    """Return a folder: the same one for the same path, wherever a process asks."""
    return Folder(path)
