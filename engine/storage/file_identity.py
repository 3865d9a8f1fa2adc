"""What a file was when it was looked at, and the errors for one that may not be opened or is another one by now."""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING, NamedTuple

from ..errors import AccessDenied, FileError
from ..records import dataclass

if TYPE_CHECKING:
    import os


class FileIdentity(NamedTuple):
    """A file as it was when it was looked at; one that has been written since has another identity.

    A program may set the time of the last write back; that of the last change, `ctime_ns`, it may not.
    """

    path: str
    size: int
    mtime_ns: int
    ctime_ns: int
    inode: int

    @classmethod
    def of(cls, path: str, found: os.stat_result) -> FileIdentity:
        return cls(path, found.st_size, found.st_mtime_ns, found.st_ctime_ns, found.st_ino)


@dataclass(frozen=True)
class SourceIdentity:
    """The identity of several files; hashed once, since each look into the column cache asks for it."""

    files: tuple[FileIdentity, ...]
    constants: tuple[str, ...]

    @cached_property
    def _hash(self) -> int:
        return hash((self.files, self.constants))

    def __hash__(self) -> int:
        return self._hash


def denied(asked: str) -> AccessDenied:
    return AccessDenied(
        f'"{shortened(asked)}" may not be opened: it lies outside of what external_access and allowed_paths permit.'
    )


def shortened(path: str) -> str:
    """A path as messages show it."""
    return path if len(path) <= 500 else f"{path[:200]}...{path[-200:]}"


def changed(path: str, how: str = "has changed") -> FileError:
    """Return the error for a file that is another one after it was looked at."""
    return FileError(
        f'The file "{path}" {how} while it was read: run the query again when it is complete.'
    )
