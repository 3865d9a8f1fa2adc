"""Paths as values of settings, and the beginnings of URLs among them."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable
from pathlib import Path

from ..errors import InvalidQuery, shown


class UrlPrefix(str):
    """The beginning of the URLs that may be opened, among allowed paths."""

    def is_relative_to(self, other: object) -> bool:
        folder = f"{other.rstrip('/')}/" if isinstance(other, UrlPrefix) else None
        return folder is not None and f"{self}/".startswith(folder)


def parse_path(name: str, value: object) -> Path:
    if not isinstance(value, str | os.PathLike) or not str(value) or "\0" in str(value):
        raise refused(name, value, "a path")
    try:
        os.fsencode(value)
        return Path(value).expanduser()
    except UnicodeEncodeError:
        raise refused(name, value, "a path, without lone surrogates") from None
    except RuntimeError:
        raise refused(name, value, "a path: there is no such user, or no HOME") from None


def parse_optional_path(name: str, value: object) -> Path | None:
    return None if value is None or value == "none" else parse_path(name, value)


_URL = r"[a-zA-Z][a-zA-Z0-9+.-]+://[^:/]*(?::[0-9]+)?"
_PLAIN_URL = re.compile(_URL + r"(?:/(?!\.{1,2}(?:/|\Z))[^/?#%*\[\\\x00-\x20]+)*/?")


def parse_paths(name: str, value: object) -> tuple[Path | UrlPrefix, ...] | None:
    """Return paths without links from a list, or from a text that separates them as PATH does."""
    if value is None:
        return None
    if isinstance(value, str):
        value = re.findall(rf"{_URL}(?:/[^:]*)?|[^:]+", value)
    if isinstance(value, os.PathLike) or not isinstance(value, Iterable):
        value = [value]
    paths = list(value)
    if not all(isinstance(path, str | os.PathLike) and str(path) for path in paths):
        raise refused(name, value, f"a list of paths, or paths with '{os.pathsep}' between them")
    try:
        return tuple(_parse_place(name, path) for path in paths)
    except (OSError, ValueError):
        raise refused(name, value, "paths that the system can hold") from None


def _parse_place(name: str, path: object) -> Path | UrlPrefix:
    if not re.match(r"(?!file:)[a-z0-9+.-]{2,}://", str(path), re.IGNORECASE):
        return Path(os.path.realpath(parse_path(name, path)))
    if not _PLAIN_URL.fullmatch(str(path)):
        raise refused(name, path, "URLs as 's3://bucket/folder', without '..', '%', '?' and globs")
    return UrlPrefix(path)


def refused(name: str, value: object, expected: str) -> InvalidQuery:
    return InvalidQuery(f"The setting {name} does not take {shown(value)}: expected {expected}.")
