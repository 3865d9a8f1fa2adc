"""A scan's columns as kernels read them: encoded, from the cache or made now.

Columns of text that stay in memory: as codes of sorted values where these come again and again, however many there are.

Groups, joins and comparisons of codes read 4 bytes a row, an expression is computed once a value, and the column takes less memory: 22 MB
and not 94 for a million addresses of which every fifth is different.  Groups of these take 12 ms of CPU time and 171 as text, and
the dictionary takes 0.2 s when the column is first read (a busy machine).  `encode.DISTINCT_SHARE` says what has a dictionary without it.
"""

from __future__ import annotations

import dataclasses
import time
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from itertools import chain
from operator import attrgetter
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from ....codegen.typed_values import unnumbered
from ....plan import physical as p
from ....plan.arrow.arrow_arrays import from_numpy
from ....plan.expr import Column
from ....plan.types import DataType
from ....storage.column_store.column_store import place_of
from ....storage.columns.agreement import ColumnForm, in_form
from ....storage.columns.cache import (
    NO_ENCODING,
    TableScan,
    encoded_key,
    kernel_key,
    part_of,
    plain_key,
    row_groups,
)
from ....storage.columns.encode import REPEATED_SHARE, encode, with_order
from ....storage.columns.encodings import EncodedColumn, codes_of
from ...column_tiers import keep, lift
from ...context import Context
from ...streaming import column_shares
from ...whole_columns import missing_columns, store_whole
from ..memory.ask_memory import askable_shares
from ..sort.keys import is_plain_string
from ..sort.text_order import numbered, sorted_rows
from ..table import physical_type, validity
from .scan import DEVICE, read_columns

ID = attrgetter("id")
# Columns of a scan by their sources: what was encoded, and the names of those that have no encoding
Encoded = tuple[dict[str, EncodedColumn], list[str]]
Types = Mapping[str, DataType]  # of columns by their sources


class EncodedScan:
    """A scan's columns encoded, from the cache where they are there; `loading` are the seconds in which others were loaded.

    Those that are `found` are there at first, those that are `refused` have no encoding; others are looked for and loaded when they
    are asked for.
    """

    def __init__(
        self, scan: TableScan, found: dict[str, EncodedColumn], refused: set[str], context: Context
    ) -> None:
        self.scan, self._found, self._refused, self._context = scan, found, refused, context
        self._sources = dict(zip(map(ID, scan.made), scan.sources, strict=True))
        self.loading = 0.0

    @property
    def rows(self) -> int:
        return row_count(self.scan)

    def __getitem__(self, column: Column) -> EncodedColumn:
        """Return a column; raises `NotFusable` for one that has no encoding."""
        source = self._sources[column.id]
        if not self._is_known(source):
            self._look_for([source])
            if not self._is_known(source):
                self.load([(column, source)])
        if source in self._refused:
            raise unnumbered(f'"{column.name}"', column.type)
        return self._found[source]

    def held(self, columns: Collection[Column]) -> list[EncodedColumn | None]:
        """Return columns, those that are encoded already."""
        sources = [self._sources[column.id] for column in columns]
        missing = [s for s in sources if s not in self._found and s not in self._refused]
        if missing:
            self._look_for(missing)
        return [*map(self._found.get, sources)]

    def _is_known(self, source: str) -> bool:
        return source in self._found or source in self._refused

    def _look_for(self, sources: Sequence[str]) -> None:
        found, refused = _cached(self.scan, sources, self._context)
        self._found |= found
        self._refused |= refused

    def plain(self, columns: Collection[Column]) -> TableScan:
        """Return the scan of some columns as they are, of the same rows as the encoded ones."""
        return part_of(self.scan, [pair for pair in _pairs(self.scan) if pair[0] in columns])

    def load(self, missing: Sequence[tuple[Column, str]]) -> None:
        """Bring columns into the cache."""
        if not missing:
            return
        start = time.perf_counter()
        for made, refused in _encode(self.scan, missing, self._context):
            self._found |= made
            self._refused.update(refused)
        self.loading += time.perf_counter() - start


