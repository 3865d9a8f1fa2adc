"""The CPU target: a loop over a range of rows, compiled by Numba, with accumulators of its own.

Ranges run on a thread pool and their accumulators are merged by `host_kernels`.  A CPU evaluates filters for many rows in one instruction
where nothing else stands in the same loop, and a branch that is taken now and then costs it more than the filter.  So a kernel goes over
a block of rows twice or more: it notes which are in, and then takes only those, as in relaxed operator fusion (Menon et al. 2017).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..emit import DOUBT, folded, header, indent, legend, row_statements, text
from ..loop import Machine, Name, Statement, Term
from ..udf.function_text import definitions
from .row_passes import passes

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ..compile.compiler import Signature
    from ..groups.grouping import Grouping
    from ..program import Program
    from ..typed_values import Input


BLOCK = 1 << 10  # rows that are filtered before those that pass are taken
# Groups from which a group's accumulators lie side by side: they no longer fit a core's cache
WIDE_GROUPS = 1 << 12


def select(condition: str, yes: str, no: str) -> str:
    """LLVM makes a select, and vector code, of a conditional expression without side effects."""
    return f"({yes} if {condition} else {no})"


def source(program: Program, description: str) -> str:
    """Return the kernel's file.

    The function takes start, end, the code arrays and validity bitmaps of columns, the buffers of indexes, scalars, tables,
    then out_i and out_f of shape (accumulators, groups), which carry over from call to call; it returns whether the answer is in doubt.  With hashed groups it
    takes a table (`hash_groups`) before these and returns the row that it stopped at, which is `end` unless the table is
    full.  One that lists rows takes an array of row numbers for each relation instead, and returns how many it would have
    written, were these large enough, or -1 when they are in doubt.  A selection takes an array of truth values, one a row.
    """
    registers = program.grouping is None and bool(program.accumulators)
    slots = program.slots
    places = {i: f"a{i}" if registers else f"{out}[{at}]" for i, (out, at) in enumerate(slots)}
    lines = header(
        ["import numpy as np", "", "from fuseline.codegen.cpu.functions_cpu import *"],
        description,
        legend(program, places),
    )
    if program.functions:
        lines += definitions(program.functions, "cpu")
    lines.append(f"def {program.name}({', '.join(name for name, _ in signature(program))}):")
    body = [DOUBT]
    if program.ranking is not None:
        made = program.ranking
        body.append(f"rank_rows({made.codes}, {made.ranks}, start, end, {made.step})")
    if registers:
        body += [f"a{i} = {array}[{at}, 0]" for i, (array, at) in enumerate(slots)]
    if program.rows_out:
        body += ["count = np.uint64(0)", f"capacity = np.uint64(out_row{program.rows_out[0]}.size)"]
    body += _loop(program)
    if registers:
        body += [f"{array}[{at}, 0] = a{i}" for i, (array, at) in enumerate(slots)]
    body += _end(program)
    return "\n".join(lines + indent(body, 1)) + "\n"


def _loop(program: Program) -> list[str]:
    """All rows; an unsigned index is never negative, which would count from the end: only then is the loop vectorized."""
    parts = passes(program)
    if parts is None:
        row = _row(program, program.inputs, program.body, _sink(program, program.keep))
        return ["for row in range(np.uint64(start), np.uint64(end)):", *indent(row, 1)]
    first, *further = parts.choosing
    note = f"kept[row - block] = {text(first.condition, select)}"
    choosing = _row(program, first.inputs, first.body, [note])
    handling = _row(program, parts.handling.inputs, parts.handling.body, _sink(program, None))
    count = "choose(kept, block, stop, chosen)"
    narrowed: list[str] = [f"held = {count}"] if further else []
    for each in further:
        note = f"few += np.uint64({text(each.condition, select)})"
        lines = _row(program, each.inputs, each.body, ["chosen[few] = row", note])
        narrowed += [
            "few = np.uint64(0)",
            "for place in range(held):",
            "    row = chosen[place]",
            *indent(lines, 1),
            "held = few",
        ]
    return [
        f"kept = on_stack({BLOCK}, np.bool_)  # rows of a block that pass the filters",
        f"chosen = on_stack({BLOCK}, np.uint64)  # their numbers",
        f"for block in range(np.uint64(start), np.uint64(end), np.uint64({BLOCK})):",
        f"    stop = min(block + np.uint64({BLOCK}), np.uint64(end))",
        "    for row in range(block, stop):",
        *indent(choosing, 2),
        *indent(narrowed, 1),
        f"    for place in range({'held' if further else count}):",
        "        row = chosen[place]",
        *indent(handling, 2),
    ]


def _row(
    program: Program, inputs: Sequence[Input], body: Sequence[Statement], sink: list[str]
) -> list[str]:
    loads = [line for i in inputs for line in load(i, program)]
    return loads + row_statements(body, select, sink)


def _end(program: Program) -> list[str]:
    if program.rows_out:
        return ["return np.int64(-1) if doubt else np.int64(count)"]
    return leave("end") if hashed(program) else ["return doubt"]


def _sink(program: Program, keep: Name | None) -> list[str]:
    """What becomes of a row; `keep`: whether it is still in, where that is not certain."""
    if program.rows_out:
        return _list_row(program, keep)
    if not program.accumulators:
        return ["selected[row] = keep"]
    if program.grouping is None:
        return _fold_registers(program, keep)
    return _fold_groups(program, program.grouping, keep)


def _list_row(program: Program, keep: Name | None) -> list[str]:
    """Write the row's numbers, while there is room."""
    store = [f"out_row{i}[count] = np.int32({program.relations[i].row})" for i in program.rows_out]
    lines = ["if count < capacity:", *indent(store, 1), "count += np.uint64(1)"]
    return lines if keep is None else [f"if {keep.text}:", *indent(lines, 1)]


