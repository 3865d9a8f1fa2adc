"""Tables larger than memory: a pipeline runs once for each chunk of row groups of a scan, and the results are put together.

While one chunk is worked on, a thread reads the next one.  What an aggregate makes of a chunk is as small as its result; such
parts are merged as they grow (`plan.partial`).  Of a pipeline with joins the probe side comes in chunks; build sides are made
once, before.  Only columns that do not fit into the column cache come in chunks: what fits is read once and kept.
"""

from __future__ import annotations

import dataclasses
import time
from collections.abc import Generator, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from typing import TYPE_CHECKING, cast

from ..plan import physical as p
from ..plan.expr import Column
from ..plan.partial import PartialAggregate, in_parts
from ..plan.physical import RowGroups
from ..plan.pipeline_steps import PipelineSteps, steps_of
from ..progress.run_progress import Progress
from ..storage.columns.cache import CacheKey, ChunkCache, encoded_key
from .column_tiers import codes_on_host, lift, not_lifted
from .context import Context, PipelineReceipt, latest
from .host_memory import let_go
from .merge_parts import Merging, together
from .pipeline_backend import K, PipelineBackend
from .run_unfused import T, run_operators, with_stored_builds

if TYPE_CHECKING:
    from ..storage.tables.parquet import ParquetTable

Chunks = list[tuple[RowGroups, ...]]

# The chunk that is worked on lies in memory as it was read and encoded, beside the one that is being read, and results
CHUNKS_IN_ROOM = 4


class TooLarge(Exception):
    """The columns that operators would read do not fit, where those of a kernel would; `chunks` do."""

    def __init__(self, chunks: Chunks) -> None:
        super().__init__()
        self.chunks = chunks


def check_room(steps: PipelineSteps, context: Context) -> None:
    """Raise `TooLarge` when a chain without a kernel should rather run in chunks."""
    chunks = unfused_chunks(steps, context)
    if chunks is not None:
        raise TooLarge(chunks)


def unfused_chunks(steps: PipelineSteps, context: Context) -> Chunks | None:
    """Return the chunks in which steps run without a kernel, None where its columns fit as operators read them."""
    return chunks_of(steps, dataclasses.replace(context, fuse="never"))


def run_pipeline(
    node: p.Pipeline, inputs: tuple[T, ...], context: Context, backend: PipelineBackend[T, K]
) -> T:
    """Run a pipeline at once, or in chunks where its columns do not fit, or turn out not to fit.

    `inputs` are the tables of the nodes of this name.  Raises `MemoryError` when the device has no memory for a single row group.
    """
    memory = context.memory.pipeline(node)
    if memory.probe_bytes is None:
        memory.probe_bytes = _whole(node.steps.source)
    is_large = memory.probe_bytes > _room(context, node.device)
    chunks = _chunks_left(node.steps, context, backend) if is_large else None
    if chunks is None:
        # A device that had no memory has let go of its cached columns and tried once more
        try:
            return backend.pipeline(node, inputs, context)
        except TooLarge as error:
            plain = dataclasses.replace(context, fuse="never")
            chunks = _chunks_left(node.steps, plain, backend) or error.chunks
        except MemoryError:
            chunks = _smaller(node.steps, None)
            if chunks is None:
                raise
        let_go()
    return _in_chunks(node, inputs, chunks, context, backend)


def _in_chunks(
    node: p.Pipeline,
    inputs: tuple[T, ...],
    chunks: Chunks,
    context: Context,
    backend: PipelineBackend[T, K],
) -> T:
    """Run a pipeline in chunks, in smaller ones where there is no memory for these; build sides are made once for all."""
    identity = id(node)
    node, inputs = _after_builds(node, inputs, context, backend)
    while True:
        start = time.perf_counter()
        try:
            table, receipts = _stream(node, inputs, chunks, context, backend)
            break
        except MemoryError:
            smaller = _smaller(node.steps, chunks)
            if smaller is None:
                raise
            chunks = smaller
        let_go()
    done = _summed(receipts, len(chunks), time.perf_counter() - start)
    context.receipts[identity] = lambda: done
    return table


