"""What tells the kinds of joins apart, as properties: who needs to know one asks for it, instead of listing kinds."""

from __future__ import annotations

from enum import StrEnum
from typing import NamedTuple, Self, TypeVar

T = TypeVar("T")


class Traits(NamedTuple):
    """What a kind of join gives.

    `keeps_left`, `keeps_right`: every row of that side comes out at least once.  `outputs_right`: the right side's columns come out.
    `at_most_one`: no left row comes out twice.
    """

    keeps_left: bool = False
    keeps_right: bool = False
    outputs_right: bool = False
    at_most_one: bool = False


class JoinKind(StrEnum):
    """A kind of join, a word with its traits; `plan.logical.Join` says what each gives."""

    _value_: str
    keeps_left: bool
    keeps_right: bool
    outputs_right: bool
    at_most_one: bool

    def __new__(cls, word: str, traits: Traits) -> Self:
        """Set the traits on the member, where a plan reads them at the cost of an attribute."""
        kind = str.__new__(cls, word)
        kind._value_ = word
        kind.keeps_left, kind.keeps_right, kind.outputs_right, kind.at_most_one = traits
        return kind

    INNER = "inner", Traits(outputs_right=True)
    LEFT = "left", Traits(keeps_left=True, outputs_right=True)
    RIGHT = "right", Traits(keeps_right=True, outputs_right=True)
    FULL = "full", Traits(keeps_left=True, keeps_right=True, outputs_right=True)
    SEMI = "semi", Traits(at_most_one=True)
    ANTI = "anti", Traits(at_most_one=True)
    MARK = "mark", Traits(keeps_left=True, at_most_one=True)
    SINGLE = "single", Traits(keeps_left=True, outputs_right=True, at_most_one=True)

    @property
    def is_membership(self) -> bool:
        """Whether only it matters that there is a match, not which: no column of the right side comes out."""
        return not self.outputs_right

    @property
    def is_filter(self) -> bool:
        """Whether some of the left rows come out as they are."""
        return not self.outputs_right and not self.keeps_left

    @property
    def nulls_right(self) -> bool:
        """Whether columns of the right side are NULL in left rows without a match; for the left side's ask `keeps_right`."""
        return self.keeps_left and self.outputs_right

    def outputs(self, left: tuple[T, ...], right: tuple[T, ...], mark: T | None) -> tuple[T, ...]:
        """Return the columns that come out, of those of both sides and the one of a mark join."""
        if self.outputs_right:
            return left + right
        return (*left, mark) if mark is not None and self is JoinKind.MARK else left

    @property
    def is_divisible(self) -> bool:
        """Whether left rows may be joined a share at a time, each with all of the right side."""
        return not self.keeps_right
