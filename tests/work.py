"""How much work planning is, in calls of Python functions: the same in each run, unlike seconds."""

from __future__ import annotations

import sys
from collections.abc import Callable, Collection
from typing import Any

import fuseline


def calls_of(work: Callable[[], object], events: Collection[str] = ("call",)) -> int:
    """Return how many functions `work` calls in this thread; those of C are the event `c_call`."""
    count = 0

    def note(frame: Any, event: str, argument: object) -> None:
        nonlocal count
        count += event in events

    before = sys.getprofile()
    sys.setprofile(note)
    try:
        work()
    finally:
        sys.setprofile(before)
    return count


def planning_calls(connection: fuseline.Connection, text: str) -> int:
    """Return how many calls parsing, binding and planning a text takes, whose plan nobody knows yet."""
    return calls_of(lambda: connection.physical(connection.sql(text).plan))
