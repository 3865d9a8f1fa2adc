"""What sorts take under memory_limit, in Arrow's arrays and in numpy's together: keys, orders and copies of rows count too."""

import tracemalloc

import pyarrow as pa
import pytest

import fuseline
from fuseline.operators.cpu.join.join_parts import BYTES_A_BLOCK, part_numbers
from fuseline.operators.spilling import PARTS
from fuseline.plan import physical as p
from tests.compare import assert_same_as_duckdb

N = 400_000
LIMIT = 16_000_000
KEYS = f"select x * 7919 % {N} as k, x from range({N}) t(x)"
QUERIES = {
    "numbers": f"select sum(k * x) from (select k, x from ({KEYS}) order by k desc offset 7)",
    "texts": f"select sum(length(s)) from (select 'a longer text ' || k as s from ({KEYS}) order by s offset 7)",
    "texts with NULL": f"select count(s), max(x) from (select case when k % 3 > 0 then 'a text ' || k end as s, x from ({KEYS}) order by s nulls first, x offset 7)",
    "long texts": f"select sum(length(s)) from (select repeat('text ', 30) || k // 2 as s from ({KEYS}) where x % 4 = 0 order by s desc offset 7)",
    "first of all": f"select count(*), max(s) from (select 'a text ' || k as s from ({KEYS}) order by s limit {N // 2})",
    "distinct": f"select count(*), max(k) from (select distinct k from ({KEYS}) order by k offset 7)",
}


def most_taken(run):
    """The most bytes that Arrow and numpy had at a time, each by itself; Arrow's are counted by a pool of their own."""
    before = pa.default_memory_pool()
    pool = pa.proxy_memory_pool(before)
    pa.set_memory_pool(pool)
    tracemalloc.start()
    try:
        run()
        return pool.max_memory() + tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
        pa.set_memory_pool(before)


@pytest.mark.parametrize("name", QUERIES)
def test_sorts_take_no_more_than_they_may(name, tmp_path):
    with fuseline.connect(
        "cpu", memory_limit=LIMIT, column_cache_limit=LIMIT, spill_dir=tmp_path
    ) as connection:
        assert_same_as_duckdb(QUERIES[name], connection=connection)
        frame = connection.sql(QUERIES[name])
        assert most_taken(frame.to_arrow) <= LIMIT
        assert any("spilled" in (node.remark or "") for node in frame.profile.nodes)


def test_first_rows_that_are_too_many_to_keep_are_sorted_in_ranges(tmp_path):
    """Fewer than any number of rows that may be kept, but too large."""
    query = f"select k, s from (select k, repeat('text ', 9) || k as s from ({KEYS})) order by s desc limit 5 offset {N // 3}"
    with fuseline.connect(
        "cpu", memory_limit=LIMIT, column_cache_limit=LIMIT, spill_dir=tmp_path
    ) as connection:
        assert_same_as_duckdb(query, connection=connection)
        frame = connection.sql(query)
        frame.to_arrow()
        (top,) = (node for node in frame.profile.nodes if isinstance(node.node, p.TopK))
        assert "spilled" in top.remark


def test_long_strings_are_hashed_in_little_memory():
    """The part of a string follows from its bytes, however long it is and whatever lies beside it."""
    texts = ["", "x" * (3 * BYTES_A_BLOCK + 5), None, "ab", "", "y" * BYTES_A_BLOCK, "y"] * 3
    strings = pa.array([*texts, *map(str, range(50_000)), "z" * 4_000_000])
    assert most_taken(lambda: part_numbers([strings])) < 60 * BYTES_A_BLOCK
    numbers = part_numbers([strings])
    assert len(set(numbers.tolist())) == PARTS
    few = pa.array(texts).slice(1, 7)
    assert part_numbers([few]).tolist() == numbers[1:8].tolist() == numbers[8:15].tolist()
    assert numbers[2] == 0
