"""Results of kernels, which lie on the host, and what operators do with few rows there.

A call of libcudf takes 0.05 ms and more however few the rows are, and so does a copy: to order the groups of an aggregate here
and leave them where they are takes less than to send them to the device and back.

TPC-H SF10, hot on an H200, takes 9 % longer without it in the geometric mean (`benchmarks.micro.ablate`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, TypeAlias

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from ....codegen.groups.results import Registers, arrow_array
from ....plan import physical as p
from ....plan.arrow.arrow_arrays import array_from, truth_values
from ....plan.arrow.take_rows import take_rows
from ....plan.expr import Column
from ....plan.types import DataType, Kind, to_arrow as arrow_type
from ....storage.columns.encode import encode, encode_numbers, registers_of
from ....storage.columns.encodings import Array, EncodedColumn, numbers
from ...context import Context
from ...cpu.pipeline.finish import of_registers
from ...cpu.sort.keys import float_image
from ...cpu.table import to_physical
from .texts import Texts

if TYPE_CHECKING:
    from ..dictionaries import Held

MOST_ROWS = 4096  # beyond, the device sorts faster than the host
LEXICAL_ROWS = 64  # up to which rows are sorted in less time than their keys are packed
NUMBERED_TEXTS = 256  # that are numbered one by one, and of several dictionaries that become one
WORD_BITS = 63  # of an integer without its sign
SHORT_BITS = 16  # of integers that numpy sorts by radix, in a third of the time
MOST = (1 << WORD_BITS) - 2

CODED = (Kind.BOOLEAN, Kind.NULL, Kind.UBIGINT, Kind.VARCHAR)  # which lie otherwise for kernels

Arrays: TypeAlias = dict[Column, pa.Array]
Lying: TypeAlias = pa.Array | Registers | Texts
Rows: TypeAlias = Array | slice  # row numbers, or those that follow each other


class HostColumns(Mapping[int, "Held"]):
    """Columns by `Column.id` that lie on the host; when an operator asks for one, `move` puts all on the device.

    They lie as in registers, as far as possible, where rows are picked and compared in less time, until somebody wants `arrays`:
    these are in the Arrow types in which results leave the engine.  Who meets them asks for their `type`: by `isinstance`, to be another
    abstract class takes two calls more.
    """

    def __init__(
        self,
        held: Iterable[tuple[Column, Lying]],
        move: Callable[[Arrays], Mapping[int, Held]],
    ) -> None:
        self.move = move
        # How each lies, by id: to hash a column is a call of Python, as a comprehension is
        self.held: dict[int, tuple[Column, Lying]] = {}
        for pair in held:
            self.held[pair[0].id] = pair
        self._arrays: dict[int, pa.Array] = {}
        self._moved: Mapping[int, Held] | None = None

    def __getitem__(self, column_id: int) -> Held:
        if self._moved is None:
            self._moved = self.move(self.arrays)
        return self._moved[column_id]

    def __iter__(self) -> Iterator[int]:
        return iter(self.held)

    def __len__(self) -> int:
        return len(self.held)

    def __contains__(self, column_id: object) -> bool:
        return column_id in self.held

    @property
    def columns(self) -> list[Column]:
        return [column for column, _ in self.held.values()]

    @property
    def arrays(self) -> Arrays:
        return {column: self.array(column) for column, _ in self.held.values()}

    def array(self, column: Column) -> pa.Array:
        found = self._arrays.get(column.id)
        if found is None:
            _, found = self.held[column.id]
            if type(found) is Registers:
                found = arrow_array(found.values, found.valid, found.type, found.strings)
            elif type(found) is Texts:
                found = found.array()
            self._arrays[column.id] = found
        return found

    def registers(self, column: Column) -> Registers | None:
        """Return a column as in registers, few texts as codes of the sorted ones; None for what has no such form."""
        lying, data_type = self.held[column.id][1], column.type
        if type(lying) is Registers:
            return lying
        array = self.array(column)
        there = truth_values(array.is_valid()) if array.null_count else None
        if data_type.kind is Kind.VARCHAR:
            return _numbered(array, there, data_type) if len(array) <= NUMBERED_TEXTS else None
        if not data_type.fits_register:
            return None
        values = registers_of(to_physical(array, data_type), data_type, there)
        if values is None:
            return None
        if not data_type.is_float:
            values = values.astype(np.int64)
        return Registers(values, there, data_type)

    def physical(self, columns: Iterable[Column]) -> dict[int, pa.Array]:
        """Return columns in the form of the CPU's operators."""
        return {c.id: self._physical(c) for c in columns}

    def _physical(self, column: Column) -> pa.Array:
        lying = self.held[column.id][1]
        if isinstance(lying, Registers):
            return of_registers(lying)
        return to_physical(self.array(column), column.type)

    def encoded(self, column: Column) -> EncodedColumn | None:
        """Return a column as kernels read it, still on the host: numbers as in registers are codes as they are."""
        lying, data_type = self.held[column.id][1], column.type
        if data_type.kind not in CODED:
            lying = lying if type(lying) is Registers else self.registers(column) or lying
            if type(lying) is Registers and (lying.type is data_type or lying.type == data_type):
                return encode_numbers(lying.values, lying.valid, data_type, lying.values.size)
        array = to_physical(self.array(column), data_type)
        if data_type.kind is Kind.VARCHAR and not pa.types.is_dictionary(array.type):
            array = array.dictionary_encode()  # however many differ
        return encode(array, data_type, narrow=False)

    def renamed(self, pairs: Iterable[tuple[Column, Column]]) -> HostColumns:
        """Return columns under other identities, given as (new, old)."""
        same = list(pairs)
        found = HostColumns([(new, self.held[old.id][1]) for new, old in same], self.move)
        if self._moved is not None:
            found._moved = {new.id: self._moved[old.id] for new, old in same}
        return found

    def take(self, rows: Rows) -> HostColumns:
        """Return the rows of these numbers, or those of a slice without copying."""
        taken, known = HostColumns((), self.move), self.held
        for i in known:
            column, held = known[i]
            if type(held) is Registers:  # as `Registers.take` does
                valid = None if held.valid is None else held.valid[rows]
                part: Lying = Registers(held.values[rows], valid, held.type, held.strings)
            else:
                part = _rows(held, rows)
            taken.held[i] = column, part
        return taken

    def to_arrow(self, columns: Sequence[Column]) -> pa.Table:
        """Return columns in the Arrow types of results."""
        exact: list[pa.Array] = [None] * len(columns)
        for place, column in enumerate(columns):
            held = self.held[column.id][1]
            if type(held) is Registers:
                array = arrow_array(held.values, held.valid, held.type, held.strings)
            else:
                array = self.array(column)
            wanted = arrow_type(column.type)
            exact[place] = array if array.type == wanted else array.cast(wanted)
        # Of names Arrow makes a schema in less than half of the time that one takes which it is given
        return pa.Table.from_arrays(exact, [c.name for c in columns])


