"""A pipeline over one run of row groups after the other, while a thread reads the next one's columns."""

from __future__ import annotations

import dataclasses
from collections.abc import Generator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from dataclasses import dataclass, field
from typing import Generic

from ..plan import physical as p
from ..progress.run_progress import Progress
from ..storage.columns.cache import HOST, ChunkCache
from .column_tiers import not_lifted
from .context import Context, PipelineReceipt, latest
from .host_memory import let_go
from .narrowed_builds import ChunkPlan, ChunkSteps, bytes_read
from .pipeline_backend import K, PipelineBackend
from .run_unfused import T, run_operators
from .scan_runs import Selection, cut, plain_bytes, smaller
from .spilling import Merging, together

# The bytes of build sides with indexes over their rows, as multiples of the former
INDEXED = 2


def beside_builds(plan: ChunkPlan, chunks: list[Selection]) -> list[Selection]:
    """Return chunks that take as much, with what is read of build sides for them, as these do alone."""
    scan = plan.part.source
    assert isinstance(scan, p.ParquetScan)
    alone = max(plain_bytes(scan, chunk) for chunk in chunks)
    whole = max(bytes_read(plan.steps(chunk)) for chunk in chunks)
    return chunks if whole <= alone else cut(scan, alone * alone // whole)


@dataclass
class ChunkedRun(Generic[T, K]):
    """A pipeline that runs in chunks, with what has been made of those that are done; `tries` had no memory."""

    plan: ChunkPlan
    inputs: tuple[T, ...]
    context: Context
    backend: PipelineBackend[T, K]
    tries: int = 0
    done: int = 0
    parts: list[T] = field(default_factory=list)
    receipts: list[PipelineReceipt] = field(default_factory=list)

    def table(self, chunks: list[Selection]) -> T:
        """Run each chunk, and smaller ones of those that are left where there is no memory for one."""
        steps, split = self.plan.node.steps, self.plan.split
        made = self.plan.part.body

        def joined(parts: Sequence[T]) -> T:
            return together(parts, made.columns, made.device, self._run)

        merging = None if split is None else Merging(split, self._run, joined)
        self._make_room(chunks)
        while chunks:
            before = self.done
            try:
                self._run_all(self.plan.over(chunks), merging)
                break
            except MemoryError:
                left = smaller(steps.source, chunks[self.done - before :])
                if left is None:
                    raise
                chunks = left
            self.tries += 1
            let_go()
        if split is None or merging is None:
            return joined(self.parts)
        # No part knows which of its groups it keeps
        kept = () if steps.condition is None else (steps.condition,)
        return merging.merged(self.parts, *split.finish, *kept)

    def _run(self, step: p.Physical, tables: tuple[T, ...]) -> T:
        return self.backend.operators.by_node[type(step)](step, tables, self.context)

    def _make_room(self, chunks: list[Selection]) -> None:
        """Have cached columns leave a device that would not have room for build sides with their indexes, and two chunks, beside them."""
        context, device = self.context, self.plan.node.device
        limit = context.memory_limit
        if limit is None or device == HOST:
            return
        held = INDEXED * sum(map(self.backend.operators.num_bytes, self.inputs))
        largest = max(bytes_read(self.plan.steps(chunk), encoded=True) for chunk in chunks)
        needed = context.cache.used(device) + held + 2 * largest
        context.cache.release(device, max(0, needed - limit))

    def _run_all(self, chunks: list[ChunkSteps], merging: Merging[T] | None) -> None:
        # Closed here, whatever happens: else a thread of its own pool might, which cannot wait for itself
        context = self.context
        shares = context.progress.parts(len(chunks))
        with closing(_read_ahead(chunks, context, self.backend)) as ahead:
            # Without `zip`, which keeps what it gave last until it has the next
            for share in shares:
                chunk, inner = next(ahead)
                context.check()
                inner.progress = context.progress
                inner.progress.within(share)
                made = self._run_chunk(chunk, inner)
                self.parts.append(self.backend.settled(made))
                self.receipts += [receipt() for receipt in inner.receipts.values()]
                self.done += 1
                if merging is not None and merging.is_due(self.parts[-1]):
                    self.parts = [merging.merged(self.parts)]
                del made, inner

    def _run_chunk(self, chunk: ChunkSteps, inner: Context) -> T:
        if inner.fuse == "never":
            return run_operators(chunk.steps.body, self.inputs, inner, self.backend.operators)
        # Smaller chunks come where one has no room, and what no kernel holds in one it may hold in others
        memory = inner.memory.pipeline(chunk.node)
        memory.short_of_memory, memory.refused = False, None
        return self.backend.pipeline(chunk.node, self.inputs, inner)

    def receipt(self, seconds: float) -> PipelineReceipt:
        """What all chunks did together; the time that no kernel took went into reading and encoding."""
        receipts = self.receipts or [PipelineReceipt("the chain has no kernel")]
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
            chunks=self.done,
            tries=self.tries,
        )


def _read_ahead(
    chunks: list[ChunkSteps], context: Context, backend: PipelineBackend[T, K]
) -> Generator[tuple[ChunkSteps, Context], None, None]:
    """Yield each chunk with a context in whose cache its columns lie, while a thread reads the next one's."""
    # The kernel of the first chunk serves for others, so that compiling it while operators run would save little
    fuse = "never" if context.fuse == "never" else "always"

    def read(chunk: ChunkSteps) -> tuple[ChunkSteps, Context]:
        own = ChunkCache(context.cache)
        inner = dataclasses.replace(
            context,
            cache=own,
            fuse=fuse,
            bytes_read=0,
            receipts={},
            chunk=chunk.scans,
            progress=Progress(),  # another chunk is what the query is at
            _derived={},
        )
        for scan, _ in chunk.scans.values():
            missing = scan if fuse == "never" else not_lifted(scan, backend.lift, inner)
            if missing.made:
                backend.operators.by_node[p.ParquetScan](missing, (), inner)
        return chunk, inner

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