def encoded_scan(scan: TableScan, wanted: Collection[Column], context: Context) -> EncodedScan:
    """Return a scan's columns, those that are `wanted` loaded together.

    Where the cache has all rows of these, they serve for a selection of row groups too, which filters narrow down again: the scan is
    of all rows then.
    """
    first = part_of(scan, [(c, s) for c, s in _pairs(scan) if c in wanted])
    found, refused = _cached(first, first.sources, context)
    count = len(set(first.sources))
    if isinstance(scan, p.ParquetScan) and row_groups(scan) and len(found) + len(refused) < count:
        every = dataclasses.replace(scan, selection=None)
        whole, none = _cached(every, first.sources, context)
        if len(whole) + len(none) == count:
            scan, found, refused = every, whole, none
    made = EncodedScan(scan, found, refused, context)
    made.load([(c, s) for c, s in _pairs(first) if s not in found and s not in refused])
    return made


def lift_columns(scans: Iterable[p.ParquetScan], context: Context) -> None:
    """Bring those columns of scans that the cache lacks into it from the column store."""
    for scan in scans:
        lift(scan, scan.sources, DEVICE, context)


def store_columns(scan: p.ParquetScan, context: Context) -> None:
    """Write the columns of a scan that are not in the store; those for which there is no room stay where they are."""
    store = context.cache.store
    if store is None:
        return
    for column, source in missing_columns(scan, context):
        if place_of(scan.table, None, source) is None:
            continue
        try:
            goes_on = store_whole(scan, [(column, source)], store, read_columns, context)
        except MemoryError:  # the run itself has smaller chunks, or says what is wrong
            return
        if not goes_on:
            return


def load_for_kernels(scan: TableScan, context: Context) -> None:
    """Bring a scan's columns into the cache as kernels read them."""
    encoded_scan(scan, scan.made, context)


def take_form(scan: TableScan, source: str, form: ColumnForm, context: Context) -> None:
    """Bring a column that is in the cache encoded into the form that workers have agreed on."""
    key, cache = kernel_key(scan, source, DEVICE), context.cache
    held = cache.peek(key)
    assert isinstance(held, EncodedColumn)
    if form.refused:
        array = held.encoding.decode(codes_of(held), physical_type(held.type), context.threads)
        cache.put(key, NO_ENCODING, 0)
        cache.put(plain_key(scan, source, DEVICE), array, array.nbytes)
        return
    made = in_form(held, form, context.threads)
    if made is not held:
        cache.put(key, made, made.nbytes)


def encode_columns(scan: TableScan, context: Context) -> None:
    """Bring all columns of a scan into the cache: encoded, and as they are where they have no encoding."""
    found, refused = _cached(scan, scan.sources, context)
    plain = {s for s in refused if context.cache.get(plain_key(scan, s, DEVICE)) is not None}
    missing = [pair for pair in _pairs(scan) if pair[1] not in found and pair[1] not in plain]
    for _ in _encode(scan, missing, context):
        context.check()


def _encode(
    scan: TableScan, missing: Sequence[tuple[Column, str]], context: Context
) -> Iterator[Encoded]:
    """Load columns into the cache, as many at a time as there is room for; what has no encoding is kept as it is."""
    pairs = [(column, source) for source, column in {s: c for c, s in missing}.items()]
    shares = list(column_shares(scan, pairs, context)) if pairs else []
    in_memory = isinstance(scan, p.MemoryScan)
    keeps_plain = in_memory and context.fuse == "auto" and context.memory_limit is None
    for share in chain.from_iterable(askable_shares(scan, each, context) for each in shares):
        forms = {s: context.cache.lasting.forms.get(kernel_key(scan, s, DEVICE)) for _, s in share}
        types = {s: c.type for c, s in share if (form := forms[s]) is None or not form.refused}

        def encoded_part(source: str, rows: pa.Array, types: Types = types) -> EncodedColumn | None:
            return encode(rows, types[source]) if source in types else None

        arrays = read_columns(part_of(scan, share), context, encoded_part)
        made: dict[str, EncodedColumn] = {}
        refused = []
        for column, source in share:
            array, form = arrays.pop(source), forms[source]
            encoded = array if isinstance(array, EncodedColumn) else None
            if encoded is None and source in types:
                text, differs = _repeated(scan, source, array, context)
                encoded = encode(text, column.type, context.threads, not differs)
            if encoded is None:
                refused.append(source)
                context.cache.put(kernel_key(scan, source, DEVICE), NO_ENCODING, 0)
                key = plain_key(scan, source, DEVICE)
                if not context.cache.holds(key):
                    context.cache.put(key, array, array.nbytes)
                keep(scan, source, array, context, refused=True)
            else:
                encoded = with_order(encoded, context.threads)
                if form is not None:
                    encoded = in_form(encoded, form, context.threads)
                made[source] = encoded
                key = kernel_key(scan, source, DEVICE)
                context.cache.put(key, encoded, encoded.nbytes)
                is_smaller = encoded.encoding.values is None and encoded.nbytes < array.nbytes
                if keeps_plain and is_smaller:  # else the codes will do, or are better
                    context.plain[plain_key(scan, source, DEVICE)] = array
                keep(scan, source, encoded, context)
            context.check()
        yield made, refused


