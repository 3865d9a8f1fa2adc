"""A query that reads its own rows, as WITH RECURSIVE makes it."""

from __future__ import annotations

from dataclasses import dataclass

from ...errors import Span
from ..logical import Logical
from .stand_in import StandIn


@dataclass(frozen=True)
class Recursion:
    """The rows of `first`, and those of `step`, which reads `working`: the rows of the round before; without `all` no row comes twice.

    With `keys`, the numbers of columns, the last row of each key is kept alone: USING KEY.  `step` may read those of all rounds before as `settled`;
    without `all` a round consists of the rows that differ from those of their key.
    """

    name: str
    first: Logical
    step: Logical
    working: StandIn
    all: bool
    span: Span | None = None
    keys: tuple[int, ...] = ()
    settled: StandIn | None = None
