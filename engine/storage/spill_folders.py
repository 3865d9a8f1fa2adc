"""Folders that only their owner can have written, and those for what leaves memory while a query runs: they go when their process is gone.

A process that is killed removes nothing.  So each folder holds a record of its owner - host, boot, process and the time at
which that began, since numbers of processes come back - with a lock on it that the system lets go of when the process ends.
`sweep` removes the folders of this user whose owner is dead for certain, and leaves those of the living, of other
users and of machines of which nothing is known here.
"""

from __future__ import annotations

import fcntl
import json
import os
import re
import secrets
import shutil
import stat
import tempfile
import time
import weakref
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import asdict
from pathlib import Path
from typing import BinaryIO

from ..records import dataclass

PREFIX = "fuseline-spill-"
RECORD = "owner"
NEW = ".new"  # behind the name of a record that is not locked yet
SECONDS_BETWEEN_SWEEPS = 60
SECONDS_WITHOUT_RECORD = (
    3600  # after which a folder has lost the process that would have written one
)

_swept: dict[Path, float] = {}


@dataclass(frozen=True)
class Owner:
    """A process, so that no other one is taken for it: `namespace` is the container's, `started` in ticks since the boot."""

    host: str
    boot: str
    namespace: str
    pid: int
    started: str

    @classmethod
    def current(cls) -> Owner:
        return cls(os.uname().nodename, _boot(), _namespace(), os.getpid(), _started(os.getpid()))

    @property
    def runs(self) -> bool:
        """Whether such a process runs, for one of this namespace."""
        try:
            os.kill(self.pid, 0)
        except ProcessLookupError:
            return False
        except OSError:
            return True
        return _started(self.pid) == self.started


class SpillFolder:
    """A folder of this process alone, under a name that nobody can guess; it goes with this object where nobody gets to remove it."""

    def __init__(self, parent: Path) -> None:
        """Make the folder, and the ones above it; raises `OSError`."""
        parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        self.path = parent / f"{PREFIX}{secrets.token_hex(16)}"
        self.path.mkdir(mode=0o700)
        try:
            lock = _written_record(self.path)
        except BaseException:
            shutil.rmtree(self.path, ignore_errors=True)
            raise
        self._removal = weakref.finalize(self, _removed, self.path, lock, os.getpid())

    def remove(self) -> None:
        """Remove the folder with all that is in it."""
        self._removal()


def _removed(folder: Path, lock: int, owner: int) -> None:
    """Remove a folder, unless this is a copy of its process, made by `fork`, that ends."""
    if os.getpid() != owner:
        return
    shutil.rmtree(folder, ignore_errors=True)
    with suppress(OSError):
        os.close(lock)


def sweep(parent: Path) -> list[Path]:
    """Remove the folders of dead owners below `parent`, at most once a minute; returns those that were removed."""
    now = time.monotonic()
    if now - _swept.get(parent, -SECONDS_BETWEEN_SWEEPS) < SECONDS_BETWEEN_SWEEPS:
        return []
    _swept[parent] = now
    removed = []
    with suppress(OSError), os.scandir(parent) as entries:
        for entry in entries:
            if entry.name.startswith(PREFIX) and _is_dead(Path(entry.path)):
                shutil.rmtree(entry.path, ignore_errors=True)
                removed.append(Path(entry.path))
    return removed


