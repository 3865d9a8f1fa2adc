"""Files that are there whole or not at all, also after the power failed: written under another name, synced and renamed."""

from __future__ import annotations

import os
import re
import secrets
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import BinaryIO

from ..errors import FileError

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
