"""Iceberg: the library `pyiceberg` reads metadata and manifests, and says of a snapshot which files it has and which delete files go with each.

Columns are found in files by their field ids, so that renamed and dropped ones are what they are.  What deletes rows by values
(equality deletes) is refused.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import field
from datetime import UTC, datetime
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from ..errors import FileError, FuselineError, InvalidQuery, Unsupported, install
from ..plan.types import DataType
from ..records import dataclass
from ..storage.remote.urls import is_remote
from ..storage.tables.access import AccessRules, opened
from ..storage.tables.files import find_files, local_path, paths_matching
from ..storage.tables.footers import unreadable
from ..storage.tables.other_types import type_of
from .lake_table import LakeFile

if TYPE_CHECKING:
    from pyiceberg.io import InputFile
    from pyiceberg.manifest import DataFile
    from pyiceberg.table import Table
    from pyiceberg.table.snapshots import Snapshot

    from .lake_table import RowNumbers

_FIELD_ID = b"PARQUET:field_id"
_KEYS = {"key_id": "s3.access-key-id", "secret": "s3.secret-access-key", "session_token": "s3.session-token", "region": "s3.region"}  # fmt: skip


@dataclass(frozen=True)
class IcebergSnapshot:
    """A snapshot of a table: the newest one of the newest metadata, unless another was asked for."""

    name: str
    options: Mapping[str, object]
    rules: AccessRules
    metadata: str  # the path of the file that was read
    fields: tuple[tuple[str, DataType], ...]
    ids: Mapping[str, tuple[int, ...]] = field(repr=False)  # of a column and what it is made of
    constants: frozenset[
        int
    ]  # ids of columns that files may lack since their partition has their value
    data: tuple[LakeFile, ...] = field(repr=False)
    partitions: tuple[str, ...] = ()  # files have the columns of their partition

    @classmethod
    def open(
        cls, patterns: Sequence[str], options: Mapping[str, object], rules: AccessRules
    ) -> IcebergSnapshot:
        """Read metadata and manifests; raises `FileError`, `AccessDenied`, and `Unsupported` for equality deletes."""
        if len(patterns) != 1:
            raise Unsupported("iceberg_scan takes one path, that of a table or of its metadata.")
        path = patterns[0]
        place = newest_metadata(path, rules)
        try:
            table = _loaded(place, path, rules)
            chosen = _chosen(table, options, path)
            found = _fields(table, chosen, path)
            data = tuple(_data(table, chosen, rules, path))
        except FuselineError:
            raise
        except Exception as error:  # of metadata, Avro and file systems, which share no class
            if "equality deletes" in str(error):
                raise Unsupported(
                    f'The Iceberg table "{path}" deletes rows by their values (equality deletes), which is not supported: '
                    "compact it with the engine that writes it."
                ) from None
            reason = str(error).partition("\n")[0].rstrip(".")
            reason = "" if is_remote(path) else f": {reason}"  # which may have keys
            raise FileError(
                f'The Iceberg table "{local_path(path)}" cannot be read{reason}.'
            ) from None
        fields = tuple((f.name, type_of(f.type)) for f in found)
        ids = {f.name: tuple(_ids(f)) for f in found}
        constants = frozenset(
            f.source_id
            for spec in table.specs().values()
            for f in spec.fields
            if str(f.transform) == "identity"
        )
        return cls(local_path(path), options, rules, place, fields, ids, constants, data)

    def name_in(self, column: str, schema: pa.Schema, file: LakeFile) -> str | None:
        wanted = self.ids[column]
        own = {(ids := tuple(_ids(f)))[0]: (f.name, ids) for f in schema if _FIELD_ID in (f.metadata or {})}  # fmt: skip
        if not own:
            raise Unsupported(
                f'The file "{file.path}" of an Iceberg table has no field ids, which is not supported.'
            )
        found = own.get(wanted[0])
        if found is None and wanted[0] in self.constants:
            raise Unsupported(
                f'The file "{file.path}" has not the column "{column}" of its partition, which is not supported.'
            )
        if found is not None and found[1] != wanted:
            raise Unsupported(
                f'The column "{column}" of "{self.name}" is nested and has changed, which is not supported.'
            )
        return None if found is None else found[0]

    def is_newest(self) -> bool:
        try:
            return newest_metadata(self.name, self.rules) == self.metadata
        except FileError:
            return False

    def anew(self, rules: AccessRules) -> IcebergSnapshot:
        return IcebergSnapshot.open([self.name], self.options, rules)


def newest_metadata(path: str, rules: AccessRules) -> str:
    """Return the path of a table's metadata of the highest number; raises `FileError` and `AccessDenied`."""
    if path.endswith(".metadata.json"):
        return find_files([path], rules)[0].path
    folder = path.rstrip("/")
    found = paths_matching(f"{folder}/metadata/*.metadata.json", rules)
    if not found:
        raise FileError(
            f'There is no Iceberg table at "{local_path(path)}", which has metadata/*.metadata.json: check the path.'
        )
    return max(found, key=_number)


