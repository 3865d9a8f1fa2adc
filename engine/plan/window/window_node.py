"""The logical node of window functions."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from ..expr import Column, Expr, SortKey
from ..logical import Logical
from ..node import Once
from .window_call import WindowCall


@dataclass(frozen=True)
class Window(Logical):
    """The rows of its input with a column for each call; all calls have the same partition and order."""

    CHILDREN: ClassVar = ("input",)
    EXPRESSIONS: ClassVar = ("partition", "order", "calls")
    input: Logical
    partition: tuple[Expr, ...]
    order: tuple[SortKey, ...]
    calls: tuple[tuple[Column, WindowCall], ...]

    @Once
    def columns(self) -> tuple[Column, ...]:
        return (*self.input.columns, *(c for c, _ in self.calls))
