"""The CUDA target's sinks: folding rows into accumulators, and bringing those of threads and blocks together."""

from __future__ import annotations

from ..emit import folded, indent, text
from ..loop import Machine
from ..program import Program
from ..ranges import I32_MAX
from .accumulator_layout import (
    IDENTITY_I32,
    WARP,
    Cell,
    Layout,
    Place,
    cell_machine,
    magnitude_of,
    narrowed,
)
from .packed_counters import begin_added, fold_packed, report_added

IN_REGISTERS = (Place.REGISTERS, Place.WARPS)
ATOMICS = {"or": "or_", "and": "and_"}  # the others are called as the folds are
SHARED = {Machine.I64: "shared_i", Machine.F64: "shared_f", Machine.I32: "shared_n"}


def select(condition: str, yes: str, no: str) -> str:
    """A choice without a branch."""
    return f"cuda.selp({condition}, {yes}, {no})"


def doubt_index(where: Layout) -> str:
    """Where in out_i the doubts are counted: after the accumulators."""
    return "out_i.size - 1" if where.sized else str(len(where.identities("out_i")) * where.groups)


def begin(where: Layout) -> list[str]:
    """Set every accumulator to its identity."""
    if where.place is Place.GLOBAL:
        return begin_added(where.cells)
    lines = ["lane = np.uint32(cuda.threadIdx.x)"]
    lines += [] if where.place is Place.WARPS else _shared_arrays(where)
    if where.place in IN_REGISTERS:
        for i, cell in enumerate(where.cells):
            machine, identity = register(cell, where)
            lines.append(f"a{i} = np.{machine.value}({identity!r})")
        return lines
    if where.copies < where.threads:
        lines.append(f"copy = np.int32(lane & np.uint32({where.copies - 1}))")
    else:
        lines.append("copy = np.int32(lane)")
    for run in where.runs():
        start, length = _span(run, where)
        lines += [
            "cell = lane",
            f"while cell < np.uint32({length * where.copies}):",
            f"    {SHARED[run[0].machine]}[np.uint32({start}) + cell] = {_identity(run[0])}",
            "    cell += np.uint32(cuda.blockDim.x)",
        ]
    return [*lines, "cuda.syncthreads()"]


def register(cell: Cell, where: Layout) -> tuple[Machine, int | float]:
    """The type of a register accumulator and its identity."""
    machine = cell_machine(cell.accumulator, where.values)
    return machine, identity_of(cell, machine)


def identity_of(cell: Cell, machine: Machine) -> int | float:
    """What a register of this type begins with."""
    accumulator = cell.accumulator
    return IDENTITY_I32[accumulator.fold] if machine is Machine.I32 else accumulator.identity


def _shared_arrays(where: Layout) -> list[str]:
    """Views of the block's dynamic shared memory, which begin at the same address; each cell is used through one."""
    machines = {c.machine for c in where.cells}
    return [
        f"{name} = cuda.shared.array(0, np.{machine.value})"
        for machine, name in SHARED.items()
        if machine in machines
    ]


def _identity(cell: Cell) -> str:
    return f"np.{cell.machine.value}({cell.identity!r})"


def _span(run: list[Cell], where: Layout) -> tuple[int, int]:
    """First element in shared memory of a run of cells, and its length in cells."""
    first = run[0]
    start = where.start(first.machine) + first.at * where.groups * where.copies
    return start, len(run) * where.groups


# Rows


def _partial(cell: Cell, where: Layout, rows: int) -> bool:
    """Whether the values of a word are added in 32 bits before they go into a 64-bit register."""
    accumulator = cell.accumulator
    return (
        accumulator.fold == "add"
        and register(cell, where)[0] is Machine.I64
        and magnitude_of(accumulator) * rows <= I32_MAX
    )


def word_partials(where: Layout, rows: int) -> list[str]:
    """Start the sums over a word."""
    if where.place not in IN_REGISTERS:
        return []
    return [f"p{i} = np.int32(0)" for i, c in enumerate(where.cells) if _partial(c, where, rows)]


