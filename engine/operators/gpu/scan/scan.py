"""Scans: columns of files and of tables in memory, in physical form, through the column cache.

A column that is read in full is kept as one device column, so that the next query copies nothing.  A selection of row
groups is cut out of that column when it is there, and read and kept on its own when it is not.  Strings of which few
differ are kept as codes.  A column that the cache holds only as kernels read it is decoded instead of being read again.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from threading import Lock
from typing import TYPE_CHECKING
from weakref import WeakKeyDictionary

import pyarrow as pa
import pylibcudf as plc

from ....plan import physical as p
from ....plan.arrow.arrow_arrays import array_from
from ....plan.physical import RowGroups
from ....plan.types import DataType, Kind, to_arrow
from ....settings import set_default
from ....storage.columns.cache import CacheKey, encoded_key
from ....storage.columns.device_decode import codes_of
from ....storage.columns.device_value_checks import check_device_text, check_device_timestamps
from ....storage.columns.encodings import EncodedColumn
from ....storage.columns.piece_caches import PassingCache, PieceCache
from ....storage.columns.value_checks import is_int96_in
from ....storage.tables.column_chunks import row_ranges
from ....storage.tables.device_table import DeviceTable
from ....storage.tables.footers import unreadable, wrong_count
from ....storage.tables.memory_table import MemoryTable
from ....storage.tables.parquet import ParquetTable
from ...column_tiers import read_from_files
from ...context import Context
from ...cpu.scan.read_parts import read_part
from ...scan_runs import Selection, by_id, chosen_of, held_columns, rows_in
from ..columns import empty, null_column
from ..dictionaries import Held, encoded, slices
from ..memory.device import check_room, is_out_of_memory, make_room, on_device, synchronize
from ..pipeline.stored import decoded
from ..table import (
    Table,
    check_rows,
    concat_columns,
    concat_held,
    device_type,
    in_physical_form,
    to_device,
)
from .compact import CompactText
from .stored_columns import lift_columns

if TYPE_CHECKING:
    import pyarrow.parquet as pq
    from rmm.pylibrmm.stream import Stream

DEVICE = "gpu"
# Uncompressed bytes that one call of the reader takes: decoding needs a few times as much beside the result.
BYTES_A_READ = 8 << 30
MOST_IO_THREADS = (
    16  # that copy from files; libcudf's own number, 4, leaves a PCIe 5 link idle half of the time
)

# Footers of a table's files as libcudf keeps them, which it would read anew for each turn of columns
_footers: WeakKeyDictionary[ParquetTable, dict[int, pq.FileMetaData]] = WeakKeyDictionary()
_footers_lock = Lock()


@on_device
def memory_scan(node: p.MemoryScan, inputs: tuple[Table, ...], context: Context) -> Table:
    table = node.table
    assert isinstance(table, MemoryTable)
    check_rows(table.num_rows, f'Reading "{table.name}"')
    found: dict[str, Held] = {}
    for source in dict.fromkeys(node.sources):
        column = _held_in_memory(table, source, context)
        if column is None:
            column = _decoded(table, source, None, context)
            if column is None:
                column = encoded(to_device(table.column(source), table.types[source]))
            key = CacheKey(table.identity, None, source, DEVICE)
            context.cache.put(key, column, column.device_buffer_size())
            context.check()
        found[source] = column
    if not isinstance(table, DeviceTable):
        context.bytes_read += _bytes(found)
    return Table(by_id(node, found), table.num_rows)


@on_device
def parquet_scan(node: p.ParquetScan, inputs: tuple[Table, ...], context: Context) -> Table:
    if not isinstance(context.cache, PassingCache):
        return _scanned(node, context)
    # A piece, of which nothing stays
    inner = dataclasses.replace(context, cache=PieceCache(context.cache), bytes_read=0)
    made = _scanned(node, inner)
    context.bytes_read += inner.bytes_read
    return made


def _scanned(node: p.ParquetScan, context: Context) -> Table:
    table, selection, chosen = chosen_of(node)
    rows = _selected_rows(table, chosen)
    found = _held(node, context)
    made: dict[str, Held] = {}
    for source in dict.fromkeys(node.sources):
        if source not in found:
            column = _decoded(table, source, selection, context)
            if column is not None:
                made[source] = column
    missing = [s for s in dict.fromkeys(node.sources) if s not in found and s not in made]
    for source, read in _read(table, missing, chosen, context):
        made[source] = encoded(read)
    for source, column in made.items():
        key = CacheKey(table.identity, selection, source, DEVICE)
        context.cache.put(key, column, column.device_buffer_size())
    found |= made
    context.bytes_read += _bytes(found)
    return Table(by_id(node, found), rows)


def read_columns(
    node: p.ParquetScan | p.MemoryScan, context: Context, stream: Stream | None = None
) -> dict[str, Held]:
    """Return a scan's columns by their sources; those that are not in the cache do not get there, nor become codes.

    With a stream files are read on it, and nothing runs on it any more when this returns; the columns may belong to it.
    """
    if isinstance(node, p.MemoryScan):
        table = node.table
        assert isinstance(table, MemoryTable)
        check_rows(table.num_rows, f'Reading "{table.name}"')
        found: dict[str, Held] = {}
        for source in dict.fromkeys(node.sources):
            held = _held_in_memory(table, source, context)
            found[source] = (
                to_device(table.column(source), table.types[source]) if held is None else held
            )
            context.check()
        if isinstance(table, DeviceTable):
            return found
    else:
        files, _, chosen = chosen_of(node)
        _selected_rows(files, chosen)
        found = _held(node, context)
        missing = [s for s in dict.fromkeys(node.sources) if s not in found]
        found |= dict(_read(files, missing, chosen, context, stream))
    context.bytes_read += _bytes(found)
    return found


def _selected_rows(table: ParquetTable, chosen: Sequence[RowGroups]) -> int:
    whole = chosen is table.all_row_groups
    count = table.num_rows if whole else rows_in(table, chosen)
    return check_rows(count, f'Reading "{table.name}"')


def _bytes(columns: Mapping[str, Held]) -> int:
    return sum(column.device_buffer_size() for column in columns.values())


def _held_in_memory(table: MemoryTable, source: str, context: Context) -> Held | None:
    table.check_values(source)
    if isinstance(table, DeviceTable):
        return table.device_columns[source]
    return context.cache.get(CacheKey(table.identity, None, source, DEVICE))


def _held(node: p.ParquetScan, context: Context) -> dict[str, Held]:
    """Return those columns of a scan that the cache holds as they are, after a look into the column store."""
    lift_columns(node, context)
    return held_columns(node, context.cache, DEVICE, _cut)


def _decoded(
    table: ParquetTable | MemoryTable, source: str, selection: Selection | None, context: Context
) -> Held | None:
    """Return a column of which the cache holds what kernels read, of just these row groups or of all."""
    held = context.cache.get(encoded_key(table.identity, selection, source, DEVICE))
    if isinstance(held, CompactText):
        return held.plain(context.kernel_directory)
    if isinstance(held, EncodedColumn):
        return decoded(codes_of(held), held.encoding, device_type(held.type))
    if selection is None:
        return None
    assert isinstance(table, ParquetTable)
    whole = context.cache.get(encoded_key(table.identity, None, source, DEVICE))
    if isinstance(whole, CompactText):
        return _cut(whole.plain(context.kernel_directory), table, selection)
    if not isinstance(whole, EncodedColumn):
        return None
    return decoded(_cut(codes_of(whole), table, selection), whole.encoding, device_type(whole.type))


def _cut(whole: Held, table: ParquetTable, selection: tuple[RowGroups, ...]) -> Held:
    """Return the rows of some row groups; without a copy when they lie side by side."""
    bounds = [i for pair in row_ranges(table, selection) for i in pair]
    return concat_held(slices(whole, bounds or [0, 0]))


def _read(
    table: ParquetTable,
    sources: Sequence[str],
    chosen: Sequence[RowGroups],
    context: Context,
    stream: Stream | None = None,
) -> Iterator[tuple[str, plc.Column]]:
    """Yield columns of some row groups, strings as they are; those of the files are read together, in as few calls as memory allows."""
    from_files = [s for s in sources if s not in table.constants]
    if from_files:
        read_from_files(table, from_files, chosen, context)
        set_default("KVIKIO_NTHREADS", str(min(context.threads, MOST_IO_THREADS)))
        parts: dict[str, list[plc.Column]] = {s: [] for s in from_files}
        for share in _shares(table, chosen, len(from_files)):
            make_room(sum(table.sizes.reading(from_files, part) for part in share), context)
            check_room(sum(table.sizes.reading(from_files, part, copies=1) for part in share))
            read = _read_share(table, from_files, share, stream)
            for source, column in zip(from_files, read, strict=True):
                made = in_physical_form(column, table.types[source])
                check_device_timestamps(column, made, _whence(table, source, share))
                check_device_text(made, _whence(table, source, share), stream)
                parts[source].append(made)
                if stream is not None and made is not column:
                    synchronize()  # before the column is let go of, on its stream
            context.check()
        table.check_unchanged(chosen)
        for source, columns in parts.items():
            whole = concat_columns(columns or [empty(device_type(table.types[source]))])
            if stream is not None and len(columns) > 1:
                synchronize()
            yield source, whole
            columns.clear()
    for source in sources:
        if source in table.constants:
            yield source, _constant(table, source, chosen)


def _whence(table: ParquetTable, source: str, share: Sequence[RowGroups]) -> str:
    paths = " or ".join(f'"{table.files[part.file].path}"' for part in share[:2])
    return f'The column "{table.parquet_names[source]}" of the file {paths}'


def _shares(
    table: ParquetTable, chosen: Sequence[RowGroups], width: int
) -> Iterator[list[RowGroups]]:
    """Split a selection into runs of row groups of which `width` columns have about `BYTES_A_READ`.

    libcudf reads files in one call only when all have the same columns in the same order.
    """
    share: list[RowGroups] = []
    size = 0
    for part in chosen:
        if share and not _same_columns(table, share[-1], part):
            yield share
            share, size = [], 0
        for group in part.groups:
            if not table.group_rows[part.file][group]:
                continue
            footer = table.footers[part.file].row_group(group)
            size += footer.total_byte_size * width // footer.num_columns
            if share and share[-1].file == part.file:
                share[-1] = RowGroups(part.file, (*share[-1].groups, group))
            else:
                share.append(RowGroups(part.file, (group,)))
            if size >= BYTES_A_READ:
                yield share
                share, size = [], 0
    if share:
        yield share


def _same_columns(table: ParquetTable, one: RowGroups, other: RowGroups) -> bool:
    return one.file == other.file or bool(
        table.footers[one.file].schema.equals(table.footers[other.file].schema)
    )


def _read_share(
    table: ParquetTable, sources: Sequence[str], share: Sequence[RowGroups], stream: Stream
) -> list[plc.Column]:
    """Read columns of some row groups, and wait for the stream if one is given; raises `FileError`, naming the file.

    Arrow reads INT96, of which libcudf would make nanoseconds, which wrap.
    """
    found: dict[str, plc.Column] = {}
    for source in sources:
        if is_int96_in(table, source, share[0].file):
            arrays = [read_part(table, part, (source,), set())[0] for part in share]
            found[source] = to_device(pa.chunked_array(arrays), table.types[source])
    others = [s for s in sources if s not in found]
    if others:
        read = _read_on_device(table, others, share, stream)
        found |= dict(zip(others, read, strict=True))
    return [found[source] for source in sources]


def _read_on_device(
    table: ParquetTable, sources: Sequence[str], share: Sequence[RowGroups], stream: Stream
) -> list[plc.Column]:
    names = [table.parquet_names[s] for s in sources]
    paths = [table.files[part.file].path for part in share]
    parquet = plc.io.parquet
    builder = parquet.ParquetReaderOptions.builder(plc.io.SourceInfo(paths)).column_names(names)
    options = builder.use_arrow_schema(False).use_pandas_metadata(False).build()
    options.set_row_groups([list(part.groups) for part in share])
    try:
        footers = _footers_of(table, share)
        read = parquet.read_parquet(options, stream, parquet_metadatas=footers)
    except (OSError, ValueError, RuntimeError) as error:
        if is_out_of_memory(error):
            raise
        raise unreadable(_suspect(table, share), error) from error
    if stream is not None:
        stream.synchronize()
    by_name = dict(zip(read.column_names(), read.columns, strict=True))
    expected = sum(table.stored_rows[part.file][g] for part in share for g in part.groups)
    for column in read.columns:
        if column.size() != expected:
            raise wrong_count(_suspect(table, share), column.size(), expected)
    return [_within(table, by_name[name], share) for name in names]


def _within(table: ParquetTable, column: plc.Column, share: Sequence[RowGroups]) -> plc.Column:
    """Return the rows of a column that are the table's, of what files hold of some row groups."""
    rows = rows_in(table, share)
    if rows == column.size():
        return column
    skipped, _ = table.within(share[0]) or (0, 0)
    return plc.copying.slice(column, [skipped, skipped + rows])[0]


