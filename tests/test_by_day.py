"""Which cases of tests run by day."""

from __future__ import annotations

from itertools import product
from pathlib import Path
from types import SimpleNamespace
from typing import Any

from hypothesis import given, settings, strategies as st

from tests.by_day import draw_fewer, leave_to_the_night


class Case(SimpleNamespace):
    def get_closest_marker(self, name: str) -> Any:
        return self.marks.get(name)

    def add_marker(self, name: str) -> None:
        self.marks[name] = None


def by_day(cases: list[dict[str, int]], *every: int, **marks: Any) -> list[tuple[int, ...]]:
    """Return the values of the cases that stay."""
    return left(cases, Path("tests/sql/test_a.py"), by_day=SimpleNamespace(args=every), **marks)


def left(cases: list[dict[str, int]], path: Path, **marks: Any) -> list[tuple[int, ...]]:
    items = [
        Case(path=path, originalname="b", callspec=SimpleNamespace(params=c), marks={**marks})
        for c in cases
    ]
    leave_to_the_night(items)
    return [tuple(i.callspec.params.values()) for i in items if "nightly" not in i.marks]


PAIRS = [{"x": x, "y": y} for y, x in product(range(3), range(5))]


def test_each_value_stays_about_as_often_as_the_others() -> None:
    assert by_day(PAIRS) == [(0, 0), (3, 0), (1, 1), (4, 1), (2, 2)]


def test_one_of_several_stays() -> None:
    assert by_day(PAIRS, 7) == [(0, 0), (2, 1), (4, 2)]


def test_cases_for_the_night_are_none_of_these() -> None:
    assert by_day(PAIRS, 7, nightly=True) == []


def test_a_third_of_the_cases_stays_where_each_compiles_kernels() -> None:
    cases = [{"x": x} for x in range(4)]
    assert left(cases, Path("tests/codegen/test_a.py")) == [(0,), (3,)]
    assert left(cases, Path("tests/sql/test_a.py")) == [(0,), (1,), (2,), (3,)]


def test_fewer_examples_are_drawn_by_day() -> None:
    drawn: list[int] = []

    @settings(max_examples=60, database=None)
    @given(st.integers())
    def draw(number: int) -> None:
        drawn.append(number)

    item = Case(obj=draw, marks={})
    for _ in range(2):
        draw_fewer([item], every=3)
    draw()
    assert len(drawn) == 20
    draw_fewer([item], every=1)
    assert "nightly" in item.marks
