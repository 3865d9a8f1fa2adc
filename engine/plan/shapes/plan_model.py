"""The plan of one text as a model for those of others: a program that makes each node anew that has a slot in it or below, and no other;
and what is made of a part of a plan, kernels say, as a model for others of its shape, whose constants are arguments.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping, Sequence
from functools import cache, lru_cache
from typing import Generic, TypeVar, cast

from ...errors import Span
from ...records import dataclass
from ..expr import Column, Expr, Literal, Value
from ..types import DataType
from .guards import (
    SEVERAL_FORMS,
    GuardedValues,
    PlanGuards,
    SlotLiteral,
    SlotValue,
    computed,
    decided,
)

T = TypeVar("T")
Parts = list[object]
Values = (
    Sequence[Value] | Mapping[int, Value] | PlanGuards
)  # by the number of a slot, or slots of these
Make = Callable[[Parts, Values], object]
KEPT_ANSWERS = 8  # to a question about values
_PLAIN = frozenset([str, int, float, bool, type(None), Column, DataType, Span])
_ROOT = __name__.partition(".plan.")[0]
_ROOMS = (f"{_ROOT}.plan.", f"{_ROOT}.codegen.", f"{_ROOT}.operators.")
_WHOLE = (Column, DataType, str, int, float, bytes, bool, type(None))


class PlanModel(Generic[T]):
    """Makes the plan for any values of its slots; what has no slot is the same object in all of them.

    Steps are in the order in which parts are made, those of a node before it; a part that is read twice is made once.
    """

    def __init__(self, plan: T) -> None:
        self.slots: dict[int, SlotLiteral] = {}  # by their numbers
        self._steps: list[Make] = []
        self._places: dict[int, int | None] = {}
        self._kept: list[object] = []  # so that identities stay those of these
        self._root = self._visit(plan)
        self._plan = plan if self._root is None else None
        del self._places, self._kept

    def plan(self, values: Values) -> T:
        """Return the plan with these values of its slots."""
        if self._root is None:
            return cast("T", self._plan)
        parts: Parts = []
        for make in self._steps:
            parts.append(make(parts, values))
        return cast("T", parts[self._root])

    def _visit(self, part: object) -> int | None:
        """Return the place of a part among those that are made, None for one without slots."""
        if isinstance(part, _WHOLE):
            return None
        if id(part) not in self._places:
            self._kept.append(part)
            self._places[id(part)] = self._placed(part)
        return self._places[id(part)]

    def _placed(self, part: object) -> int | None:
        if isinstance(part, SlotLiteral):
            self.slots[part.number] = part
            return self._add(_literal(part))
        if isinstance(part, SlotValue):
            return self._add(_value(part.number))
        if isinstance(part, Literal):
            return None
        if isinstance(part, tuple | list | frozenset):
            return self._collected(part)
        if isinstance(part, dict):
            return self._mapping(part)
        kind: type = type(part)
        names = _field_names(kind)
        return self._node(part, names) if names else None

    def _collected(self, part: tuple[object, ...] | list[object] | frozenset[object]) -> int | None:
        given = list(part)
        places = [self._visit(each) for each in given]
        if all(place is None for place in places):
            return None
        kind = type(part)
        changed = [(i, place) for i, place in enumerate(places) if place is not None]

        def make(parts: Parts, _: Values) -> object:
            found = list(given)
            for i, place in changed:
                found[i] = parts[place]
            of_fields: Callable[..., object] | None = getattr(kind, "_make", None)
            return kind(found) if of_fields is None else of_fields(found)  # of a named tuple

        return self._add(make)

    def _mapping(self, part: dict[object, object]) -> int | None:
        keys, values = (self._collected(each) for each in ([*part], [*part.values()]))
        if keys is None and values is None:
            return None

        def make(parts: Parts, _: Values) -> object:
            made = part if keys is None else cast("list[object]", parts[keys])
            held = part.values() if values is None else cast("list[object]", parts[values])
            return dict(zip(made, held, strict=True))

        return self._add(make)

    def _node(self, part: object, names: Sequence[str]) -> int | None:
        state = {name: getattr(part, name) for name in names}
        changed = [
            (name, place)
            for name, value in state.items()
            if type(value) not in _PLAIN and (place := self._visit(value)) is not None
        ]
        if not changed:
            return None
        kind = type(part)
        if not hasattr(part, "__dict__"):
            return self._add(
                lambda parts, _: kind(
                    **{**state, **{name: parts[place] for name, place in changed}}
                )
            )

        def make(parts: Parts, _: Values) -> object:
            made = object.__new__(kind)  # without what was worked out of the other values
            made.__dict__.update(state)
            for name, place in changed:
                made.__dict__[name] = parts[place]
            return made

        return self._add(make)

    def _add(self, make: Make) -> int:
        self._steps.append(make)
        return len(self._steps) - 1


def _literal(slot: SlotLiteral) -> Make:
    number, data_type, span = slot.number, slot.type, slot.span

    def make(_: Parts, values: Values) -> Literal:
        if isinstance(values, PlanGuards):
            return SlotLiteral.of(values, number, data_type, span)
        return Literal(values[number], data_type, span)

    return make


def _value(number: int) -> Make:
    def make(_: Parts, values: Values) -> Value:
        assert not isinstance(values, PlanGuards)
        return values[number]

    return make


@cache
def _field_names(kind: type) -> tuple[str, ...]:
    """Return the fields of a class of plans or of what is made of them; none of another, whose objects nobody makes anew."""
    is_of_plans = kind.__module__.startswith(_ROOMS)
    fields = dataclasses.fields(kind) if is_of_plans and dataclasses.is_dataclass(kind) else ()
    return tuple(field.name for field in fields)


def decided_over(ask: Callable[[Expr], T], expr: Expr) -> T:
    """Return what a function says of an expression, with a guard that it says the same for other values of its slots."""
    again = _AskAgain(ask, expr)
    return decided(again, *again.slots) if again.slots else ask(expr)


def computed_over(ask: Callable[[Expr], object], expr: Expr, data_type: DataType) -> Literal:
    """Return the literal that a function makes of an expression: of one that has slots it is a slot."""
    again = _AskAgain(ask, expr)
    return computed(again, *again.slots, data_type=data_type)


class _AskAgain(Generic[T]):
    """A function of an expression as one of the values of its slots.

    Its last answers are kept: a text often has but one other constant, and tables over dictionaries take 0.3 ms each.
    """

    def __init__(self, ask: Callable[[Expr], T], expr: Expr) -> None:
        self._ask, self._model = ask, PlanModel(expr)
        self.slots = tuple(self._model.slots.values())
        self._known = lru_cache(KEPT_ANSWERS, typed=True)(self._answer)

    def __call__(self, *values: Value) -> T:
        forms = tuple(repr(value) for value in values if type(value) in SEVERAL_FORMS)
        return self._known(forms, *values)

    def _answer(self, _: tuple[str, ...], *values: Value) -> T:
        return self._ask(self._model.plan(dict(zip(self._model.slots, values, strict=True))))


def at_present(expr: Expr) -> Expr:
    """Return an expression with the values that its slots have in the text at hand, for who checks in another way what others have."""
    return of_present(PlanModel(expr))


def of_present(model: PlanModel[Expr]) -> Expr:
    """Return the expression of a model with these values."""
    slots = model.slots.items()
    return model.plan({n: s.hint if s.guards.is_filled else s.value for n, s in slots})


Part = TypeVar("Part")
Made = TypeVar("Made")
KEPT_VARIANTS = 4


@dataclass(frozen=True)
class ShapedPart(Generic[Part]):
    """A part of the plan of a shape, with slots, and the values that these have in one of its texts."""

    part: Part
    values: Sequence[Value]


class Variants(Generic[Part, Made]):
    """What was made of a part of a plan, each for the values of its slots for which its guards hold.

    Whoever makes it gets the part with slots of its own, so that what reads a value ties what is made to that (`guards`).
    """

    def __init__(self, part: Part) -> None:
        self._part = PlanModel(part)
        self._known: tuple[tuple[GuardedValues, PlanModel[Made]], ...] = ()

    def clear(self) -> None:
        self._known = ()

    def find(self, values: Sequence[Value], fits: Callable[[Made], bool]) -> Made | None:
        """Return what was made, with these values, if it fits in other respects too."""
        for guards, model in self._known:
            found = guards.values(values)
            if found is not None and fits(made := model.plan(found)):
                return made
        return None

    def make(self, values: Sequence[Value], make: Callable[[Part], Made]) -> Made:
        """Have something made of the part with slots, keep it for other values, and return it with these."""
        guards = PlanGuards(values, is_filled=True)
        model = PlanModel(make(self._part.plan(guards)))
        closed = guards.close()
        self._known = ((closed, model), *self._known[: KEPT_VARIANTS - 1])
        return model.plan(closed.present)
