"""The CUDA target's sink for rows that come out as rows: their numbers, in any order, as long as there is room.

`counter` ends at how many there are, so that a run without room for all says how much the next one takes.
"""

from __future__ import annotations

from ..emit import indent
from ..program import Program


def list_row(program: Program) -> list[str]:
    """Write the numbers of one row."""
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
