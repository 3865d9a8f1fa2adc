"""Delta Lake: the library `deltalake` reads the log, and says of a version which files it has, and which rows of them are deleted.

Which files the log of a Delta table names that the library opens itself: they are judged before it does.

The library reads a log as a stream of JSON, takes paths as URLs and follows links.  So all objects of a file are looked at, however they are
laid out in lines, nested or named twice, and a path is taken only in the plain form that writers give it.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import field
from itertools import product
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import unquote

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from ..errors import FileError, Unsupported, install
from ..plan.expr import Value
from ..plan.files.remote_secret import RemoteSecret
from ..plan.types import DataType
from ..records import dataclass
from ..storage.file_identity import denied
from ..storage.remote.urls import is_remote
from ..storage.tables.access import AccessRules
from ..storage.tables.files import local_path
from ..storage.tables.other_types import type_of
from .lake_table import LakeFile

if TYPE_CHECKING:
    from deltalake import DeltaTable

    from .lake_table import RowNumbers


# What a reader has to know of a table's protocol, and what is known here
FEATURES = frozenset(["timestampNtz", "deletionVectors", "v2Checkpoint", "vacuumProtocolCheck", "typeWidening", "typeWidening-preview", "columnMapping"])  # fmt: skip
_AWS = {"key_id": "AWS_ACCESS_KEY_ID", "secret": "AWS_SECRET_ACCESS_KEY", "session_token": "AWS_SESSION_TOKEN", "region": "AWS_REGION"}  # fmt: skip


@dataclass(frozen=True)
class DeltaSnapshot:
    """A version of a table: the newest one, unless another was asked for."""

    name: str
    options: Mapping[str, object]
    rules: AccessRules
    version: int
    fields: tuple[tuple[str, DataType], ...]
    partitions: tuple[str, ...]
    data: tuple[LakeFile, ...] = field(repr=False)

    @classmethod
    def open(
        cls, patterns: Sequence[str], options: Mapping[str, object], rules: AccessRules
    ) -> DeltaSnapshot:
        """Read the log; raises `FileError`, `AccessDenied`, and `Unsupported` for what a reader must know and this does not."""
        if len(patterns) != 1:
            raise Unsupported("delta_scan takes one path, that of a table.")
        path = patterns[0]
        root = _root(path, rules)
        if not is_remote(path) and rules.allowed is not None:
            judge_log(root, path, rules)
        table = _loaded(path, options, rules)
        data = []
        with _refused(path, options):
            _check_protocol(path, table)
            schema = pa.schema(table.schema().to_arrow())
            partitions = tuple(table.metadata().partition_columns)
            deleted = _deleted(table)
            actions = pa.table(table.get_add_actions(flatten=False)).to_pylist()
        fields = tuple((f.name, type_of(f.type)) for f in schema)
        for action in actions:
            place = _place(root, action["path"])
            values: dict[str, Value] = dict(action.get("partition") or {})
            data.append(LakeFile(place, values, deleted.pop(place, None)))
        if deleted:
            raise FileError(
                f'The Delta table "{path}" has deleted rows of files that it does not list.'
            )
        name = local_path(path)
        return cls(name, options, rules, table.version(), fields, partitions, tuple(data))

    def name_in(self, column: str, schema: pa.Schema, file: LakeFile) -> str | None:
        return column if column in schema.names else None

    def is_newest(self) -> bool:
        if self.options:
            return True
        try:
            return bool(_loaded(self.name, {}, self.rules).version() == self.version)
        except FileError:
            return False

    def anew(self, rules: AccessRules) -> DeltaSnapshot:
        return DeltaSnapshot.open([self.name], self.options, rules)


def _loaded(path: str, options: Mapping[str, object], rules: AccessRules) -> DeltaTable:
    try:
        import deltalake
        from deltalake.exceptions import TableNotFoundError
    except ModuleNotFoundError as error:
        raise FileError(f"Delta tables need deltalake: {install('delta')}.") from error
    root = _root(path, rules)
    storage = _storage(path, rules) if is_remote(path) else None
    version = options.get("version")
    try:
        with _refused(path, options):
            table = deltalake.DeltaTable(root, version=version, storage_options=storage)
            if "timestamp" in options:
                table.load_as_version(str(options["timestamp"]))
    except TableNotFoundError:
        raise FileError(
            f'There is no Delta table at "{local_path(path)}": check the path.'
        ) from None
    return table


@contextmanager
def _refused(path: str, options: Mapping[str, object]) -> Iterator[None]:
    """Say that a table cannot be read, and why, of the library's errors; the log is read when it is asked for."""
    from deltalake.exceptions import DeltaError, TableNotFoundError

    try:
        yield
    except TableNotFoundError:
        raise
    except (DeltaError, OSError, ValueError, pa.ArrowException) as error:
        asked = "".join(f", {name} {value}" for name, value in options.items())
        reason = "" if is_remote(path) else f": {str(error).partition(chr(10))[0].rstrip('.')}"
        raise FileError(
            f'The Delta table "{local_path(path)}"{asked} cannot be read{reason}.'
        ) from None


def _root(path: str, rules: AccessRules) -> str:
    """Return the folder of a table, which may be opened."""
    if is_remote(path):
        return rules.remote.judged(path).text.rstrip("/")
    return rules.resolve(local_path(path), path)


def _place(root: str, path: str) -> str:
    """Return where a file of the log lies, which names it below the table, or anywhere."""
    if path.startswith("file://"):
        return unquote(path.removeprefix("file://"))
    if is_remote(path):
        return unquote(path)
    decoded = unquote(path)
    return decoded if decoded.startswith("/") else f"{root}/{decoded}"


def _deleted(table: DeltaTable) -> dict[str, RowNumbers]:
    """Return the numbers of the deleted rows of files, ascending, as deletion vectors have them."""
    found = {}
    for batch in table.deletion_vectors():
        rows = pa.record_batch(batch)
        for path, kept in zip(rows.column(0), rows.column(1), strict=True):
            keeps = np.asarray(kept.values.to_numpy(zero_copy_only=False), bool)
            found[_place("", path.as_py())] = np.flatnonzero(~keeps)
    return found


def _check_protocol(path: str, table: DeltaTable) -> None:
    protocol = table.protocol()
    unknown = set(protocol.reader_features or ()) - FEATURES
    if unknown or protocol.min_reader_version > 3:
        names = ", ".join(sorted(unknown)) or f"reader version {protocol.min_reader_version}"
        raise Unsupported(f'The Delta table "{path}" needs {names}, which is not supported.')
    mode = table.metadata().configuration.get("delta.columnMapping.mode", "none")
    if mode != "none":
        raise Unsupported(
            f'The Delta table "{path}" maps its columns to other names in its files ({mode}), which is not supported: '
            "write it anew without delta.columnMapping.mode."
        )


def _storage(path: str, rules: AccessRules) -> dict[str, str]:
    """Return a secret in deltalake's words; without one it reads the environment itself."""
    secret: RemoteSecret | None = rules.remote.secret_for(path)
    if secret is None:
        return {}
    found = {ours: text for name, ours in _AWS.items() if (text := secret.get(name)) is not None}
    address = secret.get("endpoint")
    if address is not None:
        plain = secret.options.get("use_ssl") is False or address.startswith("http://")
        scheme = "http" if plain else "https"
        found["AWS_ENDPOINT_URL"] = address if "://" in address else f"{scheme}://{address}"
        found["AWS_ALLOW_HTTP"] = str(plain).lower()
    return found


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
