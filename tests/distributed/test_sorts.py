"""Sorts whose rows come from all workers: each has a stretch of the order, about as long as any other's."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from tests.compare import assert_same_as_duckdb
from tests.distributed.conftest import WORKERS, Opened

ROWS = 6000
RNG = np.random.default_rng(7)
T = pa.table({
    "id": range(ROWS), "n": RNG.integers(-50, 50, ROWS), "half": np.where(RNG.random(ROWS) < 0.5, 7, RNG.integers(0, 999, ROWS)),
    "f": pa.array(RNG.normal(size=ROWS), mask=RNG.random(ROWS) < 0.1), "s": [f"{i * 37 % 911:x}" for i in range(ROWS)],
    "d": pa.array(RNG.integers(-10**6, 10**6, ROWS)).cast(pa.decimal128(19, 0)).cast(pa.decimal128(30, 2)),
    "same": [1] * ROWS, "nothing": pa.nulls(ROWS, pa.int32()),
})  # fmt: skip
ORDERS = (
    "id", "id desc", "n, id", "n desc nulls first, f", "f desc nulls last, id", "s, id desc", "half, n", "d desc, s, id", "same, id", "same",
    "nothing, s", "nothing desc, half desc", "f + n, id", "s || n, id",
)  # fmt: skip


def shares(connection: Any, query: str) -> list[int]:
    """How many rows each worker answers."""
    found: list[list[int]] = []
    crew, run = connection._runner.crew, connection._runner.crew.run

    def noted(*given: Any) -> Any:
        answer = run(*given)
        found.append([part.table().num_rows for part in answer.parts if part.rows is not None])
        return answer

    crew.run = noted
    try:
        connection.sql(query).to_arrow()
    finally:
        crew.run = run
    return found[0]


@pytest.fixture
def connection(opened: Opened) -> Any:
    return opened({"t": T, "none": T.slice(0, 0), "few": T.slice(0, 2)}, 500)


@pytest.mark.parametrize("order", ORDERS)
def test_each_worker_has_a_stretch_of_the_order(order: str, connection: Any) -> None:
    query = f"select * from t order by {order}"
    assert_same_as_duckdb(query, {"t": T}, connection=connection)
    found = shares(connection, query)
    assert len(found) == WORKERS
    assert max(found) < 1.2 * ROWS / WORKERS


def test_equal_rows_keep_their_order(connection: Any) -> None:
    """As a stable sort of all rows does, which the order of the files is given to."""
    for key in ("same", "n", "half desc", "nothing"):
        found = connection.sql(f"select id, {key.split()[0]} as k from t order by {key}").to_arrow()
        direction = "descending" if "desc" in key else "ascending"
        places = pa.compute.sort_indices(
            T.select(["id", key.split()[0]]), [(key.split()[0], direction), ("id", "ascending")]
        )
        assert found["id"].to_pylist() == T["id"].take(places).to_pylist()


@pytest.mark.parametrize(
    "query",
    [
        "select id from none order by id", "select id from few order by id desc", "select id from t where id = 77 order by n",
        "select id, n from t order by n, id offset 5990", "select id from t order by n desc, id limit 7 offset 3000",
        "select distinct on (n) n, f, id from t order by n, f desc, id", "select n, count(*) from t group by n order by n desc",
        "select id, row_number() over (partition by n order by id) as r from t order by r, id",
        "select id, sum(n) over (order by id) as s from t order by id", "select * from (select id, n from t order by n, id) where id % 3 = 0",
        "select a.id, b.id from t a join t b on a.id = b.half order by a.id, b.id", "select id from t union select n from t order by 1",
        "select first(id), last(id) from (select id from t order by s, id)", "select id from t order by (select max(n) from few), id desc",
    ],
)  # fmt: skip
def test_what_is_over_or_below_a_sort(query: str, connection: Any) -> None:
    assert_same_as_duckdb(query, {"t": T, "none": T.slice(0, 0), "few": T.slice(0, 2)}, connection=connection)  # fmt: skip
