"""Where a kernel of the CPU is cut into passes over a block of rows: those that choose rows, and what is done with these.

The first pass ends at the first filter or join that drops rows.  Where a later one tests bits or a Bloom filter, each up to it has a pass of
its own over the rows so far: a branch that is taken now and then, and that waits for memory, costs more than to go on with a
number that adds up, and loads of neighbouring rows overlap.  For the same reason what lies behind bits is read in a later pass.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ...records import dataclass
from .. import loop as ir
from ..indexes.layers import Bitmap, BloomFilter
from ..layers_alone import Choosing, layers_alone

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ..program import Program
    from ..typed_values import Input

NARROWS = True  # False: one pass chooses rows


@dataclass(frozen=True, slots=True)
class Pass:
    """Statements, and the columns that they read."""

    body: tuple[ir.Statement, ...]
    inputs: tuple[Input, ...]


@dataclass(frozen=True, slots=True)
class ChoosingPass(Pass):
    """`condition` holds after the statements for rows that are in."""

    condition: ir.Term


@dataclass(frozen=True, slots=True)
class Passes:
    """At least one pass chooses rows, and `handling` does the rest for these."""

    choosing: tuple[ChoosingPass, ...]
    handling: Pass


def passes(program: Program) -> Passes | None:
    """Cut a program after filters; None where that gains nothing: without one, or where folds are all that follows."""
    made: list[ChoosingPass] = []
    known: list[ir.Let] = []
    rest = program.body
    while (cut := _first_filter(rest)) and (not made or (NARROWS and _tests_bits(rest))):
        before, guard, rest = cut
        choosing, behind, guards = _small_layers(before, guard)
        *body, last = choosing
        assert isinstance(last, ir.Guard)
        made.append(_choosing(program, known, tuple(body), last.condition))
        rest = (*guards, *rest)
        known += [behind.get(s.name.text, s) for s in before if isinstance(s, ir.Let)]
    if not made:
        if program.keep is None or program.grouping is None:
            return None
        last_kept = max(
            place
            for place, s in enumerate(rest)
            if isinstance(s, ir.Let) and s.name == program.keep
        )
        before, rest = rest[: last_kept + 1], rest[last_kept + 1 :]
        made.append(_choosing(program, known, before, program.keep))
        known += [s for s in before if isinstance(s, ir.Let)]
    wanted = _names(program, rest)
    again = _again(known, wanted)
    return Passes(tuple(made), Pass((*again, *rest), _loaded(program, wanted)))


def _first_filter(
    body: Sequence[ir.Statement],
) -> tuple[tuple[ir.Statement, ...], ir.Guard, tuple[ir.Statement, ...]] | None:
    """What comes before the first filter, that, and what comes after it."""
    for place, statement in enumerate(body):
        match statement:
            case ir.Each() | ir.Search():
                return None
            case ir.Guard():
                return tuple(body[:place]), statement, tuple(body[place + 1 :])
    return None


def _tests_bits(body: Sequence[ir.Statement]) -> bool:
    """Whether bits or a Bloom filter are tested before rows become several."""
    for statement in body:
        if isinstance(statement, ir.Each | ir.Search):
            return False
        for term in ir.terms_of(statement):
            for part in ir.subterms(term):
                if isinstance(part, ir.Probe) and isinstance(part.layers[0], Bitmap | BloomFilter):
                    return True
    return False


def _small_layers(
    before: Sequence[ir.Statement], guard: ir.Guard
) -> tuple[tuple[Choosing, ...], dict[str, ir.Let], tuple[ir.Guard, ...]]:
    """Have a pass ask the small layers of an index alone; return what reads behind them, by name, and what is tested after it.

    Where a bit is set there is a row, which need not be tested.
    """
    plain = [s for s in before if not isinstance(s, ir.Each | ir.Search)]
    choosing, behind, guards = layers_alone((*plain, guard), BloomFilter, True)
    choosing, behind_bits, _ = layers_alone(choosing, Bitmap, True)
    return choosing, behind | behind_bits, guards


def _choosing(
    program: Program, known: Sequence[ir.Let], body: Sequence[ir.Statement], condition: ir.Term
) -> ChoosingPass:
    wanted = ir.names_in(condition, *(term for s in body for term in ir.terms_of(s)))
    again = _again(known, wanted)
    return ChoosingPass((*again, *body), _loaded(program, wanted), condition)


def _again(known: Sequence[ir.Let], wanted: set[str]) -> list[ir.Statement]:
    """What passes before have computed of what is wanted, to which comes what that reads."""
    again: list[ir.Statement] = []
    for statement in reversed(known):
        if statement.name.text in wanted:
            wanted |= ir.names_in(statement.value)
            again.insert(0, ir.Let(statement.name, statement.value))
    return again


def _loaded(program: Program, wanted: set[str]) -> tuple[Input, ...]:
    """The columns of which a pass reads the code or whether it is valid."""
    named = [(i, program.names[i.column]) for i in program.inputs]
    return tuple(i for i, n in named if {f"{n}_code", f"{n}_valid"} & wanted)


def _names(program: Program, body: Sequence[ir.Statement]) -> set[str]:
    """What statements and the sink of a program read."""
    terms: list[ir.Term] = [] if program.grouping is None else [program.grouping.slot]
    for accumulator in program.accumulators:
        terms.append(accumulator.term)
        if accumulator.condition is not None:
            terms.append(accumulator.condition)
    terms += [term for statement in body for term in ir.terms_of(statement)]
    return ir.names_in(*terms) | {relation.row for relation in program.relations}
