"""The logical node of window functions."""

from __future__ import annotations

import dataclasses
import operator
from collections.abc import Callable
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
    input: Logical
    partition: tuple[Expr, ...]
    order: tuple[SortKey, ...]
    calls: tuple[tuple[Column, WindowCall], ...]

    @Once
    def columns(self) -> tuple[Column, ...]:
        return (*self.input.columns, *(c for c, _ in self.calls))

    @property
    def expressions(self) -> tuple[Expr, ...]:
        return (*self.partition, *self.order, *(call for _, call in self.calls))

    def map_expressions(self, rewrite: Callable[[Expr], Expr]) -> Window:
        partition = tuple(rewrite(e) for e in self.partition)
        order = tuple(k.with_children([rewrite(k.expr)]) for k in self.order)
        calls = []
        for column, call in self.calls:
            new = rewrite(call)
            assert isinstance(new, WindowCall)
            calls.append((column, new))
        made = (*partition, *order, *(call for _, call in calls))
        if all(map(operator.is_, made, self.expressions)):
            return self
        return dataclasses.replace(self, partition=partition, order=order, calls=tuple(calls))
