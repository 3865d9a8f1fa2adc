"""Tables of Delta Lake and Iceberg whose deleted rows are written by hand, as the formats' specifications say."""

from __future__ import annotations

import json
import zlib
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq


def bitmaps(numbers: Sequence[int]) -> bytes:
    """Numbers as the portable array of Roaring bitmaps of 32 bits that both formats have."""
    from pyroaring import BitMap

    keys = sorted({n >> 32 for n in numbers})
    parts = [len(keys).to_bytes(8, "little")]
    for key in keys:
        low = BitMap([n & 0xFFFFFFFF for n in numbers if n >> 32 == key])
        parts += [key.to_bytes(4, "little"), low.serialize()]
    return b"".join(parts)


def delta_with_vectors(root: Path, files: Sequence[tuple[pa.Table, Sequence[int]]]) -> None:
    """Write a Delta table of one commit: files, each with the numbers of its deleted rows."""
    (root / "_delta_log").mkdir(parents=True)
    kinds = {pa.int64(): "long", pa.string(): "string", pa.float64(): "double"}
    schema = files[0][0].schema
    fields = [
        {"name": f.name, "type": kinds[f.type], "nullable": True, "metadata": {}} for f in schema
    ]
    actions: list[dict[str, Any]] = [
        {"protocol": {"minReaderVersion": 3, "minWriterVersion": 7, "readerFeatures": ["deletionVectors"], "writerFeatures": ["deletionVectors"]}},
        {"metaData": {"id": "0", "format": {"provider": "parquet", "options": {}}, "schemaString": json.dumps({"type": "struct", "fields": fields}),
                      "partitionColumns": [], "configuration": {"delta.enableDeletionVectors": "true"}, "createdTime": 0}},
    ]  # fmt: skip
    for number, (rows, deleted) in enumerate(files):
        name = f"part-{number}.parquet"
        pq.write_table(rows, root / name, row_group_size=100)
        size = (root / name).stat().st_size
        add: dict[str, Any] = {"path": name, "partitionValues": {}, "size": size, "modificationTime": 0, "dataChange": True,
                               "stats": json.dumps({"numRecords": rows.num_rows})}  # fmt: skip
        if deleted:
            payload = (1681511377).to_bytes(4, "little") + bitmaps(deleted)
            vector = root / f"deleted_{number}.bin"
            vector.write_bytes(b"\x01" + len(payload).to_bytes(4, "big") + payload + zlib.crc32(payload).to_bytes(4, "big"))  # fmt: skip
            add["deletionVector"] = {"storageType": "p", "pathOrInlineDv": f"file://{vector}", "offset": 1, "sizeInBytes": len(payload),
                                     "cardinality": len(deleted)}  # fmt: skip
        actions.append({"add": add})
    log = root / "_delta_log" / f"{0:020}.json"
    log.write_text("".join(json.dumps(action) + "\n" for action in actions))


def puffin(path: Path, vectors: dict[str, Sequence[int]]) -> tuple[int, int]:
    """Write a Puffin file of deletion vectors and return where the first one lies."""
    body, blobs = b"PFA1", []
    for place, numbers in vectors.items():
        payload = b"\xd1\xd3\x39\x64" + bitmaps(numbers)
        blob = len(payload).to_bytes(4, "big") + payload + zlib.crc32(payload).to_bytes(4, "big")
        blobs.append({"type": "deletion-vector-v1", "fields": [], "snapshot-id": -1, "sequence-number": -1, "offset": len(body),
                      "length": len(blob), "properties": {"referenced-data-file": place, "cardinality": str(len(numbers))}})  # fmt: skip
        body += blob
    footer = json.dumps({"blobs": blobs}).encode()
    path.write_bytes(body + b"PFA1" + footer + len(footer).to_bytes(4, "little") + b"\0\0\0\0PFA1")
    return blobs[0]["offset"], blobs[0]["length"]


def add_deletes(table: Any, deletes: Sequence[dict[str, Any]], format_version: int = 2) -> str:
    """Give an Iceberg table a snapshot with delete files, and return the path of its new metadata."""
    from pyiceberg import manifest as m
    from pyiceberg.typedef import Record

    class DeleteManifest(m.ManifestWriterV2):
        def content(self) -> m.ManifestContent:
            return m.ManifestContent.DELETES

        @property
        def _meta(self) -> dict[str, str]:
            return {**super()._meta, "content": "deletes"}

    before = table.metadata.current_snapshot()
    number, snapshot = before.sequence_number + 1, before.snapshot_id + 1
    folder = table.metadata_location.rpartition("/")[0]
    output = table.io.new_output(f"{folder}/deletes-{snapshot}.avro")
    with DeleteManifest(table.spec(), table.schema(), output, snapshot, "deflate") as writer:
        for delete in deletes:
            file = m.DataFile.from_args(_table_format_version=2, partition=Record(), **delete)
            entry = m.ManifestEntry.from_args(
                status=m.ManifestEntryStatus.ADDED, snapshot_id=snapshot, sequence_number=None, file_sequence_number=None, data_file=file
            )  # fmt: skip
            writer.add_entry(entry)
        made = writer.to_manifest_file()
    listed = table.io.new_output(f"{folder}/snap-{snapshot}.avro")
    with m.write_manifest_list(
        2, listed, snapshot, before.snapshot_id, number, "deflate"
    ) as list_writer:
        list_writer.add_manifests([*before.manifests(table.io), made])
    document = json.loads(Path(table.metadata_location.removeprefix("file://")).read_text())
    document["last-sequence-number"] = number
    document["current-snapshot-id"] = snapshot
    document["snapshots"].append(
        {"snapshot-id": snapshot, "parent-snapshot-id": before.snapshot_id, "sequence-number": number, "timestamp-ms": before.timestamp_ms + 1,
         "manifest-list": listed.location, "summary": {"operation": "delete"}, "schema-id": table.schema().schema_id}
    )  # fmt: skip
    document["refs"] = {"main": {"snapshot-id": snapshot, "type": "branch"}}
    document["snapshot-log"].append(
        {"snapshot-id": snapshot, "timestamp-ms": before.timestamp_ms + 1}
    )
    place = f"{folder}/{99990 + number:05}-{snapshot}.metadata.json"
    Path(place.removeprefix("file://")).write_text(json.dumps(document))
    return place
