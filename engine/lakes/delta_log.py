"""Which files the log of a Delta table names that the library opens itself: they are judged before it does."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import cast
from urllib.parse import unquote

import pyarrow as pa
import pyarrow.parquet as pq

from ..errors import FileError
from ..storage.tables.access import AccessRules
from ..storage.tables.files import local_path

_NAME = 20  # characters of a deletion vector's file, behind a folder of any name


def judge_log(root: str, path: str, rules: AccessRules) -> None:
    """Raise `AccessDenied` for a log, or deletion vectors, that lie where nothing may be opened; `FileError` for another log."""
    log = Path(root) / "_delta_log"
    for file in sorted(log.rglob("*")):
        rules.resolve(str(file), path)
    try:
        named = [*_in_commits(log), *_in_checkpoints(log)]
    except (OSError, UnicodeError, pa.ArrowException, json.JSONDecodeError, RecursionError):
        raise FileError(
            f'The log of the Delta table "{local_path(path)}" cannot be read.'
        ) from None
    for kind, text in named:
        if kind == "p":
            rules.resolve(unquote(text.removeprefix("file://")), path)
        elif kind == "u":
            rules.resolve(f"{root}/{text[:-_NAME]}", path)


def _in_commits(log: Path) -> Iterator[tuple[str, str]]:
    for file in sorted(log.glob("*.json")):
        for line in file.read_bytes().split(b"\n"):
            action = json.loads(line) if b"deletionVector" in line else None
            for kind in ("add", "remove"):
                yield from _vector(action, kind)


def _in_checkpoints(log: Path) -> Iterator[tuple[str, str]]:
    for file in sorted(log.rglob("*.parquet")):
        with pq.ParquetFile(file) as opened:
            actions = [f for f in opened.schema_arrow if f.name in ("add", "remove")]
            named = [f.name for f in actions if "deletionVector" in str(f.type)]
            columns = [f"{name}.deletionVector" for name in named]
            rows = opened.read(columns=columns).to_pylist() if columns else []
        for action in rows:
            for kind in ("add", "remove"):
                yield from _vector(action, kind)


def _vector(action: object, kind: str) -> Iterator[tuple[str, str]]:
    """The storage and the path of the vector that an action has, if it has one."""
    file = action.get(kind) if isinstance(action, dict) else None
    vector = file.get("deletionVector") if isinstance(file, dict) else None
    if isinstance(vector, dict):
        found = cast("dict[str, object]", vector)
        yield str(found.get("storageType")), str(found.get("pathOrInlineDv"))
