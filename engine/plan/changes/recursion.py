"""A query that reads its own rows, as WITH RECURSIVE makes it."""

from __future__ import annotations

from dataclasses import dataclass

from ...errors import Span
from ..logical import Logical
from .stand_in import StandIn


@dataclass(frozen=True)
class Recursion:
    """The rows of `first`, and those of `step`, which reads `working`: the rows of the round before; without `all` no row comes twice."""

    name: str
    first: Logical
    step: Logical
    working: StandIn
    all: bool
    span: Span | None = None
