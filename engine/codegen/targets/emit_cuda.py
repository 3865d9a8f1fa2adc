"""The CUDA target: a grid-stride loop in which each thread takes several rows at a time, whole words of each column.

Rows after the last whole word come apart, one a thread, so that the loop itself checks nothing.  Where accumulators live says
`places`, how they are folded there `emit_fold`.  Parameters are raw pointers and scalars, and two arrays for the atomics.
"""

from __future__ import annotations

from ..loop import Machine
from ..steps import Program
from ..values import Input
from .emit import header, indent, nests, row_statements
from .emit_fold import (
    IN_REGISTERS,
    begin,
    doubt_index,
    finish,
    fold_row,
    fold_word,
    select,
    word_partials,
)
from .emit_rows import list_kept, list_row, note_kept
from .legend import DOUBT, elements, legend
from .places import Layout, layout

LONG_BODY = 10  # accumulators and named values from which on more rows would not be unrolled, as codes need it
WORD_IN_TURN = 4  # rows that a thread takes one after the other: a byte each makes a word
IMPORTS = [
    "import numpy as np",
    "from numba import cuda",
    "",
    "from fuseline.codegen.targets.functions_cuda import *",
]


def takes_turns(program: Program) -> bool:
    """Whether a thread goes through the rows of a word in a loop: they part ways anyway, and less code compiles sooner."""
    grouping = program.grouping
    apart = grouping is not None and (grouping.hashed or grouping.row is not None)
    several = program.rows_out not in ((), (0,))  # whose numbers must be known together
    return apart or several or nests(program)


def rows_a_thread(program: Program) -> int:
    """Rows that a thread takes at a time: at least a 32-bit word of each column, at most 32 bytes."""
    if takes_turns(program):
        return WORD_IN_TURN
    widest = max((i.width for i in program.inputs), default=1)
    long = len(program.accumulators) + len(program.body) > LONG_BODY
    if widest == 8 or long or program.grouping is not None:
        return 4
    return 16 if widest == 1 else 8


def source(program: Program, description: str) -> str:
    """Return the kernel's file; parameters as `signature` lists them."""
    where, rows = layout(program), rows_a_thread(program)
    lines = header(IMPORTS, description, legend(program, _places(where)))
    lines.append(f"def {program.name}({', '.join(n for n, _ in signature(program))}):")
    # Unsigned, or the compiler would divide to find out how often the loop runs
    body = ["thread = np.uint64(cuda.grid(1))", "threads = np.uint64(cuda.gridsize(1))"]
    body += [DOUBT, *begin(where)]
    if program.grouping is not None and program.grouping.hashed:
        body.append("groups = keys.size")
    body += (_in_turn if takes_turns(program) else _at_once)(program, where, rows)
    body += finish(where)
    if program.doubts:
        body += ["if doubt:", f"    cuda.atomic.add(out_i, {doubt_index(where)}, np.int64(1))"]
    return "\n".join(lines + indent(body, 1)) + "\n"


def _at_once(program: Program, where: Layout, rows: int) -> list[str]:
    """A loop over words, whose rows the compiler interleaves, and the rows after the last word."""
    return [
        f"words = np.uint64(rows) // np.uint64({rows})",
        "word = thread",
        "while word < words:",
        *indent(_whole_word(program, where, rows), 1),
        f"row = words * np.uint64({rows}) + thread",
        "if row < np.uint64(rows):",
        *indent(_last_row(program, where, rows), 1),
    ]


def _in_turn(program: Program, where: Layout, rows: int) -> list[str]:
    """A loop over words and one over their rows, of which the last word may have fewer: rows that branch gain nothing side by side.

    Words are loaded whole; memory is mapped in multiples of far more than a word.
    """
    row = [line for i in program.inputs for line in unpack(i, program, rows)]
    row += row_statements(program, select, _sink(program, where, 1))
    return [
        f"words = (np.uint64(rows) + np.uint64({rows - 1})) // np.uint64({rows})",
        "word = thread",
        "while word < words:",
        *indent([line for i in program.inputs for line in load_words(i, program, rows)], 1),
        f"    for k in range(min(rows - np.int64(word) * {rows}, {rows})):",
        f"        row = word * np.uint64({rows}) + np.uint64(k)",
        *indent(row, 2),
        "    word += threads",
    ]


def _places(where: Layout) -> dict[int, str]:
    """Where each accumulator is while the kernel runs, if in a register of its own, and where it ends."""
    places = {}
    for i, cell in enumerate(where.cells):
        register = f"a{i}, " if where.place in IN_REGISTERS else ""
        for number, row in zip(cell.numbers, cell.outs, strict=True):
            held = elements(cell.array, row, where.groups)
            places[number] = (
                f"{cell.array}[{row} * groups + slot]" if where.sized else register + held
            )
    return places


def _whole_word(program: Program, where: Layout, rows: int) -> list[str]:
    """All rows of a word: loads first, so that they are in flight together, then row after row."""
    lines = [line for i in program.inputs for line in load_words(i, program, rows)]
    lines += word_partials(where, rows)
    if program.rows_out:
        lines.append("kept = np.uint32(0)")
    lines.append(f"for k in range({rows}):")
    row = [line for i in program.inputs for line in unpack(i, program, rows)]
    sink = note_kept(program) if program.rows_out else _sink(program, where, rows)
    lines += indent(row + row_statements(program, select, sink), 1)
    lines += list_kept(program, rows) if program.rows_out else fold_word(where, rows)
    return [*lines, "word += threads"]


