"""Scans: columns of files and of tables in memory, in physical form, through the column cache.

A column that is read in full is kept as one contiguous array, so that the next query copies nothing.  A selection of row
groups is cut out of that array when it is there, and read and kept on its own when it is not.  A column that the cache
holds only as kernels read it is decoded instead of being read again.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from ....plan import physical as p
from ....plan.arrow.arrow_arrays import array_from, from_numpy
from ....plan.physical import RowGroups
from ....plan.types import DataType, Kind, to_arrow
from ....progress.run_progress import READING_SHARE
from ....stopping import carried, wait
from ....storage.columns.cache import CacheKey, encoded_key
from ....storage.columns.encodings import EncodedColumn, codes_of
from ....storage.columns.value_checks import (
    INT96_UNIT,
    check_decimals,
    check_timestamps,
    check_utf8,
)
from ....storage.tables.column_chunks import row_ranges
from ....storage.tables.footers import decoding, unreadable, wrong_count
from ....storage.tables.memory_table import MemoryTable
from ....storage.tables.parquet import ParquetTable
from ...column_tiers import keep, lift, read_from_files
from ...context import Context
from ..memory.ask_memory import ask_columns
from ..table import Table, combine, concat_arrays, physical_type, to_physical
from .made_columns import converted, made_column
from .remote_parts import ReadAhead, bytes_of

DEVICE = "cpu"
ROWS_A_TASK = 200_000  # rows that one thread reads at a time; more take fresh memory instead of what was just freed
PARTS_A_THREAD = 4  # at least, where there are row groups enough
SMALL_PART_ROWS = 20_000  # below this, opening a file costs more than decoding a column
# A dictionary with more values than this share of the rows saves nothing over plain strings
LARGEST_DICTIONARY_SHARE = 0.5


def memory_scan(node: p.MemoryScan, inputs: tuple[Table, ...], context: Context) -> Table:
    table = node.table
    assert isinstance(table, MemoryTable)
    arrays: dict[str, pa.Array] = {}
    for source in dict.fromkeys(node.sources):
        key = CacheKey(table.identity, None, source, DEVICE)
        array = context.cache.get(key)
        if array is None:
            array = context.plain.pop(key, None)
            array = _from_memory(table, source, context) if array is None else array
            context.cache.put(key, array, array.nbytes)
        arrays[source] = array
    made = Table(by_id(node, arrays), table.num_rows)
    context.bytes_read += made.nbytes
    return made


def parquet_scan(node: p.ParquetScan, inputs: tuple[Table, ...], context: Context) -> Table:
    table, selection, chosen = chosen_of(node)
    found = held_of(node, context)
    ask_columns(node, [s for s in dict.fromkeys(node.sources) if s not in found], context)
    made = {
        source: array
        for source in dict.fromkeys(node.sources)
        if source not in found
        and (array := _decoded(table, source, selection, context)) is not None
    }
    missing = [s for s in dict.fromkeys(node.sources) if s not in found and s not in made]
    read = _read(node, missing, context)
    for source, array in read.items():
        keep(node, source, array, context)
    made |= read
    for source, array in made.items():
        context.cache.put(CacheKey(table.identity, selection, source, DEVICE), array, array.nbytes)
    found |= made
    context.bytes_read += sum(array.nbytes for array in found.values())
    return Table(by_id(node, found), sum(rows_of(table, part) for part in chosen))


def read_columns(node: p.ParquetScan | p.MemoryScan, context: Context) -> dict[str, pa.Array]:
    """Return a scan's columns by their sources; those that are not in the cache do not get there."""
    found: dict[str, pa.Array]
    if isinstance(node, p.MemoryScan):
        memory = node.table
        assert isinstance(memory, MemoryTable)
        found = {}
        for source in dict.fromkeys(node.sources):
            held = context.cache.get(CacheKey(memory.identity, None, source, DEVICE))
            found[source] = _from_memory(memory, source, context) if held is None else held
    else:
        found = held_of(node, context)
        missing = [s for s in dict.fromkeys(node.sources) if s not in found]
        found |= _read(node, missing, context)
    context.bytes_read += sum(array.nbytes for array in found.values())
    return found


def _from_memory(table: MemoryTable, source: str, context: Context) -> pa.Array:
    table.check_values(source)
    array = to_physical(table.column(source), table.types[source])
    context.check()
    return array


def chosen_of(
    node: p.ParquetScan,
) -> tuple[ParquetTable, tuple[RowGroups, ...] | None, tuple[RowGroups, ...]]:
    """Return a scan's table, which part of it cache keys name, and the row groups that this is."""
    table = node.table
    assert isinstance(table, ParquetTable)
    if node.selection in (None, table.all_row_groups):
        return table, None, table.all_row_groups
    return table, node.selection, node.selection