# What to stream


def chunks_of(steps: PipelineSteps, context: Context) -> Chunks | None:
    """Return the chunks in which steps are to run; None where its columns fit, are there, or cannot come in chunks."""
    scan = steps.source
    if not isinstance(scan, p.ParquetScan) or not scan.made:
        return None
    room = _room(context, scan.device)
    if _whole(scan) <= room:
        return None
    target = room // CHUNKS_IN_ROOM
    if on_host := codes_on_host(scan, context):
        if on_host <= room:
            return None
        # Of chunks of codes there are fewer, each of which makes indexes of build sides anew
        target = target * _whole(scan) // on_host
    chunks = _cut(scan, target)
    if len(chunks) < 2 or not _is_divisible(steps):
        return None
    if scan.device == "cpu":  # whose mapped columns take no room
        lift(scan, scan.sources, "cpu", context)
    fits = sum(_plain(scan, chunk) for chunk in chunks) <= room
    if fits or _fits_encoded(scan, room, context) or _is_cached(scan, context):
        return None
    return chunks


def _chunks_left(
    steps: PipelineSteps, context: Context, backend: PipelineBackend[T, K]
) -> Chunks | None:
    """Return the chunks that are left when columns that do not fit have gone to a tier below whole, where there is one: mapped on a CPU they take no room."""
    chunks = chunks_of(steps, context)
    if chunks is None or not isinstance(steps.source, p.ParquetScan):
        return chunks
    backend.store_columns(steps.source, context)
    return chunks_of(steps, context)


