"""Indexes in the loop language: filling one, asking it, and going through the rows of a key."""

from __future__ import annotations

from ..indexes import Buffer, Form, Index
from ..kernel import Kernel
from ..loop import Apply, Function, Lookup, Machine, Name, Number, Term
from ..ranges import I32_MAX
from .join_keys import KeyNumber

EMPTY = Number(-1, Machine.I32)


def number_machine(index: Index) -> Machine:
    """The register type of an index's numbers."""
    small = index.form is not Form.HASHED and index.slots <= I32_MAX
    return Machine.I32 if small else Machine.I64


def insert(index: Index, key: KeyNumber, row: Term, kernel: Kernel) -> Term:
    """Put a row in; 1 where its key was there before and that matters."""
    buffers = _buffers(index, kernel)
    match index.form:
        case Form.BITS:
            name = "insert_bit" if index.unique else "set_bit"
            return Function(name, (*buffers, *key.args), Machine.I64)
        case Form.DIRECT:
            name = "insert_linked" if index.linked else "insert_unique"
        case Form.HASHED:
            name = "insert_hashed_raw" if key.raw else "insert_hashed"
    return Function(name, (*buffers, *key.args, row), Machine.I64)


def member(index: Index, key: KeyNumber, kernel: Kernel) -> Term:
    """Whether any row has the key."""
    if index.form is Form.BITS:
        return Function("has_bit", (*_buffers(index, kernel), *key.args), Machine.BOOL)
    row = first_row(index, key, kernel)
    return Apply(">=", (row, Number(0, Machine.I32)), Machine.BOOL)


def first_row(index: Index, key: KeyNumber, kernel: Kernel) -> Term:
    """A row of the key, or -1."""
    buffers = _buffers(index, kernel)
    if index.form is Form.DIRECT:
        return Function("find_direct", (buffers[0], *key.args), Machine.I32)
    name = "find_hashed_raw" if key.raw else "find_hashed"
    return Function(name, (*buffers, *key.args), Machine.I32)


def next_row(index: Index, key: KeyNumber, row: Name, kernel: Kernel) -> Term:
    """Another row of the key than those before, or -1."""
    if not index.linked:
        return EMPTY
    _, *buffers = _buffers(index, kernel)
    if index.form is Form.DIRECT:
        return Function("next_linked", (*buffers, row), Machine.I32)
    return Function("next_hashed", (*buffers, key.number, row), Machine.I32)


def built_rows(index: Index, kernel: Kernel) -> Term:
    """How many rows an index holds."""
    return _state(index, 0, kernel)


def built_nulls(index: Index, kernel: Kernel) -> Term:
    """How many rows of the build side have a NULL key."""
    return _state(index, 1, kernel)


def _state(index: Index, place: int, kernel: Kernel) -> Term:
    state = kernel.buffer(Buffer(f"{index.name}_state", "int64", 3, 0, index.number))
    return Lookup(state.text, Number(place, Machine.I32), Machine.I64)


def _buffers(index: Index, kernel: Kernel) -> list[Name]:
    return [kernel.buffer(buffer) for buffer in index.buffers]
