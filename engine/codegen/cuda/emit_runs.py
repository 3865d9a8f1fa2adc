"""The CUDA target's runs: rows of a word that follow each other with one group, or with bits of one word of an index.

What a row changes in device memory costs an atomic operation, which binds kernels whose groups or keys are many.  A thread
therefore gathers a run in registers, and changes memory when the run ends: files often lie in the order of a key, or nearly
so.  Where no two neighbours are alike, that costs a comparison a row.
"""

from __future__ import annotations

from collections.abc import Sequence

from ..emit import folded, indent, text
from ..indexes.layers import REPEATED, Bitmap, Direct
from ..loop import Doubt, Guard, Insertion, Let, Machine, Number, Statement
from ..program import Program
from .accumulator_layout import UNBOUNDED, Cell, Layout, Place, cell_machine
from .emit_fold import (
    fold_group,
    fold_row,
    guarded,
    identity_of,
    register,
    select,
    value_of,
    widened,
)


def gathers(program: Program, where: Layout) -> bool:
    """Whether a kernel's rows come to memory in runs."""
    return _by_group(program, where) or bits_of(program) is not None


def _by_group(program: Program, where: Layout) -> bool:
    return program.grouping is not None and where.place is Place.GLOBAL


def bits_of(program: Program) -> Insertion | None:
    """The insertion into an index of bits, or of row numbers behind bits."""
    match program.body[-1:]:
        case (Let(value=Insertion((Bitmap(), *_)) as insertion),) if program.index is not None:
            return insertion
    return None


def _counts(insertion: Insertion) -> bool:
    """Whether keys that were there before are counted, as they are where rows are noted."""
    index = insertion.layers[0].index
    return index.unique or index.form is Direct


def _set_gathered(where: Layout, insertion: Insertion) -> str:
    """Set the bits that were gathered; where keys must not repeat, count those that were set."""
    bits = insertion.layers[0].arrays
    if not _counts(insertion):
        return f"or_bits({bits}, pending, gathered)"
    return _count(where, f"or_new_bits({bits}, pending, gathered)")


def _count(where: Layout, repeated: str) -> str:
    """Add to the repeated keys of a build."""
    (place,) = (i for i, cell in enumerate(where.cells) if REPEATED in cell.numbers)
    machine = register(where.cells[place], where)[0].value
    return f"a{place} = np.{machine}(a{place} + np.{machine}({repeated}))"


def straight(program: Program) -> bool:
    """Whether a kernel sets bits of an index, or nothing row by row, and reads no other: rows then gain from coming at once."""
    index = program.index
    return (
        index is not None
        and (bits_of(program) is not None or index.whole)
        and all(isinstance(s, Let | Doubt | Guard) for s in program.body)
        and all(b.index == index.number for b in program.buffers)
    )


def begin_runs(program: Program, where: Layout, rows: int) -> list[str]:
    """What a thread holds before a word of so many rows: no run."""
    insertion = bits_of(program)
    if insertion is not None:
        return [f"pending = np.{insertion.args[0].type.value}(-1)", "gathered = np.uint32(0)"]
    if not _by_group(program, where):
        return []
    assert program.grouping is not None
    return [f"pending = np.{program.grouping.slot.type.value}(-1)", *_blank(program, where, rows)]


def run_row(program: Program, where: Layout, rows: int) -> list[str]:
    """Put a row to the run before it, or end that and begin one."""
    insertion = bits_of(program)
    if insertion is not None:
        return [*_gather_bit(where, insertion), *fold_row(program, where, 1)]
    assert program.grouping is not None
    lines = [
        f"number = {text(program.grouping.slot, select)}",
        "if number != pending:",
        *indent(end_runs(program, where, rows), 1),
        "    pending = number",
        *indent(_blank(program, where, rows), 1),
    ]
    for i, cell in enumerate(where.cells):
        machine = _machine(program, cell, rows)
        value = value_of(cell, machine)
        lines.append(f"r{i} = np.{machine.value}({folded(cell.accumulator.fold, f'r{i}', value)})")
    return guarded(program, lines)


def end_runs(program: Program, where: Layout, rows: int) -> list[str]:
    """Bring the run to memory, if there is one."""
    insertion = bits_of(program)
    if insertion is not None:
        return [_set_gathered(where, insertion)]
    if not _by_group(program, where):
        return []
    values = [
        widened(f"r{i}", _machine(program, cell, rows), cell) for i, cell in enumerate(where.cells)
    ]
    return ["if pending >= 0:", *indent(fold_group(program, where, "pending", values), 1)]


def without_insertion(program: Program) -> Sequence[Statement]:
    """The statements of a program whose rows gather bits in the sink, instead of setting them one by one."""
    if bits_of(program) is None:
        return program.body
    *before, last = program.body
    assert isinstance(last, Let)
    return [*before, Let(last.name, Number(0, Machine.I64), last.step)]


def _gather_bit(where: Layout, insertion: Insertion) -> list[str]:
    number, *rows = insertion.args
    lines = [
        f"number = {text(number, select)}",
        "if number >= 0:",
        f"    at = np.{number.type.value}(number >> 5)",
        "    if at != pending:",
        f"        {_set_gathered(where, insertion)}",
        "        pending = at",
        "        gathered = np.uint32(0)",
        "    bit = np.uint32(np.uint32(1) << np.uint32(number & 31))",
    ]
    if _counts(insertion):
        lines.append(f"    {_count(where, 'gathered & bit != np.uint32(0)')}")
    heads = insertion.layers[-1].arrays
    lines += [f"    {heads}[np.uint64(number)] = {text(row, select)}" for row in rows]
    return [*lines, "    gathered = np.uint32(gathered | bit)"]


def _blank(program: Program, where: Layout, rows: int) -> list[str]:
    lines = []
    for i, cell in enumerate(where.cells):
        machine = _machine(program, cell, rows)
        lines.append(f"r{i} = np.{machine.value}({identity_of(cell, machine)!r})")
    return lines


def _machine(program: Program, cell: Cell, rows: int) -> Machine:
    """The register for the rows of a run."""
    return cell_machine(cell.accumulator, UNBOUNDED if program.repeats else rows)
