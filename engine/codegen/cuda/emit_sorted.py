"""The CUDA target's loop for groups in the order of their rows (`groups.ordered`): no table of groups, one result for each.

A thread takes a word of rows and makes the groups that begin there.  The last of them may go on in words after it, which the thread
reads too; the threads that have those words leave the rows before their own first group to it.  A group is done when another
number comes, or the rows end.  Groups are short as a rule, so that a word that is read again lies in a cache; one that is
too long makes the kernel give up.
"""

from __future__ import annotations

from collections.abc import Sequence

from ..emit import folded, indent, nests, row_statements, text
from ..groups.conditions import GROUP, Condition, element
from ..groups.grouping import Grouping, OrderedGroups
from ..groups.ordered import FOLDED, LONGEST, coming_out, has_all_rows
from ..loop import Machine, names_in, terms_of
from ..program import Program
from ..program_builder import ROW
from .accumulator_layout import Cell, cell_machine
from .emit_fold import guarded, identity_of, select, value_of, widened
from .vector_loads import load_row, load_words, unpack

LONG_BODY = 10  # accumulators and named values from which on more rows would not be unrolled
COUNT, TOO_LONG = 0, 1  # of `counter`: groups that come out, and whether one was too long
NO_GROUP, NO_ROW = -1, -2  # instead of numbers, which are 0 or more


def rows_at_a_time(program: Program) -> int:
    """Rows of a word."""
    long = len(program.accumulators) + len(program.body) > LONG_BODY
    return 4 if long or nests(program) or any(i.width == 8 for i in program.inputs) else 8


def results(program: Program) -> list[tuple[str, str]]:
    """Name and Numba type of the parameters for constants of the condition and for what comes out."""
    _, ordered = _grouping(program)
    condition = () if ordered.condition is None else ordered.condition.parameters
    found = [(given(p.name), p.machine.value) for p in condition]
    found.append(("numbers", "[int64]"))
    found += [
        (f"out_{element(n)}", f"*{program.accumulators[n].machine.value}")
        for n in coming_out(program)
    ]
    return [*found, ("counter", "[int64]"), ("out_i", "[int64]")]


def given(parameter: str) -> str:
    """The name of a constant of the condition among those of the program."""
    return f"having_{parameter}"


def places(program: Program) -> dict[int, str]:
    """Where each accumulator that comes out is while the kernel runs, and where it ends."""
    return {n: f"r{n}, out_{element(n)}" for n in coming_out(program)}


def condition_function(program: Program) -> list[str]:
    """The function that says which groups come out, if there is a condition."""
    _, ordered = _grouping(program)
    if ordered.condition is None:
        return []
    return stays(ordered.condition, [name for name, _ in _condition_arguments(ordered)])


def stays(condition: Condition, reads: Sequence[str]) -> list[str]:
    """The device function that says whether a group stays, of what it reads."""
    lets = [f"    {let.name.text} = {text(let.value, select)}" for let in condition.lets]
    return [
        '@cuda.jit(device=True, inline="always")',
        f"def stays({', '.join(reads)}):",
        *lets,
        f"    return {text(condition.keep, select)}",
        "",
        "",
    ]


def sorted_loop(program: Program) -> list[str]:
    """The loop over words, and for each over those in which its last group goes on."""
    grouping, ordered = _grouping(program)
    rows, machine = rows_at_a_time(program), grouping.slot.type.value
    before = [
        f"row = first * np.uint64({rows}) - np.uint64(1)",
        *load_row(ordered.key, program, rows),
        f"pending = {text(grouping.slot, select)}",
    ]
    word = [
        f"pending = np.{machine}({NO_GROUP})",
        "if first != np.uint64(0):",
        *indent(before, 1),
        "ahead = first",
        *_load(program),
        *(_reserved(program) if ordered.condition is None else []),
        "owned = False",
        *(f"{name} = {blank}" for name, blank in _blanks(program)),
        *_own_rows(program),
        "owned = owned & (pending >= 0)",
        "going = owned",
        "while going:",
        "    ahead += np.uint64(1)",
        *indent(_load(program), 1),
        f"    for k in range({rows}):",
        *indent(_further_row(program), 2),
        f"    if going and ahead - first > np.uint64({LONGEST // rows}):",
        f"        counter[{TOO_LONG}] = 1",
        "        owned = False",
        "        going = False",
        "if owned:",
        *indent(_done(program), 1),
        "first += threads",
    ]
    return [
        f"words = (np.uint64(rows) + np.uint64({rows - 1})) // np.uint64({rows})",
        "first = thread",
        "while first < words:",
        *indent(word, 1),
    ]


def _grouping(program: Program) -> tuple[Grouping, OrderedGroups]:
    grouping = program.grouping
    assert grouping is not None
    assert grouping.ordered is not None
    return grouping, grouping.ordered


def _condition_arguments(ordered: OrderedGroups) -> list[tuple[str, str]]:
    """What the condition reads, by the names that it has there and in the kernel."""
    condition = ordered.condition
    assert condition is not None
    names = [(GROUP.text, "np.int64(pending)")] if condition.numbered else []
    names += [(element(n), element(n)) for n in condition.accumulators]
    return [*names, *((p.name, given(p.name)) for p in condition.parameters)]


