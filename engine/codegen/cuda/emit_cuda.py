"""The CUDA target: a grid-stride loop in which each thread takes several rows at a time, whole words of each column.

Rows after the last whole word come apart, one a thread, so that the loop itself checks nothing.  Where accumulators live says
`accumulator_layout`, how they are folded there `emit_fold`.  Parameters are raw pointers and scalars, and arrays for the atomics.
"""

from __future__ import annotations

from ..compile.compiler import LAUNCH_BOUNDS
from ..emit import DOUBT, elements, header, indent, legend, nests, row_statements
from ..loop import Machine
from ..program import Program, once
from ..typed_values import Input
from ..udf.function_text import definitions
from .accumulator_layout import Layout, Place, layout
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
from .emit_runs import begin_runs, end_runs, gathers, run_row, straight, without_insertion
from .emit_sorted import LONG_BODY, condition_function, places, results, rows_at_a_time, sorted_loop
from .vector_loads import (
    WORD_IN_TURN,
    load_row,
    load_words,
    unpack,
    validity_bits,
    word_bits,
)
from .warp_queue import survivors

IMPORTS = [
    "import numpy as np",
    "from numba import cuda",
    "",
    "from fuseline.codegen.cuda.functions_cuda import *",
]


def _is_ordered(program: Program) -> bool:
    return program.grouping is not None and program.grouping.ordered is not None


def takes_turns(program: Program) -> bool:
    """Whether a thread goes through the rows of a word in a loop: they part ways anyway, and less code compiles sooner."""
    grouping = program.grouping
    apart = grouping is not None and (grouping.hashed or grouping.row is not None)
    several = program.rows_out not in ((), (0,))  # whose numbers must be known together
    calls = bool(program.functions)  # of Python, each as long as a kernel
    return apart or several or calls or (nests(program) and not straight(program))


@once
def rows_a_thread(program: Program) -> int:
    """Rows that a thread takes at a time: at least a 32-bit word of each column, at most 32 bytes."""
    if _is_ordered(program):
        return rows_at_a_time(program)
    if takes_turns(program):
        return WORD_IN_TURN
    widest = max((i.width for i in program.inputs), default=1)
    long = len(program.accumulators) + len(program.body) > LONG_BODY
    grouped = program.grouping is not None and layout(program).place is not Place.GLOBAL
    if widest == 8 or long or grouped:
        return 4
    return 8 if widest > 1 or gathers(program, layout(program)) else 16


def source(program: Program, description: str) -> str:
    """Return the kernel's file; parameters as `signature` lists them."""
    where, rows = layout(program), rows_a_thread(program)
    ordered = _is_ordered(program)
    held = places(program) if ordered else _places(where)
    lines = header(IMPORTS, description, legend(program, held))
    if program.functions:
        lines += definitions(program.functions, "cuda")
    lines += condition_function(program) if ordered else []
    if where.near is not None:
        lines += [f"{LAUNCH_BOUNDS} = {where.near.bounds}", "", ""]
    lines.append(f"def {program.name}({', '.join(n for n, _ in signature(program))}):")
    # Unsigned, or the compiler would divide to find out how often the loop runs
    body = ["thread = np.uint64(cuda.grid(1))", "threads = np.uint64(cuda.gridsize(1))"]
    body += [DOUBT, *begin(where)]
    if program.grouping is not None and program.grouping.hashed and not ordered:
        body.append("groups = keys.size")
    if program.ranking is not None:
        made = program.ranking
        body.append(f"rank_rows({made.codes}, {made.ranks}, rows, {made.step}, thread, threads)")
    if ordered:
        body += sorted_loop(program)
    elif where.cut is not None:
        body += survivors(program, where, _sink(program, where, 1))
    else:
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
    before, statements, after = _parts(program, where, rows, at_once=False)
    row = [line for i in program.inputs for line in unpack(i, program, rows)] + statements
    return [
        f"words = (np.uint64(rows) + np.uint64({rows - 1})) // np.uint64({rows})",
        "word = thread",
        "while word < words:",
        *indent([line for i in program.inputs for line in load_words(i, program, rows)], 1),
        *indent(before, 1),
        f"    for k in range(min(rows - np.int64(word) * {rows}, {rows})):",
        f"        row = word * np.uint64({rows}) + np.uint64(k)",
        *indent(row, 2),
        *indent(after, 1),
        "    word += threads",
    ]


def _places(where: Layout) -> dict[int, str]:
    """Where each accumulator is while the kernel runs, if in a register of its own, and where it ends."""
    places = {}
    for i, cell in enumerate(where.cells):
        register = f"a{i}, " if where.place in IN_REGISTERS else ""
        for number, row in zip(cell.numbers, cell.outs, strict=True):
            held = elements(cell.array, row, where.groups)
            if cell.packed:
                held = f"packed, {cell.packed} bits each; then {held}"
            places[number] = (
                f"{cell.array}[{row} * groups + slot]" if where.sized else register + held
            )
    return places


def _whole_word(program: Program, where: Layout, rows: int) -> list[str]:
    """All rows of a word: loads first, so that they are in flight together, then row after row."""
    lines = [line for i in program.inputs for line in load_words(i, program, rows)]
    before, statements, after = _parts(program, where, rows, at_once=True)
    row = [line for i in program.inputs for line in unpack(i, program, rows)] + statements
    if program.index is not None:
        row.insert(0, f"row = word * np.uint64({rows}) + np.uint64(k)")
    return [*lines, *before, f"for k in range({rows}):", *indent(row, 1), *after, "word += threads"]


