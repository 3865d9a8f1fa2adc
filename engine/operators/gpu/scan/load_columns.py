"""Columns of a scan into the cache, a few at a time: while one turn is encoded, threads read the next ones.

Reading a file keeps the host busy, decoding it and encoding columns the device; each reader works on a stream of its own, and
encoding on another, so that none waits for what another has launched.  Memory goes back to the stream that it was taken on, and
so nothing that outlives a turn may belong to any but the default stream, on which everything else runs.
"""

from __future__ import annotations

import dataclasses
import gc
from collections import deque
from collections.abc import Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from functools import cache
from typing import Any

from rmm.pylibrmm.stream import CudaStreamFlags, Stream

from ....plan import physical as p
from ....plan.expr import Column
from ....plan.physical import RowGroups
from ....plan.types import Kind
from ....storage.columns.cache import NO_ENCODING, kernel_key, part_of, plain_key, row_groups
from ....storage.columns.encodings import EncodedColumn
from ....storage.tables.device_table import DeviceTable
from ....storage.tables.parquet import ParquetTable
from ...context import Context
from ...host_memory import NoRoom
from ...streaming import column_shares
from ..dictionaries import Held
from ..memory.device import free_memory, is_out_of_memory, take_device
from . import run_column_kernels
from .compact import CompactText
from .encode_columns import encode_each, encode_together
from .scan import DEVICE, read_columns
from .stored_columns import keep_column

# Each turn costs some milliseconds, and what is read last is encoded while nothing is read
MOST_TURNS = 4
BYTES_A_TURN = 1 << 30  # at least
MOST_BYTES_A_TURN = 6 << 30
READERS = 2
ENCODING = READERS  # the number of the stream that columns are encoded on

# Columns of a scan by their sources: what was encoded, and the names of those that have no encoding
Encoded = tuple[dict[str, EncodedColumn], list[str]]
Columns = Sequence[tuple[Column, str]]


def load(
    scan: p.ParquetScan | p.MemoryScan,
    missing: Sequence[str],
    context: Context,
    compact: bool = False,
) -> Iterator[Encoded]:
    """Load columns into the cache, as many at a time as there is room for; what has no encoding is kept as it is.

    With `compact` long texts are kept in fewer bytes; a query that is about to read them would only have to undo that.
    """
    types = {s: c for c, s in zip(scan.made, scan.sources, strict=True)}
    pairs = [(types[source], source) for source in dict.fromkeys(missing)]
    keep_compact = compact and not isinstance(scan.table, DeviceTable)
    by_kernels = bool(pairs) and run_column_kernels.ready(context, _rows(scan))
    for share in column_shares(scan, pairs, context) if pairs else []:
        turns, ahead = _schedule(scan, share, context)
        for columns in _read(scan, turns, context, by_kernels, ahead):
            made: dict[str, EncodedColumn] = {}
            refused = []
            each = (
                encode_together(columns, types, _stream(ENCODING), context, keep_compact)
                if by_kernels
                else encode_each(columns, types, context)
            )
            for source, encoded in each:
                key = kernel_key(scan, source, DEVICE)
                if isinstance(encoded, EncodedColumn):
                    made[source] = encoded
                    context.cache.put(key, encoded, encoded.nbytes)
                    keep_column(scan, source, encoded, context)
                    continue
                refused.append(source)
                if isinstance(encoded, CompactText):
                    context.cache.put(key, encoded, encoded.device_buffer_size())
                    continue
                context.cache.put(key, NO_ENCODING, 0)
                key = plain_key(scan, source, DEVICE)
                if not isinstance(scan.table, DeviceTable) and not context.cache.holds(key):
                    context.cache.put(key, encoded, encoded.device_buffer_size())
            yield made, refused