def fold_word(where: Layout, rows: int) -> list[str]:
    """Add the sums over a word."""
    if where.place not in IN_REGISTERS:
        return []
    return [
        f"a{i} += np.int64(p{i})" for i, c in enumerate(where.cells) if _partial(c, where, rows)
    ]


def fold_row(program: Program, where: Layout, rows: int) -> list[str]:
    """Fold one row into its accumulators; `rows` is how many come before the partial sums are added."""
    if where.place in IN_REGISTERS:
        return _fold_registers(program, where, rows)
    assert program.grouping is not None
    number = text(program.grouping.slot, select)
    values = [value_of(cell, cell.machine) for cell in where.cells]
    if where.place is Place.GLOBAL:
        return guarded(program, fold_group(program, where, number, values))
    lines = [f"slot = {number}", f"cell = np.uint32(slot * np.int32({where.copies}) + copy)"]
    lines += [_fold_shared(where, c, v) for c, v in zip(where.cells, values, strict=True)]
    return guarded(program, lines)


def guarded(program: Program, lines: list[str]) -> list[str]:
    """Fold only rows that are in.

    A value that its type cannot hold may have no group: once in doubt, a thread folds nothing any more.
    """
    guards = [program.keep.text] if program.keep is not None else []
    guards += ["(not doubt)"] if program.doubts else []
    return [f"if {' & '.join(guards)}:", *indent(lines, 1)] if guards else lines


def fold_group(program: Program, where: Layout, number: str, values: list[str]) -> list[str]:
    """Fold values, one a cell, into the accumulators of a group in device memory."""
    assert program.grouping is not None
    pairs = zip(where.cells, values, strict=True)
    folds = [line for cell, value in pairs for line in _fold_memory(where, cell, value)]
    if program.grouping.hashed:
        find = f"slot = group_slot(keys, state, {number})"
        return [find, "if slot >= 0:", *indent(folds, 1)]
    return [f"slot = {number}", *folds]


def _fold_registers(program: Program, where: Layout, rows: int) -> list[str]:
    lines = []
    for i, cell in enumerate(where.cells):
        accumulator = cell.accumulator
        machine, identity = register(cell, where)
        name = f"a{i}"
        if rows > 1 and _partial(cell, where, rows):
            machine, identity, name = Machine.I32, 0, f"p{i}"
        term = narrowed(accumulator.term) if machine is Machine.I32 else accumulator.term
        value = text(term, select)
        parts = [] if program.keep is None else [program.keep.text]
        if accumulator.condition is not None:
            parts.append(text(accumulator.condition, select))
        if parts:
            value = select(" & ".join(parts), value, f"np.{machine.value}({identity!r})")
        lines.append(f"{name} = np.{machine.value}({folded(accumulator.fold, name, value)})")
    return lines


def value_of(cell: Cell, machine: Machine) -> str:
    """What a row adds to a cell, in a register of this type; its identity where the row adds nothing."""
    accumulator = cell.accumulator
    value = text(narrowed(accumulator.term) if machine is Machine.I32 else accumulator.term, select)
    if accumulator.condition is None:
        return value
    blank = f"np.{machine.value}({identity_of(cell, machine)!r})"
    return select(text(accumulator.condition, select), value, blank)


def _fold_memory(where: Layout, cell: Cell, value: str) -> list[str]:
    if cell.packed:
        return fold_packed(cell, where.groups, value)
    at = f"np.uint64(slot) + np.uint64({cell.outs[0] * where.groups})"
    if where.sized:
        at = f"np.uint64(slot) + np.uint64({cell.outs[0]}) * np.uint64(groups)"
    if cell.accumulator.fold == "put":
        return [f"{cell.array}[{at}] = {value}"]
    return [f"cuda.atomic.{_atomic(cell)}({cell.array}, {at}, {value})"]


def _fold_shared(where: Layout, cell: Cell, value: str) -> str:
    start, _ = _span([cell], where)
    array, at = SHARED[cell.machine], f"cell + np.uint32({start})"
    if where.place is Place.BLOCK:
        return f"cuda.atomic.{_atomic(cell)}({array}, {at}, {value})"
    new = folded(cell.accumulator.fold, f"{array}[{at}]", value)
    return f"{array}[{at}] = np.{cell.machine.value}({new})"


