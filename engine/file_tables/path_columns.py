"""Columns that tell of a file's path: the path itself, and the folders that name partitions as Hive does."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import pyarrow as pa

from ..errors import InvalidQuery
from ..plan.types import VARCHAR, DataType, to_arrow
from ..storage.tables.hive import partition_columns


@dataclass(frozen=True)
class PathColumn:
    """A column with one value for each file."""

    name: str
    type: DataType
    values: tuple[object, ...]

    def array(self, file: int, rows: int) -> pa.Array:
        return pa.repeat(pa.scalar(self.values[file], to_arrow(self.type)), rows)


def path_columns(
    paths: Sequence[str], options: Mapping[str, object], names: Sequence[str]
) -> tuple[PathColumn, ...]:
    """Return the columns that `filename` and the options of Hive's folders ask for, of files with columns of some names.

    A folder's value stands for that of a column with its name.  Raises `InvalidQuery` and `FileError`.
    """
    asked, types = options.get("hive_partitioning"), options.get("hive_types")
    found = [
        PathColumn(column.name, column.type, column.values)
        for column in partition_columns(
            paths,
            asked if isinstance(asked, bool) else None,
            options.get("hive_types_autocast") is not False,
            types if isinstance(types, dict) else None,
        )
    ]
    wanted = options.get("filename")
    name = "filename" if wanted is True else wanted if isinstance(wanted, str) else None
    if name is not None and name.lower() in {known.lower() for known in names}:
        raise InvalidQuery(f'The files have a column "{name}" already: give filename another name.')
    return (*([PathColumn(name, VARCHAR, tuple(paths))] if name else []), *found)
