"""Literals of a text as slots of its plan, and guards: what was asked of their values while it was planned.

A text with other values of the same types is planned alike where each question has the answer that it had: questions are pure functions of
values, so that a check takes microseconds.  What is computed of slots (a date less an interval, a cast) is one more slot, computed again.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from decimal import Decimal
from typing import TypeVar, cast

from ...errors import Span
from ...records import dataclass
from ...threads.fork_locks import new_reentrant_lock
from ..expr import Literal, Value
from ..types import DataType

T = TypeVar("T")
SEVERAL_FORMS = (float, Decimal)  # 0.0 and -0.0 are equal, and so are 1.0 and 1.00


@dataclass(frozen=True, slots=True)
class _Slot:
    """An argument of a question: the value of a slot."""

    number: int


@dataclass(frozen=True, slots=True)
class _Question:
    """A function of slots and constants."""

    ask: Callable[..., object]
    args: tuple[object, ...]

    def answer(self, values: Sequence[Value]) -> object:
        given = list(self.args)
        for place, arg in enumerate(given):
            if type(arg) is _Slot:
                given[place] = values[arg.number]
        return self.ask(*given)


@dataclass(frozen=True, slots=True)
class GuardedValues:
    """Under which values of the first slots a plan is right, and how the other slots come of them."""

    present: tuple[Value, ...]
    exact: tuple[int, ...]
    computed: tuple[_Question, ...]
    decided: tuple[tuple[_Question, object], ...]

    def values(self, given: Sequence[Value]) -> list[Value] | None:
        """Return the values of all slots for those of the first ones; None where a guard does not hold."""
        if len(given) + len(self.computed) != len(self.present):
            return None
        found, present = list(given), self.present
        try:
            for question in self.computed:
                found.append(cast("Value", question.answer(found)))
            for number in range(len(given), len(found)):
                if type(found[number]) is not type(present[number]):
                    return None
            for number in self.exact:
                if not _is_same(found[number], present[number]):
                    return None
            for question, outcome in self.decided:
                if question.answer(found) != outcome:
                    return None
        except (
            Exception
        ):  # which ended planning with the values before, or would have: it is asked anew
            return None
        return found


def _is_same(a: Value, b: Value) -> bool:
    if type(a) is not type(b) or a != b:
        return False
    return not isinstance(a, SEVERAL_FORMS) or repr(a) == repr(b)


class PlanGuards:
    """What is noted of the slots of one text, from the first look at its literals until its plan is there, or what is made of that.

    `types` are those of the literals that `slots` has.  With `is_filled`, a `PlanModel` puts values in the place of slots before
    anybody uses what is made of them; else that is used as it is, as where WITH RECURSIVE runs while it is planned.
    What is bound has its meaning, and only what is the same is then shared: that two values differ leaves no guard, since to share
    nothing is right whatever they are.  So a text of three brands serves one that has the same brand twice.
    """

    def __init__(
        self, values: Sequence[Value], types: Sequence[DataType] = (), is_filled: bool = False
    ) -> None:
        self.is_filled = is_filled
        self._present = list(values)
        self._exact: dict[int, None] = {}
        self._computed: dict[_Question, int] = {}
        self._decided: dict[_Question, object] = {}
        self._lock = new_reentrant_lock()
        self._closed = False
        self.is_bound = is_filled
        self.slots = [SlotLiteral.of(self, n, each) for n, each in enumerate(types)]

    @property
    def values(self) -> list[Value]:
        """Those of all slots, in the text at hand."""
        with self._lock:
            return list(self._present)

    def note_same(self, number: int) -> None:
        """Have the plan serve the present value of a slot alone."""
        self._check_open()
        self._exact.setdefault(number)

    def present(self, number: int) -> Value:
        self._check_open()
        return self._present[number]

    def first_alike(self, number: int) -> int:
        """Return the first slot of the same value, with a guard that it has the same, where it is another one."""
        self._check_open()
        own = self._present[number]
        for other in range(number):
            if _is_same(self._present[other], own):
                self.decide(_is_same, (_Slot(other), _Slot(number)))
                return other
        return number

    def is_same(self, number: int, other: Value | _Slot) -> bool:
        """Whether a slot has the value of another one, or a constant."""
        if self.is_bound:
            value = self._present[other.number] if isinstance(other, _Slot) else other
            if not _is_same(self.present(number), value):
                return False
        return self.decide(_is_same, (_Slot(number), other))

    def decide(self, ask: Callable[..., T], args: tuple[object, ...]) -> T:
        self._check_open()
        question = _Question(ask, tuple(map(_argument, args)))
        with self._lock:
            if question not in self._decided:
                self._decided[question] = self._answer(question)
            return cast("T", self._decided[question])

    def compute(self, ask: Callable[..., object], args: tuple[object, ...]) -> int | None:
        """Return the number of the slot that a function's value is; None for NULL and BOOLEAN, which rules look at."""
        self._check_open()
        question = _Question(ask, tuple(map(_argument, args)))
        with self._lock:
            known = self._computed.get(question)
            if known is not None:
                return known
            found = cast("Value", self._answer(question))
            if found is None or isinstance(found, bool):
                return None
            self._present.append(found)
            return self._computed.setdefault(question, len(self._present) - 1)

    def _answer(self, question: _Question) -> object:
        try:
            return question.answer(self._present)
        except Exception:  # of which nobody knows what becomes
            for arg in question.args:
                if isinstance(arg, _Slot):
                    self.note_same(arg.number)
            raise

    def close(self) -> GuardedValues:
        """Return the guards; from now on no value can be read here, for nobody would notice."""
        with self._lock:
            self._closed = True
            return GuardedValues(
                tuple(self._present),
                tuple(self._exact),
                tuple(self._computed),
                tuple(self._decided.items()),
            )

    def _check_open(self) -> None:
        if self._closed:
            raise RuntimeError("A literal of another text was read: its plan is made already.")


