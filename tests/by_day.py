"""Which cases of tests run by day: of a test that is marked `by_day`, all others are for `make nightly`."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from typing import Any


def leave_to_the_night(items: Iterable[Any]) -> None:
    """Keep every n-th case of a test that is marked `by_day(n)`, and without a number as many as `covering` does."""
    tests: dict[object, list[Any]] = defaultdict(list)
    for item in items:
        if item.get_closest_marker("by_day") and not item.get_closest_marker("nightly"):
            on_gpu = item.get_closest_marker("gpu") is not None
            tests[item.path, item.originalname, on_gpu].append(item)
    for cases in tests.values():
        every = cases[0].get_closest_marker("by_day").args
        by_day = cases[:: every[0]] if every else covering(cases)
        for case in cases:
            if case not in by_day:
                case.add_marker("nightly")


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
