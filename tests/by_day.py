"""Which cases of tests run by day: of a test that is marked `by_day`, all others are for `make nightly`."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from typing import Any

# One of so many cases of each test runs by day: they compile kernels, ask a cluster, or are another library's way to ask the same
DEAR = {"codegen": 3, "planner": 2, "distributed": 2, "interop": 2, "windows": 2}


def leave_to_the_night(items: Iterable[Any]) -> None:
    """Keep every n-th case of a test that is marked `by_day(n)`, and without a number as many as `covering` does.

    Of tests that are not marked, in `DEAR` folders, one of so many cases is kept.
    """
    tests: dict[object, list[Any]] = defaultdict(list)
    for item in items:
        if item.get_closest_marker("nightly"):
            continue
        if item.get_closest_marker("by_day") or item.path.parent.name in DEAR:
            on_gpu = item.get_closest_marker("gpu") is not None
            tests[item.path, item.originalname, on_gpu].append(item)
    for cases in tests.values():
        mark = cases[0].get_closest_marker("by_day")
        every = mark.args if mark else (DEAR[cases[0].path.parent.name],)
        by_day = cases[:: every[0]] if every else covering(cases)
        for case in cases:
            if case not in by_day:
                case.add_marker("nightly")


def draw_fewer(items: Iterable[Any], every: int) -> None:
    """Have tests of Hypothesis draw one of so many of their examples; where that is all of them, they are tests for the night too."""
    for item in items:
        test = getattr(item, "obj", None)
        if not getattr(test, "is_hypothesis_test", False):
            continue
        if every == 1:
            item.add_marker("nightly")
        elif test not in _drawing_fewer:  # which several items share
            _drawing_fewer.add(test)
            given = test._hypothesis_internal_use_settings
            few = max(FEWEST, given.max_examples // every)
            test._hypothesis_internal_use_settings = type(given)(given, max_examples=few)


FEWEST = 8  # examples of a test
_drawing_fewer: set[object] = set()


def covering(cases: Sequence[Any]) -> list[Any]:
    """Return so many that each value of each parameter is in one, and in about as many as the others."""
    chosen: list[Any] = []
    used: Counter[tuple[str, int]] = Counter()

    def uses(case: Any) -> list[int]:
        return sorted(used[name, id(value)] for name, value in case.callspec.params.items())

    while left := [case for case in cases if uses(case)[0] == 0]:
        chosen.append(min(left, key=uses))
        used.update((name, id(value)) for name, value in chosen[-1].callspec.params.items())
    return chosen