def _footers_of(table: ParquetTable, share: Sequence[RowGroups]) -> list[pq.FileMetaData]:
    with _footers_lock:
        known = _footers.setdefault(table, {})
        missing = [part.file for part in share if part.file not in known]
        if missing:
            source = plc.io.SourceInfo([table.files[file].path for file in missing])
            read = plc.io.parquet_metadata.read_parquet_footers(source)
            known.update(zip(missing, read, strict=True))
        return [known[part.file] for part in share]


def _suspect(table: ParquetTable, share: Sequence[RowGroups]) -> str:
    """Return the first file of a share that is gone, else the first one."""
    paths = [str(table.files[part.file].path) for part in share]
    return next((path for path in paths if not Path(path).is_file()), paths[0])


def _constant(table: ParquetTable, source: str, chosen: Sequence[RowGroups]) -> plc.Column:
    """Return a column with one value a file."""
    constant = table.constants[source]
    parts = [
        _repeated(constant.values[part.file], constant.type, rows_in(table, (part,)))
        for part in chosen
    ]
    return concat_columns(parts or [empty(device_type(constant.type))])


def _repeated(value: object, data_type: DataType, rows: int) -> plc.Column:
    if value is None or data_type.kind is Kind.NULL:
        return null_column(rows, device_type(data_type))
    if not rows:
        return empty(device_type(data_type))
    one = to_device(array_from([value], to_arrow(data_type)), data_type)
    return plc.Column.from_scalar(one.to_scalar(), rows)
