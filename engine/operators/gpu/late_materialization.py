"""Columns that are fetched when somebody asks for them: until then operators pick row numbers of relations instead.

An order, a limit or a condition on groups so comes before the text of the rows that it leaves.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, TypeAlias

import pylibcudf as plc

from ...plan.node import Once
from ...records import dataclass
from ...storage.columns.encodings import REGISTER, Encoding
from .columns import BOOL, INT32, binary, scalar, select, sequence
from .dictionaries import Coded, Held

if TYPE_CHECKING:
    from .memory.host_values import Lying

Op = plc.binaryop.BinaryOperator
OutOfBounds = plc.copying.OutOfBoundsPolicy
INT32_BYTES = 4
Bounds: TypeAlias = tuple[int, int]
NONE = -(1 << 31)  # a row number that is out of bounds, even when libcudf counts it from the end


@dataclass(eq=False)
class Fetch:
    """A column of a relation: how it lies in memory, and what makes values of rows of that.

    What lies there has the order of the values; without an `encoding` it is the values, or codes of `keys`.  `owned` bytes are kept by this table alone, those of the cache are not.  `bounds`
    are an interval that holds all integers, as in registers, that a `Narrow` encoding stands for; `loose` ones may be much wider,
    so that kernels measure anew.  `origin` names a scan's column.
    """

    lying: plc.Column
    encoding: Encoding | None
    decode: Callable[[plc.Column], Held]
    owned: int = 0
    bounds: Bounds | None = None
    loose: bool = False
    keys: plc.Column | None = None
    origin: Hashable = None

    @Once
    def copied(self) -> Lying:
        """What there is to copy to the host."""
        from .memory.host_values import lying_of  # which reads tables that have late columns

        held = self.lying if self.keys is None else Coded(self.lying, self.keys)
        return lying_of(held, self.encoding)


# By `Column.id` the number of a relation's places, and what to fetch there
Fetches: TypeAlias = dict[int, tuple[int, Fetch]]
Known: TypeAlias = Mapping[int, Bounds | None]  # intervals by `Column.id`


@dataclass(eq=False)
class Places:
    """Row numbers of a relation (INT32); where it is `optional`, a negative one means NULLs.

    Without `rows` they are all rows, in order: what is late is then what values are made of.  `distinct`: none comes twice
    (False: that is not known).
    """

    rows: plc.Column | None
    optional: bool
    distinct: bool = False

    @Once
    def address(self) -> int | None:
        """Where the row numbers begin: 0 for all rows; None where they are of another type after all."""
        if self.rows is None:
            return 0
        if self.rows.type().id() != INT32.id():
            return None
        return int(self.rows.data().ptr) + int(self.rows.offset()) * INT32_BYTES

    def numbers(self, count: int) -> plc.Column:
        """Return the row numbers, `count` of them."""
        return sequence(count) if self.rows is None else self.rows

    def gather(self, lying: Sequence[plc.Column]) -> list[plc.Column]:
        """Return these rows of columns."""
        if self.rows is None:
            return list(lying)
        rows, policy = self.rows, OutOfBounds.DONT_CHECK
        if self.optional:
            there = binary(rows, scalar(0, INT32), Op.GREATER_EQUAL, BOOL)
            rows, policy = select(there, rows, scalar(NONE, INT32)), OutOfBounds.NULLIFY
        return list(plc.copying.gather(plc.Table(list(lying)), rows, policy).columns())


class LateColumns(Mapping[int, Held]):
    """Columns by `Column.id`: some `there`, of others a relation's number in `paths` and what to fetch from it.

    `known` are intervals that hold the integers of some that are there.
    """

    def __init__(
        self,
        there: Mapping[int, Held],
        places: Sequence[Places],
        fetches: Mapping[int, tuple[int, Fetch]],
        known: Known | None = None,
    ) -> None:
        self.there = dict(there)
        self.places, self.fetches = tuple(places), dict(fetches)
        self.known = known or {}

    @classmethod
    def of_one(cls, made: Mapping[int, Held | Fetch], known: Known | None = None) -> LateColumns:
        """Return columns of the same rows: some there, others what values are made of."""
        there: dict[int, Held] = {}
        fetches: Fetches = {}
        for i in made:
            held = made[i]
            if type(held) is Fetch:
                fetches[i] = 0, held
            else:
                there[i] = held
        return cls(there, [Places(None, False)] if fetches else [], fetches, known)

    def __getitem__(self, column_id: int) -> Held:
        if column_id not in self.there:
            self.fetch([column_id])
        return self.there[column_id]

    def __iter__(self) -> Iterator[int]:
        yield from self.there
        yield from (i for i in self.fetches if i not in self.there)

    def __len__(self) -> int:
        return len(self.there.keys() | self.fetches.keys())

    def __contains__(self, column_id: object) -> bool:
        return column_id in self.there or column_id in self.fetches

    @property
    def nbytes(self) -> int:
        """The bytes that this table keeps in memory, itself or in relations that nobody else keeps."""
        size, there, fetches, owners = 0, self.there, self.fetches, set[int]()
        for i in there:
            size += there[i].device_buffer_size()
        for place in self.places:
            if place.rows is not None:
                size += place.rows.device_buffer_size()
        for i in fetches:
            fetch = fetches[i][1]
            if fetch.owned and (own := id(fetch.lying)) not in owners:
                owners |= {own}
                size += fetch.owned
        return int(size)

    @property
    def has_codes(self) -> bool:
        """Whether any strings lie as codes, or will when they are fetched."""
        fetches = [fetch for _, fetch in self.fetches.values()]
        coded = (
            f.keys is not None or (f.encoding and f.encoding.values is not None) for f in fetches
        )
        return any(coded) or any(isinstance(held, Coded) for held in self.there.values())

    def late(self, column_id: int) -> Fetch | None:
        """Return how a column that is not there yet is fetched."""
        return None if column_id in self.there else self.fetches[column_id][1]

    def bounds(self, column_id: int) -> Bounds | None:
        """Return an interval that holds the integers behind a column, as in registers, if one is known."""
        if column_id in self.fetches:
            fetch = self.fetches[column_id][1]
            encoding = fetch.encoding
            if encoding is not None and encoding.values is None and not encoding.is_float:
                return fetch.bounds
        return self.known.get(column_id)

    def may_be_null(self, column_id: int) -> bool:
        """Whether a column has NULLs, as far as can be said without fetching it."""
        if column_id in self.there:
            return bool(self.there[column_id].null_count())
        number, fetch = self.fetches[column_id]
        return self.places[number].optional or bool(fetch.lying.null_count())

    def whole(self, column_id: int) -> Fetch | None:
        """Return how a column is made of what has the same rows, if that is what it is made of."""
        if column_id in self.there:
            return None
        number, fetch = self.fetches[column_id]
        return fetch if self.places[number].rows is None else None

    def fetch(self, column_ids: Iterable[int]) -> None:
        """Gather those of some columns that are not there yet, which then are; those of a relation together."""
        for i, lying in self.lying(column_ids).items():
            self.there[i] = self.fetches[i][1].decode(lying)

    def lying(self, column_ids: Iterable[int]) -> dict[int, plc.Column]:
        """Return those of some columns that are not there yet, as they lie in their relations."""
        wanted: dict[int, list[int]] = {}
        for i in column_ids:
            if i not in self.there:
                wanted.setdefault(self.fetches[i][0], []).append(i)
        found: dict[int, plc.Column] = {}
        for number, ids in wanted.items():
            picked = self.places[number].gather([self.fetches[i][1].lying for i in ids])
            found |= dict(zip(ids, picked, strict=True))
        return found

    def only(self, column_ids: Iterable[int]) -> LateColumns:
        """Return some of the columns, without the row numbers that these do not need."""
        return self.renamed([(i, i) for i in column_ids])

    def renamed(self, pairs: Iterable[tuple[int, int]]) -> LateColumns:
        """Return columns under other identities, given as (new, old)."""
        there: dict[int, Held] = {}
        fetches: dict[int, tuple[int, Fetch]] = {}
        numbers: dict[int, int] = {}  # by those here
        known: dict[int, Bounds | None] = {}
        for new, old in pairs:
            if old in self.there:
                there[new], known[new] = self.there[old], self.bounds(old)
            else:
                number, fetch = self.fetches[old]
                fetches[new] = numbers.setdefault(number, len(numbers)), fetch
        return LateColumns(there, [self.places[n] for n in numbers], fetches, known)

    def with_codes(self, coded: Mapping[int, Coded]) -> LateColumns:
        """Return the columns with codes in the place of texts that are still to be fetched, given for all rows of their relations."""
        fetches = dict(self.fetches)
        for i, held in coded.items():
            number, fetch = fetches[i]
            decode = partial(Coded, keys=held.keys)
            codes = replace(fetch, lying=held.codes, decode=decode, owned=0, keys=held.keys)
            fetches[i] = number, replace(codes, origin=None)
        return LateColumns(self.there, self.places, fetches, self.known)

    def with_places(self, rows: Sequence[plc.Column], there: Mapping[int, Held]) -> LateColumns:
        """Return the columns at other rows: what is there, and row numbers of each relation."""
        places = [Places(r, p.optional) for r, p in zip(rows, self.places, strict=True)]
        return LateColumns(there, places, self.fetches, self.known)


def bounds_of(columns: Mapping[int, Held], column_id: int) -> Bounds | None:
    """Return an interval that holds the integers behind a column, if one is known."""
    return columns.bounds(column_id) if type(columns) is LateColumns else None


def lasting(
    columns: Mapping[int, Held | Fetch], like: Mapping[int, Held], known: Known
) -> Mapping[int, Held]:
    """Return columns that were made of others, which stay a kernel's result if those are one; `known` is as for `LateColumns`."""
    if type(like) is LateColumns:
        return LateColumns.of_one(columns, known)
    return {i: h.decode(h.lying) if isinstance(h, Fetch) else h for i, h in columns.items()}


