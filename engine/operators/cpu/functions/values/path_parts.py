"""Parts of the names of files."""

from __future__ import annotations

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


# An option that is NULL is as one that is not there
KERNELS: dict[str, Kernel] = {
    "parse_dirname": of_values(_dirname, required=1),
    "parse_dirpath": of_values(_dirpath, required=1),
    "parse_filename": of_values(_filename, required=1),
}