def _number(path: str) -> tuple[int, str]:
    digits = re.match(r"v?(\d+)", path.rpartition("/")[2])
    return (int(digits[1]) if digits else -1, path)


def _loaded(place: str, path: str, rules: AccessRules) -> Table:
    try:
        from pyiceberg.avro import file as avro_files
        from pyiceberg.avro.decoder import StreamingBinaryDecoder
        from pyiceberg.catalog.noop import NoopCatalog
        from pyiceberg.io.pyarrow import PyArrowFileIO
        from pyiceberg.serializers import FromInputFile
        from pyiceberg.table import Table
    except ModuleNotFoundError as error:
        raise FileError(f"Iceberg tables need pyiceberg: {install('iceberg')}.") from error

    # The library's compiled decoder reads as many bytes as a length says, there or not: a damaged manifest ended the process
    avro_files.new_decoder = StreamingBinaryDecoder

    class JudgedFiles(PyArrowFileIO):
        """Opens for the library what may be opened."""

        def new_input(self, location: str) -> InputFile:
            return super().new_input(judged(location, rules))

    files = JudgedFiles(_properties(path, rules))
    metadata = FromInputFile.table_metadata(files.new_input(place))
    return Table(("static", place), metadata, place, files, NoopCatalog("static"))


def judged(location: str, rules: AccessRules) -> str:
    """Return the place that metadata name, which may be opened; raises `AccessDenied`."""
    if is_remote(location):
        rules.remote.judged(location)
        return location
    return rules.resolve(local_path(location), location)


def _properties(path: str, rules: AccessRules) -> dict[str, str]:
    """Return a secret in pyiceberg's words; without one it reads the environment itself."""
    secret = rules.remote.secret_for(path) if is_remote(path) else None
    if secret is None:
        return {}
    found = {ours: text for name, ours in _KEYS.items() if (text := secret.get(name)) is not None}
    address = secret.get("endpoint")
    if address is not None:
        scheme = "http" if secret.options.get("use_ssl") is False else "https"
        found["s3.endpoint"] = address if "://" in address else f"{scheme}://{address}"
    return found


def _chosen(table: Table, options: Mapping[str, object], path: str) -> Snapshot | None:
    """Return the snapshot that was asked for, None for a table that has none yet."""
    if "snapshot_from_id" in options:
        found = table.metadata.snapshot_by_id(options["snapshot_from_id"])
    elif "snapshot_from_timestamp" in options:
        moment = _milliseconds(str(options["snapshot_from_timestamp"]))
        past = [e for e in table.metadata.snapshot_log if e.timestamp_ms <= moment]
        found = table.metadata.snapshot_by_id(past[-1].snapshot_id) if past else None
    else:
        return table.metadata.current_snapshot()
    if found is None:
        raise FileError(f'The Iceberg table "{path}" has no such snapshot.')
    return found


def _milliseconds(text: str) -> float:
    try:
        moment = datetime.fromisoformat(text)
    except ValueError:
        raise InvalidQuery(
            "snapshot_from_timestamp takes a moment such as '2024-02-29 12:00:00'."
        ) from None
    known = moment if moment.tzinfo else moment.replace(tzinfo=UTC)
    return known.timestamp() * 1000