class SlotLiteral(Literal):  # noqa: PLW1641 - `Node` would take the place of a hash that stands here
    """A constant of the text, or what is computed of some; who reads its value leaves a guard.

    It is never NULL or BOOLEAN, and equal to what has the same value: that is a question too.
    """

    guards: PlanGuards
    number: int

    def __new__(cls, value: Value, type: DataType, span: Span | None = None) -> Literal:  # type: ignore[misc]
        """Return a plain literal: another value is no slot's, as where `dataclasses.replace` gives it one."""
        return Literal(value, type, span)

    @classmethod
    def of(
        cls, guards: PlanGuards, number: int, data_type: DataType, span: Span | None = None
    ) -> SlotLiteral:
        made = object.__new__(cls)
        made.__dict__.update(guards=guards, number=number, type=data_type, span=span)
        return made

    @property
    def value(self) -> Value:
        self.guards.note_same(self.number)
        return self.guards.present(self.number)

    @property
    def is_null(self) -> bool:
        return False

    @property
    def truth(self) -> bool | None:
        return None

    @property
    def hint(self) -> Value:
        return self.guards.present(self.number)

    def at(self, span: Span | None) -> Literal:
        return SlotLiteral.of(self.guards, self.number, self.type, span)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Literal) or self.type != other.type:
            return False
        if isinstance(other, SlotLiteral):
            if other.guards is not self.guards:
                return self.value == other.value
            return other.number == self.number or self.guards.is_same(
                self.number, _Slot(other.number)
            )
        return not other.is_null and self.guards.is_same(self.number, other.value)

    def __reduce__(self) -> tuple[Callable[..., Literal], tuple[object, ...]]:
        return Literal, (self.value, self.type, self.span)


def _hash(self: SlotLiteral) -> int:
    """Of the type alone, since a hash of the value would tell two apart without a guard."""
    return hash((SlotLiteral, self.type))


@dataclass(frozen=True, slots=True)
class SlotValue:
    """The place of a slot's value in what is made of a plan, where no literal stands but its value alone."""

    number: int


def bare_value(given: Literal) -> object:
    """Return the value of a constant for what is made of a plan, or of a slot that `PlanModel` fills its place."""
    if isinstance(given, SlotLiteral) and given.guards.is_filled:
        return SlotValue(given.number)
    return given.value


SlotLiteral.__hash__ = _hash  # type: ignore[method-assign, assignment]  # after `Node` has given it one


def name_of_constant(literal: Literal) -> Hashable:
    """Return what literals of the same value have in common, for those who share what is the same.

    Two slots are the same with a guard, and others without: to share nothing is right whatever their values are.
    """
    if isinstance(literal, SlotLiteral):
        return SlotLiteral, literal.type, literal.guards.first_alike(literal.number)
    return type(literal.value), literal.type, literal.value


def _argument(given: object) -> object:
    return _Slot(given.number) if isinstance(given, SlotLiteral) else given


def _guards(args: Sequence[object]) -> tuple[PlanGuards | None, tuple[object, ...]]:
    """Return whose slots are among arguments, and these with all other literals as their values."""
    guards = next((a.guards for a in args if isinstance(a, SlotLiteral)), None)
    plain = (
        a.value
        if isinstance(a, Literal) and not (isinstance(a, SlotLiteral) and a.guards is guards)
        else a
        for a in args
    )
    return guards, tuple(plain)


def decided(ask: Callable[..., T], *args: object) -> T:
    """Return what a function says of the values of literals, and of constants; for slots with a guard that it says the same again.

    `ask` is a pure function that is not made anew for each question, and its constants are hashable.
    """
    guards, given = _guards(args)
    return ask(*given) if guards is None else guards.decide(ask, given)


def computed(
    ask: Callable[..., object], *args: object, data_type: DataType, span: Span | None = None
) -> Literal:
    """Return the literal that a function makes of the values of literals, and of constants: of a slot it is a slot.

    What is made of plans may have values that SQL has not, as arrays.  As for `decided`; `ask` raises what it raises, then and for
    the values of other texts, which are planned anew.
    """
    guards, given = _guards(args)
    if guards is None:
        return Literal(cast("Value", ask(*given)), data_type, span)
    number = guards.compute(ask, given)
    if number is None:
        return Literal(cast("Value", guards.decide(ask, given)), data_type, span)
    return SlotLiteral.of(guards, number, data_type, span)
