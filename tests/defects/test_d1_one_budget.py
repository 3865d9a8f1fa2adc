"""What does not fit into memory_limit comes in pieces and spills, whichever operator takes the memory: joins, groups, sorts, sets."""

import gc
import weakref

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import fuseline
from fuseline.errors import MemoryLimitError
from fuseline.operators import chunked_run, cpu, host_memory, one_group
from fuseline.plan import physical as p
from fuseline.runtime import memory
from fuseline.runtime.memory import MemoryBudget
from tests.compare import assert_same_as_duckdb

N = 300_000
LIMIT = 4_000_000
KEYS = f"select x * 7919 % {N} as k, x from range({N}) t(x)"
TEXTS = f"select 'text ' || x % 1000 as s, x % 7 as g, x from range({N}) t(x)"
QUERIES = {
    "groups": f"select count(*), sum(n), max(k) from (select k, count(*) as n from ({KEYS}) group by k)",
    "few groups": f"select k % 100 as g, count(*), sum(x), avg(x) from ({KEYS}) group by g",
    "groups by text": f"select s, g, count(*), min(x), max(x) from ({TEXTS}) group by s, g having count(*) > 42",
    "medians": f"select k % 5000 as g, median(x), count(distinct x % 3) from ({KEYS}) group by g",
    "texts of a group": f"select count(*), sum(length(v)) from (select k % 5000 as g, string_agg(x::varchar, ',' order by x) as v from ({KEYS}) group by g)",
    "distinct on": f"select count(*), sum(k), sum(x) from (select distinct on (k % 9000) k, x from ({KEYS}) order by k % 9000, x)",
    "first rows of groups": f"select a.x, l.k from range(20) a(x), lateral (select k from ({KEYS}) v where v.k % 20 = a.x order by k limit 2) l",
    "distinct": f"select count(*), sum(k) from (select distinct k from ({KEYS}))",
    "join": f"select count(*), sum(a.x - b.x), max(b.k) from range({N}) a(x) join ({KEYS}) b on a.x = b.k",
    "left join": f"select count(*), count(b.x) from range({N}) a(x) left join ({KEYS}) b on a.x = b.k + 1000",
    "full join": f"select count(a.x), count(b.x) from range({N}) a(x) full join ({KEYS}) b on a.x = b.k + 1000",
    "not in": f"select count(*) from range({N}) a(x) where x not in (select k + 99 from ({KEYS}))",
    "join of many pairs": "select count(*), sum(a.x) from (select x % 50 as k, x from range(20000) t(x)) a join (select x % 50 as k from range(5000) t(x)) b on a.k = b.k",
    "order": f"select sum(k * n) from (select k, 1 as n from ({KEYS}) order by k desc nulls first offset 7)",
    "order of rows in order": f"select x, s from ({TEXTS}) order by x offset {N - 9}",
    "order of rows in reverse order": f"select sum(v * n) from (select -x as v, 1 as n from range({N}) t(x) order by v offset 7)",
    "order by few values": f"select sum(g * n) from (select x % 3 as g, 1 as n from range({N}) t(x) order by g offset 7)",
    "order by text": f"select s, x from ({TEXTS}) order by s, x desc offset {N - 20}",
    "first rows": f"select k, x from ({KEYS}) order by k desc, x limit 5 offset 3",
    "many first rows": f"select count(*), sum(k) from (select k from ({KEYS}) order by k limit 200000)",
    "pairs": "select count(*), sum(x * y) from range(1500) a(x), range(1500) b(y) where x < y",
    "deviations": f"select stddev_samp(k), var_pop(x) filter (k % 3 = 0), corr(k, x), covar_pop(x, k), avg(k) from ({KEYS})",
    "mode": f"select mode(k), mode(k % 70000), mode(k // 2) filter (x > 9), count(*) from (select x, if(x % 9 = 0, 6, k) as k from ({KEYS}))",
    "text in order": f"select length(v), left(v, 99), right(v, 99) from (select string_agg(k::varchar, ',' order by k desc) as v from ({KEYS}) where k % 5 = 0)",
    "union": f"select count(*), sum(x) from (select x from range({N}) a(x) union all select x + 1 from range({N}) b(x)) where x % 3 = 0",
    "except": f"select count(*) from (select x from range({N}) a(x) except all select x * 2 from range({N}) b(x))",
    "intersect": f"select count(*), sum(k) from (select k from ({KEYS}) intersect select x * 2 from range({N}) b(x))",
    "twice": f"with v as (select k, count(*) as n from ({KEYS}) group by k) select count(*), sum(a.n + b.n) from v a join v b on a.k = b.k + 1",
}


@pytest.mark.by_day(4)
@pytest.mark.parametrize("name", QUERIES)
def test_a_query_larger_than_its_limit(name, tmp_path):
    with fuseline.connect(
        "cpu", memory_limit=LIMIT, column_cache_limit=LIMIT, spill_dir=tmp_path
    ) as connection:
        for _ in range(2):  # the second time it is known that tables do not fit
            assert_same_as_duckdb(QUERIES[name], connection=connection)
        frame = connection.sql(QUERIES[name])
        frame.to_arrow()
        assert all(node.bytes <= LIMIT for node in frame.profile.nodes)
        assert any("in pieces" in (node.remark or "") for node in frame.profile.nodes)
    assert not list(tmp_path.iterdir())


