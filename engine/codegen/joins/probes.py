"""Indexes in the loop language: filling one, asking it, and going through the rows of a key."""

from __future__ import annotations

from ..indexes import Buffer, Form, Index
from ..loop import Apply, Convert, Function, Let, Lookup, Machine, Name, Number, Term
from ..program_builder import ProgramBuilder
from ..ranges import I32_MAX
from .probe_keys import KeyNumber

EMPTY = Number(-1, Machine.I32)


def number_machine(index: Index) -> Machine:
    """The register type of an index's numbers."""
    small = index.form is not Form.HASHED and index.slots <= I32_MAX
    return Machine.I32 if small else Machine.I64


def insert(index: Index, key: KeyNumber, row: Term, kernel: ProgramBuilder) -> Term:
    """Put a row in; 1 where its key was there before and that matters."""
    buffers, numbers = _buffers(index, kernel), key.args
    if index.sieved:
        (marked,) = _sifted(index, key, "mark_sieve", kernel)
        number = Name(f"{index.name}_marked", marked.type)
        kernel.state(Let(number, marked))
        numbers = (number,)
    match index.form:
        case Form.BITS | Form.PLACED | Form.RANKED:
            name = "insert_bit" if index.unique else "set_bit"
            return Function(name, (buffers[0], *numbers), Machine.I64)
        case Form.DIRECT if index.guarded:
            name = "insert_guarded"
        case Form.DIRECT:
            name = "insert_linked" if index.linked else "insert_unique"
        case Form.HASHED:
            name = "insert_hashed_raw" if key.raw else "insert_hashed"
    return Function(name, (*buffers, *numbers, row), Machine.I64)


def member(index: Index, key: KeyNumber, kernel: ProgramBuilder) -> Term:
    """Whether any row has the key."""
    if index.form is Form.BITS or index.guarded:
        members, *_ = index.buffers
        numbers = _sifted(index, key, "pass_sieve", kernel)
        return Function("has_bit", (kernel.buffer(members), *numbers), Machine.BOOL)
    row = first_row(index, key, kernel)
    return Apply(">=", (row, Number(0, Machine.I32)), Machine.BOOL)


def first_row(index: Index, key: KeyNumber, kernel: ProgramBuilder) -> Term:
    """A row of the key, or -1."""
    buffers = _buffers(index, kernel)
    if index.form in (Form.PLACED, Form.RANKED):
        number: Term = key.number
        if index.guarded:
            numbers = _sifted(index, key, "pass_sieve", kernel)
            number = Function("pass_bits", (buffers[0], *numbers), Machine.I32)
        if index.form is Form.PLACED:
            return Convert(number, Machine.I32)
        return Function("find_rank", (buffers[-1], number), Machine.I32)
    if index.guarded:
        numbers = _sifted(index, key, "pass_sieve", kernel)
        return Function("find_guarded", (*buffers, *numbers), Machine.I32)
    if index.form is Form.DIRECT:
        return Function("find_direct", (buffers[0], *key.args), Machine.I32)
    if key.raw:
        return Function("find_hashed_raw", (*buffers, *key.args), Machine.I32)
    numbers = _sifted(index, key, "pass_sieve", kernel)
    return Function("find_hashed", (*buffers, *numbers), Machine.I32)


def next_row(index: Index, key: KeyNumber, row: Name, kernel: ProgramBuilder) -> Term:
    """Another row of the key than those before, or -1."""
    if not index.linked:
        return EMPTY
    _, *buffers = _buffers(index, kernel)
    if index.form is Form.DIRECT:
        return Function("next_linked", (*buffers, row), Machine.I32)
    return Function("next_hashed", (*buffers, key.number, row), Machine.I32)


def built_rows(index: Index, kernel: ProgramBuilder) -> Term:
    """How many rows an index holds."""
    return _state(index, 0, kernel)


def built_nulls(index: Index, kernel: ProgramBuilder) -> Term:
    """How many rows of the build side have a NULL key."""
    return _state(index, 1, kernel)


def _state(index: Index, place: int, kernel: ProgramBuilder) -> Term:
    state = kernel.buffer(Buffer(f"{index.name}_state", "int64", 3, 0, index.number))
    return Lookup(state.text, Number(place, Machine.I32), Machine.I64)


def _buffers(index: Index, kernel: ProgramBuilder) -> list[Name]:
    """Where the rows are."""
    return [kernel.buffer(b) for b in index.buffers if not index.sieved or b != index.sieve]


def _sifted(
    index: Index, key: KeyNumber, function: str, kernel: ProgramBuilder
) -> tuple[Term, ...]:
    """What is looked for in an index, as arguments of functions: the number, by way of the sieve if there is one."""
    if not index.sieved:
        return key.args
    shift = Number(index.sieve_shift, Machine.I32)
    number = Function(function, (kernel.buffer(index.sieve), shift, key.number), Machine.I64)
    machine = number_machine(index)
    return (number if machine is Machine.I64 else Convert(number, machine),)
