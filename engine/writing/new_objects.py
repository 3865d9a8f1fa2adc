"""Objects of a store that a statement makes: written to the spill folder first, and stored when all rows are there.

Each object appears whole; those of a folder appear one after the other once the query has ended, and a statement that fails before leaves
the bucket as it was.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path, PurePosixPath
from typing import BinaryIO

from ..errors import FileError, Unsupported
from ..storage.remote.object_stores import ObjectStore, together
from ..storage.remote.urls import Url
from ..storage.spill_folders import SpillFolder
from ..storage.tables.access import AccessRules


class NewObjects:
    """What one statement writes; leaving the `with` without an error stores all of it."""

    def __init__(self, rules: AccessRules, url: str, spill_dir: Path) -> None:
        self._rules = rules
        self._url, self._store = _writable(rules, url)
        self._folder = SpillFolder(spill_dir)
        self._written: dict[str, Path] = {}
        self._before: frozenset[str] = frozenset()  # objects of a folder that is written
        self._replaces = False

    def __enter__(self) -> NewObjects:
        return self

    def __exit__(self, failed: type[BaseException] | None, *_: object) -> None:
        try:
            if failed is None:
                self._publish()
        finally:
            self._folder.remove()

    def resolved(self, path: str) -> PurePosixPath:
        """Return the key that a path means, as a place of files."""
        if not self._url.key or self._url.key.endswith("/"):
            raise FileError(f'"{self._url.text}" is a folder: name a file in it.')
        return PurePosixPath(self._url.key)

    @contextmanager
    def opened(self, place: PurePosixPath, asked: str) -> Iterator[BinaryIO]:
        """Open what is stored later."""
        self._rules.remote.judged(self._store.root + str(place))
        file = self._folder.path / f"object-{len(self._written)}"
        try:
            with file.open("wb") as opened:
                yield opened
        except OSError as error:
            raise FileError(
                f'"{self._url.text}" cannot be written: {error.strerror or error} in spill_dir.'
            ) from error
        self._written[str(place)] = file

    def begin_folder(self, place: PurePosixPath, asked: str, fills: bool, overwrites: bool) -> None:
        """Look at a folder before its files are made; raises `FileError` where it has some and `fills` is not said."""
        (found,) = together(self._keys_below, [str(place)])
        if found and not fills:
            raise FileError(
                f'The folder "{self._url.text}" is not empty: add OVERWRITE, OVERWRITE_OR_IGNORE or APPEND.'
            )
        self._before, self._replaces = frozenset(found), overwrites

    def make_folder(self, place: PurePosixPath, asked: str) -> None:
        """Do nothing: folders of a store are parts of names."""

    def _keys_below(self, folder: str) -> list[str]:
        return [found.key for found in self._store.below(folder)]

    def _publish(self) -> None:
        stored: list[str] = []

        def store(item: tuple[str, Path]) -> None:
            self._store.put(*item)
            stored.append(item[0])

        try:
            together(store, list(self._written.items()))
        except BaseException:
            new = [key for key in stored if len(self._written) > 1 and key not in self._before]
            together(self._store.delete, [new] if new else [])
            raise
        gone = sorted(self._before - self._written.keys()) if self._replaces else []
        together(self._store.delete, [gone] if gone else [])


def _writable(rules: AccessRules, path: str) -> tuple[Url, ObjectStore]:
    url, store = rules.remote.judged(path), rules.remote.store_of(path)
    if url.is_web or not isinstance(store, ObjectStore):
        raise Unsupported(
            f'"{url.text}" is at a web server, which takes no files: write to a store such as s3://.'
        )
    return url, store