def by_id(
    node: p.ParquetScan | p.MemoryScan, arrays: Mapping[str, pa.Array]
) -> dict[int, pa.Array]:
    return {c.id: arrays[s] for c, s in zip(node.made, node.sources, strict=True)}


def held_of(node: p.ParquetScan, context: Context) -> dict[str, pa.Array]:
    """Return those columns of a scan that the cache holds as they are, or the column store."""
    table, selection, _ = chosen_of(node)
    lift(node, node.sources, DEVICE, context)
    found = {s: _cached(table, s, selection, context) for s in dict.fromkeys(node.sources)}
    return {source: array for source, array in found.items() if array is not None}


def rows_of(table: ParquetTable, part: RowGroups) -> int:
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


def _decoded(
    table: ParquetTable,
    source: str,
    selection: tuple[RowGroups, ...] | None,
    context: Context,
) -> pa.Array | None:
    """Return a column of which the cache holds what kernels read, of just these row groups or of all: as it was read, or decoded."""
    read = context.plain.pop(CacheKey(table.identity, selection, source, DEVICE), None)
    if read is not None:
        return read
    found = held_codes(table, source, selection, context)
    return None if found is None else decoded(table, source, *found, context)


def held_codes(
    table: ParquetTable,
    source: str,
    selection: tuple[RowGroups, ...] | None,
    context: Context,
) -> tuple[pa.Array, EncodedColumn] | None:
    """Return the codes of a column in some row groups, and the column whose codes they are, if the cache holds it."""
    held = context.cache.get(encoded_key(table.identity, selection, source, DEVICE))
    if held is not None:
        return codes_of(held), held
    if selection is None:
        return None
    whole = context.cache.get(encoded_key(table.identity, None, source, DEVICE))
    return None if whole is None else (_cut(codes_of(whole), table, selection), whole)


def decoded(
    table: ParquetTable, source: str, codes: pa.Array, held: EncodedColumn, context: Context
) -> pa.Array:
    return held.encoding.decode(codes, physical_type(table.types[source]), context.threads)


def _cut(whole: pa.Array, table: ParquetTable, selection: tuple[RowGroups, ...]) -> pa.Array:
    """Return the rows of some row groups; neighbours in one slice, and without a copy when there is one slice."""
    parts = [whole.slice(first, end - first) for first, end in row_ranges(table, selection)]
    return concat_arrays(parts) if parts else whole.slice(0, 0)


def _read(node: p.ParquetScan, sources: Sequence[str], context: Context) -> dict[str, pa.Array]:
    """Read columns of a scan in parts of some row groups on all threads; what is no column of the files is made.

    Text that a file keeps in dictionaries takes more than footers tell, so that what has come is asked for again.
    """
    table, _, chosen = chosen_of(node)
    came = 0

    def ask(nbytes: int) -> None:
        nonlocal came
        came += nbytes
        context.check()
        context.progress.advance(1)
        context.ask(node, came)

    from_files = [s for s in sources if s not in table.constants]
    read_from_files(table, from_files, chosen, context)
    parts = _parts(table, chosen, PARTS_A_THREAD * context.threads)
    rows = sum(rows_of(table, part) for part in parts)
    # A task reads one column, whose parts are freed when they are joined; of small files it reads all that is wanted, and of
    # remote ones, where each request takes long
    apart = rows >= SMALL_PART_ROWS * len(parts) and not table.is_remote
    ahead = ReadAhead(table, parts, from_files) if table.is_remote else None
    tasks = [[s] for s in from_files] if apart else [from_files]
    dictionaries = {s for s in from_files if table.has_small_dictionary(s)}
    context.progress.expect(len(parts) * sum(map(bool, tasks)), share=READING_SHARE)
    found: dict[str, pa.Array] = {}
    read = carried(read_part)
    with ThreadPoolExecutor(max(1, context.threads)) as pool:
        pending: list[tuple[list[str], list[Future[list[pa.Array]]]]] = [
            (task, [pool.submit(read, table, part, task, dictionaries, ahead) for part in parts])
            for task in tasks
            if task
        ]
        try:
            for task, futures in pending:
                found.update(_joined_task(table, task, futures, ask))
        except BaseException:
            pool.shutdown(wait=False, cancel_futures=True)
            raise
        finally:
            if ahead is not None:
                ahead.close()
    if found:
        table.check_unchanged(chosen)
    constants = {s: constant(table, s, chosen) for s in sources if s in table.constants}
    return {**found, **constants}


