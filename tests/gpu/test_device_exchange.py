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
from fuseline.plan.types import BIGINT, VARCHAR
from fuseline.stopping import Stop
from fuseline.storage.columns.agreement import texts_digest
from fuseline.storage.columns.cache import ColumnCache
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


def _exchanged(node: Exchange, rows: list[int], coded: list[bool], folder: Path) -> list[pa.Table]:
    """What each worker has, of which those of `coded` have names as codes before."""
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
        made = exchanged(node, given, lambda keys: [], context)
        assert made is not None
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


def test_texts_go_to_all(tmp_path: Path) -> None:
    rows = [ROWS, 3, ROWS]
    given = pa.concat_tables([_rows(rank, count) for rank, count in enumerate(rows)])
    for found in _exchanged(_exchange("broadcast"), rows, [True] * 3, tmp_path):
        assert found.equals(given.cast(found.schema))