Lines = list[str]


def _parts(program: Program, where: Layout, rows: int, at_once: bool) -> tuple[Lines, Lines, Lines]:
    """What comes before the rows of a word, what becomes of each, and what comes after them."""
    if gathers(program, where):
        row = row_statements(without_insertion(program), select, run_row(program, where, rows))
        return begin_runs(program, where, rows), row, end_runs(program, where, rows)
    if at_once and program.rows_out:
        row = row_statements(program.body, select, note_kept(program))
        return ["kept = np.uint32(0)"], row, list_kept(program, rows)
    if at_once:
        row = row_statements(program.body, select, _sink(program, where, rows))
        return word_partials(where, rows), row, fold_word(where, rows)
    return [], row_statements(program.body, select, _sink(program, where, 1)), []


def _last_row(program: Program, where: Layout, rows: int) -> list[str]:
    lines = [line for i in program.inputs for line in load_row(i, program, rows)]
    return lines + row_statements(program.body, select, _sink(program, where, 1))


def _sink(program: Program, where: Layout, rows: int) -> list[str]:
    """What becomes of a row."""
    return list_row(program) if program.rows_out else fold_row(program, where, rows)


@once
def signature(program: Program) -> list[tuple[str, str]]:
    """Name and Numba type of each parameter, in order; `*T` is a pointer, `[T]` an array."""
    rows = rows_a_thread(program)
    found = [("rows", "int64")]
    cut = layout(program).cut
    for i in program.inputs:
        if cut is not None and i not in cut.words:
            found += _row_parameters(i, program)
            continue
        name = program.names[i.column]
        found.append((name, f"*uint{word_bits(i, rows)}"))
        if i.nullable:
            found.append((f"{name}_bits", f"*uint{validity_bits(rows)}"))
    found += _index_parameters(program)
    found += [(p.name, p.machine.value) for p in program.parameters]
    for t in program.tables:
        found.append((t.name, "*uint8" if t.machine is Machine.BOOL else f"*{t.machine.value}"))
    if _is_ordered(program):
        return found + results(program)
    if program.grouping is not None and program.grouping.hashed:
        found += [("keys", "[int64]"), ("state", "[int64]")]
    elif program.grouping is not None and program.grouping.row is not None:
        found.append(("groups", "int64"))
    if program.rows_out:
        found += [*((f"out_row{i}", "[int32]") for i in program.rows_out), ("counter", "[int64]")]
    cells = layout(program).cells
    found += [("out_i", "[int64]"), ("out_f", "[float64]")]
    found += [("out_n", "[int32]")] if any(c.short and not c.packed for c in cells) else []
    packed = any(c.packed for c in cells)
    return [*found, ("packed", "[int32]"), ("lost", "[int64]")] if packed else found


def _index_parameters(program: Program) -> list[tuple[str, str]]:
    """Columns that are read at rows which probes find, and the buffers of indexes.

    Arrays only where it takes one: for atomic operations, and where a hash needs to know the number of buckets.
    """
    found = [p for element in program.elements for p in _row_parameters(element.input, program)]
    filled = None if program.index is None else program.index.number
    for buffer in program.buffers:
        whole = buffer.sized or buffer.index == filled
        found.append((buffer.name, f"[{buffer.type}]" if whole else f"*{buffer.type}"))
    return found


def _row_parameters(source: Input, program: Program) -> list[tuple[str, str]]:
    """A column that is read row by row."""
    return [(name, f"*{kind}") for name, kind in source.arrays(program.names[source.column])]


def list_row(program: Program) -> list[str]:
    """Write the numbers of one row, in any order, as long as there is room.

    `counter` ends at how many there are, so that a run without room for all says how much the next one takes.
    """
    lines = [
        "place = np.uint64(append(counter))",
        *_store(program, [_row(program, i) for i in program.rows_out]),
    ]
    return lines if program.keep is None else [f"if {program.keep.text}:", *indent(lines, 1)]


def note_kept(program: Program) -> list[str]:
    """Note that row k of a word is in, to be written with the others."""
    kept = "True" if program.keep is None else program.keep.text
    return [f"kept |= np.uint32({kept}) << np.uint32(k)"]


def list_kept(program: Program, rows: int) -> list[str]:
    """Write the numbers of a word's rows: far fewer atomic operations than if each took its place apart."""
    number = f"word * np.uint64({rows}) + np.uint64(cuda.ffs(kept) - 1)"
    return [
        "place = np.uint64(append_several(counter, cuda.popc(kept)))",
        "while kept != 0:",
        *indent(_store(program, [number]), 1),
        "    place += np.uint64(1)",
        "    kept &= kept - np.uint32(1)",
    ]


def _row(program: Program, relation: int) -> str:
    return program.relations[relation].row


def _store(program: Program, numbers: list[str]) -> list[str]:
    arrays = [f"out_row{i}" for i in program.rows_out]
    stores = [f"    {a}[place] = np.int32({n})" for a, n in zip(arrays, numbers, strict=True)]
    return [f"if place < np.uint64({arrays[0]}.size):", *stores]
