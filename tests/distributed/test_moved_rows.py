"""Rows that joins need of other workers: no more than may find a match, and joined before with what lies beside them."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import fuseline
from tests.compare import assert_same_as_duckdb

MANY, FEW = 24_000, 1_500
MAKERS = pa.table({
    "m": [None if n % 50 == 0 else n for n in range(FEW)], "kind": [n % 12 for n in range(FEW)],
    "name": [f"maker {n}" for n in range(FEW)],
})  # fmt: skip
SALES = pa.table({
    "s": range(MANY), "maker": [None if n % 97 == 0 else n * 31 % 2000 for n in range(MANY)],
    "maker_name": [f"maker {n * 31 % 2000}" for n in range(MANY)], "price": [n * 7 % 501 for n in range(MANY)],
})  # fmt: skip
LINES = pa.table({"sale": [n // 2 for n in range(2 * MANY)], "buyer": [n * 13 % 9000 for n in range(2 * MANY)]})  # fmt: skip
BUYERS = pa.table({"b": range(9000), "town": [f"town {n % 40}" for n in range(9000)]})
TABLES = {"makers": MAKERS, "sales": SALES, "lines": LINES, "buyers": BUYERS}
FIRST = "(select * from makers where kind = 3)"
REDUCED = [
    f"select count(*), sum(m) from {FIRST} where m in (select maker from sales)",
    f"select count(*), sum(m) from {FIRST} where not exists (select 1 from sales where maker = m)",
    f"select m, price from {FIRST} left join sales on maker = m",
    f"select count(*), sum(m) from {FIRST} where exists (select 1 from sales where maker = m and price < kind)",
    f"select m, exists (select 1 from sales where maker = m and price > 90) or name like '%9%' from {FIRST}",
    f"select count(*), sum(m), sum(price) from {FIRST} left join sales on m is not distinct from maker",
    f"select count(*), sum(price) from {FIRST} left join sales on maker = m and name = maker_name and price > 7",
    "select count(*), sum(m) from makers where m > (select avg(m) from makers) and m in (select maker from sales)",
    "select count(*), sum(m) from makers where m > (select avg(m) from makers where kind = 2) and not exists (select 1 from sales where maker = m)",
]
WHOLE = [
    f"select name, (select max(price) from sales where maker = m) from {FIRST}",
    f"select count(*), sum(m) from {FIRST} where m not in (select maker from sales where maker is not null)",
    f"select count(*), sum(m) from {FIRST} where m not in (select maker from sales)",
    f"select count(*), sum(m), sum(price) from {FIRST} right join sales on maker = m",
    f"select count(*), sum(m), sum(price) from {FIRST} full join sales on maker = m",
    "select count(*), sum(m) from makers where m > (select avg(m * 0.1e0) from makers) and m in (select maker from sales)",
]


@contextmanager
def opened(client: Any, folder: Path, tables: dict[str, pa.Table], whole: int) -> Iterator[Any]:
    """A connection to tables that are cut, but for those that take less than so many bytes."""
    settings: dict[str, Any] = {"replicate_below": whole, "one_worker_below": 0, "fuse": "never"}
    with fuseline.connect("cpu", cluster=client, **settings) as connection:
        for name, table in tables.items():
            pq.write_table(table, folder / f"{name}.parquet", row_group_size=2000)
            connection.read_parquet(folder / f"{name}.parquet", name)
        yield connection


@pytest.fixture(scope="module")
def connection(client: Any, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    """All but the makers are cut, sales and lines at the same sales."""
    with opened(client, tmp_path_factory.mktemp("moved"), TABLES, 12_000) as made:
        yield made


@pytest.mark.parametrize("query", REDUCED)
def test_unmatched_rows_stay(query: str, connection: Any) -> None:
    text = connection.sql(query).explain()
    assert re.search(r"Exchange (hash|range|broadcast) .*\n +(HashAggregate .*\n +)?HashJoin semi", text), text  # fmt: skip
    assert_same_as_duckdb(query, TABLES, connection=connection)


@pytest.mark.parametrize("query", WHOLE)
def test_rows_that_a_join_keeps_or_counts_are_not_left_out(query: str, connection: Any) -> None:
    text = connection.sql(query).explain()
    assert not re.search(r"Exchange .*\n +HashJoin semi", text), text
    assert_same_as_duckdb(query, TABLES, connection=connection)


@pytest.mark.parametrize("query", [
    "select count(*), sum(b) from buyers where b in (select price from sales)",
    f"select count(*), sum(m) from {FIRST} where name in (select maker_name from sales)",
    f"select count(*), sum(m) from {FIRST} where not exists (select 1 from sales where maker_name = name)",
])  # fmt: skip
def test_one_row_of_each_key_is_enough_to_be_there(query: str, connection: Any) -> None:
    text = connection.sql(query).explain()
    assert re.search(r"Exchange \w+ .*\n +HashAggregate  by (price|maker_name) ", text), text
    assert_same_as_duckdb(query, TABLES, connection=connection)


ROTATED = "from lines join (select * from sales join buyers on price = b where maker_name = 'maker 7') on sale = s"


@pytest.mark.parametrize("query", [
    f"select count(*), sum(buyer), sum(price) {ROTATED}", f"select town, count(*), sum(s) {ROTATED} group by town",
    f"select b, town, sum(buyer) as x {ROTATED} group by b, town order by x desc, b limit 9",
])  # fmt: skip
def test_what_lies_on_one_worker_is_joined_first(query: str, connection: Any) -> None:
    text = connection.sql(query).explain()
    assert re.search(r"Exchange range .*\n +HashJoin inner  sale = s ", text), text
    assert_same_as_duckdb(query, TABLES, connection=connection)


@pytest.mark.parametrize("query", [
    "select count(*), sum(x), sum(b) from buyers join (select buyer, count(*) + 1 as x from lines group by buyer) on b = buyer",
    "select town, max(x) from buyers left join (select buyer, avg(sale) as x from lines group by buyer) on b = buyer group by town",
    "select count(*) from buyers where b in (select buyer from lines group by buyer having sum(sale) > 9)",
    "select count(*), sum(x) from buyers join (select maker, buyer, sum(price) as x from lines join sales on sale = s group by maker, buyer) on b = buyer",
])  # fmt: skip
def test_groups_are_merged_where_the_other_side_has_their_keys(query: str, connection: Any) -> None:
    connection.sql("set placement = 'sharded'; set replicate_below = '1GB'")
    try:
        text = connection.sql(query).explain()
        assert re.search(r"HashAggregate .*\n +Exchange range  by buyer .*the other side is ranged by b", text), text  # fmt: skip
        assert_same_as_duckdb(query, TABLES, connection=connection)
    finally:
        connection.sql("set placement = 'auto'; set replicate_below = 12000")


# Two of the buyers have one number, which their table's footer does not tell
TWICE = BUYERS.set_column(0, "b", pa.array([n if n != 50 else 49 for n in range(9000)]))
GROUPS = "from lines join buyers on buyer = b group by b, town"
LOOKED_UP = [
    f"select b, town, count(*), sum(sale) as x {GROUPS} order by x desc, b limit 9",
    f"select town || '!' as t, b, avg(sale) as x {GROUPS} having max(sale) > 47000 and x > 2 order by x, b limit 20",
    f"select b, town, count(*) {GROUPS} order by town, b limit 9",
    f"select b, town, count(distinct sale), sum(sale) {GROUPS}",
    "select place, max(town), id from (select buyer as id, town as place, town, sale from lines join buyers on buyer = b) group by id, place order by 2, 3 limit 7",
]  # fmt: skip


@pytest.fixture(scope="module")
def with_keys(client: Any, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    """Lines are cut, the buyers are on all workers."""
    tables = {**TABLES, "twice": TWICE}
    with opened(client, tmp_path_factory.mktemp("keys"), tables, 60_000) as made:
        yield made


@pytest.mark.parametrize("query", LOOKED_UP)
def test_keys_that_follow_from_another_do_not_move(query: str, with_keys: Any) -> None:
    text = with_keys.sql(query).explain()
    assert re.search(
        r"HashJoin inner  (b|id).*\n(.*\n)* +Exchange hash  by (b|id)(#1)?  ~", text
    ), text
    assert_same_as_duckdb(query, TABLES, connection=with_keys)


def test_keys_are_looked_up_in_kernels_too(with_keys: Any) -> None:
    with_keys.sql("set fuse = 'always'")
    try:
        assert_same_as_duckdb(LOOKED_UP[0], TABLES, connection=with_keys)
    finally:
        with_keys.sql("set fuse = 'never'")


def test_a_key_that_comes_twice_moves_with_the_others(with_keys: Any) -> None:
    """The first run finds that it does, and is made again."""
    query = LOOKED_UP[0]
    twice = query.replace("buyers", "twice")
    assert_same_as_duckdb(twice, {**TABLES, "twice": TWICE}, connection=with_keys)
    assert "Exchange hash  by b, town" in with_keys.sql(twice).explain()
    sent = [_sent(with_keys, text) for text in (query, twice)]
    assert 0 < sent[0] < sent[1]


def _sent(connection: Any, query: str) -> int:
    """The bytes that workers have sent for a query."""
    frame = connection.sql(query)
    frame.to_arrow()
    return sum(met.sent for worker in frame.profile.workers for met in worker.meetings)
