"""Frames for pickle: a plan, and the files that it reads, which the other process opens by its own rules."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..errors import FileError, Unsupported
from ..file_tables.converted_table import form_of
from ..plan.copies import replace_nodes, with_commons
from ..plan.logical import CatalogTable, Logical, Scan, TableStatistics
from ..plan.types import DataType
from ..records import dataclass
from ..storage.tables.parquet import ParquetTable

if TYPE_CHECKING:
    from collections.abc import Hashable

    from ..frame.frame import Frame


@dataclass(frozen=True, eq=False)
class SentFiles:
    """A table of files while its plan is on its way: their paths and how they are read."""

    name: str
    form: str
    paths: tuple[str, ...]
    options: Mapping[str, object]
    fields: tuple[tuple[str, DataType], ...]

    @property
    def identity(self) -> Hashable:
        return None

    def statistics(self) -> TableStatistics:
        return TableStatistics()


def sent(plan: Logical) -> tuple[Callable[[Logical], Frame], tuple[Logical]]:
    """Return what makes a frame of a plan in another process; raises `Unsupported` where a table is no file."""
    return received, (_with_tables(plan, _sent_table),)


def received(plan: Logical) -> Frame:
    """Return a frame on this process's default connection, which has to be allowed to read the files, with the columns that they had."""
    connection: Any = import_module("fuseline").default_connection()

    def opened(table: CatalogTable) -> CatalogTable:
        if not isinstance(table, SentFiles):
            return table
        found = connection.catalog.read_files(table.form, list(table.paths), dict(table.options))
        now = dict(found.fields)
        for name, data_type in table.fields:
            if now.get(name) != data_type:
                raise FileError(
                    f'{table.paths[0]} has no column "{name}" of {data_type} any more: make the frame anew.'
                )
        return found.renamed(table.name)

    frame: Frame = connection.sql_over({"self": _with_tables(plan, opened)}, "FROM self", None)
    return frame


def _with_tables(plan: Logical, exchange: Callable[[CatalogTable], CatalogTable]) -> Logical:
    def exchanged(node: Logical) -> Logical | None:
        if not isinstance(node, Scan):
            return None
        table = exchange(node.table)
        return None if table is node.table else dataclasses.replace(node, table=table)

    return with_commons(plan, lambda part: replace_nodes(part, exchanged))


def _sent_table(table: Any) -> SentFiles:
    origin = getattr(table, "origin", None) or getattr(table, "source", None) or table
    form = "parquet" if isinstance(origin, ParquetTable) else form_of(origin)
    if form is None or getattr(origin, "rows", None) is not None:
        raise Unsupported(
            f'A frame over the table "{table.name}", which lies in memory, cannot be sent to another process: '
            "write its rows by write_parquet(path) and send a frame of connection.read_parquet(path), or send to_arrow()."
        )
    paths = tuple(p if "://" in p else str(Path(p).absolute()) for p in origin.patterns)
    options = getattr(origin, "options", {})
    return SentFiles(table.name, form, paths, options, tuple(table.fields))
