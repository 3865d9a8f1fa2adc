"""Who may write a folder: one process, which holds a lock for as long as it has it open; readers hold another that keeps files from being removed."""

from __future__ import annotations

import fcntl
import os
import weakref
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from ..errors import FileError
from .commit_log import refused

WRITER, READERS = "writer.lock", "readers.lock"


class FolderLock:
    """A lock on a file, shared or for one alone; it ends with the process, and a copy of the process made by `fork` has none."""

    def __init__(self, handle: int) -> None:
        self.owner = os.getpid()
        self._closing = weakref.finalize(self, _let_go, handle, self.owner)
        _held.add(self)

    def release(self) -> None:
        self._closing()


def _let_go(handle: int, owner: int) -> None:
    """Unlock before closing: a process that was just forked has a copy of the handle until it has run the first lines of its own."""
    if os.getpid() == owner:
        with suppress(OSError):
            fcntl.flock(handle, fcntl.LOCK_UN)
    os.close(handle)


_held: weakref.WeakSet[FolderLock] = weakref.WeakSet()


def _left_to_the_parent() -> None:
    """Close what a process has inherited, which would keep the locks after its parent has let go of them."""
    for lock in tuple(_held):
        with suppress(OSError):
            lock.release()


os.register_at_fork(after_in_child=_left_to_the_parent)


def lock_to_write(folder: Path) -> FolderLock:
    """Return the lock of the one that writes; raises `FileError` where another process has it."""
    with refused(folder / WRITER):
        handle = os.open(
            folder / WRITER, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600
        )
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        os.ftruncate(handle, 0)
        os.pwrite(handle, str(os.getpid()).encode(), 0)
    except BlockingIOError:
        with os.fdopen(handle, "rb") as file:
            owner = file.read(20).decode("ascii", "replace")
        whose = f"the process {owner}" if owner.isdigit() else "another process"
        raise FileError(
            f'The database "{folder}" is open to write in {whose}: open it with read_only=True, or close it there.'
        ) from None
    except OSError as error:
        os.close(handle)
        raise FileError(f'The database "{folder}" cannot be locked: {error.strerror}.') from error
    return FolderLock(handle)


def lock_to_read(folder: Path) -> FolderLock | None:
    """Return the lock of one of those that read; None where the file system gives none."""
    try:
        handle = os.open(folder / READERS, os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC)
    except OSError:
        return None
    try:
        fcntl.flock(handle, fcntl.LOCK_SH)
    except OSError:
        os.close(handle)
        return None
    return FolderLock(handle)


@contextmanager
def without_readers(folder: Path) -> Iterator[bool]:
    """Keep readers out for a moment; False where another process reads.  Makes the file that readers lock."""
    flags = os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC
    try:
        handle = os.open(folder / READERS, flags, 0o600)
    except OSError:
        yield False
        return
    try:
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
            alone = True
        except OSError:
            alone = False
        yield alone
    finally:
        os.close(handle)
