"""Terms over arrays: integers of any size stay exact, and a mean is rounded once."""

from __future__ import annotations

from fractions import Fraction

import numpy as np

from fuseline.codegen.groups.results import evaluate
from fuseline.codegen.loop import Apply, Convert, Function, Machine, Name, Number, Select

LOW, HIGH, COUNT = (Name(text, Machine.I64) for text in ("low", "high", "count"))
GIVEN = {
    "low": np.array([7, (1 << 62) + 1, 0]),
    "high": np.array([-(1 << 40), (1 << 61) + 3, 0]),
    "count": np.array([3, 1 << 30, 0]),
}
TOTALS = [low + (high << 32) for low, high in zip(*(GIVEN[n].tolist() for n in ("low", "high")), strict=True)]  # fmt: skip


def test_sums_of_two_parts_and_their_products_are_exact() -> None:
    total = Function("whole", (LOW, HIGH), Machine.WIDE)
    assert evaluate(total, GIVEN).tolist() == TOTALS
    square = Apply("*", (total, total), Machine.WIDE)
    assert evaluate(square, GIVEN).tolist() == [t * t for t in TOTALS]


def test_a_mean_is_rounded_once_and_of_nothing_raises_nothing() -> None:
    unit = Number(100.0, Machine.F64)
    found = evaluate(Function("mean", (LOW, HIGH, COUNT, unit), Machine.F64), GIVEN).tolist()
    assert found == [
        float(Fraction(total, max(count, 1) * 100))
        for total, count in zip(TOTALS, GIVEN["count"].tolist(), strict=True)
    ]


def test_both_sides_of_a_choice_are_numbers() -> None:
    some = Apply(">", (COUNT, Number(0, Machine.I64)), Machine.BOOL)
    chosen = Select(some, Convert(COUNT, Machine.WIDE), Number(1, Machine.WIDE), Machine.WIDE)
    assert evaluate(chosen, GIVEN).tolist() == [3, 1 << 30, 1]
