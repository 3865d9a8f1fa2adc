"""Tables in memory: registered Arrow data, and what CREATE TABLE and INSERT make.

Others live on the workers of a cluster, or tell of this moment, such as `fuseline_columns()`.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import replace
from functools import cached_property, partial
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from ...plan.arrow.arrow_arrays import from_numpy
from ...plan.changes.catalog_objects import NO_RULES, TableRules
from ...plan.logical import ColumnStatistics, TableStatistics
from ...plan.text.quoted_name import distinct_names
from ...plan.types import BIGINT, DataType, Kind, to_arrow
from ..columns.encode import most_values
from ..columns.value_checks import check_decimals, check_timestamps, check_utf8
from .column_statistics import Bounds, LazyColumns, merge, trusted
from .other_types import type_of_column

MOST_CHUNKS = 64  # an INSERT adds a chunk to each column; beyond this they are joined

_versions = itertools.count(1)


class MemoryTable:
    """One version of a table in memory; INSERT makes the next one and queries that run keep theirs.

    `unsupported` are those of `all_fields` that no query can read, as in `ParquetTable`; `checked` are the columns of which
    is known that their text is UTF-8 and their timestamps are microseconds.
    """

    is_sharded = False  # whether the workers of a cluster have its rows, each a share
    settled = True  # false of one that serves one query

    def __init__(
        self,
        name: str,
        data: pa.Table,
        types: Sequence[DataType] | None = None,
        rules: TableRules = NO_RULES,
    ) -> None:
        """`types`: those of a result, where Arrow has the same type for several; by default what `data` tells."""
        self.name = name
        self.table_rules = rules
        self.data = data.rename_columns(distinct_names(data.column_names))
        self.identity: Hashable = ("memory", next(_versions))
        self.checked: set[str] = set()
        types = list(map(type_of_column, data.schema, data.columns)) if types is None else types
        self.all_fields = tuple(zip(self.data.column_names, types, strict=True))
        self.fields = tuple((n, t) for n, t in self.all_fields if t.kind is not Kind.OTHER)
        self.unsupported = {n: t for n, t in self.all_fields if t.kind is Kind.OTHER}

    def __reduce__(self) -> tuple[type[MemoryTable], tuple[object, ...]]:
        """Its rows: another process has them as a version of its own."""
        return MemoryTable, (self.name, self._sent(), [t for _, t in self.all_fields])

    def _sent(self) -> pa.Table:
        return self.data

    @cached_property
    def types(self) -> Mapping[str, DataType]:
        return dict(self.fields)

    @property
    def num_rows(self) -> int:
        return int(self.data.num_rows)

    def column(self, name: str) -> pa.ChunkedArray:
        return self.data.column(name)

    def check_values(self, name: str) -> None:
        """Raise `FileError` where a column has strings that are not UTF-8, nanoseconds, or too many digits; looks once."""
        if name not in self.checked:
            self._check_values(name, f'The column "{name}" of "{self.name}"')
            self.checked.add(name)

    def _check_values(self, name: str, what: str) -> None:
        for chunk in self.data.column(name).chunks:
            check_utf8(chunk, what)
            check_timestamps(chunk, self.types[name], what)
            check_decimals(chunk, what)

    def on_host(self) -> MemoryTable:
        """Return the table with its rows in host memory."""
        return self

    def with_rows(self, data: pa.Table) -> MemoryTable:
        """Return the next version of the table: these rows instead of its own."""
        if data.num_columns and data.column(0).num_chunks > MOST_CHUNKS:
            data = data.combine_chunks()
        return MemoryTable(self.name, data, [t for _, t in self.all_fields], self.table_rules)

    def in_result_types(self) -> pa.Table:
        """Return the rows in the types of results.

        What was registered in another representation of a type (large strings, dictionaries) takes that one first.
        """
        schema = pa.schema([(name, to_arrow(data_type)) for name, data_type in self.fields])
        if self.data.schema == schema:
            return self.data
        for name in self.types:
            self.check_values(name)
        columns = [self.data.column(name).cast(to_arrow(t)) for name, t in self.fields]
        return pa.table(columns, schema=schema)

    def appended(self, rows: pa.Table) -> MemoryTable:
        """Return the next version of the table; `rows` has its columns in their order, in the types of results."""
        return self.with_rows(pa.concat_tables([self.in_result_types(), rows]))

    def numbered(self, name: str) -> MemoryTable:
        """Return the table with one more column, which has the place of each row; columns of it that are cached are those of the table."""
        numbers = from_numpy(np.arange(self.num_rows, dtype=np.int64))
        types = [*(t for _, t in self.all_fields), BIGINT]
        made = MemoryTable(self.name, self.data.append_column(name, numbers), types)
        made.identity, made.checked = self.identity, self.checked
        return made

    def statistics(self) -> TableStatistics:
        return self._statistics

    @cached_property
    def _statistics(self) -> TableStatistics:
        names = tuple(name for name, _ in self.fields)
        return TableStatistics(self.num_rows, LazyColumns(names, self._column_statistics))

    def _column_statistics(self, name: str) -> ColumnStatistics:
        column, data_type = self.data.column(name), self.types[name]
        chunks = [_chunk_bounds(chunk, data_type) for chunk in column.chunks if len(chunk)]
        return replace(merge(chunks), comes_again=partial(_comes_again, column, data_type))


def _comes_again(column: pa.ChunkedArray, data_type: DataType) -> bool:
    """Whether text will probably be a dictionary in kernels, by the first rows."""

    def sample(rows: int) -> tuple[int, int]:
        first = column.slice(0, rows)
        return len(first), int(pc.count_distinct(first).as_py())

    return data_type.kind is Kind.VARCHAR and most_values(len(column), sample) > 0


def _chunk_bounds(chunk: pa.Array, data_type: DataType) -> Bounds:
    nulls = chunk.null_count
    if nulls == len(chunk):
        return Bounds(len(chunk), nulls)
    values = chunk.dictionary if pa.types.is_dictionary(chunk.type) else chunk
    low, high = _extremes(values, data_type)
    # As in Parquet files: NaN, the greatest value, is left out of what `min_max` finds
    return Bounds(len(chunk), nulls, low, None if data_type.is_float else high)


def _extremes(values: pa.Array, data_type: DataType) -> tuple[Any, Any]:
    if pa.types.is_timestamp(values.type) and values.type.unit == "ns":
        return None, None
    try:
        found = pc.min_max(values)
        return trusted(found["min"].as_py(), data_type), trusted(found["max"].as_py(), data_type)
    except (pa.ArrowNotImplementedError, ValueError, OverflowError):
        return None, None  # a type without order, a date outside of Python's years


class ShardedTable(MemoryTable):
    """At the client `data` has the columns and no row, `rows` counts those of all; a worker's `data` and `rows` are its share.

    Who gets it sent has none of the rows.
    """

    is_sharded = True

    def __init__(self, name: str, data: pa.Table, types: Sequence[DataType], rows: int = 0) -> None:
        super().__init__(name, data, types)
        self.rows = rows

    def __reduce__(self) -> tuple[type[MemoryTable], tuple[object, ...]]:
        return ShardedTable, (
            self.name,
            self.data,
            [t for _, t in self.all_fields],
            self.data.num_rows,
        )

    @property
    def num_rows(self) -> int:
        return self.rows

    def share(self, rows: pa.Table) -> ShardedTable:
        """Return the table with a worker's rows."""
        own = rows.rename_columns(self.data.column_names)
        return ShardedTable(self.name, own, [t for _, t in self.all_fields], own.num_rows)

    def statistics(self) -> TableStatistics:
        return TableStatistics(self.rows)


WORKERS = pa.schema(
    {
        "worker": pa.int64(),
        "address": pa.string(),
        "host": pa.string(),
        "process_id": pa.int64(),
        "device": pa.string(),
        "device_name": pa.string(),
        "threads": pa.int64(),
        "memory": pa.int64(),
        "free_memory": pa.int64(),
        "cached_bytes": pa.int64(),
        "cache_limit": pa.int64(),
        "runs_query": pa.bool_(),
    }
)  # what `fuseline_workers()` tells of a cluster


class LiveTable(MemoryTable):
    """What `make` gives at one moment; each run of a query reads it anew, and none of its columns is cached."""

    def __init__(self, name: str, make: Callable[[], pa.Table]) -> None:
        super().__init__(name, make())
        self._make = make
        self.identity = None

    def is_current(self) -> bool:
        return False

    def reopened(self) -> LiveTable:
        return LiveTable(self.name, self._make)