def signature(program: Program) -> Signature:
    """Name and type of each parameter, in order; `[T]` is an array."""
    found = [("start", "int64"), ("end", "int64")]
    for i in (*program.inputs, *(e.input for e in program.elements)):
        found += [(name, f"[{kind}]") for name, kind in i.arrays(program.names[i.column])]
    found += [(b.name, f"[{b.type}]") for b in program.buffers]
    found += [(p.name, p.machine.value) for p in program.parameters]
    found += [(t.name, f"[{t.machine.value}]") for t in program.tables]
    if program.rows_out:
        return [*found, *((f"out_row{i}", "[int32]") for i in program.rows_out)]
    if not program.accumulators:
        return [*found, ("selected", "[bool_]")]
    if hashed(program):
        found += [("keys", "[int64]"), ("state", "[int64]")]
    floats = sum(a.machine is Machine.F64 for a in program.accumulators)
    rows = {"out_i": len(program.accumulators) - floats, "out_f": floats}
    # A single row is laid out both ways, and C is the way whose places take no multiplication
    orders = {n: "F" if is_wide(program) and count > 1 else "C" for n, count in rows.items()}
    return [
        *found,
        ("out_i", f"[int64:{orders['out_i']}]"),
        ("out_f", f"[float64:{orders['out_f']}]"),
    ]


def is_wide(program: Program) -> bool:
    """Whether the accumulators of a group lie side by side; a hash table begins with as many slots."""
    grouping = program.grouping
    return grouping is not None and (grouping.hashed or grouping.groups >= WIDE_GROUPS)


def hashed(program: Program) -> bool:
    return program.grouping is not None and program.grouping.hashed


def leave(row: str) -> list[str]:
    """Return from a kernel with hashed groups."""
    return ["if doubt:", "    state[1] = 1", f"return {row}"]


def load(source: Input, program: Program) -> list[str]:
    """Read one row's code, and its validity where the column has NULLs."""
    name = program.names[source.column]
    lines = [f"{name}_code = {text(source.code_at(name, Name('row', Machine.I64)), select)}"]
    if source.nullable:
        byte = f"np.int32({name}_bits[row >> np.uint64(3)])"
        lines.append(f"{name}_valid = ({byte} >> np.int32(row & np.uint64(7))) & 1 != 0")
    return lines


def _identity(program: Program, index: int) -> str:
    accumulator = program.accumulators[index]
    return f"np.{accumulator.machine.value}({accumulator.identity!r})"


def _fold_registers(program: Program, keep: Name | None) -> list[str]:
    lines = []
    for i, accumulator in enumerate(program.accumulators):
        value = text(accumulator.term, select)
        parts: list[Term] = [] if keep is None else [keep]
        parts += [] if accumulator.condition is None else [accumulator.condition]
        if parts:
            condition = " & ".join([text(part, select) for part in parts])
            value = select(condition, value, _identity(program, i))
        lines.append(f"a{i} = {folded(accumulator.fold, f'a{i}', value)}")
    return lines


def _fold_groups(program: Program, grouping: Grouping, keep: Name | None) -> list[str]:
    number = text(grouping.slot, select)
    lines = [f"slot = np.uint64({number})"]
    if grouping.hashed:
        lines = [f"slot = group_slot(keys, state, {number})"]
        lines += ["if slot < 0:", *indent(leave("np.int64(row)"), 1)]
    slots = program.slots
    for i, accumulator in enumerate(program.accumulators):
        array, at = slots[i]
        place = f"{array}[{at}, slot]"
        value = text(accumulator.term, select)
        if accumulator.condition is not None:
            value = select(text(accumulator.condition, select), value, _identity(program, i))
        lines.append(f"{place} = {folded(accumulator.fold, place, value)}")
    # A value that its type cannot hold may have no group: once in doubt, nothing is folded any more
    guards = ["keep"] if keep is not None else []
    guards += ["not doubt"] if program.doubts else []
    return [f"if {' and '.join(guards)}:", *indent(lines, 1)] if guards else lines