def _load(program: Program) -> list[str]:
    """Load word `ahead`, and note how many rows it has; after the last one, that one again, of which none is left."""
    rows = rows_at_a_time(program)
    return [
        f"begin = np.int64(ahead) * np.int64({rows})",
        f"left = np.int32({select(f'rows - begin < {rows}', 'rows - begin', f'np.int64({rows})')})",
        "word = min(ahead, words - np.uint64(1))",
        *(line for source in program.inputs for line in load_words(source, program, rows)),
    ]


def _own_rows(program: Program) -> list[str]:
    """The rows of the thread's word: written out, as the compiler does not where much may happen in each, unless they branch anyway."""
    row, rows = _own_row(program), rows_at_a_time(program)
    if nests(program):
        return [f"for k in range({rows}):", *indent(row, 1)]
    return [line for k in range(rows) for line in (f"k = {k}", *row)]


def _number(program: Program) -> list[str]:
    """The number of row k's group, or of none after the last row."""
    grouping, ordered = _grouping(program)
    none = f"np.{grouping.slot.type.value}({NO_ROW})"
    return [
        *unpack(ordered.key, program, rows_at_a_time(program)),
        f"number = {select('left > np.int32(k)', text(grouping.slot, select), none)}",
    ]


def _reserved(program: Program) -> list[str]:
    """Take places for all groups that begin in the word, in one atomic operation for the warp."""
    row = [
        *_number(program),
        "begun = np.int32(begun + np.int32((number != before) & (number >= 0)))",
        "before = number",
    ]
    return [
        "before = pending",
        "begun = np.int32(0)",
        f"for k in range({rows_at_a_time(program)}):",
        *indent(row, 1),
        "place = np.uint64(append_several(counter, begun))",
    ]


def _own_row(program: Program) -> list[str]:
    """A row of the thread's word: it may end a group and begin another."""
    body = _body(program)
    # Behind the last row there may be anything, which no table or index need have, and what others do with their rows is not
    # worth a probe
    careful = nests(program) or program.doubts or program.tables or program.buffers
    return [
        *_number(program),
        "begins = number != pending",
        "if begins & owned:",
        *indent(_done(program), 1),
        "owned = owned | begins",
        "pending = number",
        *(f"{name} = {select('begins', blank, name)}" for name, blank in _blanks(program)),
        *(["if owned & (number >= 0):", *indent(body, 1)] if careful else body),
    ]


def _further_row(program: Program) -> list[str]:
    """A row of a word after that: it goes on with the group, or that has ended."""
    return [
        *_number(program),
        "going = going & (number == pending)",
        "if going:",
        *indent(_body(program), 1),
    ]


def _body(program: Program) -> list[str]:
    """What becomes of a row."""
    _, ordered = _grouping(program)
    rows = rows_at_a_time(program)
    others = [line for i in program.inputs if i != ordered.key for line in unpack(i, program, rows)]
    if ROW.text in names_in(*(term for s in program.body for term in terms_of(s))):
        others.append("row = np.uint64(begin + np.int64(k))")
    return others + row_statements(program.body, select, _fold(program))


# Groups


def _cells(program: Program) -> list[tuple[Cell, Machine]]:
    """A cell for each accumulator, and the register in which a group is folded."""
    cells = [Cell(a, a.machine, (n,)) for n, a in enumerate(program.accumulators)]
    return [(cell, cell_machine(cell.accumulator, FOLDED)) for cell in cells]


def _blanks(program: Program) -> list[tuple[str, str]]:
    """The registers of a group, and what each begins with."""
    return [
        (f"r{n}", f"np.{machine.value}({identity_of(cell, machine)!r})")
        for n, (cell, machine) in enumerate(_cells(program))
    ]


def _fold(program: Program) -> list[str]:
    lines = []
    for n, (cell, machine) in enumerate(_cells(program)):
        value = value_of(cell, machine)
        lines.append(f"r{n} = np.{machine.value}({folded(cell.accumulator.fold, f'r{n}', value)})")
    return guarded(program, lines)


def _done(program: Program) -> list[str]:
    """Write a group that is there and that stays, if there is room."""
    grouping, ordered = _grouping(program)
    cells = _cells(program)
    out = coming_out(program)
    read = () if ordered.condition is None else ordered.condition.accumulators
    lines = [
        f"{element(n)} = {widened(f'r{n}', cells[n][1], cells[n][0])}"
        for n in sorted({*out, *read})
    ]
    (key,) = grouping.keys
    stores = [
        "if place < np.uint64(numbers.size):",
        f"    numbers[place] = np.int64(pending) + np.int64({key.moved})",
        *(f"    out_{element(n)}[place] = {element(n)}" for n in out),
    ]
    if ordered.condition is None:
        return [*lines, *stores, "place += np.uint64(1)"]
    tests = [f"stays({', '.join(value for _, value in _condition_arguments(ordered))})"]
    if not has_all_rows(program):
        tests.insert(0, f"r{grouping.rows} > 0")
    return [
        *lines,
        f"if {' and '.join(tests)}:",
        "    place = np.uint64(append(counter))",
        *indent(stores, 1),
    ]
