"""Tables that are cut at the same keys: joins and groups meet nobody, and are right where footers are wrong."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from fuseline.storage import shards
from tests.compare import assert_same_as_duckdb
from tests.distributed.conftest import Opened

MADE = np.random.default_rng(5)
HEADS = pa.table({"h": np.arange(1, 1001) * 3, "kind": MADE.choice(["x", "y"], 1000)})
LINES = pa.table({
    "l": np.sort(MADE.integers(1, 1001, 5000)) * 3, "n": MADE.integers(0, 99, 5000), "other": MADE.integers(1, 1001, 5000),
})  # fmt: skip
TABLES = {"heads": HEADS, "lines": LINES}
LOCAL = [
    "select kind, sum(n), count(*) from lines join heads on l = h group by kind",
    "select count(*), count(n), sum(n) from heads left join lines on l = h and n > 90",
    "select count(*), sum(h), sum(n) from heads full join lines on l = h and n > 50",
    "select count(*) from heads where h in (select l from lines where n > 80)",
    "select count(*) from heads where not exists (select 1 from lines where l = h and n > 20)",
    "select l, sum(n) as s, avg(n), count(distinct n) from lines group by l order by s desc, l limit 7",
    "select h, kind, sum(n) from lines join heads on l = h group by h, kind having sum(n) > 300",
    "select count(*) from lines where l in (select l from lines group by l having sum(n) > 400) and n > 7",
    "select h from heads where h < 700 intersect select l from lines", "select distinct on (l) l, n from lines order by l, n",
    "select l, n, rank() over (partition by l order by n, other) from lines where n > 60",
    "select count(*) from lines a join lines b on a.l = b.l and a.n < b.n",
    "select sum(h) from heads join (select cast(l as integer) as k from lines where n > 50) on k = h",
]  # fmt: skip
EXCHANGE = re.compile(r"Exchange (\w+).*\n +(\w+)")


def met(connection: Any, query: str) -> set[str]:
    """The kinds of exchanges of rows that no aggregate has made of a share's."""
    found = EXCHANGE.findall(connection.sql(query).explain())
    return {kind for kind, below in found if below != "HashAggregate"}


@pytest.mark.parametrize("group_rows", [70, 333])
def test_equal_keys_are_on_one_worker(group_rows: int, opened: Opened) -> None:
    """Row groups of both tables line up nowhere; only parts of answers are gathered."""
    connection = opened(TABLES, group_rows)
    for query in LOCAL:
        # Those of DISTINCT ON are answers, which are in order
        assert met(connection, query) <= {"gather", "pick", "sort"}, connection.sql(query).explain()
        assert_same_as_duckdb(query, TABLES, connection=connection)


def test_one_side_goes_to_where_the_others_keys_are(opened: Opened) -> None:
    connection = opened(TABLES, 70)
    query = "select a.l, count(*), sum(b.n) from lines a join lines b on a.l = b.other group by a.l"
    assert met(connection, query) == {"range"}
    assert_same_as_duckdb(query, TABLES, connection=connection)
    text = connection.sql(query).explain()
    assert "ranged by l" in text
    assert "since left is" in text


def test_keys_that_footers_are_wrong_about(opened: Opened) -> None:
    """Extremes of row groups ascend, of the rows some lie elsewhere; each worker sees it when it has loaded its share."""
    rows = [*range(1, 1001)]
    rows[5], rows[900] = rows[900], rows[5]
    wrong = {"heads": pa.table({"h": rows}), "lines": pa.table({"l": rows[::-1] * 2})}
    sound = shards._read_key_rows

    def lying(table: Any, source: str) -> Any:
        if source not in ("h", "l"):
            return sound(table, source)
        begins = [0, *np.cumsum(table.chunks(source).rows).tolist()]
        lows = [1 + 1000 * begin // begins[-1] for begin in begins[:-1]]
        return shards.KeyRows(begins, lows, [*(low - 1 for low in lows[1:]), 1000])

    query = "select count(*), sum(h), sum(l) from heads join lines on h = l"
    connection = opened(wrong, 100)
    client = connection._runner._cluster.client
    client.run(_lie, lying)
    try:
        shards._read_key_rows = lying
        assert "broadcast" not in met(connection, query)
        assert_same_as_duckdb(query, wrong, connection=connection)
        assert met(connection, query) - {"gather"}  # and they are not believed again
    finally:
        shards._read_key_rows = sound
        client.run(_lie, None)


def _lie(function: Any) -> None:
    """Have a worker read bounds so; None: as before, which sent by its name would be what stands there now."""
    from fuseline.storage import shards

    if function is None:
        shards._read_key_rows = shards._read_key_rows.sound
    else:
        function.sound = shards._read_key_rows
        shards._read_key_rows = function


@pytest.mark.parametrize("made", [
    {"k": [7] * 3000 + [*range(8, 3008)]},  # half of the rows have one key
    {"k": [None] * 900}, {"k": [None] * 500 + [*range(400)]}, {"k": [*range(3)]}, {"k": pa.array([], pa.int64())},
    {"k": [2**62, 2**62, 2**62, 5] * 100},  # each worker's sum has 64 bits
])  # fmt: skip
def test_extreme_keys(made: dict[str, Any], opened: Opened) -> None:
    rows = pa.table({"k": pa.array(made["k"], pa.int64())})
    tables = {"a": rows.append_column("n", pa.array([*range(len(rows))])), "b": rows.slice(0, 400)}
    connection = opened(tables, 100)
    for query in (
        "select count(*), sum(a.n) from a join b on a.k = b.k where a.n % 100 = 1", "select k, count(*) from a group by k", "select sum(k), avg(n) from a",
        "select count(*) from a left join b on a.k = b.k and b.k > 5 where n < 900", "select k from a order by k nulls first, n limit 5",
    ):  # fmt: skip
        assert_same_as_duckdb(query, tables, connection=connection)


def test_placements(opened: Opened) -> None:
    query = "select a.l, sum(b.n) from lines a join lines b on a.l = b.other group by a.l"
    found = {}
    shared = {"placement": "sharded", "replicate_below": "1GB"}
    for options in ({"placement": "replicated"}, shared, {**shared, "one_worker_below": 100},
                    {"one_worker_below": "1GB"}, {"one_worker_below": 100}):  # fmt: skip
        connection = opened(TABLES, 100, **options)
        found[str(options)] = bool(met(connection, query))
        assert_same_as_duckdb(query, TABLES, connection=connection)
    assert [*found.values()] == [False, False, True, False, True]


def test_a_table_of_one_row_group_has_work_for_all(opened: Opened) -> None:
    connection = opened(TABLES, 10_000)
    text = connection.sql("select count(*), sum(n) from lines").explain("analyze")
    assert "3 workers" in text
    for query in ("select count(*), sum(n), sum(other) from lines where n > 3", LOCAL[0]):
        assert_same_as_duckdb(query, TABLES, connection=connection)