def _atomic(cell: Cell) -> str:
    return ATOMICS.get(cell.accumulator.fold, cell.accumulator.fold)


# The end of a block


def finish(where: Layout) -> list[str]:
    """Make one of the copies of each cell, and fold it into the results in device memory."""
    if where.place is Place.GLOBAL:
        return report_added(where.cells)
    if where.place is Place.WARPS:
        return [*_reduce_warps(where), *_flush_warps(where)]
    lines = _reduce_warps(where) + _share_warps(where) if where.place is Place.REGISTERS else []
    # Read off the block, so that the compiler does not unroll the loop over copies
    shift = (where.threads // where.copies).bit_length() - 1
    lines += ["cuda.syncthreads()", f"copies = np.uint32(cuda.blockDim.x >> {shift})"]
    for run in where.runs():
        lines += _flush(run, where)
    return lines


def _reduce_warps(where: Layout) -> list[str]:
    """Fold the registers of a warp by shuffles, for its first lane."""
    lines = []
    for i, cell in enumerate(where.cells):
        lines.append(f"w{i} = {widened(f'a{i}', register(cell, where)[0], cell)}")
    lines += ["offset = 16", "while offset > 0:"]
    for i, cell in enumerate(where.cells):
        other = f"cuda.shfl_down_sync(0xFFFFFFFF, w{i}, offset)"
        lines.append(f"    w{i} = {folded(cell.accumulator.fold, f'w{i}', other)}")
    return [*lines, "    offset >>= 1"]


def _share_warps(where: Layout) -> list[str]:
    """Put what a warp has into shared memory."""
    lines = [f"if lane % np.uint32({WARP}) == 0:"]
    for i, cell in enumerate(where.cells):
        start, _ = _span([cell], where)
        at = f"np.uint32({start}) + lane // np.uint32({WARP})"
        lines.append(f"    {SHARED[cell.machine]}[{at}] = w{i}")
    return lines


def _flush_warps(where: Layout) -> list[str]:
    """Fold what a warp has into the results."""
    lines = [f"if lane % np.uint32({WARP}) == 0:"]
    for i, cell in enumerate(where.cells):
        lines.append(f"    if w{i} != {_identity(cell)}:")
        lines += indent(_into_results(cell, f"w{i}", where, ""), 2)
    return lines


def _into_results(cell: Cell, value: str, where: Layout, group: str) -> list[str]:
    """Fold a value into the results, or its low and its high part, which end apart."""
    parts = [value] if len(cell.outs) == 1 else [f"{value} & 0xFFFFFFFF", f"{value} >> 32"]
    return [
        f"cuda.atomic.{_atomic(cell)}({cell.array}, np.uint32({row * where.groups}){group}, {part})"
        for part, row in zip(parts, cell.outs, strict=True)
    ]


def widened(name: str, machine: Machine, cell: Cell) -> str:
    """A register accumulator in the type of its cell; what no value has reached stays an identity."""
    if machine is cell.machine:
        return name
    wide, identity = f"np.{cell.machine.value}({name})", identity_of(cell, machine)
    if identity == cell.identity:
        return wide
    return select(f"{name} == np.{machine.value}({identity!r})", _identity(cell), wide)


def _flush(run: list[Cell], where: Layout) -> list[str]:
    """Each thread takes some cells; it begins with the copy of its own number, to keep banks apart."""
    first = run[0]
    start, length = _span(run, where)
    wide = "float64" if first.machine is Machine.F64 else "int64"
    other = f"np.uint32({start}) + cell * copies + ((step + lane) & (copies - np.uint32(1)))"
    held = f"np.{wide}({SHARED[first.machine]}[{other}])"
    fold = first.accumulator.fold
    lines = [
        "cell = lane",
        f"while cell < np.uint32({length}):",
        f"    value = np.{wide}({first.identity!r})",
        "    step = np.uint32(0)",
        "    while step < copies:",
        f"        value = {folded(fold, 'value', held)}",
        "        step += np.uint32(1)",
        f"    if value != np.{wide}({first.identity!r}):",
    ]
    lines += indent(_into_results(first, "value", where, " + cell"), 2)
    return [*lines, "    cell += np.uint32(cuda.blockDim.x)"]
