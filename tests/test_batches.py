"""Answers of any size as batches: what does not fit into memory_limit is made while it is read, and let go of with its reader."""

from __future__ import annotations

import gc
import json
import signal
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet as pq
import pytest
from typer.testing import CliRunner

import fuseline
from fuseline import stopping
from fuseline.cli.commands import app
from fuseline.errors import (
    ConnectionClosed,
    ExecutionError,
    Interrupted,
    MemoryLimitError,
    OutOfRange,
    WrongArguments,
)
from fuseline.runtime.in_pieces import parts
from fuseline.runtime.memory import MemoryBudget

LIMIT = 4_000_000
N = 200_000
ROWS = f"select x, x * 7919 % {N} as k, 'text ' || x as s from range({N}) t(x)"
ORDERED = f"select * from ({ROWS}) order by k desc"
TYPES = f"""
    select x::tinyint as i, (x - 3)::hugeint as h, x::decimal(9, 2) / 4 as d, x::decimal(38, 5) as w, x % 2 = 0 as b,
           date '2000-01-01' + x::integer as day, timestamp '2000-01-01' + to_seconds(x::bigint) as t, to_days(x::integer) as v,
           case when x % 7 = 0 then null else repeat('é', x::integer % 50) end as s, x::double / 7 as f
    from (select y % 100 as x from range({N // 4}) u(y))
"""
FAILING = f"select x + {2**63 - 1 - 2 * N} as y from range({4 * N}) t(x)"
QUERIES = {
    "rows": ROWS,
    "order": ORDERED,
    "types": TYPES,
    "union": f"select x from range({N}) a(x) union all select x + 0.5 from range({N}) b(x)",
    "pairs": f"select a.x, b.x as y from range({N // 100}) a(x), range(200) b(x)",
    "join": f"select k, x + y as z from ({ROWS}) a join (select x as y from range({N}) t(x)) b on k = y order by k",
    "groups": f"select s, count(*) as n, sum(x) as t from ({ROWS}) group by s order by t",
    "twice": f"with c as ({ROWS}) select x, k from c union all select k, x from c",
}


@pytest.fixture
def connection(tmp_path: Path) -> Iterator[fuseline.Connection]:
    with fuseline.connect(
        "cpu", memory_limit=LIMIT, column_cache_limit=LIMIT, spill_dir=tmp_path / "spilled"
    ) as connection:
        yield connection
    assert spilled(connection) == []


