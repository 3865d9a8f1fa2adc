"""How far a query is: it only grows and ends at 100 %, whatever way it runs; nobody pays for it who does not look."""

from __future__ import annotations

import cProfile
import io
import sys
import threading
from pathlib import Path
from typing import Any

import pytest

import fuseline
from benchmarks import tpch as suite
from fuseline.errors import ExecutionError, WrongArguments
from fuseline.progress import progress_bar
from fuseline.progress.run_progress import NodeProgress, QueryProgress
from tests.compare import connected
from tests.conftest import SCALE

QUERIES = suite.queries(SCALE)


def steps_of(connection: Any, query: str) -> list[QueryProgress]:
    """What a query says of its progress, one element a step."""
    seen: list[QueryProgress] = []
    connection.on_progress(seen.append)
    try:
        connection.sql(query).to_arrow()
    finally:
        connection.on_progress(None)
    return seen


def assert_grows(steps: list[QueryProgress]) -> None:
    percentages = [step.percentage for step in steps]
    assert percentages == sorted(percentages)
    assert percentages[0] == 0
    assert percentages[-1] == 100
    assert all(node.share == 1 and node.rows == node.total_rows for node in steps[-1].nodes)


@pytest.mark.by_day(4)
@pytest.mark.parametrize("name", QUERIES)
def test_it_grows_and_ends_at_100(name: str, tpch: Any) -> None:
    steps = steps_of(tpch, QUERIES[name])
    assert_grows(steps)
    assert steps[-1].rows > 0
    assert steps[-1].bytes > 0
    assert tpch.query_progress() == -1


def test_it_grows_while_columns_are_read(tpch_tables: Any) -> None:
    for fuse in ("always", "never"):
        with connected(tpch_tables, fuse=fuse) as connection:
            steps = steps_of(connection, QUERIES["q03"])
        assert_grows(steps)
        assert len({step.percentage for step in steps}) > 8


def test_it_grows_with_the_rows_of_a_kernel() -> None:
    rows = 3 << 17
    with connected({"t": {"a": list(range(rows))}}, fuse="always", threads=1) as connection:
        steps_of(connection, "select sum(a) from t where a % 3 = 1")
        steps = steps_of(connection, "select sum(a) from t where a % 3 = 1")
    assert_grows(steps)
    within = [step.nodes[0].rows for step in steps if step.current is step.nodes[0]]
    assert 1 << 17 in within  # the first step of its pace
    assert steps[-1].nodes[0].rows == rows


def test_it_grows_in_chunks_in_pieces_and_from_one_way_to_another(tpch_tables: Any) -> None:
    queries = (
        "select l_returnflag, sum(l_quantity) from lineitem group by all",
        "select count(*) from (select distinct l_orderkey, l_linenumber, l_comment from lineitem)",
        "select o_orderpriority, count(*) from orders join lineitem on l_orderkey = o_orderkey group by all",
    )
    settings = {"memory_limit": "3MB", "column_cache_limit": "200kB"}
    with connected(tpch_tables, fuse="never", **settings) as connection:
        for query in queries:
            assert_grows(steps_of(connection, query))


def test_rows_that_are_made_while_they_are_read_are_counted(tpch_tables: Any) -> None:
    settings = {"memory_limit": "2MB", "column_cache_limit": "200kB", "fuse": "never"}
    with connected(tpch_tables, **settings) as connection:
        batches = connection.sql("select * from lineitem").to_batches(5000)
        seen = [connection.query_progress() for _ in batches]
        assert connection.query_progress() == -1
    assert seen == sorted(seen)
    assert 0 < seen[0] < 100


def test_another_thread_sees_it(connection: Any) -> None:
    seen: list[float] = []

    def look(_: QueryProgress) -> None:
        thread = threading.Thread(target=lambda: seen.append(connection.query_progress()))
        thread.start()
        thread.join(timeout=5)

    connection.on_progress(look)
    assert connection.query_progress() == -1
    connection.sql("select sum(range) from range(300000)").fetchall()
    assert seen.pop() == -1  # the answer is there
    assert seen == sorted(seen)
    assert 0 <= seen[0] <= seen[-1] < 100


def test_a_query_within_a_query_is_not_told(connection: Any) -> None:
    text = "with recursive r(n) as (select 1 union all select n + 1 from r where n < 5) select sum(n) from r"
    assert_grows(steps_of(connection, text))


def test_what_a_listener_raises_ends_the_query(connection: Any) -> None:
    def fail(_: QueryProgress) -> None:
        raise ValueError("enough")

    connection.on_progress(fail)
    with pytest.raises(
        ExecutionError, match=r"on_progress\(\) was given raised ValueError: enough"
    ):
        connection.sql("select 1").fetchall()
    connection.on_progress(lambda _: connection.interrupt())
    with pytest.raises(fuseline.errors.Interrupted):
        connection.sql("select sum(range) from range(100000)").fetchall()
    connection.on_progress(None)
    assert connection.query_progress() == -1
    assert connection.sql("select 1").fetchall() == [(1,)]
    with pytest.raises(WrongArguments, match="a function or None"):
        connection.on_progress(1)


def test_nobody_pays_who_does_not_look(tpch: Any) -> None:
    """A hot query makes no lock, no thread, and few calls: some 15 with two pipelines."""
    if tpch.settings.fuse == "never":
        pytest.skip("kernels are what is hot")
    frame = tpch.sql(QUERIES["q06"])
    frame.to_arrow()
    frame.to_arrow()
    threads = threading.active_count()
    profiler = cProfile.Profile()
    profiler.enable()
    frame.to_arrow()
    profiler.disable()
    calls = sum(
        entry.callcount
        for entry in profiler.getstats()
        if not isinstance(entry.code, str)
        and Path(entry.code.co_filename).parent.name == "progress"
    )
    assert 0 < calls <= 12
    assert threading.active_count() == threads


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def test_a_bar_is_drawn_in_terminals_and_goes(monkeypatch: pytest.MonkeyPatch) -> None:
    screen = Terminal()
    monkeypatch.setattr(sys, "stderr", screen)
    monkeypatch.setenv("TERM", "xterm")
    with fuseline.connect("cpu", enable_progress_bar=True, progress_bar_time=0) as connection:
        drawn = threading.Event()
        draw = progress_bar._TerminalBar.draw

        def seen(bar: Any, progress: QueryProgress) -> None:
            draw(bar, progress)
            drawn.set()

        monkeypatch.setattr(progress_bar._TerminalBar, "draw", seen)
        connection.on_progress(lambda _: drawn.wait(60))  # the query waits for its bar
        assert connection.sql("select sum(range) from range(1000)").fetchall() == [(499500,)]
    assert "%" in screen.getvalue()
    assert "fuseline" not in [thread.name for thread in threading.enumerate()]


def test_nothing_is_drawn_where_nobody_looks(capfd: pytest.CaptureFixture[str]) -> None:
    with fuseline.connect("cpu", enable_progress_bar=True, progress_bar_time=0) as connection:
        connection.sql("select sum(range) from range(1000)").fetchall()
    assert capfd.readouterr() == ("", "")


def test_what_stands_beside_the_bar() -> None:
    nodes = (NodeProgress("ParquetScan  <a & b>", 0.5, 10_000, 20_000, 3_000_000),)
    progress = QueryProgress(25.0, 2.0, 6.0, nodes)
    expected = "ParquetScan  <a & b>  10,000 rows, 3 MB, 6 s left"
    assert progress_bar.summary(progress) == expected
    assert "&lt;a &amp; b&gt;" in progress_bar.bar_html(progress)
    assert 'value="25.0"' in progress_bar.bar_html(progress)