def registers_of(columns: Mapping[int, Held], column_id: int) -> plc.Column | None:
    """Return the integers as in registers that a column is made of; None where it is not, or was fetched before."""
    if type(columns) is not LateColumns or not is_of_registers(columns, column_id):
        return None
    return columns.lying([column_id])[column_id]


def is_of_registers(columns: Mapping[int, Held], column_id: int) -> bool:
    """Whether a column is made of integers as in registers, and has not been fetched."""
    fetch = columns.late(column_id) if type(columns) is LateColumns else None
    return fetch is not None and fetch.encoding == REGISTER


def together(left: Mapping[int, Held], right: Mapping[int, Held]) -> Mapping[int, Held]:
    """Return the columns of two tables whose rows belong together, without fetching any."""
    if type(left) is not LateColumns and type(right) is not LateColumns:
        return {**left, **right}
    one, other = _late(left), _late(right)
    first = len(one.places)
    fetches = {i: found for i, found in one.fetches.items() if i not in other.there}
    fetches |= {i: (first + number, fetch) for i, (number, fetch) in other.fetches.items()}
    return LateColumns(
        {**one.there, **other.there},
        (*one.places, *other.places),
        fetches,
        {**one.known, **other.known},
    )


def _late(columns: Mapping[int, Held]) -> LateColumns:
    return columns if type(columns) is LateColumns else LateColumns(columns, (), {})