def _fields(table: Table, snapshot: Snapshot | None, path: str) -> list[pa.Field]:
    from pyiceberg.io.pyarrow import schema_to_pyarrow

    schema = table.schema()
    if snapshot is not None and snapshot.schema_id is not None:
        current = table.metadata.current_snapshot()
        if snapshot.snapshot_id != current.snapshot_id:
            schema = table.schemas()[snapshot.schema_id]
    for own in schema.fields:
        if getattr(own, "initial_default", None) is not None:
            raise Unsupported(
                f'The column "{own.name}" of "{path}" has a value for rows before it, which is not supported.'
            )
    return list(schema_to_pyarrow(schema))


def _ids(found: pa.Field) -> Iterator[int]:
    """Yield the field ids of a column and of what it is made of."""
    yield int((found.metadata or {}).get(_FIELD_ID, b"-1"))
    kind = found.type
    if pa.types.is_struct(kind):
        children = [kind.field(i) for i in range(kind.num_fields)]
    elif pa.types.is_map(kind):
        children = [kind.key_field, kind.item_field]
    elif pa.types.is_list(kind) or pa.types.is_large_list(kind):
        children = [kind.value_field]
    else:
        children = []
    for child in children:
        yield from _ids(child)


def _data(
    table: Table, snapshot: Snapshot | None, rules: AccessRules, path: str
) -> Iterator[LakeFile]:
    if snapshot is None:
        return
    tasks = list(table.scan(snapshot_id=snapshot.snapshot_id).plan_files())
    rows = _deleted([d for task in tasks for d in task.delete_files], table, rules, path)
    for task in tasks:
        if task.file.file_format.name != "PARQUET":
            raise Unsupported(
                f'The Iceberg table "{path}" has {task.file.file_format.name} files: Parquet alone is read.'
            )
        place = task.file.file_path
        numbers = [
            found for file in task.delete_files for found in rows[file.file_path].get(place, ())
        ]
        deleted = np.unique(np.concatenate(numbers)) if numbers else None
        yield LakeFile(judged(place, rules), {}, deleted)


def _deleted(
    files: Sequence[DataFile], table: Table, rules: AccessRules, path: str
) -> Mapping[str, Mapping[str, Sequence[RowNumbers]]]:
    """Return the numbers of rows that each delete file names, by the file that has them."""
    found: dict[str, dict[str, list[RowNumbers]]] = {}
    for file in {f.file_path: f for f in files}.values():
        by_path: dict[str, list[RowNumbers]] = defaultdict(list)
        kind = file.file_format.name
        if file.content.name != "POSITION_DELETES":
            raise ValueError("equality deletes")
        if kind == "PUFFIN":
            vectors = _vectors(table, file)
        elif kind == "PARQUET":
            vectors = _positions(file, rules)
        else:
            raise Unsupported(f'The Iceberg table "{path}" has deletes in {kind} files.')
        for place, numbers in vectors:
            by_path[place].append(numbers)
        found[file.file_path] = by_path
    return found


def _vectors(table: Table, file: DataFile) -> Iterator[tuple[str, RowNumbers]]:
    """Yield the deletion vectors of a Puffin file."""
    from pyiceberg.table.deletion_vector import deletion_vectors_from_puffin_file
    from pyiceberg.table.puffin import PuffinFile

    with table.io.new_input(file.file_path).open() as stream:
        payload = stream.read()
    for vector in deletion_vectors_from_puffin_file(PuffinFile(payload)):
        numbers = vector.to_vector()
        yield vector.referenced_data_file, np.asarray(numbers, np.int64)


def _positions(file: DataFile, rules: AccessRules) -> Iterator[tuple[str, RowNumbers]]:
    """Yield the rows of a file of position deletes, by the files that they are of."""
    (found,) = find_files([judged(file.file_path, rules)], rules)
    try:
        with opened(found.identity) as source:
            rows = pq.read_table(source, columns=["file_path", "pos"])
    except (OSError, UnicodeError, pa.ArrowException) as error:
        raise unreadable(found.path, error) from error
    for place in rows.column("file_path").unique():
        chosen = rows.filter(pc.equal(rows.column("file_path"), place))
        yield place.as_py(), chosen.column("pos").to_numpy()