def _read(
    scan: p.ParquetScan | p.MemoryScan,
    turns: Sequence[Columns],
    context: Context,
    by_kernels: bool,
    ahead: int,
) -> Iterator[dict[str, Held]]:
    """Yield the columns of turns as they are read, `ahead` of them while one is encoded, or none before it is let go of.

    Only what kernels encode may belong to another stream than the default one.  A turn for which there is no memory is read once
    more, alone, without the columns of other scans; raises `NoRoom` where that does not help.
    """
    waiting = deque(turns)
    apart = by_kernels and isinstance(scan.table, ParquetTable)
    streams = [_stream(i) for i in range(max(1, min(ahead, len(turns))))] if apart else [None]
    running: dict[Future[tuple[dict[str, Held], int]], tuple[Columns, Stream | None]] = {}
    with ThreadPoolExecutor(len(streams), "fuseline-columns", take_device) as pool:

        def start(stream: Stream | None) -> None:
            if waiting:
                turn = waiting.popleft()
                reading = pool.submit(_read_turn, part_of(scan, turn), context, stream)
                running[reading] = turn, stream

        for stream in streams:
            start(stream)
        while running:
            done = wait(running, return_when=FIRST_COMPLETED).done.pop()
            turn, stream = running.pop(done)
            if lacking := _ran_out(done):
                del done  # whose frames have what was read
                ahead = 0
                waiting.appendleft(turn)
                if not running:
                    _make_room(scan, context, lacking)
                    start(stream)
                continue
            if ahead:
                start(stream)
            columns, bytes_read = done.result()
            context.bytes_read += bytes_read
            del done
            yield columns
            columns.clear()
            if not ahead:
                start(stream)


def _ran_out(done: Future[tuple[dict[str, Held], int]]) -> str:
    """What a read says that ended for want of memory; nothing of any other."""
    error = done.exception()
    if not (isinstance(error, Exception) and is_out_of_memory(error)):
        return ""
    return str(error) or "an allocation failed"


def _make_room(scan: p.ParquetScan | p.MemoryScan, context: Context, lacking: str) -> None:
    """Let go of what the cache holds of other scans; raises `NoRoom` where that is nothing."""
    gc.collect()
    own = {key(scan, s, DEVICE) for s in scan.sources for key in (kernel_key, plain_key)}
    if not context.cache.release_others(DEVICE, own):
        raise NoRoom(f"{lacking}; {free_memory()}")


def _rows(scan: p.ParquetScan | p.MemoryScan) -> int:
    table: Any = scan.table
    return int(table.num_rows)


def _read_turn(
    scan: p.ParquetScan | p.MemoryScan, context: Context, stream: Stream | None
) -> tuple[dict[str, Held], int]:
    """Return the columns of one turn, and how many bytes they are."""
    apart = dataclasses.replace(context, bytes_read=0)
    return read_columns(scan, apart, stream), apart.bytes_read


@cache
def _stream(number: int) -> Stream:
    """A stream that waits for no other unless it is told to."""
    return Stream(flags=CudaStreamFlags.NON_BLOCKING)


def _schedule(
    scan: p.ParquetScan | p.MemoryScan, share: Columns, context: Context
) -> tuple[list[Columns], int]:
    """Return the turns, and how many are read while one is encoded: none where the memory limit has no room for that.

    Then what takes most while it is read comes first, as long as little is encoded, and columns of other queries make room:
    lineitem of TPC-H SF100 under 20 GB is read once that way, and three times where it is found out by trying.
    """
    table = scan.table
    if not isinstance(table, ParquetTable):
        return [share], READERS
    chosen = table.all_row_groups if row_groups(scan) is None else scan.selection or ()  # type: ignore[union-attr]
    turns = _turns(table, share, chosen)
    if context.memory_limit is None:
        return turns, READERS
    most = [
        (sum(table.sizes.reading([s for _, s in turn], part) for part in chosen), turn)
        for turn in turns
    ]
    most.sort(key=lambda pair: pair[0], reverse=True)
    held = context.cache.used(DEVICE)
    if held + sum(size for size, _ in most[: READERS + 1]) <= context.memory_limit:
        return turns, READERS
    context.cache.release(DEVICE, max(0, held + most[0][0] - context.memory_limit))
    return [turn for _, turn in most], 0


def _turns(table: ParquetTable, share: Columns, chosen: Sequence[RowGroups]) -> list[Columns]:
    """Split columns into turns of about equal size; long texts, of which each may be as large as a turn, come first."""
    sizes = {s: sum(table.sizes.plain([s], part) for part in chosen) for _, s in share}
    target = min(max(BYTES_A_TURN, sum(sizes.values()) / MOST_TURNS), MOST_BYTES_A_TURN)
    turns: list[list[tuple[Column, str]]] = [[]]
    room = target
    for pair in sorted(share, key=lambda pair: not _is_long(table, *pair)):
        if turns[-1] and sizes[pair[1]] / 2 > room:
            turns.append([])
            room = target
        turns[-1].append(pair)
        room -= sizes[pair[1]]
    return list(turns)


def _is_long(table: ParquetTable, column: Column, source: str) -> bool:
    return column.type.kind is Kind.VARCHAR and not (
        source in table.constants or table.has_small_dictionary(source)
    )
