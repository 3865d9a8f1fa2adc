"""Intervals hold every result of their operands, checked by trying all of small ones."""

from __future__ import annotations

from itertools import product

import pytest

from fuseline.codegen.ranges import I32_MAX, I64_MAX, IntegerRange, sum_fits_i64

SMALL = [IntegerRange(low, high) for low, high in product(range(-3, 4), repeat=2) if low <= high]


def _values(interval: IntegerRange) -> range:
    return range(interval.low, interval.high + 1)


@pytest.mark.parametrize("name", ["__add__", "__sub__", "__mul__"])
def test_operations_are_tight(name: str) -> None:
    for a, b in product(SMALL, repeat=2):
        results = [getattr(x, name)(y) for x, y in product(_values(a), _values(b))]
        assert getattr(a, name)(b) == IntegerRange(min(results), max(results))


def test_negation_and_absolute_values_are_tight() -> None:
    for a in SMALL:
        assert -a == IntegerRange(min(-x for x in _values(a)), max(-x for x in _values(a)))
        sizes = [abs(x) for x in _values(a)]
        assert a.absolute() == IntegerRange(min(sizes), max(sizes))
        assert (a.magnitude, a.size) == (max(sizes), len(_values(a)))


def test_a_union_holds_both() -> None:
    assert IntegerRange(1, 2).union(IntegerRange(-5, -4)) == IntegerRange(-5, 2)


def test_what_fits_registers() -> None:
    assert IntegerRange(-I32_MAX - 1, I32_MAX).fits_i32
    assert not IntegerRange(0, I32_MAX + 1).fits_i32
    assert IntegerRange(-I64_MAX - 1, I64_MAX).fits_i64
    assert not IntegerRange(-I64_MAX - 2, 0).fits_i64


def test_a_sum_is_proven_for_so_many_rows() -> None:
    assert sum_fits_i64(IntegerRange(0, 2**32), 2**31 - 1)
    assert not sum_fits_i64(IntegerRange(0, 2**32), 2**31)
    assert not sum_fits_i64(IntegerRange(-I64_MAX - 1, 0), 0)
