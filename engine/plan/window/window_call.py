"""Calls of functions over windows, their frames, and the logical node of window functions.

`Over` is what binding makes of a call with OVER; before a plan is complete each one becomes a column of a `Window`.
"""

from __future__ import annotations

from dataclasses import field
from typing import ClassVar, Literal as OneOf

from ...errors import Span
from ...records import dataclass
from ..expr import AggregateCall, Column, Expr, SortKey
from ..functions import AGGREGATE, WINDOW
from ..logical import Logical
from ..node import Once
from ..types import DataType

Unit = OneOf["rows", "range", "groups"]
Side = OneOf["unbounded preceding", "preceding", "current row", "following", "unbounded following"]
Exclude = OneOf["no others", "current row", "group", "ties"]


@dataclass(frozen=True, slots=True)
class WindowFrame:
    """Which rows of its partition a row's call is over; the call has the expressions of `preceding` and `following`."""

    unit: Unit = "range"
    start: Side = "unbounded preceding"
    end: Side = "current row"
    exclude: Exclude = "no others"

    @property
    def text(self) -> str:
        excluded = "" if self.exclude == "no others" else f" exclude {self.exclude}"
        return f"{self.unit} between {self.start} and {self.end}{excluded}"


WHOLE = WindowFrame("rows", "unbounded preceding", "unbounded following")
SO_FAR = WindowFrame("rows", "unbounded preceding", "current row")


@dataclass(frozen=True)
class WindowCall(Expr):
    """A function of `functions.WINDOW` or `functions.AGGREGATE` over the frame of each row.

    `start` and `end` are numbers of rows or groups of a frame, and for RANGE the smallest and largest value of the order key in
    it, with `key` as that key in their type.  `order` is the ORDER BY inside the call.
    """

    CHILDREN: ClassVar = ("args", "filter", "order", "start", "end", "key")
    function: str
    args: tuple[Expr, ...]
    type: DataType
    frame: WindowFrame = WHOLE
    start: Expr | None = None
    end: Expr | None = None
    key: Expr | None = None
    distinct: bool = False
    ignore_nulls: bool = False
    descending: bool = False  # the order key of a RANGE frame with offsets
    filter: Expr | None = None
    order: tuple[SortKey, ...] = ()
    span: Span | None = field(default=None, compare=False, repr=False)

    @property
    def looks_back(self) -> bool:
        """Whether it reads no row of its partition behind the peers of its own."""
        reach = (AGGREGATE if self.is_aggregate else WINDOW)[self.function].reach
        ends = self.frame.end in ("unbounded preceding", "preceding", "current row")
        return ends if reach == "frame" else reach == "peers" and not self.order

    @property
    def is_aggregate(self) -> bool:
        return self.function in AGGREGATE

    @property
    def aggregate(self) -> AggregateCall:
        """The call over groups that this one is over frames."""
        return AggregateCall(
            self.function, self.args, self.type, self.distinct, self.filter, self.order, self.span
        )


@dataclass(frozen=True)
class Over(Expr):
    """A window call with its partition and order, where it stands in a query."""

    CHILDREN: ClassVar = ("call", "partition", "order")
    call: WindowCall
    partition: tuple[Expr, ...] = ()
    order: tuple[SortKey, ...] = ()
    span: Span | None = field(default=None, compare=False, repr=False)

    @property
    def type(self) -> DataType:  # type: ignore[override]
        return self.call.type


@dataclass(frozen=True)
class Window(Logical):
    """The rows of its input with a column for each call; all calls have the same partition and order."""

    EXPRESSIONS: ClassVar = ("partition", "order", "calls")
    input: Logical
    partition: tuple[Expr, ...]
    order: tuple[SortKey, ...]
    calls: tuple[tuple[Column, WindowCall], ...]

    @Once
    def columns(self) -> tuple[Column, ...]:
        return (*self.input.columns, *(c for c, _ in self.calls))
