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


def _beside(number: int) -> list[int]:
    return [sign * (number + more) for sign in (1, -1) for more in (-1, 0, 1)]


def test_integers_are_exact_on_both_sides_of_what_64_bits_hold() -> None:
    """Of each pair, so that every operator meets operands and results below, at and above its limit."""
    numbers = [0, 7, *_beside(1), *_beside(1 << 31), *_beside(1 << 53), *_beside((1 << 62) + 1)]
    pairs = [(a, b) for a in numbers for b in numbers]
    left, right = Name("left", Machine.I64), Name("right", Machine.I64)
    wide = [Convert(name, Machine.WIDE) for name in (left, right)]
    python = {"+": int.__add__, "-": int.__sub__, "*": int.__mul__, "/": int.__truediv__}
    for sign, operator in python.items():
        term = Apply(sign, tuple(wide), Machine.WIDE)
        some = [pair for pair in pairs if sign != "/" or pair[1]]
        for given in [some, *([pair] for pair in some)]:
            arrays = {"left": np.array([a for a, _ in given]), "right": np.array([b for _, b in given])}  # fmt: skip
            found = evaluate(term, arrays).tolist()
            assert found == [operator(*pair) for pair in given], (sign, given[:3])


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
