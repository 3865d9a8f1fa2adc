"""Indexes in a kernel that grows: filling one, asking it, and going through the rows of a key."""

from __future__ import annotations

from collections.abc import Sequence

from ..indexes.layers import Bitmap, Buckets, Buffer, Direct, Index
from ..loop import Apply, Function, Insertion, Let, Lookup, Machine, Name, Number, Probe, Term
from ..program_builder import ProgramBuilder
from .probe_keys import KeyNumber

EMPTY = Number(-1, Machine.I32)


def number_machine(index: Index) -> Machine:
    """The register type of an index's numbers."""
    return Machine.I32 if index.narrow else Machine.I64


def insert(index: Index, key: KeyNumber, row: Term, kernel: ProgramBuilder) -> Term:
    """Put a row in; 1 where its key was there before and that matters."""
    _take(index.buffers, kernel)
    layers, numbers = index.layers, key.args
    if index.sieved:
        marked = Name(f"{index.name}_marked", number_machine(index))
        kernel.state(Let(marked, Insertion(layers[:1], numbers, marked.type)))
        layers, numbers = layers[1:], (marked,)
    rows = (row,) if index.form in (Direct, Buckets) else ()
    return Insertion(layers, (*numbers, *rows), Machine.I64)


def member(index: Index, key: KeyNumber, kernel: ProgramBuilder) -> Term:
    """Whether any row has the key."""
    if index.form is Bitmap or index.guarded:
        layers = index.layers[: index.sieved + 1]
        _take([buffer for layer in layers for buffer in layer.buffers], kernel)
        return Probe(layers, key.args, Machine.BOOL)
    row = first_row(index, key, kernel)
    return Apply(">=", (row, Number(0, Machine.I32)), Machine.BOOL)


def first_row(index: Index, key: KeyNumber, kernel: ProgramBuilder) -> Term:
    """A row of the key, or -1."""
    _take(index.buffers, kernel)
    return Probe(index.layers, key.args, Machine.I32)


def next_row(index: Index, key: KeyNumber, row: Name) -> Term:
    """Another row of the key than those before, or -1."""
    if not index.linked:
        return EMPTY
    arrays = [Name(buffer.name, Machine.I32) for buffer in index.layers[-1].buffers[1:]]
    if index.form is Direct:
        return Function("next_linked", (*arrays, row), Machine.I32)
    return Function("next_hashed", (*arrays, key.number, row), Machine.I32)


def built_rows(index: Index, kernel: ProgramBuilder) -> Term:
    """How many rows an index holds."""
    return _state(index, 0, kernel)


def built_nulls(index: Index, kernel: ProgramBuilder) -> Term:
    """How many rows of the build side have a NULL key."""
    return _state(index, 1, kernel)


def _state(index: Index, place: int, kernel: ProgramBuilder) -> Term:
    state = kernel.buffer(Buffer(f"{index.name}_state", "int64", 3, 0, index.number))
    return Lookup(state.text, Number(place, Machine.I32), Machine.I64)


def _take(buffers: Sequence[Buffer], kernel: ProgramBuilder) -> None:
    """Have arrays among the kernel's parameters."""
    for buffer in buffers:
        kernel.buffer(buffer)
