"""What a statement gave: its rows, or how many it wrote."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from typing import TYPE_CHECKING

from ..plan.types import DataType
from ..reading import Reading

if TYPE_CHECKING:
    import pyarrow as pa


@dataclass(frozen=True)
class Rowset:
    """The rows that a statement gave, in memory or made while they are read, and how they may be stopped meanwhile.

    `source` is None for a statement that is not written for rows.  `count`: of the rows, or of those that were written; -1 where
    nobody knows.
    """

    source: pa.Table | Reading | None
    types: tuple[DataType, ...] = ()
    count: int = -1
    stoppable: Callable[[], AbstractContextManager[object]] = nullcontext


NOTHING = Rowset(None)
