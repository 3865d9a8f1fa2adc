"""The place of each number among the different ones, with a table of numbers and without one."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from fuseline.operators.cpu.sort.keys import places_among
from tests.compare import assert_same_as_duckdb
from tests.limits import SetLimits

COLUMNS: list[tuple[list[Any], Any]] = [
    ([], np.int64),
    ([7], np.int32),
    ([-128, 127, 0, -128], np.int8),
    ([3, 1, 2, 3, 1], np.int64),
    ([2**64 - 1, 2**64 - 2, 0], np.uint64),
    ([-(2**63), 2**63 - 1], np.int64),
    ([0.5, 0.25, 0.5], np.float64),
    ([True, False, True], np.bool_),
]


@pytest.mark.parametrize(("values", "dtype"), COLUMNS)
def test_places(values: list[Any], dtype: Any) -> None:
    column = np.array(values, dtype)
    expected = np.unique(column, return_inverse=True)[1]
    assert places_among(column).tolist() == expected.tolist()


@pytest.mark.parametrize("close", [-1, 2])
def test_pairs_are_counted(limits: SetLimits, close: int) -> None:
    limits(CLOSE_NUMBERS=close)
    rows = range(500)
    pairs = {
        "a": [None if n % 9 == 0 else n % 7 - 3 for n in rows],
        "b": [f"{n % 5}" for n in rows],
    }
    query = "select count(distinct (a, b)) as n, count(distinct {'x': a, 'y': {'z': b}}) as m from t where a is null or a < 3"
    assert_same_as_duckdb(query, {"t": pairs}, backend="cpu")
