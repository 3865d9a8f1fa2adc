"""Strings as numbers: columns of few different values, as scans bring them.

Filters and joins then move a byte or two for each row instead of an offset and characters, groups and sorts compare integers, and
a function of the column is computed once for each value.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, TypeAlias

import pylibcudf as plc

from ...records import dataclass
from ...storage.columns.device_encode import UNCHECKED, spread
from .columns import INT32, cast, null_column, where_true, without_nulls

if TYPE_CHECKING:
    from rmm.pylibrmm.stream import Stream

INT8 = plc.DataType(plc.TypeId.INT8)
INT16 = plc.DataType(plc.TypeId.INT16)

# One code more than there are keys must fit, for NULL.
_FEW_KEYS = (1 << 7) - 2
MOST_KEYS = (1 << 15) - 2
# Of a column of more rows some are looked at: with this share of different strings among them it is left as it is.
SAMPLE_ROWS = 1 << 16
SAMPLE_SHARE = 4

_SMALLEST = {plc.TypeId.INT8: -(1 << 7), plc.TypeId.INT16: -(1 << 15), plc.TypeId.INT32: -(1 << 31)}


@dataclass(frozen=True)
class Coded:
    """A column of strings: `codes` are places in `keys`, NULL where the string is.

    `keys` are different strings in ascending order without NULL, so that codes compare as their strings do.
    """

    codes: plc.Column
    keys: plc.Column

    def size(self) -> int:
        return int(self.codes.size())

    def null_count(self) -> int:
        return int(self.codes.null_count())

    def device_buffer_size(self) -> int:
        return int(self.codes.device_buffer_size() + self.keys.device_buffer_size())

    def plain(self) -> plc.Column:
        """Return the strings."""
        if not self.null_count():
            return self.spread(self.keys)
        # A negative number that is out of bounds, even when libcudf counts it from the end, gives NULL.
        places = without_nulls(self.codes, _SMALLEST[self.codes.type().id()])
        nullify = plc.copying.OutOfBoundsPolicy.NULLIFY
        return plc.copying.gather(plc.Table([self.keys]), places, nullify).columns()[0]

    def domain(self) -> plc.Column:
        """Return the keys, and after them a NULL if the column has any."""
        if not self.null_count():
            return self.keys
        return plc.concatenate.concatenate([self.keys, null_column(1, self.keys.type())])

    def spread(self, values: plc.Column) -> plc.Column:
        """Return for each row the value that belongs to its place in `domain`."""
        places = without_nulls(self.codes, self.keys.size())
        unchecked = plc.copying.OutOfBoundsPolicy.DONT_CHECK
        return plc.copying.gather(plc.Table([values]), places, unchecked).columns()[0]


Held: TypeAlias = "plc.Column | Coded"


def plain(held: Held) -> plc.Column:
    """Return a column whose strings are strings."""
    return held.plain() if isinstance(held, Coded) else held


def encoded(column: plc.Column) -> Held:
    """Return a column with its strings numbered when they are few, else as it is."""
    if column.type().id() != plc.TypeId.STRING or column.null_count() == column.size():
        return column
    if column.size() > SAMPLE_ROWS:
        places = spread(column.size(), SAMPLE_ROWS)
        some = plc.copying.gather(plc.Table([column]), places, UNCHECKED)
        if distinct(some).num_rows() > SAMPLE_ROWS // SAMPLE_SHARE:
            return column
    different = plc.stream_compaction.drop_nulls(distinct(plc.Table([column])), [0], 1)
    if different.num_rows() > MOST_KEYS:
        return column
    order, nulls = [plc.types.Order.ASCENDING], [plc.types.NullOrder.AFTER]
    keys = plc.sorting.sort(different, order, nulls)
    places = plc.search.lower_bound(keys, plc.Table([column]), order, nulls)
    codes = _narrowed(places, keys.num_rows())
    if column.null_count():
        codes = where_true(codes, plc.unary.is_valid(column))
    return Coded(codes, keys.columns()[0])


def numbered(codes: plc.Column, keys: plc.Column) -> Held:
    """Return strings of which the places in ascending keys are known: as codes, unless the keys are many."""
    if not keys.size():
        return null_column(codes.size(), keys.type())
    if keys.size() <= MOST_KEYS:
        return Coded(_narrowed(codes, keys.size()), keys)
    return Coded(cast(codes, INT32), keys).plain()


def width_of_codes(keys: int) -> int:
    """Return the bytes of a code for so many keys: of more than `MOST_KEYS`, which do not stay codes, those of a row number."""
    if keys <= _FEW_KEYS:
        return 1
    return 2 if keys <= MOST_KEYS else 4


def _narrowed(places: plc.Column, keys: int) -> plc.Column:
    return cast(places, INT8 if width_of_codes(keys) == 1 else INT16)


def distinct(strings: plc.Table, stream: Stream | None = None) -> plc.Table:
    """Return the different strings of a table of one column, NULL among them, in any order."""
    keep = plc.stream_compaction.DuplicateKeepOption.KEEP_ANY
    equal, nan = plc.types.NullEquality.EQUAL, plc.types.NanEquality.ALL_EQUAL
    return plc.stream_compaction.distinct(strings, [0], keep, equal, nan, stream)


def recoded(coded: Coded, values: plc.Column) -> Held:
    """Return other strings for the places in `domain`; few strings stay few."""
    numbered = encoded(values)
    if not isinstance(numbered, Coded):
        return coded.spread(values)
    return Coded(coded.spread(numbered.codes), numbered.keys)


def slices(held: Held, bounds: list[int]) -> list[Held]:
    """Return the rows between each pair of bounds, without copying."""
    if isinstance(held, Coded):
        return [Coded(part, held.keys) for part in plc.copying.slice(held.codes, bounds)]
    return list(plc.copying.slice(held, bounds))


def joint_codes(parts: Sequence[Held]) -> list[Coded] | None:
    """Return columns as they are when all have codes into the same keys."""
    coded = [part for part in parts if isinstance(part, Coded)]
    if len(coded) == len(parts) and all(c.keys is coded[0].keys for c in coded):
        return coded
    return None


def codes_of_all(parts: Sequence[Held]) -> list[Coded] | None:
    """Return columns that follow one another as codes into the same keys: those that have them, and those of NULLs alone."""
    coded = next((part for part in parts if isinstance(part, Coded)), None)
    return None if coded is None else joint_codes([_as_codes(part, coded) for part in parts])


def _as_codes(held: Held, other: Coded) -> Held:
    """NULLs alone have codes into any keys, as a total's place in ROLLUP."""
    if isinstance(held, Coded) or held.null_count() < held.size():
        return held
    return Coded(null_column(held.size(), other.codes.type()), other.keys)