def _last_row(program: Program, where: Layout, rows: int) -> list[str]:
    lines = [line for i in program.inputs for line in load_row(i, program, rows)]
    return lines + row_statements(program, select, _sink(program, where, 1))


def _sink(program: Program, where: Layout, rows: int) -> list[str]:
    """What becomes of a row."""
    return list_row(program) if program.rows_out else fold_row(program, where, rows)


def signature(program: Program) -> list[tuple[str, str]]:
    """Name and Numba type of each parameter, in order; `*T` is a pointer, `[T]` an array."""
    rows = rows_a_thread(program)
    found = [("rows", "int64")]
    for i in program.inputs:
        name = program.names[i.column]
        found.append((name, f"*uint{word_bits(i, rows)}"))
        if i.nullable:
            found.append((f"{name}_bits", f"*uint{validity_bits(rows)}"))
    found += _index_parameters(program)
    found += [(p.name, p.machine.value) for p in program.kernel.parameters]
    for t in program.kernel.tables:
        found.append((t.name, "*uint8" if t.machine is Machine.BOOL else f"*{t.machine.value}"))
    if program.grouping is not None and program.grouping.hashed:
        found += [("keys", "[int64]"), ("state", "[int64]")]
    elif program.grouping is not None and program.grouping.row is not None:
        found.append(("groups", "int64"))
    if program.rows_out:
        found += [*((f"out_row{i}", "[int32]") for i in program.rows_out), ("counter", "[int64]")]
    return [*found, ("out_i", "[int64]"), ("out_f", "[float64]")]


def _index_parameters(program: Program) -> list[tuple[str, str]]:
    """Columns that are read at rows which probes find, and the buffers of indexes.

    Arrays only where it takes one: for atomic operations, and where a hash needs to know the number of buckets.
    """
    found = []
    for source in (e.input for e in program.elements):
        name, wide = program.names[source.column], "int64" if source.width == 8 else None
        code = source.machine.value if source.machine else wide or f"uint{8 * source.width}"
        found.append((name, f"*{code}"))
        if source.nullable:
            found.append((f"{name}_bits", "*uint8"))
    filled = None if program.index is None else program.index.number
    hashed = {b.index for b in program.buffers if b.name.endswith("_numbers")}
    for buffer in program.buffers:
        sized = buffer.index in hashed and buffer.name.endswith("_heads")
        whole = sized or buffer.index == filled
        found.append((buffer.name, f"[{buffer.type}]" if whole else f"*{buffer.type}"))
    return found


def word_bits(source: Input, rows: int) -> int:
    return 32 if source.width * rows == 4 else 64


def validity_bits(rows: int) -> int:
    return max(rows, 8)


def load_words(source: Input, program: Program, rows: int) -> list[str]:
    """Load the codes of this thread's rows as whole words, and their validity bits."""
    name = program.names[source.column]
    count = max(source.width * rows // 8, 1)
    lines = []
    for pair in range(count // 2):
        at = "word" if count == 2 else f"word * {count // 2} + {pair}"
        words = f"{name}_word{2 * pair}, {name}_word{2 * pair + 1}"
        lines.append(f"{words} = load_pair({name}, {at})")
    if count == 1:
        lines.append(f"{name}_word0 = {name}[word]")
    if source.nullable and rows >= 8:
        lines.append(f"{name}_mask = {name}_bits[word]")
    elif source.nullable:
        lines.append(f"{name}_mask = {name}_bits[word >> 1] >> ((word & 1) * 4)")
    return lines


def unpack(source: Input, program: Program, rows: int) -> list[str]:
    """Take row k's code out of the words; k is a constant once the loop is unrolled."""
    name = program.names[source.column]
    a_word = word_bits(source, rows) // (8 * source.width)
    count = rows // a_word
    word = f"{name}_word{count - 1}"
    for w in range(count - 2, -1, -1):
        word = f"({name}_word{w} if k < {(w + 1) * a_word} else {word})"
    place = "k" if count == 1 else f"(k % {a_word})"
    shift = f" >> ({place} * {8 * source.width})" if a_word > 1 else ""
    lines = [_code(source, name, f"{word}{shift}")]
    if source.nullable:
        lines.append(f"{name}_valid = ({name}_mask >> k) & 1 != 0")
    return lines


def load_row(source: Input, program: Program, rows: int) -> list[str]:
    """Load the word that holds one row, and take its code out."""
    name = program.names[source.column]
    a_word = word_bits(source, rows) // (8 * source.width)
    word = f"{name}[row // np.uint64({a_word})] >> ((row & {a_word - 1}) * {8 * source.width})"
    lines = [_code(source, name, word if a_word > 1 else f"{name}[row]")]
    if source.nullable:
        bits = validity_bits(rows)
        byte = f"{name}_bits[row // np.uint64({bits})]"
        lines.append(f"{name}_valid = ({byte} >> (row & {bits - 1})) & 1 != 0")
    return lines


def _code(source: Input, name: str, word: str) -> str:
    """The lowest bytes of a word as an integer register, or as the float that they are."""
    if source.machine is not None:
        view = "float_of_bits" if source.machine is Machine.F32 else "double_of_bits"
        return f"{name}_code = {view}({word})"
    if source.register is Machine.I32 and source.width == 4:
        return f"{name}_code = np.int32({word})"
    taken = word if source.width == 8 else f"np.uint{8 * source.width}({word})"
    return f"{name}_code = np.{source.register.value}({taken})"