def _rows(held: pa.Array | Texts, rows: Rows) -> pa.Array | Texts:
    if isinstance(held, Texts):
        return held.take(rows)
    if isinstance(rows, slice):
        return held.slice(rows.start, rows.stop - rows.start)
    return take_rows(held, array_from(rows))


def _numbered(array: pa.Array, valid: Array | None, data_type: DataType) -> Registers:
    texts = array.to_pylist()
    known = sorted({text for text in texts if text is not None})  # by code point, as by bytes
    places = {None: 0, **dict(zip(known, range(len(known)), strict=True))}
    codes = np.array(list(map(places.__getitem__, texts)), np.int64)
    return Registers(codes, valid, data_type, array_from(known, pa.string()))


def concatenated(
    parts: Sequence[HostColumns], sources: Sequence[Sequence[Column]], made: Sequence[Column]
) -> list[tuple[Column, Lying]]:
    """Return tables one below the other, each of `sources` the columns of one that become those that are `made`."""
    found: list[tuple[Column, Lying]] = []
    for column, *olds in zip(made, *sources, strict=True):
        pairs = list(zip(parts, olds, strict=True))
        held: Lying | None = None
        if not column.type.is_enum:
            held = _one_below_the_other([part.registers(old) for part, old in pairs], column)
        if held is None:
            wanted = arrow_type(column.type)
            arrays = [part.array(old) for part, old in pairs]
            held = pa.concat_arrays([a if a.type == wanted else a.cast(wanted) for a in arrays])
        found.append((column, held))
    return found


