"""The CUDA kernel that tests a condition on groups: it marks in `bits` the slots that hold a group which stays, 32 a word.

Accumulators that the condition reads are read once, whether a slot holds a group or not; what says whether it does is read only where
the condition holds.
"""

from __future__ import annotations

from ..compile.compiler import Signature
from ..emit import header, indent
from ..groups.conditions import GROUP, Condition, element
from ..program import Program
from .accumulator_layout import layout
from .emit_cuda import IMPORTS
from .emit_sorted import stays

NAME = "group_test"
LOADS = 4  # words of slots that a warp takes at a time, so that as many loads are under way
TYPES = {"out_i": "int64", "out_f": "float64", "out_n": "int32"}


def signature(condition: Condition, program: Program) -> Signature:
    """The kernel's parameters: `flags` has at least `least` where a slot holds a group."""
    grouping, types = program.grouping, types_of(program)
    assert grouping is not None
    return [
        ("slots", "int64"),
        ("flags", "*int64" if grouping.hashed else f"*{types[grouping.rows]}"),
        ("least", "int64"),
        ("bits", "*int32"),
        *((f"all_{element(n)}", f"*{types[n]}") for n in condition.accumulators),
        *((p.name, p.machine.value) for p in condition.parameters),
    ]


def types_of(program: Program) -> dict[int, str]:
    """The type of each accumulator's elements."""
    return {n: TYPES[array] for n, (array, _) in layout(program).results().items()}


def source(condition: Condition, program: Program, description: str) -> str:
    """Return the kernel's file."""
    numbers, named = condition.accumulators, [p.name for p in condition.parameters]
    group = [GROUP.text] if condition.numbered else []
    legend = [f"{p.name}: {p.meaning}" for p in condition.parameters]
    lines = header(IMPORTS, description, legend)
    lines += [
        *stays(condition, [*group, *map(element, numbers), *named]),
        f"def {NAME}({', '.join(n for n, _ in signature(condition, program))}):",
    ]
    places = range(LOADS)
    steps = [f"slot{k} = first + np.uint64({32 * k}) + lane" for k in places]
    types = types_of(program)
    for n in numbers:
        machine = "float64" if types[n] == "float64" else "int64"
        loads = [f"all_{element(n)}[min(slot{k}, last)]" for k in places]
        steps += [f"{element(n)}_{k} = np.{machine}({load})" for k, load in enumerate(loads)]
    if group:
        hashed = program.grouping is not None and program.grouping.hashed
        number = "flags[min(slot@, last)]" if hashed else "slot@"
        steps += [f"{GROUP.text}_{k} = np.int64({number.replace('@', str(k))})" for k in places]
    for k in places:
        given = ", ".join([*(f"{e}_{k}" for e in (*group, *map(element, numbers))), *named])
        steps += [f"there{k} = stays({given}) and slot{k} <= last", *_exists(program, numbers, k)]
    steps += [f"votes{k} = cuda.ballot_sync(0xFFFFFFFF, there{k})" for k in places]
    steps += ["if lane == np.uint64(0):", "    word = first >> np.uint64(5)"]
    steps += [f"    bits[word + np.uint64({k})] = np.int32(votes{k})" for k in places]
    body = [
        "thread = np.uint64(cuda.grid(1))",
        "lane = thread & np.uint64(31)",
        "last = np.uint64(slots) - np.uint64(1)",
        f"first = (thread >> np.uint64(5)) * np.uint64({32 * LOADS})",
        "while first < np.uint64(slots):",
        *indent([*steps, f"first += np.uint64(cuda.gridsize(1)) * np.uint64({LOADS})"], 1),
    ]
    return "\n".join(lines + indent(body, 1)) + "\n"


def _exists(program: Program, numbers: tuple[int, ...], place: int) -> list[str]:
    """Whether the slot holds a group, by the count of its rows where that is at hand."""
    grouping = program.grouping
    assert grouping is not None
    if grouping.rows in numbers and not grouping.hashed:
        return [f"there{place} = there{place} and {element(grouping.rows)}_{place} >= least"]
    return [f"if there{place}:", f"    there{place} = flags[slot{place}] >= least"]