def _repeated(
    scan: TableScan, source: str, array: pa.Array, context: Context
) -> tuple[pa.Array, bool]:
    """Return text with a dictionary where that is worth it: it has to be kept, and there has to be memory to make it.

    The second says that most of a sample differ: another look took 95 ms of CPU time for the four texts of customer that Q10 reads (SF1).
    """
    key, cache = kernel_key(scan, source, DEVICE), context.cache
    if not cache.is_lasting or key.source is None or array.nbytes > cache.limits[DEVICE]:
        return array, False
    try:
        context.ask(scan, bytes_wanted(array))
    except MemoryError:
        return array, False
    if is_plain_string(array) and not _may_repeat(array):
        return array, True
    return with_dictionary(array, looked=True), False


def _pairs(scan: TableScan) -> list[tuple[Column, str]]:
    return list(zip(scan.made, scan.sources, strict=True))


def row_count(scan: TableScan) -> int:
    """Return how many rows a scan has."""
    table: Any = scan.table
    if isinstance(scan, p.MemoryScan):
        return int(table.num_rows)
    parts = table.all_row_groups if scan.selection is None else scan.selection
    return sum(table.group_rows[part.file][group] for part in parts for group in part.groups)


def _cached(
    scan: TableScan, sources: Sequence[str], context: Context
) -> tuple[dict[str, EncodedColumn], set[str]]:
    """Return columns of a scan that the cache has encoded, and those of which it knows that they have no encoding."""
    lift(scan, sources, DEVICE, context)
    found: dict[str, EncodedColumn] = {}
    refused = set()
    identity, rows = scan.table.identity, row_groups(scan)
    for source in dict.fromkeys(sources):
        held = context.cache.get(encoded_key(identity, rows, source, DEVICE))
        if held is NO_ENCODING:
            refused.add(source)
        elif held is not None:
            found[source] = held
    return found, refused


TEXTS_SAMPLED = 1 << 16  # in which values come again less often than in all rows
FEW_REPEATED = 1 << 12  # that are numbered however few rows there are
SHARE_OF_SAMPLE = REPEATED_SHARE  # that may differ
SHARE_OF_ROWS = 0.5
BYTES_A_ROW = 48  # of hashes, codes and what numbers rows by these


def with_dictionary(array: pa.Array, looked: bool = False) -> pa.Array:
    """Return text as codes of sorted values if a value has two rows or more on the whole, else the array as it is."""
    if not is_plain_string(array) or not (looked or _may_repeat(array)):
        return array
    codes, values = numbered(array)
    if not 0 < len(values) <= max(FEW_REPEATED, SHARE_OF_ROWS * len(array)):
        return array
    valid = validity(array)
    order = sorted_rows(values)
    ranks = np.zeros(len(values), np.int32)
    ranks[order] = np.arange(len(order))
    found = ranks.take(codes if valid is None else np.where(valid, codes, 0))
    indices = from_numpy(found, valid, pa.int32())
    return pa.DictionaryArray.from_arrays(indices, values.take(from_numpy(order)))


def bytes_wanted(array: pa.Array) -> int:
    """Return the memory that a dictionary and what it is made of take at most."""
    return int(array.nbytes + BYTES_A_ROW * len(array))


def _may_repeat(array: pa.Array) -> bool:
    sample = array
    if len(array) > TEXTS_SAMPLED:
        step = len(array) // TEXTS_SAMPLED
        sample = array.take(from_numpy(np.arange(0, len(array), step)))
    differing = pc.count_distinct(sample).as_py()
    return bool(differing <= max(FEW_REPEATED, SHARE_OF_SAMPLE * len(sample)))
