"""Where the rows of a node are on a cluster, and which rows are therefore on one worker.

    replicated  each worker has all of them
    ranged      each has those whose key lies in its range of values: `cuts` are the ranges' ends, in ascending order
    hashed      each has those of some hashes of the keys
    ordered     each has some, all of which stand before the next worker's in the order of a sort
    arbitrary   each has some
    single      the first worker has all, the others none

A key is ranged by one column, hashed by one or several; for each of its places all columns are known that have the key's value in
every row, since joins and projections make such columns.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Hashable, Iterable, Sequence
from dataclasses import field, replace
from enum import StrEnum
from operator import attrgetter
from typing import Literal as OneOf, NamedTuple

from ..records import dataclass
from .expr import Column

Pairs = Sequence[tuple[Column, Column]]


class Spread(StrEnum):
    """How rows lie on the workers."""

    REPLICATED = "replicated"
    RANGED = "ranged"
    HASHED = "hashed"
    ORDERED = "ordered"
    ARBITRARY = "arbitrary"
    SINGLE = "single"


@dataclass(frozen=True)
class Partitioning:
    """How rows lie on the workers, and by which keys; two that are equal but for names put equal keys on one worker.

    `made_by` are the joins, by the identities of their nodes, that sent rows to lie so.
    """

    spread: Spread
    keys: tuple[frozenset[Column], ...] = ()
    cuts: tuple[int, ...] = ()
    made_by: frozenset[int] = field(default=frozenset(), compare=False)

    @property
    def is_replicated(self) -> bool:
        return self.spread is Spread.REPLICATED

    @property
    def is_shared(self) -> bool:
        """Whether each worker may have some of the rows."""
        return self.spread not in (Spread.REPLICATED, Spread.SINGLE)

    def separates(self, columns: Collection[Column]) -> bool:
        """Whether rows that are equal in these columns are on one worker."""
        return bool(self.keys) and all(not place.isdisjoint(columns) for place in self.keys)

    def kept(self, columns: Iterable[Column]) -> Partitioning:
        """What remains where these columns alone come out."""
        there = frozenset(columns)
        return self._with([place & there for place in self.keys])

    def renamed(self, pairs: Pairs) -> Partitioning:
        """What is known where the second column of each pair has the first one's values; the first ones are known no more."""
        names: dict[Column, set[Column]] = {}
        for old, new in pairs:
            names.setdefault(old, set()).add(new)
        places = [(names.get(c, set()) for c in place) for place in self.keys]
        return self._with([frozenset().union(*found) for found in places])

    def equated(self, pairs: Pairs) -> Partitioning:
        """What is known where the columns of each pair are equal in every row."""
        return self._with(
            [
                place.union(*(pair for pair in pairs if not place.isdisjoint(pair)))
                for place in self.keys
            ]
        )

    def _with(self, places: Sequence[frozenset[Column]]) -> Partitioning:
        if self.keys and not all(places):
            return ARBITRARY
        return replace(self, keys=tuple(places))

    def beside(self, pairs: Pairs) -> tuple[Column, ...] | None:
        """Return the second columns of pairs by which rows would lie beside those with equal first columns, None where none would."""
        found = []
        for place in self.keys:
            other = next((b for a, b in pairs if a in place), None)
            if other is None:
                return None
            found.append(other)
        return tuple(found) or None

    def of(self, keys: Sequence[Column]) -> Partitioning:
        """Return how rows lie that were sent beside these by such keys."""
        return replace(self, keys=tuple(frozenset((key,)) for key in keys))

    def meets(self, other: Partitioning, pairs: Pairs) -> bool:
        """Whether rows of two inputs with equal columns in each pair are on one worker already."""
        return (
            bool(self.keys)
            and (self.spread, self.cuts, len(self.keys)) == (other.spread, other.cuts, len(other.keys))
            and all(
                any(a in mine and b in its for a, b in pairs)
                for mine, its in zip(self.keys, other.keys, strict=True)
            )
        )  # fmt: skip


REPLICATED = Partitioning(Spread.REPLICATED)
ARBITRARY = Partitioning(Spread.ARBITRARY)
ORDERED = Partitioning(Spread.ORDERED)
SINGLE = Partitioning(Spread.SINGLE)


def hashed(keys: Sequence[Column]) -> Partitioning:
    return Partitioning(Spread.HASHED, tuple(frozenset((key,)) for key in keys))


def ranged(keys: Iterable[Column], cuts: tuple[int, ...]) -> Partitioning:
    return Partitioning(Spread.RANGED, (frozenset(keys),), cuts)


def described(at: Partitioning, name: Callable[[Column], str] = attrgetter("name")) -> str:
    """Say where rows are, for who reads a plan; a key by the first of its columns."""
    if not at.keys:
        return at.spread.value
    places = (min(place, key=lambda column: column.id) for place in at.keys)
    return f"{at.spread} by {', '.join(map(name, places))}"


class Fact(NamedTuple):
    """What may turn out to be wrong of a column of a table: that its values ascend with the rows, or that none comes twice."""

    identity: Hashable
    source: str
    kind: OneOf["ascends", "key"]


class KeyCut(NamedTuple):
    """A column of a table, and the values at which it is cut; `asked`: a join or a group may rely on it."""

    source: str
    cuts: tuple[int, ...]
    asked: bool
