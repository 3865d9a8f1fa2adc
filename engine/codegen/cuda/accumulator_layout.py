"""Where a CUDA kernel keeps its accumulators while it runs, and how they lie there.

One accumulator is one cell a group.  In shared memory each cell has several copies, so that threads do not meet at one address;
copies become one when a block ends.  A launch gives no thread more than `ROWS_A_THREAD` rows, so that cells of small values may
take 32 bits, and an exact sum that needs two accumulators in the end needs one while a block adds up its own rows.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from enum import StrEnum
from itertools import groupby

from ...records import dataclass
from ..emit import nests
from ..groups.accumulate import Accumulator
from ..loop import Apply, Convert, Machine, Number, Select, Term
from ..program import WHOLE_COUNT, Program, once
from ..ranges import I32_MAX, I64_MAX
from .packed_counters import counts
from .vector_loads import WORD_IN_TURN
from .warp_split import Cut, Near, cut, near

ROWS_A_THREAD = 1 << 15
UNBOUNDED = 1 << 62  # values of a thread, where one row may become any number
BLOCK_THREADS = 256
PRIVATE_THREADS = 128
WARP = 32
# Of shared memory for a block whose threads share no cell: four blocks a multiprocessor
PRIVATE_BYTES = 48 * 1024
COPIES_BYTES = 48 * 1024  # up to which a block's table gets another copy
TABLE_BYTES = (
    96 * 1024
)  # of shared memory for one table, at most half of what a block may have: two blocks a multiprocessor
# Where few rows arrive, what a kernel waits for is others: shared memory leaves room for as many threads as registers do
FEW_ARRIVE = 1 / 8  # of the rows
FEW_COPIES_BYTES = 4 * 1024
# A table that leaves no such room is in device memory where so few rows arrive that it matters little if all have one group
HARDLY_ANY_ARRIVE = 1 / 128
FEW_TABLE_BYTES = 16 * 1024
# Groups in device memory from which on half the bytes a cell are worth kernels of their own
SHORT_GROUPS = 1 << 20
CELL_BYTES = {Machine.I64: 8, Machine.F64: 8, Machine.I32: 4, Machine.F32: 4}
WAITING = WARP * (1 + WORD_IN_TURN)  # rows of a warp that may wait, and one entry for others
IDENTITY_I32 = {"add": 0, "min": I32_MAX, "max": -I32_MAX - 1}


class Place(StrEnum):
    """Where the accumulators of a group are while the kernel runs."""

    REGISTERS = "registers"  # no groups: of each thread, then of each warp in shared memory
    WARPS = "warps"  # no groups: of each thread, then of each warp, and from there to device memory
    PRIVATE = "private"  # shared memory, a copy for each thread: no atomics, no bank conflicts
    BLOCK = "block"  # shared memory, a copy for some threads: shared atomics
    GLOBAL = "global"  # device memory


@dataclass(frozen=True, slots=True)
class Cell:
    """The cells of an accumulator, or of the low and the high part of one sum, which end apart.

    `numbers` are the program's accumulators, `at` the place among the cells of its machine, `outs` the rows in its array.
    `short`: it ends in 32 bits.  `packed`: it then has only so many while the kernel runs, in a word with others (0: it has
    its own).
    """

    accumulator: Accumulator
    machine: Machine
    numbers: tuple[int, ...]
    at: int = 0
    outs: tuple[int, ...] = (0,)
    short: bool = False
    packed: int = 0

    @property
    def array(self) -> str:
        """The result array that it ends in."""
        return "out_n" if self.short else "out_f" if self.machine is Machine.F64 else "out_i"

    @property
    def identity(self) -> int | float:
        """What a cell begins with."""
        if self.machine is Machine.I32:
            return IDENTITY_I32[self.accumulator.fold]
        return self.accumulator.identity


@dataclass(frozen=True, slots=True)
class Layout:
    """All cells of a kernel, like ones side by side.

    In shared memory lie bits that are copied (`warp_split`), the 64-bit integers, then the doubles, then the 32-bit integers, each as [accumulator][group][copy].
    A thread folds at most `values` values into a cell.  `sized`: the kernel learns the number of groups when it is launched,
    since a hash table may grow, and a build side have more rows next time; `with_groups` then tells the layout.  `cut`: rows
    that survive it wait in shared memory after the cells, an array for each field as [warp][row].
    """

    place: Place
    groups: int
    copies: int
    cells: tuple[Cell, ...]
    values: int = ROWS_A_THREAD
    sized: bool = False
    cut: Cut | None = None
    near: Near | None = None

    def with_groups(self, groups: int) -> Layout:
        """Return the layout for so many groups."""
        assert self.sized
        return replace(self, groups=groups)

    @property
    def threads(self) -> int:
        """Threads of a block."""
        if self.near is not None:
            return self.near.threads
        return PRIVATE_THREADS if self.place is Place.PRIVATE else BLOCK_THREADS

    @property
    def shared_bytes(self) -> int:
        """Dynamic shared memory of a block."""
        if self.cut is None:
            return self.cell_bytes
        return self.queue_start + self.threads * _waiting_bytes(self.cut)

    @property
    def queue_start(self) -> int:
        """The byte of shared memory from which on rows wait."""
        return self.near_bytes + -(-self.cell_bytes // 8) * 8

    @property
    def near_bytes(self) -> int:
        """Shared memory of bits that are copied, which comes first."""
        return 0 if self.near is None else self.near.bytes

    @property
    def cell_bytes(self) -> int:
        """Shared memory of all cells."""
        if self.place in (Place.GLOBAL, Place.WARPS):
            return 0
        return sum(CELL_BYTES[c.machine] for c in self.cells) * self.groups * self.copies

    def start(self, machine: Machine) -> int:
        """Where the cells of a machine begin in shared memory, counted in cells of that size."""
        before = {
            Machine.I64: (),
            Machine.F64: (Machine.I64,),
            Machine.I32: (Machine.I64, Machine.F64),
        }
        count = sum(c.machine in before[machine] for c in self.cells) * self.groups * self.copies
        return (self.near_bytes + count * 8) // CELL_BYTES[machine]

    def runs(self) -> list[list[Cell]]:
        """Neighbours that begin and end alike, so that one loop serves them."""
        return [list(run) for _, run in groupby(self.cells, _kind)]

    @property
    def packed(self) -> list[Cell]:
        """The cells that share words; in their array they come first."""
        return [c for c in self.cells if c.packed]

    def results(self) -> dict[int, tuple[str, int]]:
        """Where each of the program's accumulators ends: the array, and the row in it."""
        return {n: (c.array, o) for c in self.cells for n, o in zip(c.numbers, c.outs, strict=True)}

    def identities(self, array: str, alike: bool = False) -> list[int | float]:
        """What each row of a result array begins with; with `alike` words of equal bytes, where these do."""
        cells = [(o, c.accumulator) for c in self.cells if c.array == array for o in c.outs]
        rows = {o: held.initial if alike else held.identity for o, held in cells}
        return [rows[i] for i in range(len(rows))]


