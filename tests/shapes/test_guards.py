"""Guards: a value that is read ties a plan to it, a question to its answer, and nobody reads a value unseen."""

from __future__ import annotations

import dataclasses
from decimal import Decimal

import pytest

from fuseline.plan.expr import Call, ColumnRef, Literal, new_column
from fuseline.plan.shapes.guards import PlanGuards, SlotLiteral, computed, decided, name_of_constant
from fuseline.plan.shapes.plan_model import PlanModel, decided_over
from fuseline.plan.types import BOOLEAN, DOUBLE, INTEGER, VARCHAR, decimal


def slots(*values: object) -> tuple[PlanGuards, list[SlotLiteral]]:
    types = {int: INTEGER, float: DOUBLE, str: VARCHAR, Decimal: decimal(9, 2)}
    guards = PlanGuards(values, [types[type(v)] for v in values])  # type: ignore[arg-type,index]
    return guards, guards.slots


def is_positive(value: int) -> bool:
    return value > 0


def negative(value: int) -> int:
    return -value


def inverse(value: int) -> float:
    return 1 / value


READERS = {
    "value": lambda slot: slot.value,
    "match": lambda slot: [v for v in [slot] if isinstance(v, Literal) and v.value == 3],
    "repr": repr,
    "replace": lambda slot: dataclasses.replace(slot, value=slot.value),
    "state": lambda slot: slot.__reduce__(),
}


@pytest.mark.parametrize("read", READERS.values(), ids=READERS)
def test_who_reads_a_value_ties_the_plan_to_it(read: object) -> None:
    guards, (slot,) = slots(3)
    read(slot)  # type: ignore[operator]
    held = guards.close()
    assert held.values([3]) == [3]
    assert held.values([4]) is None


def test_nobody_who_does_not() -> None:
    guards, (slot,) = slots(3)
    assert not slot.is_null
    assert slot.truth is None
    assert slot.hint == 3
    assert slot.at(None) == slot
    assert guards.close().values([4]) == [4]


def test_another_value_is_no_slot() -> None:
    _, (slot,) = slots(3)
    assert type(dataclasses.replace(slot, value=4)) is Literal


def test_a_question_is_asked_again() -> None:
    guards, (slot,) = slots(3)
    assert decided(is_positive, slot)
    held = guards.close()
    assert held.values([9]) == [9]
    assert held.values([-9]) is None


def test_what_is_computed_is_computed_again() -> None:
    guards, (slot,) = slots(3)
    made = computed(negative, computed(negative, slot, data_type=INTEGER), data_type=INTEGER)
    assert isinstance(made, SlotLiteral)
    assert made.hint == 3
    assert decided(is_positive, made)
    held = guards.close()
    assert held.values([7]) == [7, -7, 7]
    assert held.values([-7]) is None


def test_truths_are_no_slots() -> None:
    guards, (slot,) = slots(3)
    assert computed(is_positive, slot, data_type=BOOLEAN) == Literal(True, BOOLEAN)
    assert guards.close().values([-1]) is None


def test_what_cannot_be_computed_of_other_values_is_planned_anew() -> None:
    guards, (slot,) = slots(3)
    computed(inverse, slot, data_type=DOUBLE)
    held = guards.close()
    assert held.values([2]) == [2, 0.5]
    assert held.values([0]) is None


def test_equality_is_a_question_in_both_directions() -> None:
    guards, (a, b, c) = slots(3, 3, 4)
    assert a == b
    assert a != c
    held = guards.close()
    assert held.values([5, 5, 6]) is not None
    assert held.values([5, 6, 7]) is None
    assert held.values([5, 5, 5]) is None


def test_sets_and_dictionaries_ask_it_too() -> None:
    guards, (a, b) = slots(3, 4)
    assert len({a, b}) == 2
    assert guards.close().values([3, 3]) is None


def test_equal_numbers_of_other_forms_are_others() -> None:
    guards, (zero, amount) = slots(0.0, Decimal("1.00"))
    assert zero.value == 0.0
    assert amount.value == 1
    held = guards.close()
    assert held.values([0.0, Decimal("1.00")]) is not None
    assert held.values([-0.0, Decimal("1.00")]) is None
    assert held.values([0.0, Decimal("1.0")]) is None


def test_what_is_shared_needs_a_guard_and_what_is_not_needs_none() -> None:
    guards, (a, b, c) = slots(3, 3, 4)
    assert name_of_constant(a) == name_of_constant(b) != name_of_constant(c)
    held = guards.close()
    assert held.values([5, 5, 5]) is not None
    assert held.values([5, 6, 4]) is None


def test_a_value_that_nobody_would_notice_is_not_given() -> None:
    guards, (slot,) = slots(3)
    guards.close()
    with pytest.raises(RuntimeError, match="another text"):
        assert slot.value


def test_a_model_makes_anew_what_has_slots_and_nothing_else() -> None:
    column = ColumnRef(new_column("x", INTEGER))
    guards, (slot,) = slots(3)
    plain = Call("gt", (column, Literal(1, INTEGER)), BOOLEAN)
    shared = Call("lt", (column, slot), BOOLEAN)
    model = PlanModel(Call("and", (plain, shared, shared), BOOLEAN))
    made = model.plan([9])
    assert made.args[0] is plain
    assert made.args[1] is made.args[2]
    assert made.args[1] == Call("lt", (column, Literal(9, INTEGER)), BOOLEAN)
    assert guards.close().values([4]) == [4]


def test_a_question_over_an_expression_is_asked_of_it_with_other_values() -> None:
    column = ColumnRef(new_column("x", INTEGER))
    guards, (slot,) = slots(3)
    assert "value=3" in decided_over(repr, Call("lt", (column, slot), BOOLEAN))
    held = guards.close()
    assert held.values([3]) == [3]
    assert held.values([4]) is None


def test_what_was_asked_of_the_same_values_is_not_asked_again() -> None:
    """Values that are equal but of another form are others: -0.0 prints as itself."""
    asked = []

    def shown(expr: object) -> str:
        asked.append(repr(expr))
        return type(expr).__name__

    guards, (slot,) = slots(0.0)
    decided_over(shown, Call("lt", (ColumnRef(new_column("x", DOUBLE)), slot), BOOLEAN))
    held = guards.close()
    for value in (0.0, -0.0, 0.0, 1.0, -0.0):
        assert held.values([value]) == [value]
    assert len(asked) == 3
