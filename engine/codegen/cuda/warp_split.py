"""Where a CUDA kernel with probes parts in two: what chooses rows, without a branch, and what becomes of the few that are chosen.

A warp runs as long as its slowest thread.  After a selective probe one or two lanes would each go through a chain of
dependent loads while the others wait; so the rows that survive queue until there is one for each lane.

TPC-H SF10, hot on an H200, takes 7 % longer without it in the geometric mean (`benchmarks.micro.ablate`).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from itertools import chain, takewhile

from ...records import dataclass
from .. import loop as ir
from ..indexes.layers import NEAR, Bitmap, BloomFilter, Buffer, Identity, Layer
from ..layers_alone import Choosing, layers_alone
from ..program import Program, SharedMemory
from ..program_builder import ROW, ROW_LIMIT
from ..typed_values import Input

QUEUES = True  # False: each thread goes on with its own rows, for a comparison
MOST_CHOSEN = 0.5  # of the rows, by the planner's estimate
FEW_CHOSEN = 1 / 8  # by filters alone, so that not even the first probe is made for all rows
UNKNOWN = 0.5  # the share where there is no estimate
MOST_CARRIED = 8


@dataclass(frozen=True, slots=True)
class Cut:
    """`choosing` says which rows are chosen; `handling` does the rest for these.

    `words` are columns that `choosing` reads, those of others are loaded row by row.  `carried` are values that `handling`
    reads besides `row`, the number of the row.
    """

    choosing: tuple[Choosing, ...]
    handling: tuple[ir.Statement, ...]
    words: tuple[Input, ...]
    carried: tuple[ir.Name, ...]
    row: ir.Machine

    @property
    def fields(self) -> tuple[ir.Name, ...]:
        """What is kept of each row that waits, in the types of memory, those of 8 bytes first."""
        held = [ir.Name(ROW.text, self.row), *self.carried]
        kept = [replace(n, type=ir.Machine.I32) if n.type is ir.Machine.BOOL else n for n in held]
        return tuple(sorted(kept, key=lambda n: n.type not in (ir.Machine.I64, ir.Machine.F64)))


def cut(program: Program, in_memory: bool, sieve_alone: bool = False) -> Cut | None:
    """Cut a program where few rows go on, and these have far to go; `in_memory`: its groups are in device memory.

    `sieve_alone`: bits that lie behind a sieve are asked for chosen rows only, as buckets are in any case.
    """
    known = {t.name for t in program.tables} | {b.name for b in program.buffers}
    count = _place(program, known) if QUEUES else None
    if count is None:
        return None
    before, after = program.body[:count], program.body[count:]
    choosing = tuple(s for s in before if isinstance(s, ir.Let | ir.Guard | ir.Doubt))
    read = ir.names_in(*(term for s in choosing for term in ir.terms_of(s)))
    words = tuple(i for i in program.inputs if read & set(_names(program, i)))
    choosing, behind, guards = layers_alone(choosing, BloomFilter, sieve_alone)
    after = (*guards, *after)
    if not _is_long(after, program, known, in_memory):
        return None
    choosing, bits_behind, _ = layers_alone(choosing, Bitmap, True)
    behind |= bits_behind
    wanted = _wanted(program, after)
    again, carried = _known(program, choosing, behind, wanted, words)
    if carried is None:
        return None
    late = [i for i in program.inputs if i not in words]
    handling = _with_loads(program, (*again, *after), late, wanted)
    narrow = program.relations[0].rows < ROW_LIMIT
    return Cut(choosing, handling, words, carried, ir.Machine.I32 if narrow else ir.Machine.I64)


def _place(program: Program, known: set[str]) -> int | None:
    """How many statements come before the cut: after the first probe, or after filters that leave few rows for it."""
    share, probed, filters = 1.0, False, None
    plain = takewhile(lambda s: not _reads_rows(s, known), program.body)
    for count, statement in enumerate(plain, 1):
        probed = probed or _probes(statement)
        if isinstance(statement, ir.Guard):
            share *= UNKNOWN if statement.share is None else statement.share
            if not probed:
                filters = count, share
                continue
            if filters is not None and filters[1] < FEW_CHOSEN:
                break
            return count if share <= MOST_CHOSEN else None
    return filters[0] if filters is not None and filters[1] <= MOST_CHOSEN else None


def _is_long(
    after: tuple[ir.Statement, ...], program: Program, known: set[str], in_memory: bool
) -> bool:
    """Whether what is done for a chosen row takes long, and there is a probe before it or in it."""
    if not any(_probes(s) or _reads_rows(s, known) for s in program.body):
        return False
    if any(_probes(s) or _reads_rows(s, known) for s in after):
        return True
    grouping = program.grouping
    # Groups by the row that the probe has found come in runs, as long as not only few rows are left of these
    in_runs = grouping is not None and grouping.row is not None and program.reach >= FEW_CHOSEN
    scattered = grouping is not None and in_memory and not in_runs
    return scattered or program.index is not None or bool(program.rows_out)


def _known(
    program: Program,
    choosing: tuple[Choosing, ...],
    behind: dict[str, ir.Let],
    wanted: set[str],
    words: tuple[Input, ...],
) -> tuple[list[ir.Statement], tuple[ir.Name, ...] | None]:
    """What is computed again for a chosen row, and what is carried: what probes found, and codes; None if that is too much.

    To `wanted`, the names that are read for it, come those that are read to compute something again.
    """
    lets = [s for s in choosing if isinstance(s, ir.Let)]
    found = {s.name.text for s in lets if _probes(s)}
    again: list[ir.Statement] = []
    carried: dict[str, ir.Name] = {}
    for statement in reversed(lets):
        name = statement.name
        if name.text in wanted and name.text in behind:
            wanted |= ir.names_in(behind[name.text].value)
            again.insert(0, behind[name.text])
        elif name.text in wanted and name.text in found:
            carried[name.text] = name
        elif name.text in wanted:
            wanted |= ir.names_in(statement.value)
            again.insert(0, ir.Let(name, statement.value))
    for source in words:
        code, valid = _names(program, source)
        carried |= {code: ir.Name(code, source.register)} if code in wanted else {}
        carried |= {valid: ir.Name(valid, ir.Machine.BOOL)} if valid in wanted else {}
    changed = any([s.name.text for s in lets].count(name) > 1 for name in found)
    return again, None if changed or len(carried) > MOST_CARRIED else tuple(carried.values())


def _wanted(program: Program, after: tuple[ir.Statement, ...]) -> set[str]:
    """The names that statements and the sink read."""
    terms = [term for s in after for term in ir.terms_of(s)]
    if program.grouping is not None:
        terms.append(program.grouping.slot)
    for accumulator in program.accumulators:
        terms.append(accumulator.term)
        terms += [] if accumulator.condition is None else [accumulator.condition]
    rows = {program.relations[number].row for number in program.rows_out}
    kept = set() if program.keep is None else {program.keep.text}
    return ir.names_in(*terms) | rows | kept


def _with_loads(
    program: Program, body: tuple[ir.Statement, ...], late: list[Input], wanted: set[str]
) -> tuple[ir.Statement, ...]:
    """Load columns at the row, each before its first use: few rows get as far as the last of them."""
    read = [ir.names_in(*ir.terms_of(s)) for s in body]
    before: list[list[ir.Statement]] = [[] for _ in range(len(body) + 1)]
    for source in late:
        name, (code, valid) = program.names[source.column], _names(program, source)
        loads = before[_first_use({code, valid}, body, read)]
        if code in wanted:
            loads.append(ir.Let(ir.Name(code, source.register), source.code_at(name, ROW)))
        if valid in wanted:
            loads.append(ir.Let(ir.Name(valid, ir.Machine.BOOL), source.valid_at(name, ROW)))
    *others, last = before
    return (*(s for loads, own in zip(others, body, strict=True) for s in (*loads, own)), *last)


def _first_use(names: set[str], body: tuple[ir.Statement, ...], read: list[set[str]]) -> int:
    """The place of the first statement that reads any of some names, or that repeats what follows."""
    for place, statement in enumerate(body):
        if isinstance(statement, ir.Each) or names & read[place]:
            return place
    return len(body)


def _names(program: Program, source: Input) -> tuple[str, str]:
    """The variables of a column: its code, and whether it is valid."""
    name = program.names[source.column]
    return f"{name}_code", f"{name}_valid"


def _parts(statement: ir.Statement) -> Iterator[ir.Term]:
    return chain.from_iterable(map(ir.subterms, ir.terms_of(statement)))


def _probes(statement: ir.Statement) -> bool:
    return any(map(_is_probe, _parts(statement)))


def _is_probe(term: ir.Term) -> bool:
    """Whether a term looks into an index: a Bloom filter alone is small, and has a word for any number; identity looks nowhere."""
    idle = BloomFilter | Identity
    return isinstance(term, ir.Probe) and not all(isinstance(layer, idle) for layer in term.layers)


def _reads_rows(statement: ir.Statement, known: set[str]) -> bool:
    """Whether a statement reads rows that a probe has found; elements of `known` arrays are none."""
    if isinstance(statement, ir.Each | ir.Search):
        return True
    return any(
        (isinstance(part, ir.Lookup) and part.table not in known)
        or (isinstance(part, ir.Function) and part.name == "bit_at")
        for part in _parts(statement)
    )


def only_alive(term: ir.Term, alive: ir.Name) -> ir.Term:
    """Return a term whose probes look for nothing where the row is not alive."""

    def limited(probe: ir.Probe) -> ir.Probe:
        if not _is_probe(probe):
            return probe
        *before, last = probe.args
        if last.type is ir.Machine.BOOL:  # whether there is a number
            last = ir.Apply("&", (alive, last), ir.Machine.BOOL)
        else:
            last = ir.Select(alive, last, ir.Number(-1, last.type), last.type)
        return replace(probe, args=(*before, last))

    return ir.with_probes(term, limited)


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
        parts = [part for term in ir.terms_of(statement) for part in ir.subterms(term)]
        layers = [layer for part in parts if isinstance(part, ir.Probe) for layer in part.layers]
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

    def asking(probe: ir.Probe) -> ir.Probe:
        return replace(probe, layers=tuple(map(near_layer, probe.layers)))

    def one(statement: Choosing) -> Choosing:
        match statement:
            case ir.Let(_, term):
                return replace(statement, value=ir.with_probes(term, asking))
            case ir.Guard(term):
                return replace(statement, condition=ir.with_probes(term, asking))
        return statement

    return tuple(map(one, choosing))
