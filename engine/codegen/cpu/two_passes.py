"""Programs cut in two: what decides by a row alone whether it is in, and what becomes of the rows that are.

A CPU evaluates filters for many rows in one instruction where nothing else stands in the same loop, and a branch that is taken
now and then costs it more than the filter.  So a kernel goes over a block of rows twice: it notes which are in, and then takes
only those, as in relaxed operator fusion (Menon et al. 2017).
"""

from __future__ import annotations

from dataclasses import dataclass

from ..loop import Each, Guard, Let, Search, Statement, Term, names_in, terms_of
from ..program import Program
from ..typed_values import Input


@dataclass(frozen=True, slots=True)
class Pass:
    """Statements, and the columns that they read."""

    body: tuple[Statement, ...]
    inputs: tuple[Input, ...]


@dataclass(frozen=True, slots=True)
class Passes:
    """`condition` holds after the statements of `choosing` for rows that are in; `handling` does the rest for these."""

    choosing: Pass
    condition: Term
    handling: Pass


def passes(program: Program) -> Passes | None:
    """Cut a program after its first filter; None where that gains nothing: without one, or where folds are all that follows."""
    cut = _first_filter(program)
    if cut is None:
        return None
    before, condition, after = cut
    wanted = _names(program, after)
    again: list[Statement] = []
    for statement in reversed(before):
        if isinstance(statement, Let) and statement.name.text in wanted:
            wanted |= names_in(statement.value)
            again.insert(0, Let(statement.name, statement.value))
    chosen_by = names_in(condition, *(term for s in before for term in terms_of(s)))
    return Passes(
        Pass(before, _loaded(program, chosen_by)),
        condition,
        Pass((*again, *after), _loaded(program, wanted)),
    )


def _first_filter(
    program: Program,
) -> tuple[tuple[Statement, ...], Term, tuple[Statement, ...]] | None:
    for place, statement in enumerate(program.body):
        match statement:
            case Each() | Search():
                return None
            case Guard(condition):
                return program.body[:place], condition, program.body[place + 1 :]
    if program.keep is None or program.grouping is None:
        return None
    last = max(
        place
        for place, s in enumerate(program.body)
        if isinstance(s, Let) and s.name == program.keep
    )
    return program.body[: last + 1], program.keep, program.body[last + 1 :]


def _loaded(program: Program, wanted: set[str]) -> tuple[Input, ...]:
    """The columns of which a pass reads the code or whether it is valid."""
    named = [(i, program.names[i.column]) for i in program.inputs]
    return tuple(i for i, n in named if {f"{n}_code", f"{n}_valid"} & wanted)


def _names(program: Program, body: tuple[Statement, ...]) -> set[str]:
    """What statements and the sink of a program read."""
    terms: list[Term] = [] if program.grouping is None else [program.grouping.slot]
    for accumulator in program.accumulators:
        terms.append(accumulator.term)
        if accumulator.condition is not None:
            terms.append(accumulator.condition)
    terms += [term for statement in body for term in terms_of(statement)]
    return names_in(*terms) | {relation.row for relation in program.relations}
