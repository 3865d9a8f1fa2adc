"""Files and folders that only their owner can have written: what a process keeps on disk for later ones."""

from __future__ import annotations

import os
import stat
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import BinaryIO

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


def check_folder(path: Path, owners: tuple[int, ...] | None = None, secret: bool = False) -> None:
    """Raise `NotPrivate` for a folder that somebody else owns or may write to, one with secrets: or read; `owners` are this user unless given."""
    refused = _OPEN_TO_OTHERS if secret else _WRITABLE_BY_OTHERS
    _check(path, path.stat(), owners or (os.geteuid(),), refused)
    if not path.is_dir():
        raise NotADirectoryError(f"{path} is no folder")


def read_file(
    path: Path, owners: tuple[int, ...] | None = None, secret: bool = False, touch: bool = False
) -> bytes:
    """Return the content of a file that is no link; raises `NotPrivate` where somebody else owns it or may write to it.

    A secret: or read it.  `touch`: note that it was used now.
    """
    with open_file(path, owners, secret, touch) as file:
        if os.fstat(file.fileno()).st_size > MOST_BYTES:
            raise NotPrivate(f"{path} is no file of ours")
        return file.read()


@contextmanager
def open_file(
    path: Path, owners: tuple[int, ...] | None = None, secret: bool = False, touch: bool = False
) -> Iterator[BinaryIO]:
    """Open a file of any size as `read_file` does."""
    with open_plain(path) as file:
        refused = _OPEN_TO_OTHERS if secret else _WRITABLE_BY_OTHERS
        _check(path, os.fstat(file.fileno()), owners or (os.geteuid(),), refused)
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


def _check(path: Path, found: os.stat_result, owners: tuple[int, ...], refused: int) -> None:
    if found.st_uid not in owners:
        raise NotPrivate(f"{path} belongs to another user")
    if found.st_mode & refused:
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
