"""Texts of an exchange as numbers, of which other workers know what they stand for: codes of a dictionary that all have, or rows of a file that all have read whole.

So they are columns of fixed width, which kernels place (`placed_exchange`), and stay numbers where they arrive: what comes
next groups and fetches as it would have before.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import field
from functools import lru_cache
from hashlib import blake2b
from typing import NamedTuple

import pylibcudf as plc

from ....plan.exchange import Exchange
from ....plan.expr import Column, new_column
from ....plan.physical import Stored
from ....plan.types import INTEGER, SMALLINT, TINYINT, Kind
from ....records import dataclass
from ....storage.columns.cache import CacheKey
from ....storage.file_identity import FileIdentity, SourceIdentity
from ...context import Context
from ...exchange.agree_columns import (
    NOTHING,
    TEXTS,
    common_texts,
    number_of,
    number_of_rows,
)
from .. import table as tables
from ..columns import cast, null_column
from ..dictionaries import MOST_KEYS, Coded, Held, width_of_codes
from ..late_materialization import Fetch, Fetches, LateColumns, Places, together
from ..memory.device import with_room
from ..pipeline.stored import keys_of, strings_of
from ..table import Table, device_type


class _Number(NamedTuple):
    """What stands for a text: a column of codes of `keys`, or of the rows at which it is fetched."""

    column: Column
    keys: plc.Column | Fetch


@dataclass
class CodedExchange:
    """An exchange and its rows, with numbers in the place of some texts, by the columns that have these."""

    node: Exchange
    table: Table
    numbers: Mapping[Column, _Number] = field(default_factory=dict)

    @property
    def sent(self) -> Exchange:
        """The exchange of what is sent: numbers of rows once, for however many texts."""
        if not self.numbers:
            return self.node
        columns = [
            self.numbers[column].column if column in self.numbers else column
            for column in self.node.columns
        ]
        rows = Stored(0, tuple(dict.fromkeys(columns)), device="gpu")
        return self.node.replaced(input=rows)

    def restored(self, made: Table) -> Table:
        """Return rows that have arrived so with their texts, which lie as codes, or are still to be fetched."""
        if not self.numbers:
            return made
        texts: dict[int, Held] = {}
        fetches: Fetches = {}
        places: dict[Column, int] = {}
        for column, (sent, keys) in self.numbers.items():
            if isinstance(keys, Fetch):
                fetches[column.id] = places.setdefault(sent, len(places)), keys
            else:
                texts[column.id] = Coded(made[sent], keys)
        at = [Places(made[sent], False) for sent in places]
        columns = together(made.columns, LateColumns(texts, at, fetches))
        return tables.only(Table(columns, made.num_rows), self.node.columns)


def with_codes(node: Exchange, table: Table, context: Context) -> CodedExchange:
    """Return an exchange with numbers in the place of texts, where all workers know them; they meet for it where rows move."""
    peers = context.peers
    assert peers is not None
    texts = [column for column in node.columns if column.type.kind is Kind.VARCHAR]
    if not texts:
        return CodedExchange(node, table)
    is_given = table.num_rows > 0 and not (node.of_first and peers.rank > 0)
    meets = node.kind != "pick"
    rows = _rows_of(table, texts, of_files=meets)
    orders = (order.column for order in node.orders)
    read = [c for c in dict.fromkeys((*node.columns, *node.keys, *orders)) if c not in rows]
    held: Mapping[Column, Held] | None = None
    with suppress(MemoryError):  # texts may have room; others, who were told of codes, wait
        held = with_room(lambda: _fetched(table, read), context)
    keys: dict[Column, plc.Column | Fetch] = {}
    if not meets:
        keys |= {c: h.keys for c in texts if isinstance(h := (held or {}).get(c), Coded)}
        keys |= {column: late.fetch for column, late in rows.items()}
    else:
        own = []
        for column in texts:
            origin = rows[column].origin if column in rows else None
            if origin is not None:
                own.append(_number_of_rows(origin))
            else:
                own.append(_number(held and held[column], context) if is_given else NOTHING)
        for column, known in zip(texts, common_texts(peers, node.number, own), strict=True):
            if isinstance(known, str):
                keys[column] = rows[column].fetch
            elif known is not None and len(known) <= MOST_KEYS:
                keys[column] = keys_of(known)
    if not keys:
        return CodedExchange(node, table)
    if held is None:
        raise MemoryError("codes that others wait for have no place")
    return _coded(node, table, keys, rows, held)


def _fetched(table: Table, columns: Iterable[Column]) -> dict[Column, Held]:
    tables.fetch(table, [column.id for column in columns])
    return {column: table.columns[column.id] for column in columns}


def _number(held: Held | None, context: Context) -> int:
    """What workers call a column's dictionary."""
    assert context.peers is not None
    if isinstance(held, Coded):
        return number_of(strings_of(held.keys), context.peers.dictionaries)
    return NOTHING if held is not None and held.null_count() == held.size() else TEXTS