def test_what_is_asked_for_is_asked_before_it_is_made(monkeypatch):
    """No operator runs over tables for which there was no room."""
    largest = 0
    made = cpu.OPERATORS[p.RangeScan]

    def noted(node, inputs, context):
        nonlocal largest
        table = made(node, inputs, context)
        largest = max(largest, cpu.num_bytes(table))
        return table

    monkeypatch.setitem(cpu.OPERATORS, p.RangeScan, noted)
    with fuseline.connect("cpu", memory_limit=LIMIT) as connection:
        assert connection.sql("select sum(x) from range(5000000) t(x)").fetchall() == [
            (5_000_000 * 4_999_999 // 2,)
        ]
    assert 0 < largest <= LIMIT


@pytest.mark.parametrize(("keys", "times"), [("k", 1), ("k % 100", 1), ("k // 3", 2)])
def test_rows_are_grouped_about_once(keys, times, monkeypatch, limits, tmp_path):
    """Where keys differ, what is tried on the first rows is not done over all; where they repeat, the rest is not spilled."""
    limits(TRIED_ROWS=N // 16)
    grouped = 0
    made = cpu.OPERATORS[p.HashAggregate]

    def noted(node, inputs, context):
        nonlocal grouped
        grouped += inputs[0].num_rows if node.keys else 0
        return made(node, inputs, context)

    query = (
        f"select count(*), sum(n) from (select {keys} as g, count(*) as n from ({KEYS}) group by g)"
    )
    with fuseline.connect("cpu", memory_limit=LIMIT, spill_dir=tmp_path) as connection:
        assert_same_as_duckdb(query, connection=connection)
        monkeypatch.setitem(cpu.OPERATORS, p.HashAggregate, noted)
        assert_same_as_duckdb(query, connection=connection)  # all of it in pieces
        assert N <= grouped <= N * (times + 0.3)


def test_a_refusal_names_the_node_the_bytes_and_the_setting():
    with fuseline.connect("cpu", memory_limit="1MB", column_cache_limit="1MB") as connection:
        message = r"(RangeScan|ComputeColumns) .*asked for .* KiB.*raise it with SET memory_limit"
        with pytest.raises(MemoryLimitError, match=message):
            connection.sql("select x from range(1000000) t(x)").to_arrow()
        assert connection.sql("select 1").fetchall() == [(1,)]


def test_what_needs_all_rows_of_one_group_says_so(monkeypatch):
    """An aggregate of which no other way is known; of those that there are it is."""
    monkeypatch.setattr(one_group, "_of_few_rows", lambda *given: None)
    with fuseline.connect("cpu", memory_limit=LIMIT) as connection:
        message = r"mode\(\) needs .* without GROUP BY .* no room: it asked for .*SET memory_limit"
        with pytest.raises(MemoryLimitError, match=message):
            connection.sql(f"select mode(k), count(*) from ({KEYS})").fetchall()


def test_held_and_asked_count_together():
    budget = MemoryBudget(100)
    node = p.ValuesScan((), ((),))
    budget.hold(node, 60)
    budget.ask(node, 40)
    with pytest.raises(MemoryError, match="asked for 41 bytes, 40 bytes are left"):
        budget.ask(node, 41)


def test_without_a_limit_the_host_is_asked_for_much(monkeypatch):
    monkeypatch.setattr("fuseline.runtime.memory.available_memory", lambda: memory.LARGE)
    budget, node = MemoryBudget(None), p.ValuesScan((), ((),))
    budget.ask(node, memory.LARGE)
    with pytest.raises(MemoryError, match=r"asked for 256\.0 MiB, 256\.0 MiB are left"):
        budget.ask(node, memory.LARGE + 1)


def test_what_is_available_is_some_of_what_the_host_has():
    assert 0 < host_memory.available_memory() <= host_memory.host_memory()


@pytest.mark.parametrize("fuse", ["never", "always"])
def test_a_failed_try_leaves_no_columns_in_memory(fuse, monkeypatch, tmp_path):
    """Errors and the frames of threads refer to each other; what they hold is freed before the next try."""
    limit = "600kB" if fuse == "never" else "120kB"
    rows = np.arange(50_000)
    file = tmp_path / "t.parquet"
    pq.write_table(pa.table({"k": rows % 7, "x": rows}), file, row_group_size=2_000)
    ran = cpu.OPERATORS[p.ParquetScan]
    failures = 1
    alive = []
    caches = weakref.WeakSet()
    begin = chunked_run.ChunkCache.__init__

    def made(self, others):
        begin(self, others)
        caches.add(self)

    def failing(node, inputs, context):
        nonlocal failures
        table = ran(node, inputs, context)
        alive.append(len(caches))
        if failures and len(alive) == 4:
            failures -= 1
            raise MemoryError
        return table

    monkeypatch.setitem(cpu.OPERATORS, p.ParquetScan, failing)
    monkeypatch.setattr(chunked_run.ChunkCache, "__init__", made)
    gc.disable()
    try:
        with fuseline.connect(
            "cpu", fuse=fuse, memory_limit=limit, column_cache_limit=limit
        ) as connection:
            connection.read_parquet(file, "t")
            answer = connection.sql("select k, sum(x) from t group by k order by k").fetchall()
    finally:
        gc.enable()
    assert [k for k, _ in answer] == list(range(7))
    assert failures == 0
    assert len(alive) > 10
    assert (
        max(alive) <= 3
    )  # the chunk that is worked on, the one that is read ahead, and one in the making
