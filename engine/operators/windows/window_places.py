"""Rows in the order of a window: the place of each, where its partition and its peers begin and end."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from ...plan.expr import Column, ColumnRef, Expr, Literal, SortKey
from ...plan.window.window_call import WindowCall
from ...plan.window.window_operator import WindowRows

Ints = npt.NDArray[np.int64]
Mask = npt.NDArray[np.bool_]
Values = npt.NDArray[Any]

BEYOND = 1 << 40  # more than there are places
LEAST_CUT = 1 << 12  # rows of which those that are wanted are taken before anything is computed


def rank_to_cut_at(node: WindowRows, rows: int) -> int | None:
    """Return the rank above which rows are left out; None for few rows, and where all are wanted."""
    return node.most_rank if rows > LEAST_CUT else None


@dataclass(frozen=True)
class WindowPlaces:
    """The places 0 to `rows` - 1 of the sorted rows.

    `heads` and `peer_heads` are the first places of partitions and of rows with equal keys, ascending.
    """

    rows: int
    heads: Ints
    peer_heads: Ints

    @cached_property
    def index(self) -> Ints:
        return np.arange(self.rows)

    @cached_property
    def sizes(self) -> Ints:
        return np.diff(self.heads, append=self.rows)

    @cached_property
    def start(self) -> Ints:
        """The first place of the partition of each place."""
        return np.repeat(self.heads, self.sizes)

    @cached_property
    def stop(self) -> Ints:
        """The place behind the partition of each place."""
        return np.repeat(self.heads + self.sizes, self.sizes)

    @cached_property
    def row_numbers(self) -> Ints:
        """The number of each place in its partition, from 1 on."""
        return self.index - self.start + 1

    @cached_property
    def ranks(self) -> Ints:
        """That of its first peer."""
        return self.peer_start - self.start + 1

    @cached_property
    def dense_ranks(self) -> Ints:
        """The number of its peers among all of the partition."""
        return self.peers - self.peers[self.start] + 1

    def moved(self, away: Ints | np.int64) -> Ints:
        """Return the place so many after each one, or before it, -1 beyond its partition."""
        there = self.index + away
        return np.where((there >= self.start) & (there < self.stop), there, -1)

    @cached_property
    def peer_sizes(self) -> Ints:
        return np.diff(self.peer_heads, append=self.rows)

    @cached_property
    def peers(self) -> Ints:
        """The number of the peers of each place, over all partitions."""
        return np.repeat(np.arange(len(self.peer_heads)), self.peer_sizes)

    @cached_property
    def peer_start(self) -> Ints:
        return np.repeat(self.peer_heads, self.peer_sizes)

    @cached_property
    def peer_stop(self) -> Ints:
        return np.repeat(self.peer_heads + self.peer_sizes, self.peer_sizes)


@dataclass(frozen=True)
class InnerOrder:
    """Places in the order of a call's own keys: the rank of each, `peers` the same for equal keys, and the place of each rank."""

    ranks: Ints
    peers: Ints
    places: Ints


class WindowInput(Protocol):
    """What the functions of a window read of its rows, in the order of the window."""

    @property
    def places(self) -> WindowPlaces: ...

    def integers(self, column: Column) -> tuple[Ints, Mask | None]:
        """Return a BIGINT column, and where it is not NULL; None for everywhere."""
        ...

    def known(self, column: Column) -> Mask | None:
        """Return where a column is not NULL; None for everywhere."""
        ...

    def ordered(self, keys: tuple[SortKey, ...]) -> InnerOrder:
        """Return all places in the order of some columns; those with equal ones keep theirs."""
        ...

    def comparable(self, key: Column, bound: Column) -> tuple[Ints, Ints, Mask]:
        """Return two columns as integers that compare as they do, and where both are known."""
        ...


def numbers(expr: Expr, rows: WindowInput) -> tuple[Ints | np.int64, Mask | None]:
    """Return a BIGINT argument in the order of the window, as one number where it is constant."""
    if isinstance(expr, Literal):
        if expr.value is None:
            return np.int64(0), rows.places.index < 0
        assert isinstance(expr.value, int)
        return np.int64(expr.value), None
    assert isinstance(expr, ColumnRef)
    return rows.integers(expr.column)


def argument(call: WindowCall) -> Column:
    """Return the column whose values a function picks."""
    (first, *_) = call.args
    assert isinstance(first, ColumnRef)
    return first.column
