"""Texts between GPUs as their codes, a byte or two a row: who gets them has the dictionary.

An exchange of rows so becomes one of columns of fixed width, which is written and received without packing, and what reads its rows finds codes.
The hash that says where a row goes is that of its text, of which the dictionary's are hashed once.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field

import pylibcudf as plc

from ....plan.exchange import Exchange
from ....plan.expr import Column, new_column
from ....plan.physical import Stored
from ....plan.types import SMALLINT, TINYINT, Kind
from ...context import Context
from ...exchange.common_codes import NOTHING, TEXTS, common_codes, number_of
from .. import table as tables
from ..columns import cast, null_column
from ..dictionaries import MOST_KEYS, Coded, Held, width_of_codes
from ..memory.device import with_room
from ..pipeline.stored import keys_of, strings_of
from ..table import Table, device_type


@dataclass
class CodedExchange:
    """An exchange and its rows, with codes in the place of some texts: `keys` are the texts that these stand for, by the columns that have them."""

    node: Exchange
    table: Table
    columns: tuple[Column, ...] = ()  # those of codes in the places of those of texts
    keys: Mapping[Column, plc.Column] = field(default_factory=dict)

    def restored(self, made: Table) -> Table:
        """Return rows that have arrived so with their texts, which lie as codes."""
        if not self.keys:
            return made
        found: dict[int, Held] = {}
        for column, sent in zip(self.node.columns, self.columns, strict=True):
            keys = self.keys.get(column)
            found[column.id] = made.columns[sent.id] if keys is None else Coded(made[sent], keys)
        return Table(found, made.num_rows)

    @property
    def sent(self) -> Exchange:
        """The exchange of what is sent."""
        if not self.keys:
            return self.node
        return self.node.replaced(input=Stored(0, self.columns, device="gpu"))


def with_codes(node: Exchange, table: Table, context: Context) -> CodedExchange:
    """Return an exchange with codes in the place of texts, where all workers have them; they meet for it where rows move."""
    peers = context.peers
    assert peers is not None
    texts = [column for column in node.columns if column.type.kind is Kind.VARCHAR]
    meets = node.kind != "pick"
    if not texts or (meets and not peers.dictionaries):
        return CodedExchange(node, table)
    is_given = table.num_rows > 0 and not (node.of_first and peers.rank > 0)
    read = dict.fromkeys((*node.columns, *node.keys, *(order.column for order in node.orders)))
    held: Mapping[Column, Held] | None = None
    with suppress(MemoryError):  # texts may have room; others, who were told of codes, wait
        held = with_room(lambda: _fetched(table, read), context)
    keys: dict[Column, plc.Column] = {}
    if not meets:
        keys = {c: h.keys for c in texts if isinstance(h := (held or {}).get(c), Coded)}
    else:
        own = [_number(held and held[c], context) if is_given else NOTHING for c in texts]
        for column, known in zip(texts, common_codes(peers, node.number, own), strict=True):
            if known is not None and len(known) <= MOST_KEYS:
                keys[column] = keys_of(known)
    if not keys:
        return CodedExchange(node, table)
    if held is None:
        raise MemoryError("codes that others wait for have no place")
    return _coded(node, table.num_rows, keys, held)


def _fetched(table: Table, columns: Iterable[Column]) -> dict[Column, Held]:
    tables.fetch(table, [column.id for column in columns])
    return {column: table.columns[column.id] for column in columns}


def _number(held: Held | None, context: Context) -> int:
    """What workers call a column's dictionary."""
    assert context.peers is not None
    if isinstance(held, Coded):
        return number_of(strings_of(held.keys), context.peers.dictionaries)
    return NOTHING if held is not None and held.null_count() == held.size() else TEXTS


def _coded(
    node: Exchange, rows: int, keys: Mapping[Column, plc.Column], held: Mapping[Column, Held]
) -> CodedExchange:
    made = {column.id: each for column, each in held.items()}
    columns = []
    for column in node.columns:
        sent, texts = column, held[column]
        if column in keys:
            width = width_of_codes(keys[column].size())
            sent = new_column(column.name, TINYINT if width == 1 else SMALLINT)
            kind = device_type(sent.type)
            is_coded = isinstance(texts, Coded)
            made[sent.id] = cast(texts.codes, kind) if is_coded else null_column(rows, kind)
        columns.append(sent)
    return CodedExchange(node, Table(made, rows), tuple(columns), keys)