@once
def layout(program: Program) -> Layout:
    """Choose the fastest place for all groups, by how many rows arrive, and lay the cells out there; then see whether rows wait."""
    where = _cells_laid_out(program, BLOCK_THREADS)
    in_memory = where.place is Place.GLOBAL
    parted = cut(program, in_memory)
    if parted is None:
        return where
    if where.place is Place.PRIVATE:
        return replace(where, cut=parted)
    held = near(program, parted, where.cell_bytes, _waiting_bytes(parted))
    if held is not None:
        parted = cut(program, in_memory, held.alone) or parted
        made = replace(_cells_laid_out(program, held.threads), cut=parted, near=held)
        if made.place is where.place and made.shared_bytes <= program.shared_memory.block:
            return made
        parted = cut(program, in_memory)
    return replace(where, cut=parted)


def _waiting_bytes(parted: Cut) -> int:
    """Shared memory for rows that wait, for each thread."""
    return WAITING // WARP * sum(CELL_BYTES[field.type] for field in parted.fields)


def _cells_laid_out(program: Program, threads: int) -> Layout:
    grouping = program.grouping
    if program.rows_out or (grouping is not None and grouping.ordered is not None):
        return Layout(Place.GLOBAL, 1, 1, ())
    if grouping is not None and (grouping.hashed or grouping.row is not None):
        return Layout(Place.GLOBAL, 0, 1, _shortened(program), sized=True)
    groups = 1 if grouping is None else grouping.groups
    values = UNBOUNDED if program.repeats else ROWS_A_THREAD
    many = values * threads
    if grouping is None:
        cells = _numbered(_cells(program, many))
        # The kernels of a query are many, and bringing warps together makes half of a small one
        if nests(program):
            return Layout(Place.WARPS, 1, 0, cells, values)
        return Layout(Place.REGISTERS, 1, threads // WARP, cells, values)
    arrive = 1.0 if program.repeats else program.reach
    few = arrive <= FEW_ARRIVE
    found = _cells(program, many)
    private = _narrowed(found, values)
    if not few and _bytes(private) * groups * PRIVATE_THREADS <= PRIVATE_BYTES:
        return Layout(Place.PRIVATE, groups, PRIVATE_THREADS, private, values)
    block = _narrowed(found, many)
    size = _bytes(block) * groups
    most = min(TABLE_BYTES, program.shared_memory.block // 2)
    if size <= (FEW_TABLE_BYTES if arrive <= HARDLY_ANY_ARRIVE else most):
        copies = 1
        while copies < WARP and 2 * copies * size <= (FEW_COPIES_BYTES if few else COPIES_BYTES):
            copies *= 2
        return Layout(Place.BLOCK, groups, copies, block, values)
    cells = _shortened(program) if groups > SHORT_GROUPS else _numbered(_apart(program))
    return Layout(Place.GLOBAL, groups, 1, cells)


def _apart(program: Program) -> list[Cell]:
    return [Cell(a, a.machine, (i,)) for i, a in enumerate(program.accumulators)]


def _shortened(program: Program) -> tuple[Cell, ...]:
    """Make counts and sums of many groups 32 bits where all rows cannot pass them: less to fill, to read, and to keep cached."""
    rows = UNBOUNDED if program.repeats else max(program.relations[0].rows, 1)
    return _numbered(
        [
            replace(c, machine=Machine.I32, short=True, packed=_packed(c, program))
            if c.accumulator.fold == "add" and cell_machine(c.accumulator, rows) is Machine.I32
            else c
            for c in _apart(program)
        ]
    )


def _packed(cell: Cell, program: Program) -> int:
    bits = program.count_bits
    return bits if bits < WHOLE_COUNT and counts(cell.accumulator) else 0


def _cells(program: Program, rows: int) -> list[Cell]:
    """A cell for each accumulator; the parts of a sum share one that holds the sum of `rows` values."""
    if not any(map(_low_part_of, program.accumulators)):
        return _apart(program)
    found = {a: i for i, a in enumerate(program.accumulators)}
    cells: list[Cell] = []
    taken: set[int] = set()
    for accumulator, i in found.items():
        sum_of = _low_part_of(accumulator)
        if sum_of is not None:
            high = Apply(">>", (sum_of, Number(32, Machine.I64)), Machine.I64)
            j = found.get(replace(accumulator, term=high))
            magnitude = 0 if j is None else magnitude_of(program.accumulators[j]) << 32
            if j is not None and magnitude * rows <= I64_MAX:
                whole = replace(accumulator, term=sum_of, magnitude=magnitude)
                cells.append(Cell(whole, Machine.I64, (i, j)))
                taken |= {i, j}
    return cells + [cell for cell in _apart(program) if not taken.issuperset(cell.numbers)]


def _low_part_of(accumulator: Accumulator) -> Term | None:
    """The term of a sum, of which this is the accumulator of the low 32 bits."""
    match accumulator.fold, accumulator.term:
        case "add", Apply("&", (term, Number(value))) if value == 0xFFFFFFFF:
            return term
    return None


def _narrowed(cells: list[Cell], rows: int) -> tuple[Cell, ...]:
    """Make cells as small as `rows` values allow."""
    machines = [cell_machine(c.accumulator, rows) for c in cells]
    return _numbered(
        [
            c if c.machine is m else replace(c, machine=m)
            for c, m in zip(cells, machines, strict=True)
        ]
    )


def _bytes(cells: tuple[Cell, ...]) -> int:
    return sum(CELL_BYTES[c.machine] for c in cells)


def _numbered(cells: list[Cell]) -> tuple[Cell, ...]:
    """Number cells so that like ones are neighbours, in shared memory and in the results."""
    at: Counter[Machine] = Counter()
    rows: Counter[str] = Counter()
    made: list[Cell] = []
    for _, group in groupby(sorted(cells, key=_kind), _kind):
        run = list(group)
        for place, cell in enumerate(run):
            first = rows[cell.array] + place
            outs = tuple(first + part * len(run) for part in range(len(cell.numbers)))
            here = at[cell.machine] + place
            same = (here, outs) == (cell.at, cell.outs)
            made.append(cell if same else replace(cell, at=here, outs=outs))
        at[run[0].machine] += len(run)
        rows[run[0].array] += len(run) * len(run[0].numbers)
    return tuple(made)


def _kind(cell: Cell) -> tuple[int, str, int, bool]:
    machines = (Machine.I64, Machine.F64, Machine.I32)
    machine = machines.index(cell.machine)
    return machine, cell.accumulator.fold, len(cell.numbers), not cell.packed


def cell_machine(accumulator: Accumulator, rows: int) -> Machine:
    """The register type that holds the fold of `rows` values."""
    if accumulator.machine is Machine.F64 or accumulator.fold not in IDENTITY_I32:
        return accumulator.machine
    magnitude = magnitude_of(accumulator)
    if accumulator.fold == "add":
        magnitude *= rows
    # Above the magnitude, so that no value is the identity of min or max
    return Machine.I32 if magnitude < I32_MAX else Machine.I64


def magnitude_of(accumulator: Accumulator) -> int:
    """The largest absolute value of an integer accumulator's term."""
    known = _magnitude(accumulator.term)
    return known if accumulator.magnitude is None else min(known, accumulator.magnitude)


def _magnitude(term: Term) -> int:
    match term:
        case Number(value):
            return abs(int(value))
        case Select(_, yes, no):
            return max(_magnitude(yes), _magnitude(no))
        case Convert(operand):
            return _magnitude(operand)
    return {Machine.BOOL: 1, Machine.I32: I32_MAX + 1}.get(term.type, 2**63)


def narrowed(term: Term) -> Term:
    """Return a term of a small value as a 32-bit one, looking through the conversion that widened it."""
    match term:
        case Number(value):
            return Number(value, Machine.I32)
        case Select(condition, yes, no):
            return Select(condition, narrowed(yes), narrowed(no), Machine.I32)
        case Convert(operand) if operand.type is Machine.I32:
            return operand
        case Convert(operand):
            return Convert(operand, Machine.I32)
    return term if term.type is Machine.I32 else Convert(term, Machine.I32)