def _joined_task(
    table: ParquetTable,
    task: list[str],
    futures: list[Future[list[pa.Array]]],
    ask: Callable[[int], None],
) -> dict[str, pa.Array]:
    """Wait for the parts of some columns and join them; `futures` lets go of them."""
    read: dict[str, list[pa.Array]] = {s: [] for s in task}
    for future in futures:
        arrays: list[pa.Array] = wait(future)
        for source, array in zip(task, arrays, strict=True):
            read[source].append(array)
        ask(sum(arrays[-1].nbytes for arrays in read.values()))
    futures.clear()
    return {s: joined(read.pop(s), table.types[s]) for s in task}


def _parts(table: ParquetTable, chosen: Sequence[RowGroups], least: int) -> list[RowGroups]:
    """Split a selection into parts of one file each, of about equal work: at least `least` of them if possible."""
    total = sum(rows_of(table, part) for part in chosen)
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


def read_part(
    table: ParquetTable,
    part: RowGroups,
    sources: Sequence[str],
    dictionaries: set[str],
    ahead: ReadAhead | None = None,
) -> list[pa.Array]:
    """Read columns of some row groups of one file, in physical form; raises `FileError`."""
    file = table.files[part.file]
    own = [s for s in sources if table.name_in(s, part.file) is not None]
    names = [table.name_in(s, part.file) for s in own]
    expected = sum(table.stored_rows[part.file][g] for g in part.groups)
    within = table.within(part)
    made: dict[str, pa.Array] = {}
    with readable(file.path):
        if own:
            with reader(table, part, own, dictionaries, ahead) as source, decoding(file.path):
                data = source.read_row_groups(list(part.groups), columns=names, use_threads=False)
            if data.num_rows != expected:
                raise wrong_count(file.path, data.num_rows, expected)
            if within is not None:
                data = data.slice(*within)
            made = {s: checked(data, table, s, part.file) for s in own}
    for missing in sources:
        if missing not in made:
            array = made_column(table, missing, part)
            made[missing] = array if within is None else array.slice(*within)
    return [made[s] for s in sources]


@contextmanager
def readable(path: str) -> Iterator[None]:
    """Raise `FileError` for what libraries raise while they open a file, and look at what was read of it."""
    try:
        yield
    except MemoryError:
        raise
    except (OSError, UnicodeError, pa.ArrowException) as error:
        raise unreadable(path, error) from error


@contextmanager
def reader(
    table: ParquetTable,
    part: RowGroups,
    sources: Sequence[str],
    dictionaries: set[str],
    ahead: ReadAhead | None = None,
    **options: object,
) -> Iterator[pq.ParquetFile]:
    """Open one file of a table; of `dictionaries` come codes."""
    if table.is_remote:
        options["pre_buffer"] = False  # which would read what lies between the chunks too
    with (
        bytes_of(table, part, sources, ahead) as source,
        pq.ParquetFile(
            source,
            metadata=table.footers[part.file],
            read_dictionary=[table.name_in(s, part.file) for s in sources if s in dictionaries],
            coerce_int96_timestamp_unit=INT96_UNIT,
            page_checksum_verification=table.has_checksums,
            **options,
        ) as found,
    ):
        yield found


def checked(data: pa.Table, table: ParquetTable, source: str, file: int) -> pa.Array:
    """Return a column of what was read of a file, in the table's type."""
    name, own = table.name_in(source, file), table.type_in(source, file)
    what = f'The column "{name}" of the file "{table.files[file].path}"'
    for chunk in data.column(name).chunks:
        check_timestamps(chunk, own, what)
        check_decimals(chunk, what)
    array = to_physical(data.column(name), own)
    check_utf8(array, what)
    return array if own == table.types[source] else converted(array, own, table.types[source])


def joined(arrays: list[pa.Array], data_type: DataType) -> pa.Array:
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


def constant(table: ParquetTable, source: str, chosen: Sequence[RowGroups]) -> pa.Array:
    """Return a column with one value a file."""
    constant = table.constants[source]
    values = list(dict.fromkeys(v for v in constant.values if v is not None))
    code_of: dict[object, int | None] = {v: i for i, v in enumerate(values)}
    codes = [code_of.get(constant.values[part.file]) for part in chosen]
    counts = [rows_of(table, part) for part in chosen]
    repeated = np.repeat(np.array([-1 if c is None else c for c in codes], np.int32), counts)
    indices = from_numpy(repeated, repeated >= 0)
    dictionary = to_physical(array_from(values, to_arrow(constant.type)), constant.type)
    if constant.type.kind is Kind.VARCHAR:
        return pa.DictionaryArray.from_arrays(indices, dictionary)
    return pc.take(dictionary, indices)
