"""Tables larger than memory: a pipeline runs once for each chunk of row groups of a scan, and the results are put together.

While one chunk is worked on, a thread reads the next one.  What an aggregate makes of a chunk is as small as its result; such
parts are merged as they grow (`plan.partial`).  Of a pipeline with joins the probe side comes in chunks; build sides are made
once, before, or read with each chunk (`narrowed_builds`).  Only columns that do not fit into the column cache come in chunks: what fits is
read once and kept.
"""

from __future__ import annotations

import dataclasses
import time
from collections.abc import Iterator, Sequence

from ..plan import physical as p
from ..plan.expr import Column
from ..plan.partial import PartialAggregate, in_parts
from ..plan.pipeline_steps import PipelineSteps, steps_of
from ..storage.columns.cache import (
    HOST,
    NO_ENCODING,
    CacheKey,
    encoded_key,
    kernel_key,
    plain_key,
)
from . import scan_runs
from .chunked_run import ChunkedRun, beside_builds
from .column_tiers import codes_on_host, lift
from .context import Context
from .host_memory import let_go
from .narrowed_builds import ChunkPlan, scans_read, with_stored_builds
from .pipeline_backend import K, PipelineBackend
from .run_unfused import T
from .scan_runs import Selection, cut, files_of, plain_bytes, selected, smaller

Chunks = list[Selection]

# Of columns as operators read them, for each thread, while a kernel compiles: they are decoded from codes that kernels will read.
# Of six million rows of TPC-H's Q1 they are 370 MB together
MEANWHILE_BYTES = 16 << 20

# Build sides up to this share of the room stay on the device and are put into an index for each chunk: faster than rows made once
SMALL_SHARE = 16


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
    source, limit = node.steps.source, context.memory_limit
    room, chunks = context.cache.limits[node.device], None
    memory = None if limit is None else context.memory.pipeline(node)
    if limit is not None:
        room = min(room, limit)
    if type(source) is p.ParquetScan and source.whole_bytes > room:
        chunks = _chunks_left(node.steps, context, backend)
    if chunks is None and memory is not None and memory.divided is not None:
        chunks = memory.divided[1] if memory.divided[0] == room else None
    if chunks is None:
        # A device that had no memory has let go of its cached columns and tried once more
        try:
            return backend.pipeline(node, inputs, context)
        except TooLarge as error:
            plain = dataclasses.replace(context, fuse="never")
            chunks = _chunks_left(node.steps, plain, backend) or error.chunks
        except MemoryError:
            chunks = smaller(source, None) if _is_divisible(node.steps) else None
            if chunks is None:
                raise
        let_go()
        # Or each run reads files, chunk by chunk
        if isinstance(source, p.ParquetScan):
            backend.store_columns(source, context)
        if memory is not None:
            memory.divided = room, chunks
    return _in_chunks(node, inputs, chunks, context, backend)


def run_meanwhile(
    node: p.Pipeline, inputs: tuple[T, ...], context: Context, backend: PipelineBackend[T, K]
) -> tuple[T, int] | None:
    """Run the operators of a pipeline in chunks while its kernel compiles, so that its columns are not there whole in a second form.

    Returns the table and how many chunks there were; None where there would be one, or columns would be read a second time later.  Joins
    run over all rows: in chunks each would make the index of its build side anew, and Q3's first run took twice as long.
    """
    chunks = _chunks_meanwhile(node.steps, context)
    if chunks is None:
        return None
    plain = dataclasses.replace(context, fuse="never")
    table = _in_chunks(node, inputs, chunks, plain, backend)
    context.bytes_read = plain.bytes_read
    return table, len(chunks)


def _in_chunks(
    node: p.Pipeline,
    inputs: tuple[T, ...],
    chunks: Chunks,
    context: Context,
    backend: PipelineBackend[T, K],
) -> T:
    """Run a pipeline in chunks; build sides of which each chunk needs all rows are made once."""
    plan, tables = _after_builds(node, inputs, chunks, context, backend)
    start = time.perf_counter()
    running = ChunkedRun(plan, tables, context, backend)
    table = running.table(beside_builds(plan, chunks))
    done = running.receipt(time.perf_counter() - start)
    context.receipts[id(node)] = lambda: done
    return table


# What to stream


