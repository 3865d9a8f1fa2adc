"""What tells the kinds of joins apart, as properties: who needs to know one asks for it, instead of listing kinds."""

from __future__ import annotations

from enum import StrEnum


class JoinKind(StrEnum):
    """A kind of join; `plan.logical.Join` says what each gives."""

    INNER = "inner"
    LEFT = "left"
    RIGHT = "right"
    FULL = "full"
    SEMI = "semi"
    ANTI = "anti"
    MARK = "mark"
    SINGLE = "single"

    keeps_left: bool
    keeps_right: bool
    outputs_right: bool
    at_most_one: bool

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

    @property
    def is_divisible(self) -> bool:
        """Whether left rows may be joined a share at a time, each with all of the right side."""
        return not self.keeps_right


# keeps_left, keeps_right: every row of that side comes out at least once; outputs_right: the right side's columns do;
# at_most_one: no left row comes out twice
_TRAITS = {
    JoinKind.INNER: (False, False, True, False),
    JoinKind.LEFT: (True, False, True, False),
    JoinKind.RIGHT: (False, True, True, False),
    JoinKind.FULL: (True, True, True, False),
    JoinKind.SEMI: (False, False, False, True),
    JoinKind.ANTI: (False, False, False, True),
    JoinKind.MARK: (True, False, False, True),
    JoinKind.SINGLE: (True, False, True, True),
}
for _kind, (_left, _right, _output, _once) in _TRAITS.items():
    _kind.keeps_left, _kind.keeps_right = _left, _right
    _kind.outputs_right, _kind.at_most_one = _output, _once
