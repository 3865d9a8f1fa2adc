"""A pipeline over one run of row groups after the other, while a thread reads the next one's columns."""

from __future__ import annotations

import dataclasses
from collections.abc import Generator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from dataclasses import field
from typing import Generic

from ..plan import physical as p
from ..plan.partial import PartialAggregate
from ..progress.run_progress import Progress
from ..records import dataclass
from ..storage.columns.cache import ChunkCache
from .column_tiers import not_lifted
from .context import Context, PipelineReceipt, latest
from .host_memory import let_go
from .narrowed_builds import ChunkPlan, ChunkSteps, bytes_read
from .pipeline_backend import K, PipelineBackend
from .run_unfused import T
from .scan_runs import Selection, cut, plain_bytes, smaller
from .spilling import Merging, together


def beside_builds(plan: ChunkPlan, chunks: list[Selection]) -> list[Selection]:
    """Return chunks that take as much, with what is read of build sides for them, as these do alone."""
    scan = plan.part.source
    assert isinstance(scan, p.ParquetScan)
    alone = max(plain_bytes(scan, chunk) for chunk in chunks)
    whole = max(bytes_read(plan.steps(chunk)) for chunk in chunks)
    return chunks if whole <= alone else cut(scan, alone * alone // whole)


@dataclass
class ChunkedRun(Generic[T, K]):
    """A pipeline that runs in chunks, with what has been made of those that are done; `tries` had no memory.

    `parts` are put together at the end; `finished` has groups that no other chunk has, after conditions: of TPC-H's Q18 some thousands of 150 million.
    """

    plan: ChunkPlan
    inputs: tuple[T, ...]
    context: Context
    backend: PipelineBackend[T, K]
    tries: int = 0
    done: int = 0
    parts: list[T] = field(default_factory=list)
    finished: list[T] = field(default_factory=list)
    receipts: list[PipelineReceipt] = field(default_factory=list)

    def table(self, chunks: list[Selection]) -> T:
        """Run each chunk, and smaller ones of those that are left where there is no memory for one."""
        steps, split = self.plan.node.steps, self.plan.split
        made = self.plan.part.body

        def joined(parts: Sequence[T]) -> T:
            return together(parts, made.columns, made.device, self._run)

        merging = None if split is None else Merging(split, self._run, joined)
        given = tuple(chunks)
        chunks = self.plan.fitting.get(given, chunks)
        while self.done < len(chunks):
            try:
                self._run_all(self.plan.over(chunks[self.done :]), merging)
                break
            except MemoryError:
                left = smaller(steps.source, chunks[self.done :])
                if left is None:
                    raise
                chunks = [*chunks[: self.done], *left]
            self.tries += 1
            let_go()
        if self.tries:
            self.plan.fitting[given] = chunks
        if split is None or merging is None:
            return joined(self.parts)
        last = merging.merged(self.parts, *self._ends(split))
        parts = (*self.finished, last)
        return together(parts, steps.body.columns, made.device, self._run)

    def _ends(self, split: PartialAggregate) -> tuple[p.Physical, ...]:
        """What becomes of whole groups: no part knows which of its own it keeps."""
        kept = self.plan.node.steps.condition
        return split.finish if kept is None else (*split.finish, kept)

    def _unfinished(self, groups: T, chunk: ChunkSteps) -> T:
        """Return the groups that other chunks may have too, and finish the rest."""
        split, parted = self.plan.split, self.plan.parted(chunk.steps)
        if split is None or parted is None:
            return groups
        table, own = groups, parted[0]
        for step in (own, *self._ends(split)):
            table = self._run(step, (table,))
        self.finished.append(self.backend.settled(table))
        return self._run(parted[1], (groups,))

    def _run(self, step: p.Physical, tables: tuple[T, ...]) -> T:
        return self.backend.operators.by_node[type(step)](step, tables, self.context)

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
                made = self._unfinished(self._run_chunk(chunk, inner), chunk)
                self.parts.append(self.backend.settled(made))
                self.receipts += [receipt() for receipt in inner.receipts.values()]
                self.done += 1
                if merging is not None and merging.is_due(self.parts[-1]):
                    self.parts = [merging.merged(self.parts)]
                del made, inner

    def _run_chunk(self, chunk: ChunkSteps, inner: Context) -> T:
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
    """Yield each chunk with a context in whose cache its columns lie, while a thread reads the next one's.

    It has the interpreter until copies have begun: kernels of the chunk before are launched while these use the link.
    """
    # The kernel of the first chunk serves for others, so that compiling it while operators run would save little
    fuse = "never" if context.fuse == "never" else "always"

    def read(chunk: ChunkSteps, own: ChunkCache) -> tuple[ChunkSteps, Context]:
        try:
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
            scans = [scan for scan, _ in chunk.scans.values()]
            if fuse != "never":
                backend.lift(scans, inner)
                scans = [not_lifted(scan, inner) for scan in scans]
        finally:
            own.begun.set()  # whatever happens: the other thread waits for it
        for scan in scans:
            if scan.made:
                backend.operators.by_node[p.ParquetScan](scan, (), inner)
        return chunk, inner

    with ThreadPoolExecutor(1, thread_name_prefix="fuseline-chunks") as pool:
        ahead = [pool.submit(read, chunks[0], ChunkCache(context.cache))]
        for following in [*chunks[1:], None]:
            # Taken out: an error's frames would otherwise refer to the future that refers to the error
            ready = ahead.pop().result()
            if following is not None:
                cache = ChunkCache(context.cache)
                ahead.append(pool.submit(read, following, cache))
                cache.begun.wait()
                del cache
            context.bytes_read += ready[1].bytes_read
            yield ready
            del ready
