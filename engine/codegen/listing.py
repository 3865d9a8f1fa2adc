"""A program as a listing: its inputs, loop statements and accumulators, and how many operations a row takes.

The listing is what FUSELINE_DEBUG=5 prints: the same on every target, before any of them has added loads and loops.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from ..plan.text.concealed_text import concealed
from .emit import text
from .groups.accumulate import Accumulator
from .loop import (
    Apply,
    Convert,
    Doubt,
    Each,
    Guard,
    Let,
    Name,
    Number,
    Search,
    Statement,
    Term,
    subterms,
    terms_of,
)
from .program import Program
from .typed_values import Input


def listing(program: Program) -> str:
    """Return the program as text, a line for each input, statement, key and accumulator."""
    lines = [f"{program.name}: {operations(program)} operations a row"]
    lines += [f"  load {program.names[i.column]}: {_stored(i)}" for i in program.inputs]
    for parameter in program.parameters:
        lines.append(f"  given {parameter.name}: {parameter.machine.value} = {parameter.value!r}")
    for table in program.tables:
        lines.append(f"  given {table.name}: {len(table.array)} values of {table.machine.value}")
    lines += statements(program.body, 1)
    if program.grouping is not None:
        lines.append(f"  slot = {_shown(program.grouping.slot)}  # {_domain(program)}")
    lines += [f"  a{i} {_folded(a)}" for i, a in enumerate(program.accumulators)]
    if not program.accumulators:
        lines.append("  rows where keep")
    return "\n".join(lines)


def statements(body: Sequence[Statement], depth: int) -> list[str]:
    """Return loop statements as text; what a guard or a loop holds is indented below it."""
    lines: list[str] = []
    for at, statement in enumerate(body):
        head = "  " * depth
        match statement:
            case Let(name, value, step):
                lines.append(f"{head}{name.text}: {name.type.value} = {_shown(value)}{_note(step)}")
            case Doubt(condition):
                lines.append(f"{head}doubt |= {_shown(condition)}")
            case Guard(condition, step):
                lines.append(f"{head}where {_shown(condition)}:{_note(step)}")
                return lines + statements(body[at + 1 :], depth + 1)
            case Each(row, first, following, once, step):
                kind = "or -1 once" if once else "until -1"
                loop = f"for {row.text} from {_shown(first)} by {_shown(following)}, {kind}:"
                lines.append(f"{head}{loop}{_note(step)}")
                return lines + statements(body[at + 1 :], depth + 1)
            case Search(found, row, first, following, inner, accepted, step):
                loop = f"{row.text} from {_shown(first)} by {_shown(following)}"
                lines.append(f"{head}{found.text} = any {loop}:{_note(step)}")
                lines += statements(inner, depth + 1)
                lines.append(f"{head}  accepted {_shown(accepted)}")
    return lines


def _note(step: str) -> str:
    return f"  # {' '.join(step.split())}" if step else ""


def operations(program: Program) -> int:
    """Count the operations of a row that passes all filters: arithmetic, comparisons, choices, lookups and folds."""
    terms = [term for statement in program.body for term in terms_of(statement)]
    if program.grouping is not None:
        terms.append(program.grouping.slot)
    for accumulator in program.accumulators:
        terms.append(accumulator.term)
        if accumulator.condition is not None:
            terms.append(accumulator.condition)
    counted = sum(
        not isinstance(part, Name | Number | Convert) for term in terms for part in subterms(term)
    )
    return counted + len(program.accumulators)


def _stored(source: Input) -> str:
    """How a column lies in memory."""
    nulls = " and a validity bit" if source.nullable else ""
    width = f"{source.width} byte{'s' if source.width > 1 else ''}{nulls}"
    if source.values is not None:
        return f"{width}, code of {len(source.values)} sorted values"
    if source.codes is None:
        return f"{width}, {'the value' if source.machine is None else source.machine.value}"
    interval = source.interval
    step = "" if source.step == 1 else f" * {source.step}"
    return f"{width}, {source.base} + code{step}, so {interval.low} to {interval.high}"


def _domain(program: Program) -> str:
    """The keys and how many values each has, which make the number of a group; or of what relation it is a row."""
    grouping = program.grouping
    assert grouping is not None
    if grouping.row is not None:
        return f"row of {grouping.groups}, which decides {', '.join(late.column.name for late in program.late)}"
    keys = ", ".join(f"{k.column.name} of {k.size}" for k in (*grouping.keys, *grouping.distinct))
    if grouping.ordered is not None:
        return f"{keys}; in the order of {grouping.ordered.key.column.name}"
    return f"{keys}; a key of a hash table" if grouping.hashed else keys


def _folded(accumulator: Accumulator) -> str:
    when = "" if accumulator.condition is None else f" if {_shown(accumulator.condition)}"
    return f"{accumulator.machine.value} {accumulator.fold} {_shown(accumulator.term)}{when}"


def _shown(term: Term) -> str:
    return text(term, lambda condition, yes, no: f"({yes} if {condition} else {no})")


BUILD_COUNTS = ("rows in the index", "rows with a NULL key", "keys that were there already")
DOUBT = "doubt = False  # True once a value may not fit its type: then the answer is dropped, and operators compute it"


def legend(program: Program, places: Mapping[int, str]) -> list[str]:
    """Return a line for each argument and accumulator; `paths` says where the kernel keeps the latter, by number."""
    lines = [f"{p.name}: {p.meaning}" for p in program.parameters]
    calls = [concealed(call) for call in program.calls]
    for number, place in places.items():
        lines.append(f"{place}: {_held(program, number, calls)}")
    return lines


def _held(program: Program, number: int, calls: Sequence[str]) -> str:
    """The aggregates that read an accumulator, and which part of them it is; `calls` are all as text."""
    if program.index is not None:
        return BUILD_COUNTS[number]
    role = _role(program.accumulators[number])
    readers = [n for n, folded in enumerate(program.folded) if number in folded.accumulators]
    shown = ", ".join(dict.fromkeys(calls[n] for n in readers))
    if role == "count" and not readers:
        return "count of rows"
    if len(readers) == 1 and program.calls[readers[0]].function in (role, f"{role}_star"):
        return shown
    return f"{role} for {shown}" if shown else role


def _role(accumulator: Accumulator) -> str:
    match accumulator.fold, accumulator.term:
        case "add", Number(1):
            return "count"
        case "add", Apply("&", (_, Number(0xFFFFFFFF))):
            return "low 32 bits of the sum"
        case "add", Apply(">>", (_, Number(32))):
            return "sum without its low 32 bits"
        case "add", _:
            return "sum"
    return accumulator.fold


def elements(array: str, row: int, groups: int) -> str:
    """Name the elements of a row of a flat result array."""
    return f"{array}[{row}]" if groups == 1 else f"{array}[{row * groups}:{(row + 1) * groups}]"