class _RowsOf(NamedTuple):
    """A text that is to be fetched from all rows of a file: the number of the relation's places, and how."""

    place: int
    fetch: Fetch
    origin: CacheKey | None


def _rows_of(table: Table, texts: Sequence[Column], of_files: bool) -> dict[Column, _RowsOf]:
    """Return the texts that are still to be fetched, or those that are from columns of files which this worker has read whole."""
    columns = table.columns
    if type(columns) is not LateColumns:
        return {}
    found = {}
    for column in texts:
        fetch = columns.late(column.id)
        origin = None if fetch is None else file_column(fetch)
        if fetch is None or (of_files and origin is None):
            continue
        place, _ = columns.fetches[column.id]
        if not columns.places[place].optional:
            found[column] = _RowsOf(place, fetch, origin)
    return found


def file_column(fetch: Fetch) -> CacheKey | None:
    """Return what the cache calls a column that is that of all rows of a file, or of several, in their order; None of others.

    Not one of rows in memory: those of a table that lies on the workers have one identity, and are others on each.
    """
    origin = fetch.origin
    if not isinstance(origin, CacheKey) or fetch.encoding is not None:
        return None
    is_file = isinstance(origin.source, FileIdentity | SourceIdentity)
    return origin if is_file and origin.rows in (None, ("encoded", None)) else None


@lru_cache(256)
def _number_of_rows(origin: CacheKey) -> int:
    """What workers call the rows of a file's column: the same only where file, version and column are."""
    named = repr((origin.source, origin.column)).encode(errors="surrogatepass")
    return number_of_rows(blake2b(named).hexdigest())


def _coded(
    node: Exchange,
    table: Table,
    keys: Mapping[Column, plc.Column | Fetch],
    rows: Mapping[Column, _RowsOf],
    held: Mapping[Column, Held],
) -> CodedExchange:
    made: dict[int, Held] = {}
    numbers: dict[Column, _Number] = {}
    places: dict[int, Column] = {}  # columns of row numbers, by the number of the relation's places
    for column, known in keys.items():
        if isinstance(known, Fetch):
            place = rows[column].place
            sent = places.setdefault(place, new_column(column.name, INTEGER))
            late = table.columns
            assert type(late) is LateColumns
            made[sent.id] = late.places[place].numbers(table.num_rows)
        else:
            width, texts = width_of_codes(known.size()), held[column]
            sent = new_column(column.name, TINYINT if width == 1 else SMALLINT)
            kind = device_type(sent.type)
            is_coded = isinstance(texts, Coded)
            made[sent.id] = (
                cast(texts.codes, kind) if is_coded else null_column(table.num_rows, kind)
            )
        numbers[column] = _Number(sent, known)
    return CodedExchange(node, Table(together(table.columns, made), table.num_rows), numbers)
