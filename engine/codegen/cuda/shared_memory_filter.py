"""The CUDA target's bits in shared memory: those that a kernel which `warp_split` parts asks for all of its rows.

Probes at random take as long as the cache lines that a warp's threads look at are many, nearly as many as threads; from
shared memory they come in three to four turns a warp.  Each block copies the bits when it begins.  As many blocks as are
resident share a multiprocessor's memory, so blocks are as large as keeps most threads resident.

TPC-H SF10, hot on an H200, takes 4 % longer without it in the geometric mean (`benchmarks.micro.ablate`).
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from ..indexes.layers import NEAR, Bitmap, BloomFilter, Buffer, Layer
from ..layers_alone import Choosing
from ..loop import Guard, Let, Probe, subterms, terms_of, with_probes
from ..program import Program, SharedMemory
from .warp_split import Cut

RESERVED_BYTES = 1024  # of each block, by the driver
# Threads for which registers leave room, 40 each: more are not worth larger blocks.  They hide what rows wait for which only a
# sieve has let through, so that the bits behind it are asked for those alone
ENOUGH_THREADS = 1536
LEAST_RESIDENT = 1024  # threads, below which nothing hides what loads from memory take
THREADS = (256, 512, 1024)  # of a block
LEAST_ROWS = 1 << 23  # for which copying pays
AT_ONCE = 8  # words that a thread copies at a time
# Bits that no sieve is before; a larger share of fewer threads' memory gains less than it costs
MOST_BYTES = 32 * 1024


@dataclass(frozen=True, slots=True)
class Near:
    """A buffer that is copied, the threads of a block then, and the blocks that a multiprocessor's shared memory holds."""

    buffer: Buffer
    threads: int
    blocks: int

    @property
    def name(self) -> str:
        """The copy."""
        return self.buffer.name + NEAR

    @property
    def bounds(self) -> tuple[int, int]:
        """The threads of a block, and how many blocks of a multiprocessor their registers leave room for."""
        return self.threads, min(-(-ENOUGH_THREADS // self.threads), self.blocks)

    @property
    def alone(self) -> bool:
        """Whether a sieve alone chooses rows."""
        return self.threads * self.blocks >= ENOUGH_THREADS

    @property
    def bytes(self) -> int:
        return _size(self.buffer)


def near(program: Program, cut: Cut, cells: int, waiting: int) -> Near | None:
    """Choose what is copied, beside `cells` bytes of a block and `waiting` of each thread."""
    if program.relations[0].rows < LEAST_ROWS:
        return None
    buffer = _asked(cut)
    if buffer is None:
        return None
    fixed, memory = _size(buffer) + cells, program.shared_memory
    made = [Near(buffer, t, _blocks(memory, t, fixed + waiting * t)) for t in THREADS]
    best = max(made, key=lambda n: min(n.threads * n.blocks, ENOUGH_THREADS))
    return best if best.threads * best.blocks >= LEAST_RESIDENT else None


def _size(buffer: Buffer) -> int:
    """Bytes of a copy, such that anything can follow it."""
    return -(-4 * buffer.length // 16) * 16


def _asked(cut: Cut) -> Buffer | None:
    """The bits of the first probe among what chooses rows: a Bloom filter's, or a bitmap's if these are few."""
    for statement in cut.choosing:
        parts = [part for term in terms_of(statement) for part in subterms(term)]
        layers = [layer for part in parts if isinstance(part, Probe) for layer in part.layers]
        filters = [layer for layer in layers if isinstance(layer, BloomFilter | Bitmap)]
        for layer in sorted(filters, key=lambda f: not isinstance(f, BloomFilter)):
            (bits,) = layer.buffers
            few = isinstance(layer, BloomFilter) or 4 * bits.length <= MOST_BYTES
            return bits if few else None
    return None


def _blocks(memory: SharedMemory, threads: int, size: int) -> int:
    """How many blocks that take so much shared memory are resident."""
    if size > memory.block:
        return 0
    return min(memory.processor // (size + RESERVED_BYTES), memory.threads // threads)


def copied(held: Near) -> list[str]:
    """Copy the buffer to where the block's shared memory begins, several words a thread at a time; the last may come often."""
    length, step = held.buffer.length, held.threads
    places = [f"near_word + np.uint32({k * step})" for k in range(AT_ONCE)]
    return [
        f"{held.name} = cuda.shared.array(0, np.{held.buffer.type})",
        "near_word = np.uint32(cuda.threadIdx.x)",
        f"while near_word < np.uint32({length}):",
        *(f"    at{k} = min({at}, np.uint32({length - 1}))" for k, at in enumerate(places)),
        *(f"    held{k} = {held.buffer.name}[at{k}]" for k in range(AT_ONCE)),
        *(f"    {held.name}[at{k}] = held{k}" for k in range(AT_ONCE)),
        f"    near_word += np.uint32({AT_ONCE * step})",
        "cuda.syncthreads()",
    ]


def asking_near(choosing: tuple[Choosing, ...], held: Near) -> tuple[Choosing, ...]:
    """Have statements ask the copy."""

    def near_layer(layer: Layer) -> Layer:
        return replace(layer, near=layer.buffers == (held.buffer,))

    def asking(probe: Probe) -> Probe:
        return replace(probe, layers=tuple(map(near_layer, probe.layers)))

    def one(statement: Choosing) -> Choosing:
        match statement:
            case Let(_, term):
                return replace(statement, value=with_probes(term, asking))
            case Guard(term):
                return replace(statement, condition=with_probes(term, asking))
        return statement

    return tuple(map(one, choosing))
