"""A program as a listing: its inputs, loop statements and accumulators, and how many operations a row takes.

The listing is what FUSELINE_DEBUG=5 prints: the same on every target, before any of them has added loads and loops.
"""

from __future__ import annotations

from collections.abc import Iterator

from .accumulate import Accumulator
from .emit import text
from .grouping import Grouping
from .loop import Apply, Convert, Function, Lookup, Name, Number, Select, Term
from .steps import Program
from .values import Input


def listing(program: Program) -> str:
    """Return the program as text, a line for each input, statement, key and accumulator."""
    lines = [f"{program.name}: {operations(program)} operations a row"]
    lines += [f"  load {program.names[i.column]}: {_stored(i)}" for i in program.inputs]
    for parameter in program.kernel.parameters:
        lines.append(f"  given {parameter.name}: {parameter.machine.value} = {parameter.value!r}")
    for table in program.kernel.tables:
        lines.append(f"  given {table.name}: {len(table.array)} values of {table.machine.value}")
    for let in program.body:
        step = f"  # {' '.join(let.step.split())}" if let.step else ""
        lines.append(f"  {let.name.text}: {let.name.type.value} = {_shown(let.value)}{step}")
    if program.doubt is not None:
        lines.append(f"  doubt |= {_shown(program.doubt)}")
    if program.grouping is not None:
        lines.append(f"  slot = {_shown(program.grouping.slot)}  # {_domain(program.grouping)}")
    lines += [f"  a{i} {_folded(a)}" for i, a in enumerate(program.accumulators)]
    if not program.accumulators:
        lines.append("  rows where keep")
    return "\n".join(lines)


def operations(program: Program) -> int:
    """Count the operations of a row that passes all filters: arithmetic, comparisons, choices, lookups and folds."""
    terms: list[Term] = [let.value for let in program.body]
    if program.doubt is not None:
        terms.append(program.doubt)
    if program.grouping is not None:
        terms.append(program.grouping.slot)
    for accumulator in program.accumulators:
        terms.append(accumulator.term)
        if accumulator.condition is not None:
            terms.append(accumulator.condition)
    counted = sum(
        not isinstance(part, Name | Number | Convert) for term in terms for part in _parts(term)
    )
    return counted + len(program.accumulators)


def _parts(term: Term) -> Iterator[Term]:
    yield term
    match term:
        case Apply(_, args) | Function(_, args):
            for operand in args:
                yield from _parts(operand)
        case Select(condition, yes, no):
            for operand in (condition, yes, no):
                yield from _parts(operand)
        case Convert(operand) | Lookup(_, operand):
            yield from _parts(operand)


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


def _domain(grouping: Grouping) -> str:
    """The keys and how many values each has, which make the number of a group."""
    keys = ", ".join(f"{k.column.name} of {k.size}" for k in (*grouping.keys, *grouping.distinct))
    return f"{keys}; a key of a hash table" if grouping.hashed else keys


def _folded(accumulator: Accumulator) -> str:
    when = "" if accumulator.condition is None else f" if {_shown(accumulator.condition)}"
    return f"{accumulator.machine.value} {accumulator.fold} {_shown(accumulator.term)}{when}"


def _shown(term: Term) -> str:
    return text(term, lambda condition, yes, no: f"({yes} if {condition} else {no})")
