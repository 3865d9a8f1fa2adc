"""Result columns that are fetched after a kernel, at the row numbers that it found: late materialization."""

from __future__ import annotations

from collections.abc import Mapping

import pylibcudf as plc

from ...codegen.relations import Relation
from ...codegen.steps import Program
from ...plan.expr import Column, ColumnRef, columns_of
from ...plan.types import VARCHAR
from ...storage.device_decode import codes_of, decode_on_device
from ...storage.encodings import Dictionary, EncodedColumn
from .columns import null_column
from .dictionaries import MOST_KEYS, Coded, Held, numbered
from .expressions import evaluate_all
from .late import Fetch, LateColumns, Places
from .relations import Leaf, Relations, ScanLeaf, StoredLeaf, own_column
from .stored import keys_of
from .table import Table, device_type, to_device


def late_columns(
    program: Program,
    relations: Relations,
    rows: Mapping[int, plc.Column],
    count: int,
    there: Mapping[int, Held] | None = None,
    distinct: int | None = None,
) -> LateColumns:
    """Return `program.late` to be fetched, and columns that are there already.

    `rows` are the row numbers (INT32, -1 for none) of each relation that they read; of one relation they may be `distinct`.
    """
    aliases = _aliases(program, relations, rows, count, distinct)
    columns, computed = dict(there or {}), []
    fetches: dict[int, tuple[int, Fetch]] = {}
    for late in program.late:
        if not isinstance(late.expr, ColumnRef):
            computed.append(late)
        elif late.expr.column.id in aliases.fetches:
            fetches[late.column.id] = aliases.fetches[late.expr.column.id]
        else:
            columns[late.column.id] = aliases[late.expr.column.id]
    if computed:
        values = evaluate_all([late.expr for late in computed], Table(aliases, count))
        columns |= {late.column.id: v for late, v in zip(computed, values, strict=True)}
    return LateColumns(columns, aliases.places, fetches)


def _aliases(
    program: Program,
    relations: Relations,
    rows: Mapping[int, plc.Column],
    count: int,
    distinct: int | None,
) -> LateColumns:
    """The columns of relations that results are made of."""
    wanted = {column for late in program.late for column in columns_of(late.expr)}
    there: dict[int, Held] = {}
    fetches: dict[int, tuple[int, Fetch]] = {}
    places: list[Places] = []
    for number, at in rows.items():
        relation = program.relations[number]
        leaf = relations.leaf(relation.leaf)
        aliases = [a for c in relation.leaf.columns if (a := relation.aliases.get(c, c)) in wanted]
        if not leaf.rows:
            there |= {a.id: null_column(count, device_type(a.type)) for a in aliases}
        elif aliases:
            fetches |= {a.id: (len(places), _fetch(relation, leaf, a)) for a in aliases}
            places.append(Places(at, relation.optional, number == distinct))
    return LateColumns(there, places, fetches)


def _fetch(relation: Relation, leaf: Leaf, alias: Column) -> Fetch:
    """How to fetch a relation's column: as codes where it has them, decoded afterwards, since they are narrow."""
    column = own_column(relation, alias)
    codes = leaf.narrow(column)
    if codes is not None:
        data_type = device_type(alias.type)
        bounds = None if codes.low is None or codes.high is None else (codes.low, codes.high)
        return Fetch(
            codes_of(codes),
            codes.encoding,
            lambda lying: _decoded(lying, codes, data_type),
            bounds=bounds,
        )
    if isinstance(leaf, StoredLeaf) and isinstance(leaf.table.columns, LateColumns):
        fetch = leaf.table.columns.whole(column.id)
        if fetch is not None:
            return fetch
    held = leaf.held(column)
    owned = held.device_buffer_size() if isinstance(leaf, StoredLeaf) else 0
    if isinstance(held, Coded):
        keys = held.keys
        return Fetch(held.codes, None, lambda lying: Coded(lying, keys), owned, keys=keys)
    origin = leaf.origin(column) if isinstance(leaf, ScanLeaf) else None
    return Fetch(held, None, lambda lying: lying, owned, origin=origin)


def _decoded(codes: plc.Column, source: EncodedColumn, data_type: plc.DataType) -> Held:
    if not isinstance(source.encoding, Dictionary):
        return decode_on_device(codes, source, data_type)
    strings = source.encoding.values
    if MOST_KEYS < len(strings) > codes.size():
        return to_device(strings.take(codes.to_arrow()), VARCHAR)
    return numbered(codes, keys_of(strings))
