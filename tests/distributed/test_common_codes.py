"""Workers say which dictionaries they have codes of, and send codes where these are the same."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pyarrow as pa
import pytest

from fuseline.operators.exchange.agree_columns import (
    NOTHING,
    TEXTS,
    common_texts,
    number_of,
    number_of_rows,
)
from fuseline.storage.columns.agreement import texts_digest
from tests.distributed.test_exchange_rounds import WORKERS, _Board, _Peers

FRUIT, NONE = pa.array(["apple", "pear"]), pa.array([], pa.string())
KNOWN = {texts_digest(texts): texts for texts in (FRUIT, NONE)}
OF_FRUIT = number_of(FRUIT, KNOWN)
OF_ROWS = number_of_rows("5d41402abc4b2a76")


@pytest.mark.parametrize(
    ("said", "found"),
    [
        ([OF_FRUIT, OF_FRUIT, OF_FRUIT], FRUIT),
        ([NOTHING, OF_FRUIT, NOTHING], FRUIT),
        ([OF_FRUIT, TEXTS, OF_FRUIT], None),
        ([OF_FRUIT, number_of(NONE, KNOWN), OF_FRUIT], None),
        ([NOTHING] * WORKERS, None),
        ([12345] * WORKERS, None),
        ([OF_ROWS] * WORKERS, "row numbers"),
        ([OF_ROWS, NOTHING, OF_ROWS], None),
        ([OF_ROWS, OF_ROWS, OF_FRUIT], None),
        ([OF_ROWS, OF_ROWS, TEXTS], None),
        ([OF_ROWS, OF_ROWS, number_of_rows("6d41402abc4b2a76")], None),
    ],
)
def test_codes_go_where_all_have_one_dictionary(said: list[int], found: Any) -> None:
    board: Any = _Board()

    def work(rank: int) -> list[Any]:
        peers = _Peers(board, rank)
        peers.dictionaries = KNOWN
        return common_texts(peers, 4, [TEXTS, said[rank]])  # type: ignore[arg-type]

    with ThreadPoolExecutor(WORKERS) as pool:
        assert all(agreed == [None, found] for agreed in pool.map(work, range(WORKERS)))


def test_a_dictionary_is_known_by_where_it_lies() -> None:
    assert number_of(FRUIT.slice(0), KNOWN) == OF_FRUIT > NOTHING > TEXTS > OF_ROWS
    assert number_of(pa.array(["apple", "pear"]), KNOWN) == TEXTS
