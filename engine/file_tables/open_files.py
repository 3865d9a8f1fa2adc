"""Opens files of each format for a connection."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from ..errors import Unsupported
from ..storage.tables.access import Access
from .arrow_source import ArrowSource
from .converted_table import UnreadTable
from .csv_sniffed import SniffedSource
from .csv_source import CsvSource
from .file_source import FormatSource
from .json_source import JsonObjectsSource, JsonSource
from .whole_file_source import WholeFileSource

if TYPE_CHECKING:
    from ..running import QueryRunner

_SOURCES: dict[str, type[FormatSource]] = {
    "csv": CsvSource,
    "sniffed": SniffedSource,
    "json": JsonSource,
    "json_objects": JsonObjectsSource,
    "arrow": ArrowSource,
    "other": WholeFileSource,
}


def open_files(
    runner: QueryRunner,
    form: str,
    paths: Sequence[str],
    options: Mapping[str, object],
    access: Access,
) -> UnreadTable:
    """Return a table of files, whose columns are found out and whose rows are not read yet; raises `FileError`."""
    if not runner.converts_files:
        raise Unsupported(
            f"A cluster does not read {form.partition('_')[0].upper()} files: write them as Parquet first, with COPY on a connection without cluster=."
        )

    return UnreadTable(_SOURCES[form].open(paths, options, access.rules), access, runner)


def form_of(source: object) -> str | None:
    """Return the format of a table's files; None for what is no such source."""
    return next((form for form, kind in _SOURCES.items() if isinstance(source, kind)), None)