@pytest.fixture
def peak(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """The most bytes that a query held at a time."""
    most = [0]
    add = MemoryBudget.add

    def noted(self: MemoryBudget, node: object, nbytes: int) -> None:
        add(self, node, nbytes)
        most[0] = max(most[0], self.held(node.device))

    monkeypatch.setattr(MemoryBudget, "add", noted)
    return most


def spilled(connection: fuseline.Connection) -> list[Path]:
    folder = connection.settings.spill_dir
    return list(folder.iterdir()) if folder.exists() else []


def alone(connection: fuseline.Connection) -> bool:
    """Whether a connection holds nothing of any query and still answers."""
    return spilled(connection) == [] and connection.sql("select 42").fetchall() == [(42,)]


@pytest.mark.parametrize("name", QUERIES)
def test_an_answer_larger_than_memory(connection, name, peak):
    frame = connection.sql(QUERIES[name])
    found = pa.Table.from_batches(list(frame.to_batches(10_000)))
    assert found.nbytes > LIMIT / 2
    assert 0 < peak[0] <= LIMIT
    expected = duckdb.sql(QUERIES[name]).to_arrow_table().cast(found.schema)
    if name in ("pairs", "twice"):
        keys = [(c, "ascending") for c in found.schema.names]
        found, expected = (t.sort_by(keys) for t in (found, expected))
    assert found.equals(expected)
    assert any("in pieces" in (node.note or "") for node in frame.profile.nodes)
    assert frame.profile.nodes[0].rows >= found.num_rows
    assert alone(connection)


def test_each_way_to_read_gives_all_rows(connection):
    expected = duckdb.sql(ORDERED).fetchall()
    frame = connection.sql(ORDERED)
    assert list(frame) == expected
    cursor = connection.execute(ORDERED)
    assert cursor.rowcount == -1
    rows = [cursor.fetchone(), *cursor.fetchmany(20_000), *cursor.fetchmany(-1)]
    batches = cursor.to_batches(1000)
    first = next(batches)
    assert first.num_rows <= 1000
    rows += [tuple(row.values()) for batch in (first, *batches) for row in batch.to_pylist()]
    assert rows == expected
    assert cursor.fetchone() is None
    assert cursor.fetchmany(5) == []
    assert [c[:2] for c in cursor.description] == [
        ("x", "BIGINT"),
        ("k", "BIGINT"),
        ("s", "VARCHAR"),
    ]
    with duckdb.connect() as other:
        other.register("stream", pa.RecordBatchReader.from_stream(frame))
        assert other.sql("select count(*), sum(x) from stream").fetchall() == [(N, sum(range(N)))]
    assert alone(connection)


def test_the_answer_as_a_whole_says_how_it_can_be_read(connection):
    hint = r"memory_limit.*a part at a time: from to_batches\(\).*fetchmany"
    with pytest.raises(MemoryLimitError, match=hint):
        connection.sql(ROWS).to_arrow()
    cursor = connection.execute(ORDERED)
    with pytest.raises(MemoryLimitError, match=hint):
        cursor.fetchall()
    assert len(cursor.fetchmany(3)) == 3  # what was not given is not lost
    with pytest.raises(ExecutionError, match="3 rows of this answer are fetched already"):
        cursor.to_arrow()
    cursor.close()
    assert alone(connection)


def test_a_whole_answer_may_fit_although_its_run_does_not(connection):
    few = f"select * from ({ORDERED}) where x % 1000 = 0 order by k"
    cursor = connection.execute(few)
    assert cursor.to_arrow().num_rows == N // 1000
    assert cursor.to_arrow().column("k").to_pylist() == [
        r[0] for r in duckdb.sql(f"select k from ({few})").fetchall()
    ]
    assert len(cursor.fetchall()) == N // 1000


@pytest.mark.parametrize("end", ["close", "with", "drop", "connection"])
def test_a_reader_that_ends_half_way_leaves_nothing(connection, end):
    threads = threading.active_count()
    batches = connection.sql(ORDERED).to_batches(100)
    rows = iter(connection.sql(ORDERED))
    assert next(batches).num_rows == 100
    assert next(rows)[1] == N - 1
    assert len(spilled(connection)) == 2
    if end == "close":
        batches.close()
        del rows
        with pytest.raises(ExecutionError, match="closed"):
            next(batches)
    elif end == "with":
        with batches:
            next(batches)
        del rows
    elif end == "drop":
        del batches, rows
    else:
        connection.close()
        with pytest.raises(ConnectionClosed, match="no more of its rows"):
            list(batches)
        with pytest.raises(ConnectionClosed, match="no more of its rows"):
            list(rows)
    assert spilled(connection) == []
    assert threading.active_count() <= threads


def test_an_error_half_way(connection):
    batches = connection.sql(FAILING).to_batches()
    given = 0
    with pytest.raises(OutOfRange) as caught:  # noqa: PT012 - of which some is given before
        for batch in batches:
            given += batch.num_rows
    assert 0 < given <= 2 * N + 1
    assert "^" in str(caught.value)
    with pytest.raises(ExecutionError, match="ended with an error"):  # not the end of the answer
        next(batches)
    with pytest.raises(pa.ArrowInvalid, match=r"OutOfRange: "):
        pa.RecordBatchReader.from_stream(connection.sql(FAILING)).read_all()
    assert alone(connection)


def test_interrupt_half_way(connection):
    batches, others = (connection.sql(ORDERED).to_batches() for _ in range(2))
    next(batches), next(others)
    connection.interrupt()  # whether or not somebody reads at the moment
    for stopped in (batches, others):
        with pytest.raises(Interrupted, match=r"interrupt\(\)"):
            list(stopped)
    cursor = connection.execute(ORDERED)
    cursor.fetchmany(3)
    connection.interrupt()
    with pytest.raises(Interrupted):
        cursor.fetchmany(N)
    assert alone(connection)


def test_ctrl_c_half_way(connection, monkeypatch):
    batches = connection.sql(ORDERED).to_batches()
    next(batches)

    def pressed(*given: Any) -> Iterator[pa.Table]:
        signal.raise_signal(signal.SIGINT)
        yield from parts(*given)

    monkeypatch.setattr("fuseline.runtime.in_pieces.parts", pressed)
    with pytest.raises(KeyboardInterrupt):
        list(batches)
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler
    monkeypatch.undo()
    assert alone(connection)


def test_no_column_stays_in_memory(connection):
    for _ in range(3):
        batches = connection.sql(ORDERED).to_batches()
        next(batches)
        del batches
    gc.collect()
    before = pa.total_allocated_bytes()
    for _ in range(3):
        batches = connection.sql(ORDERED).to_batches()
        next(batches)
        with batches:
            pass
    assert pa.total_allocated_bytes() - before < 100_000


@pytest.mark.parametrize("format", ["csv", "json", "arrow"])
def test_the_command_line_writes_answers_of_any_size(format, monkeypatch, tmp_path):
    monkeypatch.setenv("FUSELINE_MEMORY_LIMIT", str(LIMIT))
    monkeypatch.setenv("FUSELINE_COLUMN_CACHE_LIMIT", str(LIMIT))
    ran = CliRunner().invoke(app, ["sql", ORDERED, "--device", "cpu", "--format", format])
    assert ran.exit_code == 0, ran.output
    if format == "csv":
        found = pyarrow.csv.read_csv(pa.BufferReader(ran.stdout_bytes))
    elif format == "json":
        found = pa.Table.from_pylist(json.loads(ran.stdout))
    else:
        found = pa.ipc.open_stream(ran.stdout_bytes).read_all()
    assert found.equals(duckdb.sql(ORDERED).to_arrow_table())
    ran = CliRunner().invoke(app, ["sql", ORDERED, "--device", "cpu"])
    assert ran.exit_code == 1
    assert "MemoryLimitError" in ran.stderr


def test_time_passes_while_rows_are_made_alone(connection, monkeypatch):
    clock = [0.0]
    monkeypatch.setattr("fuseline.stopping.time.monotonic", lambda: clock[0])
    connection.set_option("statement_timeout", 10)
    batches = connection.sql(ROWS).to_batches(100_000_000)
    for _ in range(3):
        clock[0] += 100.0  # between two reads
        next(batches)
    monkeypatch.setattr(
        "fuseline.runtime.in_pieces.parts", lambda *a: (slowly(clock), *parts(*a))[1:]
    )
    with pytest.raises(Interrupted, match="statement_timeout"):
        list(batches)
    assert alone(connection)


def slowly(clock: list[float]) -> None:
    clock[0] += 6.0


def test_readers_of_one_connection_do_not_meet(connection):
    text = f"select x from range({N}) t(x)"
    one, other = (connection.sql(text).to_batches(1000) for _ in range(2))
    for left, right in zip(one, other, strict=True):
        assert left.equals(right)
    answers: list[int] = []
    reader = connection.sql(ORDERED).to_batches()
    thread = threading.Thread(target=lambda: answers.append(sum(b.num_rows for b in reader)))
    thread.start()
    answers.append(sum(b.num_rows for b in connection.sql(ROWS).to_batches()))
    thread.join()
    assert answers == [N, N]


def test_closing_while_another_thread_reads(connection, monkeypatch):
    batches = connection.sql(ORDERED).to_batches()
    begun, raised = threading.Event(), []

    def endless(*_: object) -> Iterator[pa.Table]:
        begun.set()
        while True:
            stopping.check()
            time.sleep(0.001)
        yield

    def read() -> None:
        try:
            list(batches)
        except ConnectionClosed as error:
            raised.append(error)

    monkeypatch.setattr("fuseline.runtime.in_pieces.parts", endless)
    thread = threading.Thread(target=read)
    thread.start()
    begun.wait()
    connection.close()
    assert spilled(connection) == []
    thread.join()
    assert len(raised) == 1


@pytest.mark.parametrize("limit", [None, LIMIT])
def test_empty_and_small_answers(limit):
    with fuseline.connect("cpu", memory_limit=limit) as connection:
        empty = connection.sql(f"select * from ({ROWS}) where s = 'no'").to_batches()
        assert empty.schema.names == ["x", "k", "s"]
        assert sum(b.num_rows for b in empty) == 0
        assert list(empty) == []
        small = connection.sql("select x from range(10) t(x)")
        assert [b.num_rows for b in small.to_batches(4)] == [4, 4, 2]
        rows = connection.sql("select 1 as a union all select 2").to_batches()
        kept = iter(small)
    assert sum(b.num_rows for b in rows) == 2  # rows that are there need no connection
    assert len(list(kept)) == 10


def test_a_whole_table_comes_in_parts(connection):
    with fuseline.connect("cpu") as roomy:
        batches = list(roomy.sql(ROWS).to_batches(150_000))
        assert pa.Table.from_batches(batches).column("x").to_pylist() == list(range(N))
        assert max(b.num_rows for b in batches) == 150_000
        assert roomy.execute(ROWS).rowcount == N


def test_an_answer_without_columns():
    with fuseline.connect("cpu") as connection:
        frame = connection.register("none", pa.table({"a": [1, 2, 3]}).select([]))
        assert frame.to_batches().schema.names == []
        assert list(frame) == frame.fetchall()


@pytest.mark.parametrize("rows", [0, -1, 1.5, "7", None])
def test_a_batch_has_rows(connection, rows):
    with pytest.raises(WrongArguments, match="at least 1"):
        connection.sql("select 1").to_batches(rows)
    with pytest.raises(WrongArguments, match="at least 1"):
        connection.execute("select 1").to_batches(rows)


def test_batches_of_files(connection, tmp_path):
    file = tmp_path / "t.parquet"
    pq.write_table(duckdb.sql(ROWS).to_arrow_table(), file, row_group_size=20_000)
    frame = connection.read_parquet(file)
    found = pa.Table.from_batches(list(frame.to_batches()))
    assert found.column("x").to_pylist() == list(range(N))
    batches = frame.to_batches()
    next(batches)
    file.write_bytes(file.read_bytes()[:1000])
    with pytest.raises(fuseline.FuselineError, match=r"t\.parquet"):
        list(batches)
    assert spilled(connection) == []
