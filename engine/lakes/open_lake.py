"""Opens tables of each table format, and files of others, for a connection."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from ..errors import Unsupported
from ..file_tables.converted_table import UnreadTable, open_files
from ..storage.tables.access import Access
from .delta_snapshot import DeltaSnapshot
from .iceberg_snapshot import IcebergSnapshot
from .lake_table import LakeTable, open_snapshot

if TYPE_CHECKING:
    from ..running import QueryRunner

_SNAPSHOTS: dict[str, type[DeltaSnapshot | IcebergSnapshot]] = {
    "delta": DeltaSnapshot,
    "iceberg": IcebergSnapshot,
}


def open_lake_or_files(
    runner: QueryRunner,
    form: str,
    paths: Sequence[str],
    options: Mapping[str, object],
    access: Access,
) -> LakeTable | UnreadTable:
    """Return the table of a snapshot, or of files; raises `FileError`, `AccessDenied` and `Unsupported`."""
    if form not in _SNAPSHOTS:
        return open_files(runner, form, paths, options, access)
    if not runner.converts_files:
        raise Unsupported(
            f"A cluster does not read {form.capitalize()} tables: name their Parquet files, or write them as Parquet first."
        )
    return open_snapshot(_SNAPSHOTS[form].open(paths, options, access.rules), access, runner)
