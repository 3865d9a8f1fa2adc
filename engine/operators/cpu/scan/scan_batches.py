"""Scans of which some rows at a time are wanted: they are decoded or converted as far as somebody asks."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import pyarrow as pa

from ....plan import physical as p
from ....plan.physical import RowGroups
from ....storage.columns.cache import CacheKey
from ....storage.tables.footers import decoding, wrong_count
from ....storage.tables.memory_table import MemoryTable
from ....storage.tables.parquet import ParquetTable
from ...context import Context
from ...scan_runs import by_id, chosen_of, rows_in
from ..table import Table, to_physical
from .read_parts import (
    checked,
    constant,
    joined,
    read_part,
    readable,
    reader,
)
from .scan import DEVICE, decoded, held_codes, held_of

DECODED_ROWS = 1 << 14  # at a time: 17 ms for the first of 20 columns, where 1 M rows take 200
READ_BYTES = 1 << 16  # at a time of a column's pages, which are as large or larger


def batches(
    node: p.ParquetScan | p.MemoryScan, counts: Iterable[int], context: Context
) -> Iterator[Table]:
    """Yield the rows of a scan of one row group, or of a table, so many at a time as `counts` says, which together are all."""
    if isinstance(node, p.MemoryScan):
        yield from _memory_batches(node, counts, context)
    else:
        yield from parquet_batches(node, counts, context)


def _memory_batches(node: p.MemoryScan, counts: Iterable[int], context: Context) -> Iterator[Table]:
    table = node.table
    assert isinstance(table, MemoryTable)
    sources = list(dict.fromkeys(node.sources))
    held = {s: context.cache.get(CacheKey(table.identity, None, s, DEVICE)) for s in sources}
    for source in sources:
        table.check_values(source)
    start = 0
    for count in counts:
        context.check()
        made: dict[str, pa.Array] = {}
        for source in sources:
            array = held[source]
            if array is None:
                rows = table.column(source).slice(start, count)
                made[source] = to_physical(rows, table.types[source])
            else:
                made[source] = array.slice(start, count)
        yield Table(by_id(node, made), count)
        context.bytes_read += sum(array.nbytes for array in made.values())
        start += count


def parquet_batches(
    node: p.ParquetScan, counts: Iterable[int], context: Context
) -> Iterator[Table]:
    """Yield the rows of a scan of one row group, so many at a time as `counts` says, which together are all."""
    table, selection, (part,) = chosen_of(node)
    sources = list(dict.fromkeys(node.sources))
    whole = held_of(node, context)
    whole |= {s: constant(table, s, [part]) for s in sources if s in table.constants}
    codes = {
        source: found
        for source in sources
        if source not in whole and (found := held_codes(table, source, selection, context))
    }
    missing = [s for s in sources if s not in whole and s not in codes]
    start = 0
    for count, made in _from_file(table, part, missing, counts):
        context.check()
        made |= {s: array.slice(start, count) for s, array in whole.items()}
        for source, (numbers, held) in codes.items():
            made[source] = decoded(table, source, numbers.slice(start, count), held, context)
        context.bytes_read += sum(array.nbytes for array in made.values())
        yield Table(by_id(node, made), count)
        start += count


def _from_file(
    table: ParquetTable, part: RowGroups, sources: Sequence[str], counts: Iterable[int]
) -> Iterator[tuple[int, dict[str, pa.Array]]]:
    """Yield each count with so many rows of some columns, decoded just before; raises `FileError`."""
    if not sources:
        yield from ((count, {}) for count in counts)
        return
    is_made = any(table.name_in(s, part.file) is None for s in sources)
    if (
        table.within(part) is not None or is_made
    ):  # some rows of a row group, or what is not in the file
        arrays = read_part(table, part, sources, set())
        start = 0
        for count in counts:
            yield count, {s: a.slice(start, count) for s, a in zip(sources, arrays, strict=True)}
            start += count
        return
    path = table.files[part.file].path
    dictionaries = {s for s in sources if table.has_small_dictionary(s)}
    options: dict[str, Any] = {"pre_buffer": False, "buffer_size": READ_BYTES}
    with readable(path), reader(table, part, sources, dictionaries, **options) as source:
        names = [table.name_in(s, part.file) for s in sources]
        batches = source.iter_batches(DECODED_ROWS, list(part.groups), names, use_threads=False)
        data = source.schema_arrow.empty_table().select(names)
        for count in counts:
            while data.num_rows < count and (batch := _next(batches, path)) is not None:
                data = pa.concat_tables([data, pa.Table.from_batches([batch])])
            table.check_unchanged([part])
            if data.num_rows < count:
                raise wrong_count(path, data.num_rows, count)
            rows, data = data.slice(0, count), data.slice(count)
            read = {s: checked(rows, table, s, part.file) for s in sources}
            yield count, {s: joined([array], table.types[s]) for s, array in read.items()}
        if data.num_rows or _next(batches, path) is not None:
            raise wrong_count(path, rows_in(table, (part,)) + 1, rows_in(table, (part,)))


def _next(batches: Iterator[pa.RecordBatch], path: str) -> pa.RecordBatch | None:
    with decoding(path):
        return next(batches, None)
