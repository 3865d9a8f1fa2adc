"""The first rows by a long text: by its first bytes as numbers, which say nothing about texts that begin alike."""

from __future__ import annotations

import random
from pathlib import Path

import pyarrow as pa
import pytest

import fuseline
from tests.compare import assert_same_as_duckdb

pytestmark = pytest.mark.gpu

ROWS = 300_000


@pytest.mark.parametrize("beginnings", [2, 50_000])
@pytest.mark.parametrize("nulls", [0.0, 0.1])
def test_the_first_texts(beginnings: int, nulls: float, tmp_path: Path) -> None:
    """Of few beginnings too many rows are equal by their first bytes."""
    draw = random.Random(beginnings)
    texts = [
        None
        if draw.random() < nulls
        else f"{draw.randrange(beginnings):08x}{draw.choice(['', '日', 'é', 'zz'])}{draw.randrange(10**9)}"
        for _ in range(ROWS)
    ]
    table = pa.table({"t": texts, "n": list(range(ROWS))})
    with fuseline.connect(device="gpu", fuse="always", cache_dir=tmp_path) as connection:
        connection.register("t", table)
        for order in ("t, n", "t desc, n", "t nulls first, n desc", "t desc nulls last, n"):
            for limit in ("10", "3 offset 40", "2000"):
                assert_same_as_duckdb(
                    f"select t, n from t order by {order} limit {limit}",
                    {"t": table},
                    connection=connection,
                )