def _written_record(folder: Path) -> int:
    """Write the record of this process and lock it, before others can see it under its name; returns what holds the lock."""
    new = folder / f"{RECORD}{NEW}"
    handle = os.open(new, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
    try:
        os.write(handle, json.dumps(asdict(Owner.current())).encode())
        with suppress(OSError):  # a file system without locks
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        new.rename(folder / RECORD)
    except BaseException:
        os.close(handle)
        raise
    return handle


def _is_dead(folder: Path) -> bool:
    """Whether a folder is this user's and its owner has ended for certain."""
    try:
        found = folder.lstat()
    except OSError:  # another process has removed it meanwhile
        return False
    try:
        if not stat.S_ISDIR(found.st_mode) or found.st_uid != os.geteuid():
            return False
        handle = os.open(folder / RECORD, os.O_RDWR | os.O_NOFOLLOW | os.O_CLOEXEC)
    except FileNotFoundError:
        return time.time() - found.st_mtime > SECONDS_WITHOUT_RECORD
    except OSError:
        return False
    try:
        owner = Owner(**json.loads(os.read(handle, 4096)))
        return _has_ended(owner, handle)
    except (OSError, ValueError, TypeError):
        return False
    finally:
        os.close(handle)


def _has_ended(owner: Owner, record: int) -> bool:
    """Whether an owner runs no more; where this cannot be seen from here, it may run."""
    here = Owner.current()
    if owner.boot != here.boot:
        return owner.host == here.host  # of another boot of this machine
    near = owner.namespace == here.namespace
    if near and owner.runs:
        return False
    try:
        fcntl.flock(record, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False  # on one machine a lock tells of processes in other containers too
    except OSError:
        return near  # a file system without locks
    return True


def _boot() -> str:
    return _text(Path("/proc/sys/kernel/random/boot_id"))


def _namespace() -> str:
    try:
        return str(Path("/proc/self/ns/pid").readlink())
    except OSError:
        return ""


def _started(pid: int) -> str:
    """When a process began: the 20th number behind its name, which may hold blanks and brackets itself."""
    found = re.fullmatch(r".*\) (.*)", _text(Path(f"/proc/{pid}/stat")), re.DOTALL)
    return found[1].split()[19] if found else ""


def _text(path: Path) -> str:
    try:
        return path.read_text(encoding="ascii", errors="replace").strip()
    except OSError:
        return ""


MOST_BYTES = 64 << 20  # of a file that is read
_WRITABLE_BY_OTHERS = 0o022
_OPEN_TO_OTHERS = 0o077
_TO_READ = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC


class NotPrivate(OSError):
    """Somebody else may have written here."""


def make_folder(path: Path) -> None:
    """Make a folder, and those above it, for this user alone; raises `OSError`."""
    if path.is_dir():
        return
    if path.parent != path:
        make_folder(path.parent)
    path.mkdir(0o700, exist_ok=True)


def check_folder(path: Path, secret: bool = False) -> None:
    """Raise `NotPrivate` for a folder that somebody else owns or may write to, one with secrets: or read."""
    _check(path, path.stat(), secret)
    if not path.is_dir():
        raise NotADirectoryError(f"{path} is no folder")


def read_file(path: Path, secret: bool = False, touch: bool = False) -> bytes:
    """Return the content of a file that is no link; raises `NotPrivate` where somebody else owns it or may write to it.

    A secret: or read it.  `touch`: note that it was used now.
    """
    with open_file(path, secret, touch) as file:
        if os.fstat(file.fileno()).st_size > MOST_BYTES:
            raise NotPrivate(f"{path} is no file of ours")
        return file.read()


@contextmanager
def open_file(path: Path, secret: bool = False, touch: bool = False) -> Iterator[BinaryIO]:
    """Open a file of any size as `read_file` does."""
    with open_plain(path) as file:
        _check(path, os.fstat(file.fileno()), secret)
        if touch:
            with suppress(OSError):
                os.utime(file.fileno())
        yield file


def open_plain(path: Path) -> BinaryIO:
    """Open a file of anybody's that is no link; raises `NotPrivate` for a pipe, which would keep its reader waiting, or a device."""
    file = os.fdopen(os.open(path, _TO_READ), "rb")
    if not stat.S_ISREG(os.fstat(file.fileno()).st_mode):
        file.close()
        raise NotPrivate(f"{path} is no file of ours")
    return file


def _check(path: Path, found: os.stat_result, secret: bool) -> None:
    if found.st_uid != os.geteuid():
        raise NotPrivate(f"{path} belongs to another user")
    if found.st_mode & (_OPEN_TO_OTHERS if secret else _WRITABLE_BY_OTHERS):
        raise NotPrivate(f"{path} is open to other users (mode {stat.S_IMODE(found.st_mode):o})")


def write_file(path: Path, content: bytes, replace: bool = True) -> None:
    """Write a file that is there as a whole or not at all, readable by this user alone; raises `OSError`.

    Without `replace`, raises `FileExistsError` where there is one.
    """
    handle, temporary = tempfile.mkstemp(dir=path.parent, prefix="q_", suffix=".tmp")
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(content)
        if replace:
            Path(temporary).replace(path)
        else:
            os.link(temporary, path, follow_symlinks=False)
    finally:
        Path(temporary).unlink(missing_ok=True)