def chunks_of(steps: PipelineSteps, context: Context) -> Chunks | None:
    """Return the chunks in which steps are to run; None where its columns fit, are there, or cannot come in chunks."""
    scan = steps.source
    if not isinstance(scan, p.ParquetScan) or not scan.made:
        return None
    room = _room(context, scan.device)
    if scan.whole_bytes <= room:
        return None
    target = room // scan_runs.CHUNKS_IN_ROOM
    if on_host := codes_on_host(scan, context):
        if on_host <= room:
            return None
        # Of chunks of codes there are fewer, each of which makes indexes of build sides anew
        target = target * scan.whole_bytes // on_host
    chunks = cut(scan, target)
    if len(chunks) < 2 or not _is_divisible(steps):
        return None
    if scan.device == "cpu":  # whose mapped columns take no room
        lift(scan, scan.sources, "cpu", context)
    fits = sum(plain_bytes(scan, chunk) for chunk in chunks) <= room
    if fits or _fits_encoded(scan, room, context) or _is_cached(scan, context):
        return None
    return chunks


def _chunks_meanwhile(steps: PipelineSteps, context: Context) -> Chunks | None:
    scan = steps.source
    if not isinstance(scan, p.ParquetScan) or not scan.made or scan.device != HOST:
        return None
    if not context.cache.is_lasting or not _is_divisible(steps) or len(steps.chains) > 1:
        return None
    chunks = cut(scan, context.threads * MEANWHILE_BYTES)
    if len(chunks) < 2:
        return None
    plain = [context.cache.holds(plain_key(scan, s, scan.device)) for s in scan.sources]
    codes = [context.cache.peek(kernel_key(scan, s, scan.device)) for s in scan.sources]
    there = (
        is_plain or code not in (None, NO_ENCODING)
        for is_plain, code in zip(plain, codes, strict=True)
    )
    return chunks if all(there) and not all(plain) else None


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
    return cut(scan, _room(context, scan.device) // scan_runs.CHUNKS_IN_ROOM)


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
    room, sizes = _room(context, scan.device), files_of(scan).sizes
    share: list[tuple[Column, str]] = []
    for pair in missing:
        together = [s for _, s in (*share, pair)]
        if share and sum(sizes.plain(together, part) for part in selected(scan)) > room:
            yield share
            share = []
        share.append(pair)
    yield share


def _room(context: Context, device: str) -> int:
    limit = context.cache.limits[device]
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
    table, parts, sizes = files_of(scan), selected(scan), files_of(scan).sizes
    rows = sum(table.group_rows[part.file][g] for part in parts for g in part.groups)
    largest = max(sum(sizes.plain([s], part) for part in parts) for s in scan.sources)
    return largest <= room and sizes.narrow(scan.sources, rows) <= room


def _is_cached(scan: p.ParquetScan, context: Context) -> bool:
    """Whether all columns are in the cache, as they are read or as kernels read them."""
    table = files_of(scan)
    selection = None if scan.selection in (None, table.all_row_groups) else scan.selection
    keys = (CacheKey,) if context.fuse == "never" else (CacheKey, encoded_key)
    return any(
        all(context.cache.holds(key(table.identity, rows, s, scan.device)) for s in scan.sources)
        for key in keys
        for rows in (None, selection)
    )


def _after_builds(
    node: p.Pipeline,
    inputs: tuple[T, ...],
    chunks: Chunks,
    context: Context,
    backend: PipelineBackend[T, K],
) -> tuple[ChunkPlan, tuple[T, ...]]:
    """Return a pipeline that reads build sides as inputs, and all its inputs; a build side may come in chunks too."""
    is_fused = context.fuse != "never" and node.device != HOST
    small = _room(context, node.device) // SMALL_SHARE if is_fused else -1
    steps, sides, whole = with_stored_builds(node.steps, len(inputs), chunks, small)
    known = context.memory.pipeline(node).chunked
    plan = known.get(key := (*map(id, sides), 0, *map(id, whole)))
    if plan is None:
        made = p.Pipeline(
            steps if sides else node.steps, (*node.inputs, *sides), device=node.device
        )
        parts = (p.Pipeline(steps_of(side), node.inputs, device=side.device) for side in sides)
        plan = known[key] = ChunkPlan(made, frozenset(map(id, whole)), tuple(parts))
    for scan in scans_read(steps):
        if scan is not steps.source:
            backend.store_columns(scan, context)
    if not sides:
        return plan, inputs
    plain = dataclasses.replace(context, fuse="never", receipts={})
    tables = []
    shares = context.progress.parts(len(sides) + 1)
    for side, share in zip(plan.sides, shares, strict=False):
        context.progress.within(share)
        tables.append(run_pipeline(side, inputs, plain, backend))
    context.progress.within(shares[-1])
    context.bytes_read = plain.bytes_read
    return plan, (*inputs, *tables)
