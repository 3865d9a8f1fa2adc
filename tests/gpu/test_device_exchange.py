"""Texts that workers give each other as codes, on one GPU: threads are the workers, and copies are their link."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from fuseline.operators.context import Context
from fuseline.plan.exchange import Exchange
from fuseline.plan.expr import new_column
from fuseline.plan.physical import Stored
from fuseline.plan.types import BIGINT, INTEGER, VARCHAR
from fuseline.stopping import Stop
from fuseline.storage.columns.agreement import texts_digest
from fuseline.storage.columns.cache import CacheKey, ColumnCache
from fuseline.storage.file_identity import FileIdentity
from tests.distributed.test_exchange_rounds import WORKERS, _Board
from tests.gpu.test_placed_exchange import DevicePeers

pytestmark = pytest.mark.gpu

ID, NAME, NOTE = new_column("id", BIGINT), new_column("name", VARCHAR), new_column("note", VARCHAR)
COLUMNS = [ID, NAME, NOTE]
NAMES = pa.array(sorted(f"name {n:03}" for n in range(300)))
ROWS = 5_000


class _LinkedPeers(DevicePeers):
    def __init__(self, board: _Board, rank: int) -> None:
        super().__init__(board, rank)
        self.dictionaries = {texts_digest(NAMES): NAMES}

    def exchange_few(self, number: int, parts: Any) -> None:
        return None


def _rows(rank: int, rows: int) -> pa.Table:
    numbers = [n * WORKERS + rank for n in range(rows)]
    return pa.table(
        {
            "id": pa.array(numbers, pa.int64()),
            "name": pa.array([None if n % 11 == 0 else NAMES[n * 7 % 300].as_py() for n in numbers], pa.string()),
            "note": pa.array([f"note {n}" * (n % 3) for n in numbers], pa.string()),
        }
    )  # fmt: skip


def _late(own: pa.Table, version: int) -> Any:
    """Rows whose names are to be fetched from those of a file, every one of which the worker has."""
    from fuseline.operators.gpu import table
    from fuseline.operators.gpu.late_materialization import Fetch, LateColumns, Places

    names = own["name"].to_pylist()
    places = [len(NAMES) if name is None else NAMES.index(name).as_py() for name in names]
    given = table.from_arrow(own.drop_columns("name"), [ID, NOTE])
    texts = table.to_device(pa.array([*NAMES.to_pylist(), None]), VARCHAR)
    source = FileIdentity("names.parquet", 1000, 1, 1, version)
    origin = CacheKey(source, ("encoded", None), "name", "gpu")
    fetch = Fetch(texts, None, lambda lying: lying, origin=origin)
    at = Places(table.to_device(pa.array(places, pa.int32()), INTEGER), False)
    return table.Table(LateColumns(given.columns, [at], {NAME.id: (0, fetch)}), given.num_rows)


def _exchanged(
    node: Exchange,
    rows: list[int],
    coded: list[bool],
    folder: Path,
    versions: tuple[int, ...] | None = None,
) -> list[pa.Table]:
    """What each worker has, of which those of `coded` have names as codes before, or all have them in a file of some version."""
    from fuseline.operators.gpu import dictionaries, table
    from fuseline.operators.gpu.exchange.device_exchange import exchanged
    from fuseline.operators.gpu.memory.device import take_device
    from fuseline.operators.gpu.pipeline.stored import keys_of

    board = _Board()

    def work(rank: int) -> pa.Table:
        take_device()
        context = Context(ColumnCache(0), Stop().check, 1, folder, "always")
        context.peers = _LinkedPeers(board, rank)  # type: ignore[assignment]
        own = _rows(rank, rows[rank])
        given = table.from_arrow(own, COLUMNS)
        if coded[rank]:
            codes = own["name"].combine_chunks().dictionary_encode()
            places = pa.array([None if c is None else NAMES.index(codes.dictionary[c]).as_py() for c in codes.indices.to_pylist()], pa.int32())  # fmt: skip
            held = table.to_device(places, new_column("", BIGINT).type)
            named = dictionaries.numbered(held, keys_of(NAMES))
            given = table.Table({**given.columns, NAME.id: named}, given.num_rows)
        if versions is not None:
            given = _late(own, versions[rank])
        made = exchanged(node, given, lambda keys: [], context)
        assert made is not None
        if versions is not None:
            is_late = NAME.id in getattr(made.columns, "fetches", ())
            assert is_late == (len({*versions}) == 1)
        if all(coded) and any(rows):
            assert isinstance(made.columns[NAME.id], dictionaries.Coded)
        return table.to_arrow(made, COLUMNS)

    with ThreadPoolExecutor(WORKERS) as pool:
        return list(pool.map(work, range(WORKERS)))


def _exchange(kind: Any, *keys: Any, **more: Any) -> Exchange:
    return Exchange(Stored(0, tuple(COLUMNS), device="gpu"), kind, 3, keys, device="gpu", **more)


@pytest.mark.parametrize("rows", [[ROWS, ROWS, 7], [0, ROWS, 0], [0, 0, 0]], ids=str)
@pytest.mark.parametrize("coded", [[True] * 3, [True, False, True], [False] * 3], ids=str)
def test_texts_go_where_their_hash_says_however_they_lie(
    rows: list[int], coded: list[bool], tmp_path: Path
) -> None:
    found = _exchanged(_exchange("hash", NAME), rows, coded, tmp_path)
    usual = _exchanged(_exchange("hash", NAME), rows, [False] * 3, tmp_path)
    assert [t.sort_by("id") for t in found] == [t.sort_by("id") for t in usual]
    given = pa.concat_tables([_rows(rank, count) for rank, count in enumerate(rows)])
    assert pa.concat_tables(found).sort_by("id").equals(given.cast(found[0].schema).sort_by("id"))


@pytest.mark.parametrize("rows", [[ROWS, ROWS, 7], [0, ROWS, 0], [0, 0, 0]], ids=str)
@pytest.mark.parametrize("versions", [(1, 1, 1), (1, 2, 1)], ids=str)
@pytest.mark.parametrize("key", [NAME, ID], ids=lambda c: c.name)
def test_texts_of_a_file_go_as_rows_of_it_where_all_have_the_same(
    key: Any, versions: tuple[int, ...], rows: list[int], tmp_path: Path
) -> None:
    found = _exchanged(_exchange("hash", key), rows, [False] * 3, tmp_path, versions)
    usual = _exchanged(_exchange("hash", key), rows, [False] * 3, tmp_path)
    assert [t.sort_by("id") for t in found] == [t.sort_by("id") for t in usual]


def test_texts_go_to_all(tmp_path: Path) -> None:
    rows = [ROWS, 3, ROWS]
    given = pa.concat_tables([_rows(rank, count) for rank, count in enumerate(rows)])
    for found in _exchanged(_exchange("broadcast"), rows, [True] * 3, tmp_path):
        assert found.equals(given.cast(found.schema))