def _one_below_the_other(parts: Sequence[Registers | None], column: Column) -> Registers | None:
    """Return columns as in registers; None where one has no such form, or another than others have, or texts are many."""
    held = [part for part in parts if part is not None]
    if len(held) < len(parts) or len({part.values.dtype for part in held}) > 1:
        return None
    strings, values, valid = held[0].strings, [part.values for part in held], None
    used = {id(p.strings): p.strings for p in held}
    if len(used) > 1:
        used = {id(p.strings): p.strings for p in held if p.valid is None or p.valid.any()}
        if len(used) == 1:  # beside NULLs alone
            (strings,) = used.values()
    if len(used) != 1:
        texts = [[] if p.strings is None else p.strings.to_pylist() for p in held]
        if sum(map(len, texts)) > NUMBERED_TEXTS:
            return None
        merged = sorted({text for part in texts for text in part})  # by code point, as by bytes
        places = {text: place for place, text in enumerate(merged)}
        # What lies under a NULL is anything, also where there is no text
        codes = [np.array([places[text] for text in part] or [0], np.int64) for part in texts]
        values = [c.take(v, mode="clip") for c, v in zip(codes, values, strict=True)]
        strings = array_from(merged, pa.string())
    if [part for part in held if part.valid is not None]:
        there = [np.ones(len(p), np.bool_) if p.valid is None else p.valid for p in held]
        valid = np.concatenate(there)
    return Registers(np.concatenate(values), valid, column.type, strings)


def few_on_host(
    node: p.Physical, columns: Mapping[int, Held], rows: int, context: Context
) -> HostColumns | None:
    """Return columns that a node is to handle on the host, which is noted for its profile; None for those that it is not."""
    if type(columns) is not HostColumns or rows > MOST_ROWS:
        return None
    note(node, rows, context)
    return columns


def note(node: p.Physical, rows: int, context: Context) -> None:
    """Say in the profile that the host handles so many rows."""
    context.remarks[id(node)] = f"on the host: {rows:,} {'row' if rows == 1 else 'rows'}"


def sorted_order(
    columns: HostColumns, keys: Sequence[p.Order], first: int | None = None
) -> npt.NDArray[np.int64]:
    """Return the row numbers in the order of `sort.sorted_rows`, or the `first` of them; rows with equal keys keep theirs."""
    lead = ranks(columns, keys[0])
    if first is None or len(lead) < 2 * first:
        others = [ranks(columns, key) for key in keys[1:]] if len(keys) > 1 else []
        return ascending([lead, *others])[:first]
    chosen = _candidates(columns, keys, first, lead)
    among = columns.renamed((k.column, k.column) for k in keys[1:]).take(chosen)
    return chosen[ascending([lead[chosen], *(ranks(among, key) for key in keys[1:])])[:first]]


def _candidates(
    columns: HostColumns, keys: Sequence[p.Order], first: int, lead: npt.NDArray[np.int64]
) -> npt.NDArray[np.int64]:
    """Return the numbers of rows, ascending, among which are the `first`: where many tie in a key, the next one chooses."""
    sure, rows = [], np.arange(len(lead))
    for key in keys:
        if key is not keys[0]:
            lead = ranks(columns.renamed([(key.column, key.column)]).take(rows), key)
        among = least(lead, first)
        rows, lead = rows[among], lead[among]
        if len(rows) < 2 * first:
            break
        is_tied = lead == lead.max()
        sure.append(rows[~is_tied])
        first -= len(sure[-1])
        rows = rows[is_tied]
    return np.sort(np.concatenate([*sure, rows]))


