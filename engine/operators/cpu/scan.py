"""Scans: columns of files and of tables in memory, in physical form, through the column cache.

A column that is read in full is kept as one contiguous array, so that the next query copies nothing.  A selection of row
groups is cut out of that array when it is there, and read and kept on its own when it is not.
"""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from ...plan import physical as p
from ...plan.physical import RowGroups
from ...plan.types import DataType, Kind, to_arrow
from ...storage.cache import CacheKey
from ...storage.footers import unreadable
from ...storage.memory import MemoryTable
from ...storage.parquet import ParquetTable
from ..context import Context
from .table import Table, combine, concat_arrays, to_physical

DEVICE = "cpu"
ROWS_A_TASK = 200_000  # rows that one thread reads at a time; more take fresh memory instead of what was just freed
PARTS_A_THREAD = 4  # at least, where there are row groups enough
SMALL_PART_ROWS = 20_000  # below this, opening a file costs more than decoding a column
# A dictionary with more values than this share of the rows saves nothing over plain strings
LARGEST_DICTIONARY_SHARE = 0.5


def memory_scan(node: p.MemoryScan, inputs: tuple[Table, ...], context: Context) -> Table:
    table = node.table
    assert isinstance(table, MemoryTable)
    arrays = {}
    for column, source in zip(node.made, node.sources, strict=True):
        key = CacheKey(table.identity, None, source, DEVICE)
        array = context.cache.get(key)
        if array is None:
            array = to_physical(table.column(source), column.type)
            context.cache.put(key, array, array.nbytes)
            context.check()
        arrays[column.id] = array
        context.bytes_read += array.nbytes
    return Table(arrays, table.num_rows)


def parquet_scan(node: p.ParquetScan, inputs: tuple[Table, ...], context: Context) -> Table:
    table = node.table
    assert isinstance(table, ParquetTable)
    selection = None if node.selection in (None, table.all_row_groups) else node.selection
    found: dict[str, pa.Array] = {}
    for source in dict.fromkeys(node.sources):
        array = _cached(table, source, selection, context)
        if array is not None:
            found[source] = array
    missing = [s for s in dict.fromkeys(node.sources) if s not in found]
    chosen = table.all_row_groups if selection is None else selection
    read = _read(table, missing, chosen, context)
    if read:
        table.check_unchanged(chosen)
    for source, array in read.items():
        context.cache.put(CacheKey(table.identity, selection, source, DEVICE), array, array.nbytes)
        found[source] = array
    context.bytes_read += sum(array.nbytes for array in found.values())
    arrays = {c.id: found[s] for c, s in zip(node.made, node.sources, strict=True)}
    return Table(arrays, sum(_rows(table, part) for part in chosen))


def _rows(table: ParquetTable, part: RowGroups) -> int:
    return sum(table.group_rows[part.file][g] for g in part.groups)


def _cached(
    table: ParquetTable,
    source: str,
    selection: tuple[RowGroups, ...] | None,
    context: Context,
) -> pa.Array | None:
    """Return a column from the cache: as it is asked for, or cut out of the whole column."""
    array = context.cache.get(CacheKey(table.identity, selection, source, DEVICE))
    if array is not None or selection is None:
        return array
    whole = context.cache.get(CacheKey(table.identity, None, source, DEVICE))
    return None if whole is None else _cut(whole, table, selection)


def _cut(whole: pa.Array, table: ParquetTable, selection: tuple[RowGroups, ...]) -> pa.Array:
    """Return the rows of some row groups; neighbours in one slice, and without a copy when there is one slice."""
    wanted = {(part.file, group) for part in selection for group in part.groups}
    slices: list[tuple[int, int]] = []
    start = 0
    for file, groups in enumerate(table.group_rows):
        for group, rows in enumerate(groups):
            if (file, group) in wanted:
                if slices and sum(slices[-1]) == start:
                    slices[-1] = (slices[-1][0], slices[-1][1] + rows)
                else:
                    slices.append((start, rows))
            start += rows
    return concat_arrays([whole.slice(*part) for part in slices]) if slices else whole.slice(0, 0)


