"""Which files the log of a Delta table names that the library opens itself: they are judged before it does.

The library reads a log as a stream of JSON, takes paths as URLs and follows links.  So all objects of a file are looked at, however they are
laid out in lines, nested or named twice, and a path is taken only in the plain form that writers give it.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from itertools import product
from pathlib import Path
from urllib.parse import unquote

import pyarrow as pa
import pyarrow.parquet as pq

from ..errors import FileError
from ..storage.file_identity import denied
from ..storage.tables.access import AccessRules
from ..storage.tables.files import local_path

_NAME = 20  # characters of a deletion vector's file, behind a folder of any name
_MARKS = (b"deletionVector", b"sidecar", rb"\u")  # the last one may spell any name
# URLs end a path at ? and #, take \ for / and leave out tabs; above the root there is nothing of a table
_WHOLE = re.compile(r"file:///[^\\?#\x00-\x20]*")
_FOLDER = re.compile(r"[A-Za-z0-9_-]*")
_SIDECAR = re.compile(r"[A-Za-z0-9_-][A-Za-z0-9_.-]*")
_BLANK = re.compile(r"\s*")


class _Object(list[tuple[str, object]]):
    """An object of JSON with all of its names, also those that it has twice."""

    def all(self, name: str) -> list[object]:
        return [value for key, value in self if key == name]


def judge_log(root: str, path: str, rules: AccessRules) -> None:
    """Raise `AccessDenied` for a log, or what it names, that lies where nothing may be opened; `FileError` for another log."""
    log = Path(root) / "_delta_log"
    for file in sorted(log.rglob("*")):
        rules.resolve(str(file), path)
    try:
        named = {*_in_texts(log), *_in_checkpoints(log)}
    except (OSError, ValueError, pa.ArrowException, RecursionError):
        raise FileError(
            f'The log of the Delta table "{local_path(path)}" cannot be read.'
        ) from None
    for kind, text in named:
        if kind == "p" and _WHOLE.fullmatch(text):
            rules.resolve(unquote(text.removeprefix("file://")), path)
        elif kind == "u" and _FOLDER.fullmatch(text[:-_NAME]):
            folder = Path(root) / text[:-_NAME]
            for file in (folder, *folder.glob("deletion_vector_*.bin")):
                rules.resolve(str(file), path)
        elif kind in ("p", "u") or (kind == "sidecar" and not _SIDECAR.fullmatch(text)):
            raise denied(path)


def _in_texts(log: Path) -> Iterator[tuple[str, str]]:
    decoder = json.JSONDecoder(object_pairs_hook=_Object)
    for file in sorted(log.rglob("*.json")):
        data = file.read_bytes()
        if not any(mark in data for mark in _MARKS):
            continue
        text, place = data.decode().strip(), 0
        while place < len(text):
            found, place = decoder.raw_decode(text, place)
            blank = _BLANK.match(text, place)
            place = place if blank is None else blank.end()
            yield from _named(found)


def _in_checkpoints(log: Path) -> Iterator[tuple[str, str]]:
    for file in sorted(log.rglob("*.parquet")):
        with pq.ParquetFile(file) as opened:
            fields = list(opened.schema_arrow)
            if len({f.name for f in fields}) < len(fields):
                raise ValueError("columns of the same name")
            columns = [
                f"{f.name}.deletionVector" for f in fields if "deletionVector" in str(f.type)
            ]
            columns += [f"{f.name}.path" for f in fields if f.name == "sidecar"]
            rows = opened.read(columns=columns).to_pylist() if columns else []
        for action in rows:
            yield from _named(action)


def _named(value: object) -> Iterator[tuple[str, str]]:
    """Yield the storage and the path of each deletion vector in a value, and the path of each sidecar."""
    match value:
        case dict():
            yield from _named(_Object(value.items()))
        case _Object():
            for name, found in value:
                inner = _Object(found.items()) if isinstance(found, dict) else found
                if name == "deletionVector" and isinstance(inner, _Object):
                    for kind, text in product(
                        inner.all("storageType"), inner.all("pathOrInlineDv")
                    ):
                        yield str(kind), str(text)
                elif name == "sidecar" and isinstance(inner, _Object):
                    yield from (("sidecar", str(text)) for text in inner.all("path"))
                yield from _named(inner)
        case list():
            for item in value:
                yield from _named(item)
