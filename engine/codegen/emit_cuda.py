"""The CUDA target: a grid-stride loop in which each thread takes several rows at a time, whole words of each column.

Accumulators live where the number of groups lets them (`Place`).  Parameters are raw pointers and scalars, and two arrays for
the atomics.
"""

from __future__ import annotations

from enum import StrEnum

from .emit import accumulator_slots, folded, header, indent, row_statements, text
from .loop import Machine
from .steps import Program
from .values import Input

BLOCK = 256  # threads
PRIVATE_BYTES = 64 * 1024  # shared memory of a block for private accumulators: three blocks a multiprocessor
SHARED_BYTES = 96 * 1024  # shared memory of a block for one table
PRIVATE_BLOCK = 128


class Place(StrEnum):
    """Where the accumulators of a group are while the kernel runs."""

    REGISTERS = "registers"  # no groups: one each a thread, then a warp shuffle and one atomic a warp
    PRIVATE = "private"  # shared memory laid out [accumulator and group][thread]: no atomics, no bank conflicts
    BLOCK = "block"  # one table a block in shared memory, shared atomics, one flush
    GLOBAL = "global"  # direct-address arrays in device memory


def place_of(program: Program) -> Place:
    """Choose the fastest place that holds all groups."""
    if program.grouping is None:
        return Place.REGISTERS
    cells = program.grouping.groups * len(program.accumulators)
    if cells * PRIVATE_BLOCK * 8 <= PRIVATE_BYTES:
        return Place.PRIVATE
    return Place.BLOCK if cells * 8 <= SHARED_BYTES else Place.GLOBAL


def block_size(place: Place) -> int:
    return PRIVATE_BLOCK if place is Place.PRIVATE else BLOCK


def shared_bytes(program: Program, place: Place) -> int:
    """Dynamic shared memory of a block."""
    if program.grouping is None or place is Place.GLOBAL:
        return 0
    cells = program.grouping.groups * len(program.accumulators)
    return cells * 8 * (PRIVATE_BLOCK if place is Place.PRIVATE else 1)


def rows_a_thread(program: Program) -> int:
    """Rows that make at least a 32-bit word of each column."""
    return 8 if all(i.width <= 2 for i in program.inputs) else 4


def select(condition: str, yes: str, no: str) -> str:
    return f"cuda.selp({condition}, {yes}, {no})"


def source(program: Program, description: str) -> str:
    """Return the kernel's file; parameters as `signature` lists them."""
    place, rows = place_of(program), rows_a_thread(program)
    imports = ["import numpy as np", "from numba import cuda", "", "from fuseline.codegen.functions_cuda import *"]
    lines = header(program, imports, description)
    lines.append(f"def {program.name}({', '.join(n for n, _ in signature(program))}):")
    body = ["thread = cuda.grid(1)", "threads = cuda.gridsize(1)", "doubt = False"]
    body += _begin(program, place)
    body += [
        f"words = np.uint64((rows + {rows - 1}) // {rows})",
        "word = np.uint64(thread)",
        "while word < words:",
    ]
    loop = [line for i in program.inputs for line in load_words(i, program, rows)]
    loop.append(f"rest = np.int32(min(rows - np.int64(word) * {rows}, {rows}))")
    loop.append(f"for k in range({rows}):")
    row = [line for i in program.inputs for line in unpack(i, program, rows)]
    row.append("inside = k < rest")
    row += row_statements(program, select)
    row += _fold(program, place)
    loop += indent(row, 1)
    loop.append("word += np.uint64(threads)")
    body += indent(loop, 1)
    body += _finish(program, place)
    body += ["if doubt:", f"    cuda.atomic.add(out_i, {doubt_index(program)}, np.int64(1))"]
    return "\n".join(lines + indent(body, 1)) + "\n"


