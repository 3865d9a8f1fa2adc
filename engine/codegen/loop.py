"""The loop language: what a pipeline does to one row, as typed statements that every target prints.

It has no NULLs (a nullable value is a pair, settled in `translate`), no SQL types and no memory layout.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from enum import StrEnum
from functools import reduce
from typing import ClassVar, Literal as OneOf

from ..records import dataclass
from .indexes.layers import Layer

SIDE_BY_SIDE = 16  # terms that follow one another in one pair of parentheses each


class Machine(StrEnum):
    """The types of registers; the value is NumPy's name."""

    BOOL = "bool_"
    I32 = "int32"
    I64 = "int64"
    F32 = "float32"
    F64 = "float64"
    WIDE = "object"  # integers of any size, as results may be: no kernel has them


@dataclass(frozen=True, slots=True)
class Name:
    """A local variable, a parameter, or an element of the current row."""

    text: str
    type: Machine
    parts: ClassVar[tuple[Term, ...]] = ()


@dataclass(frozen=True, slots=True)
class Number:
    """A constant that is part of the kernel's text (0, 1, powers of ten); query constants are parameters."""

    value: int | float | bool
    type: Machine
    parts: ClassVar[tuple[Term, ...]] = ()


@dataclass(frozen=True, slots=True)
class Apply:
    """An infix operator of Python (`+ - * < <= == & | ^ >> <<`) or a prefix one (`-`, `~`, `not`)."""

    operator: str
    args: tuple[Term, ...]
    type: Machine

    @property
    def parts(self) -> tuple[Term, ...]:
        return self.args


@dataclass(frozen=True, slots=True)
class Select:
    """`yes` where the condition holds, else `no`, without a branch: both are evaluated."""

    condition: Term
    yes: Term
    no: Term
    type: Machine

    @property
    def parts(self) -> tuple[Term, ...]:
        return self.condition, self.yes, self.no


@dataclass(frozen=True, slots=True)
class Convert:
    """The operand in another machine type."""

    operand: Term
    type: Machine

    @property
    def parts(self) -> tuple[Term, ...]:
        return (self.operand,)


@dataclass(frozen=True, slots=True)
class Lookup:
    """Element `index` of a table parameter."""

    table: str
    index: Term
    type: Machine

    @property
    def parts(self) -> tuple[Term, ...]:
        return (self.index,)


@dataclass(frozen=True, slots=True)
class Function:
    """A call of a device function that each target provides under this name."""

    name: str
    args: tuple[Term, ...]
    type: Machine

    @property
    def parts(self) -> tuple[Term, ...]:
        return self.args


@dataclass(frozen=True, slots=True)
class UseOfIndex:
    """Layers of an index, and a key: its number, and for raw ones whether there is one."""

    layers: tuple[Layer, ...]
    args: tuple[Term, ...]
    type: Machine

    @property
    def parts(self) -> tuple[Term, ...]:
        return self.args


class Probe(UseOfIndex):
    """What the layers say of the key: a row, or as a BOOL whether it may be in."""


class Insertion(UseOfIndex):
    """Put the key in, with its row where they hold rows: 1 where the key was there before and that matters."""


Term = Name | Number | Apply | Select | Convert | Lookup | Function | Probe | Insertion


@dataclass(frozen=True, slots=True)
class Let:
    """Give a value a name; `step` is the plan step that it comes from, printed beside it."""

    name: Name
    value: Term
    step: str = ""


@dataclass(frozen=True, slots=True)
class Guard:
    """What follows, the sink included, happens only where the condition holds: for `share` of the rows, by the planner's estimate."""

    condition: Term
    step: str = ""
    share: float | None = None


@dataclass(frozen=True, slots=True)
class Each:
    """What follows, the sink included, happens once for each row of a build side: `first`, then `following` until it is negative.

    `following` is a term over `row`.  `once`: where `first` is negative already, it happens once with row -1 (a left join).
    """

    row: Name
    first: Term
    following: Term
    once: bool = False
    step: str = ""


@dataclass(frozen=True, slots=True)
class Doubt:
    """Where the condition holds, the kernel cannot vouch for its answer."""

    condition: Term


@dataclass(frozen=True, slots=True)
class Search:
    """Set `found` to whether any of the rows that `Each` would go through is `accepted`; `body` names values at that row."""

    found: Name
    row: Name
    first: Term
    following: Term
    body: tuple[Let | Doubt, ...]
    accepted: Term
    step: str = ""


Statement = Let | Guard | Each | Search | Doubt


def subterms(term: Term) -> Iterator[Term]:
    """A term and all that it is made of, each before its parts."""
    waiting = [term]
    while waiting:
        part = waiting.pop()
        yield part
        waiting += part.parts[::-1]


def terms_of(statement: Statement) -> tuple[Term, ...]:
    """The terms that a statement evaluates."""
    match statement:
        case Let(_, term) | Guard(term) | Doubt(term):
            return (term,)
        case Each(_, first, following):
            return first, following
        case Search(_, _, first, following, body, accepted):
            return first, following, accepted, *(t for part in body for t in terms_of(part))


def with_probes(term: Term, change: Callable[[Probe], Probe]) -> Term:
    """Return a term with its probes changed."""

    def changed(part: Term) -> Term:
        return with_probes(part, change)

    match term:
        case Probe():
            return change(term)
        case Apply() | Function():
            return replace(term, args=tuple(map(changed, term.args)))
        case Select(condition, yes, no, machine):
            return Select(changed(condition), changed(yes), changed(no), machine)
        case Convert(operand, machine):
            return Convert(changed(operand), machine)
        case Lookup(table, index, machine):
            return Lookup(table, changed(index), machine)
    return term


def names_in(*terms: Term) -> set[str]:
    """The variables and parameters that terms read, but for tables."""
    return {part.text for term in terms for part in subterms(term) if isinstance(part, Name)}


def true_and(parts: list[Term]) -> Term | None:
    """Return the `&` of boolean terms, None for none."""
    return all_together("&", parts) if parts else None


def all_together(sign: OneOf["&", "|"], parts: Sequence[Term]) -> Term:
    """Return one term of all boolean terms; of many no deep one, which Python could not read."""
    while len(parts) > 1:
        rows = [parts[at : at + SIDE_BY_SIDE] for at in range(0, len(parts), SIDE_BY_SIDE)]
        parts = [reduce(lambda a, b: Apply(sign, (a, b), Machine.BOOL), row) for row in rows]
    return parts[0]


def negated(term: Term) -> Term:
    """Return the logical NOT of a boolean term."""
    return Apply("not", (term,), Machine.BOOL)