def row_group_runs(scan: p.ParquetScan, context: Context) -> Chunks:
    """Return the row groups of a scan in runs that there is room for while they are read."""
    return _cut(scan, _room(context, scan.device) // CHUNKS_IN_ROOM)


def _whole(scan: p.Physical) -> int:
    """The bytes of all columns that may come in chunks, as they are read."""
    return _files(scan).sizes.whole(scan.sources) if isinstance(scan, p.ParquetScan) else 0


def scan_below(node: p.Physical) -> p.ParquetScan | None:
    """Return the scan that a chain of filters and projections, below an aggregate or not, reads."""
    below = node.input if isinstance(node, p.HashAggregate) else node
    while isinstance(below, p.FilterRows | p.ComputeColumns):
        below = below.input
    return below if isinstance(below, p.ParquetScan) else None


def column_shares(
    scan: p.ParquetScan | p.MemoryScan, missing: Sequence[tuple[Column, str]], context: Context
) -> Iterator[list[tuple[Column, str]]]:
    """Yield columns that may be read together before they are encoded: all, or as many as there is room for."""
    if isinstance(scan, p.MemoryScan):
        yield list(missing)
        return
    room, sizes = _room(context, scan.device), _files(scan).sizes
    share: list[tuple[Column, str]] = []
    for pair in missing:
        together = [s for _, s in (*share, pair)]
        if share and sum(sizes.plain(together, part) for part in _selected(scan)) > room:
            yield share
            share = []
        share.append(pair)
    yield share


def _room(context: Context, device: str) -> int:
    limit = context.cache.limit(device)
    return limit if context.memory_limit is None else min(limit, context.memory_limit)


def _is_divisible(steps: PipelineSteps) -> bool:
    """Whether the result can be put together from those of chunks."""
    if steps.groups is not None:
        return isinstance(in_parts(steps.groups), PartialAggregate)
    return bool(steps.chain.steps)


def _fits_encoded(scan: p.ParquetScan, room: int, context: Context) -> bool:
    """Whether kernels' columns fit where plain ones do not; each must be read before it is encoded."""
    if context.fuse == "never":
        return False
    table, parts, sizes = _files(scan), _selected(scan), _files(scan).sizes
    rows = sum(table.group_rows[part.file][g] for part in parts for g in part.groups)
    largest = max(sum(sizes.plain([s], part) for part in parts) for s in scan.sources)
    return largest <= room and sizes.narrow(scan.sources, rows) <= room


def _is_cached(scan: p.ParquetScan, context: Context) -> bool:
    """Whether all columns are in the cache, as they are read or as kernels read them."""
    table = _files(scan)
    selection = None if scan.selection in (None, table.all_row_groups) else scan.selection
    keys = (CacheKey,) if context.fuse == "never" else (CacheKey, encoded_key)
    return any(
        all(context.cache.holds(key(table.identity, rows, s, scan.device)) for s in scan.sources)
        for key in keys
        for rows in (None, selection)
    )


def _selected(scan: p.ParquetScan) -> tuple[RowGroups, ...]:
    return _files(scan).all_row_groups if scan.selection is None else scan.selection


def _plain(scan: p.ParquetScan, chunk: Sequence[RowGroups]) -> int:
    sizes = _files(scan).sizes
    return sum(sizes.plain(scan.sources, part) for part in chunk)


def _files(scan: p.ParquetScan) -> ParquetTable:
    return cast("ParquetTable", scan.table)


def _cut(scan: p.ParquetScan, target: int) -> Chunks:
    """Cut a selection into runs of row groups of at most `target` bytes, or of one row group."""
    chunks: Chunks = []
    chunk: list[RowGroups] = []
    size = 0
    for part in _selected(scan):
        for group in part.groups:
            bytes_more = _plain(scan, [RowGroups(part.file, (group,))])
            if chunk and size + bytes_more > target:
                chunks.append(tuple(chunk))
                chunk, size = [], 0
            if chunk and chunk[-1].file == part.file:
                chunk[-1] = RowGroups(part.file, (*chunk[-1].groups, group))
            else:
                chunk.append(RowGroups(part.file, (group,)))
            size += bytes_more
    return [*chunks, tuple(chunk)] if chunk else chunks


def _smaller(steps: PipelineSteps, chunks: Chunks | None) -> Chunks | None:
    """Return more chunks than these, None standing for a single one; None where they cannot be smaller."""
    scan = steps.source
    if not isinstance(scan, p.ParquetScan) or not _is_divisible(steps):
        return None
    given = chunks or [_selected(scan)]
    largest = max((_plain(scan, chunk) for chunk in given), default=0)
    smaller = _cut(scan, largest // CHUNKS_IN_ROOM)
    return smaller if len(smaller) > len(given) else None


def _stream(
    node: p.Pipeline,
    inputs: tuple[T, ...],
    chunks: Chunks,
    context: Context,
    backend: PipelineBackend[T, K],
) -> tuple[T, list[PipelineReceipt]]:
    steps = node.steps
    split = None if steps.groups is None else in_parts(steps.groups)
    assert not isinstance(split, str)
    part = steps if split is None else steps_of(split.partial)
    receipts: list[PipelineReceipt] = []
    parts: list[T] = []

    def run(step: p.Physical, tables: tuple[T, ...]) -> T:
        return backend.operators.by_node[type(step)](step, tables, context)

    def joined(parts: Sequence[T]) -> T:
        made = node.body if split is None else split.partial
        return together(parts, made.columns, made.device, run)

    merging = None if split is None else Merging(split, run, joined)
    # Closed here, whatever happens: else a thread of its own pool might, which cannot wait for itself
    shares = context.progress.parts(len(chunks))
    with closing(_read_ahead(steps, chunks, context, backend)) as ahead:
        for share, (scan, inner) in zip(shares, ahead, strict=True):
            context.check()
            inner.progress = context.progress
            inner.progress.within(share)
            made = _run_chunk(part.over(scan), node, inputs, inner, backend)
            parts.append(backend.settled(made))
            receipts += [receipt() for receipt in inner.receipts.values()]
            if merging is not None and merging.is_due(parts[-1]):
                parts = [merging.merged(parts)]
            del made, scan, inner
    if split is None or merging is None:
        return joined(parts), receipts
    # No part knows which of its groups it keeps
    kept = () if steps.condition is None else (steps.condition,)
    return merging.merged(parts, *split.finish, *kept), receipts


def _after_builds(
    node: p.Pipeline, inputs: tuple[T, ...], context: Context, backend: PipelineBackend[T, K]
) -> tuple[p.Pipeline, tuple[T, ...]]:
    """Return a pipeline that reads its build sides as inputs, and all its inputs; a build side may come in chunks too."""
    body, sides = with_stored_builds(node.body, len(inputs))
    if not sides:
        return node, inputs
    plain = dataclasses.replace(context, fuse="never", receipts={})
    tables = []
    shares = context.progress.parts(len(sides) + 1)
    for side, share in zip(sides, shares, strict=False):
        context.progress.within(share)
        own = steps_of(side)
        chunks = _chunks_left(own, plain, backend)
        if chunks is None:
            tables.append(run_operators(side, inputs, plain, backend.operators))
        else:
            part = p.Pipeline(own, node.inputs, device=side.device)
            tables.append(_in_chunks(part, inputs, chunks, plain, backend))
    context.progress.within(shares[-1])
    context.bytes_read = plain.bytes_read
    made = p.Pipeline(steps_of(body), (*node.inputs, *sides), device=node.device)
    return made, (*inputs, *tables)


def _read_ahead(
    steps: PipelineSteps, chunks: Chunks, context: Context, backend: PipelineBackend[T, K]
) -> Generator[tuple[p.ParquetScan, Context], None, None]:
    """Yield the scan of each chunk with a context in whose cache its columns lie, while a thread reads the next one's."""
    scan = steps.source
    assert isinstance(scan, p.ParquetScan)
    # The kernel of the first chunk serves for others, so that compiling it while operators run would save little
    fuse = "never" if context.fuse == "never" else "always"

    def read(chunk: tuple[RowGroups, ...]) -> tuple[p.ParquetScan, Context]:
        own = ChunkCache(context.cache)
        inner = dataclasses.replace(
            context,
            cache=own,
            fuse=fuse,
            bytes_read=0,
            receipts={},
            progress=Progress(),  # another chunk is what the query is at
            _derived={},
        )
        part = dataclasses.replace(scan, selection=chunk)
        missing = part if fuse == "never" else not_lifted(part, backend.lift, inner)
        if missing.made:
            backend.operators.by_node[p.ParquetScan](missing, (), inner)
        return part, inner

    with ThreadPoolExecutor(1, thread_name_prefix="fuseline-chunks") as pool:
        ahead = [pool.submit(read, chunks[0])]
        for following in [*chunks[1:], None]:
            # Taken out: an error's frames would otherwise refer to the future that refers to the error
            ready = ahead.pop().result()
            if following is not None:
                ahead.append(pool.submit(read, following))
            context.bytes_read += ready[1].bytes_read
            yield ready
            del ready


def _run_chunk(
    steps: PipelineSteps,
    node: p.Pipeline,
    inputs: tuple[T, ...],
    inner: Context,
    backend: PipelineBackend[T, K],
) -> T:
    if inner.fuse == "never":
        return run_operators(steps.body, inputs, inner, backend.operators)
    return backend.pipeline(p.Pipeline(steps, node.inputs, device=node.device), inputs, inner)


def _summed(receipts: Sequence[PipelineReceipt], chunks: int, seconds: float) -> PipelineReceipt:
    """What all chunks did together; the time that no kernel took went into reading and encoding."""
    if not receipts:
        return PipelineReceipt("the chain has no kernel", chunks=chunks, load_seconds=seconds)
    spent = sum(r.seconds for r in receipts)
    compiling = sum(r.compile_seconds for r in receipts)
    return dataclasses.replace(
        receipts[-1],
        reason=next((r.reason for r in receipts if r.reason is not None), None),
        origin=latest(r.origin for r in receipts),
        rows=sum(r.rows for r in receipts),
        bytes=sum(r.bytes for r in receipts),
        seconds=spent,
        load_seconds=max(0.0, seconds - spent - compiling),
        compile_seconds=compiling,
        chunks=chunks,
    )
