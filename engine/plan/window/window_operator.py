"""The operator of window functions."""

from __future__ import annotations

from ...records import dataclass
from ..expr import Column
from ..node import Once
from ..physical import Order, Physical
from .window_call import WindowCall


@dataclass(frozen=True)
class WindowRows(Physical):
    """Sort rows by partition and order, and compute each call for each of them; they come out as they came in, or so sorted.

    Arguments, bounds and filters of the calls are columns or literals.  `passed` are the columns of the input that go on.  Rows of
    a rank above `most_rank` in their partition may be left out: nobody asks for them, and no call of the others reads them.
    """

    input: Physical
    partition: tuple[Column, ...]
    order: tuple[Order, ...]
    calls: tuple[tuple[Column, WindowCall], ...]
    passed: tuple[Column, ...]
    most_rank: int | None = None

    @property
    def cut(self) -> str:
        return "" if self.most_rank is None else f"rank up to {self.most_rank}"

    @Once
    def columns(self) -> tuple[Column, ...]:
        return (*self.passed, *(c for c, _ in self.calls))
