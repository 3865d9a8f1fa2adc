"""Groups in the order of their rows: which programs may make use of a column whose values ascend, and what comes out of these.

Rows of a group then follow one another.  Whoever has its first row reads on until another group begins, and has all of it: there is
no table as large as the domain of the key to be filled, changed and searched.
"""

from __future__ import annotations

from dataclasses import replace

from ..loop import Apply, Convert, Doubt, Let, Machine, Name, Number, Term, names_in
from ..program import Program
from ..ranges import I64_MAX
from ..typed_values import Input
from .conditions import Condition
from .grouping import OrderedGroups

LONGEST = 1 << 10  # rows of a group: beyond, whoever reads them alone keeps all others waiting
FOLDED = 2 * LONGEST  # rows of a group up to which what is folded must be right


def key_of(program: Program) -> Input | None:
    """Return the column whose order may be that of the groups; None where groups are found in another way.

    The number of a group must be that column's value, perhaps times something or more by something.
    """
    grouping = program.grouping
    if grouping is None or grouping.row is not None or len(grouping.keys) != 1:
        return None
    (key,) = grouping.keys
    if grouping.distinct or program.repeats or program.counted is not None:
        return None
    if key.nullable or key.values is not None:
        return None
    columns = {f"{program.names[i.column]}_code": i for i in program.inputs if not i.nullable}
    given = {p.name for p in program.parameters}
    used = names_in(grouping.slot) - given
    if len(used) != 1 or not used <= columns.keys():
        return None
    (name,) = used
    return columns[name] if _is_monotonic(grouping.slot, name) else None


def _is_monotonic(term: Term, name: str) -> bool:
    """Whether a term rises or falls throughout as a variable does: a multiple of it, more or less by constants."""
    match term:
        case Name() | Number():
            return True
        case Convert(operand, machine):
            return machine in (Machine.I32, Machine.I64) and _is_monotonic(operand, name)
        case Apply("+" | "-", args):
            return all(_is_monotonic(part, name) for part in args)
        case Apply("*", args):
            varying = [part for part in args if name in names_in(part)]
            return len(varying) <= 1 and all(_is_monotonic(part, name) for part in args)
    return False


def has_all_rows(program: Program) -> bool:
    """Whether every row reaches the sink, so that each number that is read has a group."""
    return program.keep is None and all(isinstance(s, Let | Doubt) for s in program.body)


def in_order(program: Program, key: Input, condition: Condition | None) -> Program:
    """Return a program that makes use of the order of a column."""
    assert program.grouping is not None
    return replace(
        program, grouping=replace(program.grouping, ordered=OrderedGroups(key, condition))
    )


def coming_out(program: Program) -> tuple[int, ...]:
    """The accumulators that come out with each group: all but that which only says whether there is one."""
    grouping = program.grouping
    assert grouping is not None
    counted = any(folded.reads(grouping.rows) for folded in program.folded)
    numbers = dict.fromkeys(n for folded in program.folded for n in folded.accumulators)
    return tuple(n for n in numbers if counted or n != grouping.rows)


def bounds(program: Program) -> dict[int, tuple[int, int]]:
    """What accumulators of integers hold, for those that have a value of every group's rows and cannot be large."""
    found = {}
    for number, accumulator in enumerate(program.accumulators):
        most = accumulator.magnitude
        if isinstance(accumulator.term, Number):
            most = abs(int(accumulator.term.value))
        adds = accumulator.fold == "add"
        extreme = accumulator.fold in ("min", "max") and accumulator.condition is None
        if accumulator.machine is not Machine.I64 or most is None or not (adds or extreme):
            continue
        most *= FOLDED if adds else 1
        if most <= I64_MAX:
            found[number] = (-most, most)
    return found
