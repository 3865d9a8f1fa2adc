"""Parts of the names of files, and names made of parts."""

from __future__ import annotations

import re

from .....errors import ExecutionError
from .....records import dataclass
from ..vectors import Kernel
from .each_value import of_values

_SEPARATORS = {"system": "/", "forward_slash": "/", "backslash": "\\"}
_EITHER = "/\\"


def _ends(path: str, option: str | None) -> list[int]:
    """Return the places of the separators."""
    separators = _SEPARATORS.get(option or "", _EITHER)
    return [place for place, letter in enumerate(path) if letter in separators]


def _dirname(path: str, option: str | None = "") -> str:
    """Return the first folder: "/" of an absolute path."""
    ends = _ends(path, option)
    if not ends:
        return ""
    return path[: ends[0]] or path[0]


def _dirpath(path: str, option: str | None = "") -> str:
    ends = _ends(path, option)
    return (path if len(path) == 1 else path[: ends[-1]]) if ends else ""


def _filename(path: str, trim: bool | str | None = False, option: str | None = "") -> str:
    """Return the last part, without its extension where `trim` is true; a text in its place is the option."""
    if isinstance(trim, str):
        return _filename(path, option=trim)
    ends = _ends(path, option)
    name = path[ends[-1] + 1 :] if ends else path
    stem, dot, _ = name.rpartition(".")
    return stem if trim and dot else name


def _parts(path: str, option: str | None = "") -> list[str]:
    """Return all folders and the name, and before them the separator that an absolute path begins with."""
    separators = _SEPARATORS.get(option or "", _EITHER)
    root = [path[0]] if path and path[0] in separators else []
    return root + [part for part in re.split(f"[{re.escape(separators)}]", path) if part]


_SCHEME = re.compile(r"(\w[\w+.-]+://)([^/\\]*)")


@dataclass(frozen=True)
class _JoinedPath:
    """What paths are joined of: "/" or a scheme with its host, the parts behind it, and whether a separator ends them."""

    root: str
    parts: tuple[str, ...]
    ends: bool

    @classmethod
    def of(cls, text: str) -> _JoinedPath:
        scheme = _SCHEME.match(text)
        if scheme is not None and scheme[1] == "file://" and scheme[2] not in ("", "localhost"):
            raise ExecutionError(f'The path "{text}" is on another host than this.')
        rest = text if scheme is None else text[scheme.end() :]
        absolute = "/" if rest[:1] in ("/", "\\") else ""
        parts = tuple(part for part in re.split(r"[/\\]", rest) if part)
        return cls(
            "" if scheme is None else scheme[0], parts, rest[-1:] in _EITHER and bool(rest)
        )._at(absolute)

    def _at(self, absolute: str) -> _JoinedPath:
        return _JoinedPath(f"{self.root}/" if self.root else absolute, self.parts, self.ends)

    def behind(self, base: _JoinedPath) -> _JoinedPath:
        """Return this path as seen from another; an absolute one has to lie in that."""
        if self.root:
            if (base.root, base.resolved) == (self.root, self.resolved[: len(base.resolved)]):
                return self
            raise ExecutionError(f'The path "{self}" is not in "{base}": join relative paths.')
        return _JoinedPath(base.root, (*base.parts, *self.parts), self.ends)

    @property
    def resolved(self) -> tuple[str, ...]:
        """The parts without "." and, as far as that goes, without ".."."""
        found: list[str] = []
        for part in self.parts:
            if part == ".." and found and found[-1] != "..":
                found.pop()
            elif part != "." and not (part == ".." and self.root):
                found.append(part)
        return tuple(found)

    def __str__(self) -> str:
        found = "/".join(self.resolved)
        if not found:
            return self.root or "."
        return f"{self.root}{found}{'/' if self.ends else ''}"


def _join(path: str, *others: str) -> str:
    made = _JoinedPath.of(path)
    for other in others:
        made = _JoinedPath.of(other).behind(made)
    return str(made)


# An option that is NULL is as one that is not there
KERNELS: dict[str, Kernel] = {
    "parse_dirname": of_values(_dirname, required=1),
    "parse_dirpath": of_values(_dirpath, required=1),
    "parse_filename": of_values(_filename, required=1),
    "parse_path": of_values(_parts, required=1),
    "path_join": of_values(_join),
}