def least(lead: npt.NDArray[np.int64], first: int) -> npt.NDArray[np.int64]:
    """Return the numbers of all rows that can be among the `first` by the first of their keys."""
    bound = np.partition(lead, first - 1)[first - 1]
    return np.flatnonzero(lead <= bound)


def ascending(keys: Sequence[npt.NDArray[np.int64]]) -> npt.NDArray[np.int64]:
    """Return the numbers of rows in the order of integers, the first key first; rows with equal keys keep theirs.

    Keys that fit into 63 bits together with the row number are sorted as one number: of many rows that takes a tenth of the time.
    """
    rows = keys[0].size
    if len(keys) == 1 and rows <= LEXICAL_ROWS:
        return keys[0].argsort(kind="stable")
    if rows <= LEXICAL_ROWS:
        return np.lexsort(list(reversed(keys)))
    place = (rows - 1).bit_length()
    lows = [int(k.min()) for k in keys]
    widths = [(int(k.max()) - low).bit_length() for k, low in zip(keys, lows, strict=True)]
    if place + sum(widths) > WORD_BITS:
        return np.lexsort(list(reversed(keys)))
    # Groups come in the order of their keys: where these follow a count, nothing has to be done about them
    if widths[0] <= SHORT_BITS and all(_ascends(key) for key in keys[1:2]):
        rest = _packed(keys[1:], lows[1:], widths[1:]) if len(keys) > 2 else None
        if rest is None or _ascends(rest):
            return np.argsort((keys[0] - lows[0]).astype(np.uint16), kind="stable")
    packed = _packed(keys, lows, widths)
    packed <<= place
    packed += np.arange(rows)
    packed.sort()
    packed &= (1 << place) - 1
    return packed


def _packed(
    keys: Sequence[npt.NDArray[np.int64]], lows: Sequence[int], widths: Sequence[int]
) -> npt.NDArray[np.int64]:
    packed: npt.NDArray[np.int64] = keys[0] - lows[0]
    for key, low, width in zip(keys[1:], lows[1:], widths[1:], strict=True):
        packed <<= width
        packed += key
        packed -= low
    return packed


def _ascends(key: npt.NDArray[np.int64]) -> bool:
    return bool((key[1:] >= key[:-1]).all())


def ranks(columns: HostColumns, key: p.Order) -> npt.NDArray[np.int64]:
    """Return integers in the order of a key's values; equal for equal values.

    Strings compare by their bytes, NaNs are one value above the others, and 0.0 and -0.0 are alike.
    """
    lying, data_type = columns.held[key.column.id][1], key.column.type
    if data_type.kind is Kind.NULL:
        return np.zeros(len(lying), np.int64)
    held = lying if type(lying) is Registers else columns.registers(key.column)
    found = None if held is None else _of_registers(held)
    if held is not None:
        there = held.valid
    if found is None:
        array = columns.array(key.column)
        there = truth_values(array.is_valid()) if array.null_count else None
        found = numbers(pc.rank(array, "ascending", tiebreaker="dense")).astype(np.int64)
    if key.descending:
        found = ~found
    if there is None:
        return found
    values = found[there]
    low, high = (int(values.min()), int(values.max())) if len(values) else (0, 0)
    return np.where(there, found, low - 1 if key.nulls_first else high + 1)


def _of_registers(lying: Registers) -> npt.NDArray[np.int64] | None:
    """Integers of 64 bits that compare as values do; None where there are none, or none besides for NULL."""
    values, valid = lying.values, lying.valid
    if values.dtype == np.uint64:
        return None
    if lying.strings is None and lying.type.kind is Kind.BOOLEAN:
        values = values != 0
    if lying.strings is None and lying.type.is_float:
        if lying.type.kind is Kind.FLOAT:
            values = values.astype(np.float32)
        found = float_image(values)
    else:
        found = values if values.dtype == np.int64 else values.astype(np.int64)
    return found if valid is None or _has_room(found[valid]) else None


def _has_room(values: npt.NDArray[np.int64]) -> bool:
    """Whether there is an integer below all and one above all of some values, or of their negatives."""
    return not len(values) or bool(abs(int(values.min())) < MOST and abs(int(values.max())) < MOST)
