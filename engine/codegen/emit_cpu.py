"""The CPU target: a loop over a range of rows, compiled by `numba.njit(nogil=True)`, with accumulators of its own.

Ranges run on a thread pool and their accumulators are merged by `host`.
"""

from __future__ import annotations

from .emit import accumulator_slots, folded, header, indent, row_statements, text
from .legend import DOUBT, legend
from .steps import Program
from .values import Input


def select(condition: str, yes: str, no: str) -> str:
    """LLVM makes a select, and vector code, of a conditional expression without side effects."""
    return f"({yes} if {condition} else {no})"


def source(program: Program, description: str) -> str:
    """Return the kernel's file.

    The function takes start, end, the code arrays, validity bitmaps, scalars, tables, then out_i and out_f of shape
    (accumulators, groups); it returns whether the answer is in doubt.  With hashed groups it takes a table (`hash_groups`)
    before these and returns the row that it stopped at, which is `end` unless the table is full.  A selection takes an array
    of truth values instead, one a row.
    """
    registers = program.grouping is None and bool(program.accumulators)
    slots = accumulator_slots(program)
    places = {i: f"a{i}" if registers else f"{out}[{at}]" for i, (out, at) in enumerate(slots)}
    lines = header(
        ["import numpy as np", "", "from fuseline.codegen.functions_cpu import *"],
        description,
        legend(program, places),
    )
    lines.append(f"def {program.name}({', '.join(parameters(program))}):")
    body = [DOUBT]
    if registers:
        body += [f"a{i} = {_identity(program, i)}" for i in range(len(program.accumulators))]
    # An unsigned index is never negative, which would count from the end: only then is the loop vectorized
    body.append("for row in range(np.uint64(start), np.uint64(end)):")
    row = [line for i in program.inputs for line in load(i, program)]
    row += row_statements(program, select)
    row += _sink(program)
    body += indent(row, 1)
    if registers:
        body += [f"{array}[{at}, 0] = a{i}" for i, (array, at) in enumerate(slots)]
    body += leave("end") if hashed(program) else ["return doubt"]
    return "\n".join(lines + indent(body, 1)) + "\n"


def _sink(program: Program) -> list[str]:
    """What becomes of a row."""
    if not program.accumulators:
        return ["selected[row] = keep"]
    return _fold_registers(program) if program.grouping is None else _fold_groups(program)


def parameters(program: Program) -> list[str]:
    """Names of the arguments, in order."""
    names = ["start", "end"]
    for i in program.inputs:
        name = program.names[i.column]
        names += [name, f"{name}_bits"] if i.nullable else [name]
    names += [p.name for p in program.kernel.parameters]
    names += [t.name for t in program.kernel.tables]
    if not program.accumulators:
        return [*names, "selected"]
    if hashed(program):
        names += ["keys", "state"]
    return [*names, "out_i", "out_f"]


def hashed(program: Program) -> bool:
    return program.grouping is not None and program.grouping.hashed


def leave(row: str) -> list[str]:
    """Return from a kernel with hashed groups."""
    return ["if doubt:", "    state[1] = 1", f"return {row}"]


def load(source: Input, program: Program) -> list[str]:
    """Read one row's code, and its validity where the column has NULLs."""
    name = program.names[source.column]
    lines = [f"{name}_code = np.{source.register.value}({name}[row])"]
    if source.nullable:
        byte = f"np.int32({name}_bits[row >> np.uint64(3)])"
        lines.append(f"{name}_valid = ({byte} >> np.int32(row & np.uint64(7))) & 1 != 0")
    return lines


def _identity(program: Program, index: int) -> str:
    accumulator = program.accumulators[index]
    return f"np.{accumulator.machine.value}({accumulator.identity!r})"


def _fold_registers(program: Program) -> list[str]:
    lines = []
    for i, accumulator in enumerate(program.accumulators):
        value = text(accumulator.term, select)
        condition = _condition(program, accumulator.condition)
        if condition:
            value = select(condition, value, _identity(program, i))
        lines.append(f"a{i} = {folded(accumulator.fold, f'a{i}', value)}")
    return lines


def _condition(program: Program, condition: object) -> str:
    parts = [program.keep.text] if program.keep is not None else []
    if condition is not None:
        parts.append(text(condition, select))  # type: ignore[arg-type]
    return " & ".join(parts)


def _fold_groups(program: Program) -> list[str]:
    assert program.grouping is not None
    lines = [f"slot = np.uint64({text(program.grouping.slot, select)})"]
    if hashed(program):
        lines = [f"slot = group_slot(keys, state, {text(program.grouping.slot, select)})"]
        lines += ["if slot < 0:", *indent(leave("np.int64(row)"), 1)]
    slots = accumulator_slots(program)
    for i, accumulator in enumerate(program.accumulators):
        array, at = slots[i]
        place = f"{array}[{at}, slot]"
        value = text(accumulator.term, select)
        if accumulator.condition is not None:
            value = select(text(accumulator.condition, select), value, _identity(program, i))
        lines.append(f"{place} = {folded(accumulator.fold, place, value)}")
    # A value that its type cannot hold may have no group: once in doubt, nothing is folded any more
    guards = ["keep"] if program.keep is not None else []
    guards += ["not doubt"] if program.doubt is not None else []
    return [f"if {' and '.join(guards)}:", *indent(lines, 1)] if guards else lines
