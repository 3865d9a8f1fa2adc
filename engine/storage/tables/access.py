"""The one door to the files that queries read: which may be opened, and opening them.

A path is resolved - links, `..`, `~`, `file://`, relative ones - before it is judged, and what is opened is the file that was
judged, by its identity: a link or folder that is put in its place in between gives an error, not another file.
What may not be opened is refused in the same words whether it is there or not.
"""

from __future__ import annotations

import fnmatch
import glob
import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import field, replace
from pathlib import Path

import pyarrow as pa

from ...plan.files.remote_secret import RemoteSecret
from ...records import dataclass
from ..file_identity import FileIdentity, changed, denied
from ..remote.object_stores import Patience
from ..remote.remote_access import RemoteAccess
from ..remote.remote_files import RemoteFile
from ..remote.urls import is_remote

DESCRIPTORS = "/proc/self/fd/"  # a name there opens the file of a descriptor, whatever its path leads to by now


@dataclass(frozen=True)
class AccessRules:
    """The files and folders that may be opened, as resolved paths, None for all; and the same of remote ones."""

    allowed: tuple[str, ...] | None = None
    remote: RemoteAccess = field(default_factory=RemoteAccess)

    @classmethod
    def of(
        cls,
        external_access: bool,
        allowed_paths: Sequence[Path | str] | None,
        patience: Patience | None = None,
    ) -> AccessRules:
        """Return what settings mean: without external access there is nothing but what is allowed."""
        if allowed_paths is None and not external_access:
            allowed_paths = ()
        own = None if allowed_paths is None else [str(path) for path in allowed_paths]
        remote = RemoteAccess.of(own, patience or Patience())
        if own is None:
            return cls(None, remote)
        return cls(tuple(os.path.realpath(p) for p in own if not is_remote(p)), remote)

    def with_remote(self, secrets: tuple[RemoteSecret, ...], refusal: str = "") -> AccessRules:
        """Return these rules with the credentials of remote files, or why there are none."""
        return replace(
            self, remote=replace(self.remote, secrets=secrets, refusal=refusal, stores={})
        )

    def permits(self, resolved: str) -> bool:
        """Whether a resolved path may be opened."""
        if self.allowed is None:
            return True
        return any(
            resolved == path or resolved.startswith(path.rstrip("/") + "/") for path in self.allowed
        )

    def resolve(self, path: str, asked: str) -> str:
        """Return the path that leads to the same place without links; raises `AccessDenied`, naming what was `asked` for."""
        try:
            resolved = os.path.realpath(path)
        except (OSError, ValueError):  # a zero byte, half a character
            raise denied(asked) from None
        if not self.permits(resolved):
            raise denied(asked)
        return resolved


EVERYTHING = AccessRules()


class Access:
    """The rules of a connection, which may become stricter while tables are open."""

    def __init__(self, rules: AccessRules = EVERYTHING) -> None:
        self.rules = rules


@contextmanager
def opened(file: FileIdentity) -> Iterator[pa.NativeFile]:
    """Open a file to read; raises `FileError` where it is not the one that was looked at, before or after it was read.

    Who closes a generator that reads wants no more of the file, and hears nothing.
    """
    if isinstance(file, RemoteFile):
        with file.opened() as blocks:
            yield blocks
        return
    handle = os.open(file.path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK)
    try:
        _check_identity(handle, file)
        name = f"{DESCRIPTORS}{handle}"
        with pa.OSFile(name if os.path.exists(name) else file.path) as source:  # noqa: PTH110
            try:
                yield source
            except GeneratorExit:
                raise
            except BaseException:
                _check_identity(handle, file)
                raise
            _check_identity(handle, file)
    finally:
        os.close(handle)


def _check_identity(handle: int, file: FileIdentity) -> None:
    if FileIdentity.of(file.path, os.fstat(handle)) != file:
        raise changed(file.path)


def look_inside(resolved: str, rules: AccessRules, asked: str) -> os.stat_result | None:
    """Return what a resolved path leads to, None for nothing; raises `AccessDenied` where another place is there by now."""
    try:
        handle = os.open(resolved, os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC | os.O_NONBLOCK)
    except PermissionError:  # opening it to read will say so
        with suppress(OSError):
            return os.lstat(resolved)
        return None
    except (OSError, ValueError):
        return None
    try:
        with suppress(FileNotFoundError):  # a system without such names
            if not rules.permits(os.readlink(f"{DESCRIPTORS}{handle}")):  # noqa: PTH115
                raise denied(asked)
        return os.fstat(handle)
    finally:
        os.close(handle)


def matching(folder: str, pattern: str, rules: AccessRules) -> Iterator[str]:
    """Yield the paths below a folder that match a pattern, which names no folder above.

    Below `**` links are not followed, as in DuckDB.  Raises `AccessDenied` where a match leads outside of the rules.
    """
    asked = f"{folder.rstrip('/')}/{pattern}" if folder else pattern
    parts = [part for part in pattern.split("/") if part]
    yield from _walk(folder, rules.resolve(folder or ".", asked), parts, rules, asked)


def _walk(
    found: str, resolved: str, parts: Sequence[str], rules: AccessRules, asked: str
) -> Iterator[str]:
    if not parts:
        yield found
        return
    part, rest = parts[0], parts[1:]
    if part == "**":
        yield from _walk(found, resolved, rest or ["*"], rules, asked)
        for entry in _entries(resolved):
            if entry.is_dir(follow_symlinks=False):
                yield from _walk(_join(found, entry.name), entry.path, parts, rules, asked)
        return
    magic = glob.has_magic(part)
    names = [e.name for e in _entries(resolved)] if magic else [part]
    for name in fnmatch.filter(names, part) if magic else names:
        below = rules.resolve(f"{resolved}/{name}", asked)
        yield from _walk(_join(found, name), below, rest, rules, asked)


def _entries(folder: str) -> list[os.DirEntry[str]]:
    try:
        with os.scandir(folder) as entries:
            return list(entries)
    except (OSError, ValueError):
        return []


def _join(folder: str, name: str) -> str:
    """As `glob` does: what ends in a slash, or is nothing, gets none."""
    return f"{folder}{name}" if not folder or folder.endswith("/") else f"{folder}/{name}"
