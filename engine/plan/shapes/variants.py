"""What is made of a part of a plan for one text, as a model for others of its shape: kernels, say, which read its constants as arguments."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Generic, TypeVar

from ..expr import Value
from .guards import GuardedValues, PlanGuards
from .plan_model import PlanModel

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