def signature(program: Program) -> list[tuple[str, str]]:
    """Name and Numba type of each parameter, in order; `*T` is a pointer, `[T]` an array."""
    rows = rows_a_thread(program)
    found = [("rows", "int64")]
    for i in program.inputs:
        name = program.names[i.column]
        found.append((name, f"*uint{word_bits(i, rows)}"))
        if i.nullable:
            found.append((f"{name}_bits", "*uint8"))
    found += [(p.name, p.machine.value) for p in program.kernel.parameters]
    for t in program.kernel.tables:
        found.append((t.name, "*uint8" if t.machine is Machine.BOOL else f"*{t.machine.value}"))
    return [*found, ("out_i", "[int64]"), ("out_f", "[float64]")]


def word_bits(source: Input, rows: int) -> int:
    return 32 if source.width * rows == 4 else 64


def groups(program: Program) -> int:
    return 1 if program.grouping is None else program.grouping.groups


def doubt_index(program: Program) -> int:
    """Where in out_i the doubts are counted: after the accumulators."""
    integers = sum(a.machine is Machine.I64 for a in program.accumulators)
    return integers * groups(program)


def load_words(source: Input, program: Program, rows: int) -> list[str]:
    """Load the codes of this thread's rows as whole words, and their validity bits as one byte."""
    name = program.names[source.column]
    count = max(source.width * rows // 8, 1)
    lines = []
    for w in range(count):
        at = "word" if count == 1 else f"word * np.uint64({count}) + np.uint64({w})"
        lines.append(f"{name}_word{w} = {name}[{at}]")
    if source.nullable and rows == 8:
        lines.append(f"{name}_byte = {name}_bits[word]")
    elif source.nullable:
        shift = "(word & np.uint64(1)) * np.uint64(4)"
        lines.append(f"{name}_byte = np.uint64({name}_bits[word >> np.uint64(1)]) >> {shift}")
    return lines


def unpack(source: Input, program: Program, rows: int) -> list[str]:
    """Take row k's code out of the words; k is a constant once the loop is unrolled."""
    name = program.names[source.column]
    bits = word_bits(source, rows)
    a_word = bits // (8 * source.width)
    count = rows // a_word
    word = f"{name}_word{count - 1}"
    for w in range(count - 2, -1, -1):
        word = f"({name}_word{w} if k < {(w + 1) * a_word} else {word})"
    shift = f"(k % {a_word}) * {8 * source.width}" if a_word > 1 else ""
    shifted = f"({word} >> np.uint{bits}({shift}))" if shift else word
    lines = []
    if source.machine is not None:
        view = "float_of_bits" if source.machine is Machine.F32 else "double_of_bits"
        lines.append(f"{name}_code = {view}({shifted})")
    else:
        if 8 * source.width < bits:
            shifted = f"{shifted} & np.uint{bits}({(1 << 8 * source.width) - 1:#x})"
        lines.append(f"{name}_code = np.{source.register.value}({shifted})")
    if source.nullable:
        lines.append(f"{name}_valid = ({name}_byte >> np.uint64(k)) & np.uint64(1) != 0")
    return lines


# Accumulators


def _identity(program: Program, index: int) -> str:
    accumulator = program.accumulators[index]
    return f"np.{accumulator.machine.value}({accumulator.identity!r})"


def _kept(program: Program) -> str:
    return "inside" if program.keep is None else "(inside & keep)"


def _begin(program: Program, place: Place) -> list[str]:
    """Set every accumulator to its identity."""
    count = groups(program)
    if place is Place.REGISTERS:
        return [f"a{i} = {_identity(program, i)}" for i in range(len(program.accumulators))]
    if place is Place.GLOBAL:
        return []
    lines = ["lane = cuda.threadIdx.x", *_shared(program)]
    width = PRIVATE_BLOCK if place is Place.PRIVATE else 1
    for i, accumulator in enumerate(program.accumulators):
        array = "shared_f" if accumulator.machine is Machine.F64 else "shared_i"
        lines += [
            f"for cell in range(lane, {count * width}, cuda.blockDim.x):",
            f"    {array}[{i * count * width} + cell] = {_identity(program, i)}",
        ]
    return [*lines, "cuda.syncthreads()"]


def _shared(program: Program) -> list[str]:
    """Views of the block's dynamic shared memory; each accumulator uses one of the two for its cells."""
    machines = {a.machine for a in program.accumulators}
    lines = []
    if Machine.I64 in machines:
        lines.append("shared_i = cuda.shared.array(0, np.int64)")
    if Machine.F64 in machines:
        lines.append("shared_f = cuda.shared.array(0, np.float64)")
    return lines


def _fold(program: Program, place: Place) -> list[str]:
    """Fold one row into its accumulators."""
    kept = _kept(program)
    if place is Place.REGISTERS:
        lines = [f"kept = {kept}"]
        for i, accumulator in enumerate(program.accumulators):
            condition = "kept"
            if accumulator.condition is not None:
                condition = f"(kept & {text(accumulator.condition, select)})"
            value = select(condition, text(accumulator.term, select), _identity(program, i))
            lines.append(f"a{i} = {folded(accumulator.fold, f'a{i}', value)}")
        return lines
    assert program.grouping is not None
    lines = [f"slot = {text(program.grouping.slot, select)}"]
    slots = accumulator_slots(program)
    for i, accumulator in enumerate(program.accumulators):
        lines += _fold_group(program, place, i, slots[i])
    return [f"if {kept}:", *indent(lines, 1)]


def _fold_group(program: Program, place: Place, index: int, out: tuple[str, int]) -> list[str]:
    accumulator, count = program.accumulators[index], groups(program)
    value = text(accumulator.term, select)
    if accumulator.condition is not None:
        value = select(text(accumulator.condition, select), value, _identity(program, index))
    kind = "f" if accumulator.machine is Machine.F64 else "i"
    if place is Place.PRIVATE:
        cell = f"np.uint32(({index * count} + slot) * {PRIVATE_BLOCK} + lane)"
        held = f"shared_{kind}[{cell}]"
        return [f"{held} = {folded(accumulator.fold, held, value)}"]
    array = f"shared_{kind}" if place is Place.BLOCK else out[0]
    at = index * count if place is Place.BLOCK else out[1] * count
    return [f"cuda.atomic.{_atomic(accumulator.fold)}({array}, {at} + slot, {value})"]


def _atomic(fold: str) -> str:
    return {"or": "or_", "and": "and_"}.get(fold, fold)


def _finish(program: Program, place: Place) -> list[str]:
    """Bring the accumulators of threads and blocks together in device memory."""
    if place is Place.GLOBAL:
        return []
    count = groups(program)
    slots = accumulator_slots(program)
    if place is Place.REGISTERS:
        lines = ["offset = 16", "while offset > 0:"]
        for i, accumulator in enumerate(program.accumulators):
            other = f"cuda.shfl_down_sync(0xFFFFFFFF, a{i}, offset)"
            lines.append(f"    a{i} = {folded(accumulator.fold, f'a{i}', other)}")
        lines += ["    offset >>= 1", "if cuda.laneid == 0:"]
        for i, accumulator in enumerate(program.accumulators):
            array, at = slots[i]
            lines.append(f"    cuda.atomic.{_atomic(accumulator.fold)}({array}, {at}, a{i})")
        return lines
    lines = ["cuda.syncthreads()"]
    for i, accumulator in enumerate(program.accumulators):
        kind = "f" if accumulator.machine is Machine.F64 else "i"
        array, at = slots[i]
        flush = f"cuda.atomic.{_atomic(accumulator.fold)}({array}, {at * count} + cell, value)"
        if place is Place.BLOCK:
            lines += [
                f"for cell in range(lane, {count}, cuda.blockDim.x):",
                f"    value = shared_{kind}[{i * count} + cell]",
                f"    if value != {_identity(program, i)}:",
                f"        {flush}",
            ]
            continue
        held = f"shared_{kind}[({i * count} + cell) * {PRIVATE_BLOCK} + other]"
        lines += [
            f"for cell in range(lane, {count}, cuda.blockDim.x):",
            f"    value = {_identity(program, i)}",
            f"    for step in range({PRIVATE_BLOCK}):",
            f"        other = (step + lane) % {PRIVATE_BLOCK}",
            f"        value = {folded(accumulator.fold, 'value', held)}",
            f"    {flush}",
        ]
    return lines
