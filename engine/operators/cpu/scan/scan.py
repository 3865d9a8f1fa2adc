"""Scans: columns of files and of tables in memory, in physical form, through the column cache.

A column that is read in full is kept as one contiguous array, so that the next query copies nothing.  A selection of row
groups is cut out of that array when it is there, and read and kept on its own when it is not.  A column that the cache
holds only as kernels read it is decoded instead of being read again.
"""

from __future__ import annotations

import pyarrow as pa

from ....plan import physical as p
from ....plan.physical import RowGroups
from ....storage.columns.cache import CacheKey, encoded_key
from ....storage.columns.encodings import EncodedColumn, codes_of
from ....storage.tables.column_chunks import row_ranges
from ....storage.tables.memory_table import MemoryTable
from ....storage.tables.parquet import ParquetTable
from ...column_tiers import keep, lift
from ...context import Context
from ...scan_runs import by_id, chosen_of, held_columns, rows_in
from ..memory.ask_memory import ask_columns
from ..table import Table, concat_arrays, physical_type, to_physical
from .read_parts import Encoder, Rows, read_in_parts

DEVICE = "cpu"


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
    read = read_in_parts(node, missing, context)
    for source, array in read.items():
        keep(node, source, array, context)
    made |= read
    for source, array in made.items():
        context.cache.put(CacheKey(table.identity, selection, source, DEVICE), array, array.nbytes)
    found |= made
    context.bytes_read += sum(array.nbytes for array in found.values())
    return Table(by_id(node, found), rows_in(table, chosen))


def read_columns(
    node: p.ParquetScan | p.MemoryScan, context: Context, encode: Encoder | None = None
) -> dict[str, Rows]:
    """Return a scan's columns by their sources; those that are not in the cache do not get there.

    With `encode` some of what is read of files comes as kernels read it (`read_in_parts`).
    """
    found: dict[str, Rows]
    if isinstance(node, p.MemoryScan):
        memory = node.table
        assert isinstance(memory, MemoryTable)
        found = {}
        for source in dict.fromkeys(node.sources):
            held = context.cache.get(CacheKey(memory.identity, None, source, DEVICE))
            found[source] = _from_memory(memory, source, context) if held is None else held
    else:
        found = {**held_of(node, context)}
        missing = [s for s in dict.fromkeys(node.sources) if s not in found]
        found |= read_in_parts(node, missing, context, encode)
    context.bytes_read += sum(array.nbytes for array in found.values())
    return found


def _from_memory(table: MemoryTable, source: str, context: Context) -> pa.Array:
    table.check_values(source)
    array = to_physical(table.column(source), table.types[source])
    context.check()
    return array


def held_of(node: p.ParquetScan, context: Context) -> dict[str, pa.Array]:
    """Return those columns of a scan that the cache holds as they are, or the column store."""
    lift(node, node.sources, DEVICE, context)
    return held_columns(node, context.cache, DEVICE, _cut)


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