def _read(
    table: ParquetTable, sources: Sequence[str], chosen: Sequence[RowGroups], context: Context
) -> dict[str, pa.Array]:
    """Read columns in parts of some row groups on all threads; what is no column of the files is made."""
    from_files = [s for s in sources if s not in table.constants]
    parts = _parts(table, chosen, PARTS_A_THREAD * context.threads)
    rows = sum(_rows(table, part) for part in parts)
    # A task reads one column, whose parts are freed when they are joined; of small files it reads all that is wanted
    apart = rows >= SMALL_PART_ROWS * len(parts)
    tasks = [[s] for s in from_files] if apart else [from_files]
    dictionaries = {s for s in from_files if table.has_small_dictionary(s)}
    found: dict[str, pa.Array] = {}
    with ThreadPoolExecutor(max(1, context.threads)) as pool:
        pending: list[tuple[list[str], list[Future[list[pa.Array]]]]] = [
            (task, [pool.submit(_read_part, table, part, task, dictionaries) for part in parts])
            for task in tasks
            if task
        ]
        try:
            for task, futures in pending:
                found.update(_joined_task(table, task, futures, context))
        except BaseException:
            pool.shutdown(wait=False, cancel_futures=True)
            raise
    constants = {s: _constant(table, s, chosen) for s in sources if s in table.constants}
    return {**found, **constants}


def _joined_task(
    table: ParquetTable, task: list[str], futures: list[Future[list[pa.Array]]], context: Context
) -> dict[str, pa.Array]:
    """Wait for the parts of some columns and join them; `futures` lets go of them."""
    read: dict[str, list[pa.Array]] = {s: [] for s in task}
    for future in futures:
        for source, array in zip(task, future.result(), strict=True):
            read[source].append(array)
        context.check()
    futures.clear()
    return {s: _joined(read.pop(s), table.types[s]) for s in task}


def _parts(table: ParquetTable, chosen: Sequence[RowGroups], least: int) -> list[RowGroups]:
    """Split a selection into parts of one file each, of about equal work: at least `least` of them if possible."""
    total = sum(_rows(table, part) for part in chosen)
    target = max(1, min(ROWS_A_TASK, total // max(1, least)))
    parts: list[RowGroups] = []
    for part in chosen:
        groups: list[int] = []
        rows = 0
        for group in part.groups:
            groups.append(group)
            rows += table.group_rows[part.file][group]
            if rows >= target:
                parts.append(RowGroups(part.file, tuple(groups)))
                groups, rows = [], 0
        if groups:
            parts.append(RowGroups(part.file, tuple(groups)))
    return parts


def _read_part(
    table: ParquetTable, part: RowGroups, sources: Sequence[str], dictionaries: set[str]
) -> list[pa.Array]:
    """Read columns of some row groups of one file, in physical form; raises `DataError`."""
    file = table.files[part.file]
    names = [table.parquet_names[s] for s in sources]
    try:
        with pq.ParquetFile(
            file.path,
            metadata=table.footers[part.file],
            read_dictionary=[table.parquet_names[s] for s in sources if s in dictionaries],
        ) as reader:
            data = reader.read_row_groups(list(part.groups), columns=names, use_threads=False)
        return [to_physical(data.column(table.parquet_names[s]), table.types[s]) for s in sources]
    except MemoryError:
        raise
    except (OSError, ValueError, pa.ArrowException) as error:
        raise unreadable(file.path, error) from error


def _joined(arrays: list[pa.Array], data_type: DataType) -> pa.Array:
    """Return the parts as one array, with one dictionary of distinct values if it is worth one."""
    if not arrays:
        return to_physical(pa.nulls(0), data_type)
    if data_type.kind is not Kind.VARCHAR or not any(
        pa.types.is_dictionary(a.type) for a in arrays
    ):
        return concat_arrays(arrays)
    whole = combine(pa.chunked_array(arrays).unify_dictionaries())
    values = whole.dictionary
    if len(values) > LARGEST_DICTIONARY_SHARE * len(whole):
        return whole.dictionary_decode()
    if pc.count_distinct(values).as_py() < len(
        values
    ):  # a writer may repeat a value in a dictionary page
        return whole.dictionary_decode().dictionary_encode()
    return whole


def _constant(table: ParquetTable, source: str, chosen: Sequence[RowGroups]) -> pa.Array:
    """Return a column with one value a file."""
    constant = table.constants[source]
    values = list(dict.fromkeys(v for v in constant.values if v is not None))
    code_of: dict[Any, int | None] = {v: i for i, v in enumerate(values)}
    codes = [code_of.get(constant.values[part.file]) for part in chosen]
    counts = [_rows(table, part) for part in chosen]
    repeated = np.repeat(np.array([-1 if c is None else c for c in codes], np.int32), counts)
    indices = pa.array(repeated, mask=repeated < 0)
    dictionary = to_physical(pa.array(values, to_arrow(constant.type)), constant.type)
    if constant.type.kind is Kind.VARCHAR:
        return pa.DictionaryArray.from_arrays(indices, dictionary)
    return pc.take(dictionary, indices)
