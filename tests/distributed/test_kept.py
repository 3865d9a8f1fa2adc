"""Rows that stay on the workers: kept results, created tables, and dataframes of Dask, taken and given back."""

from __future__ import annotations

import gc
import os
import signal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import fuseline
from fuseline import errors
from fuseline.storage.tables.memory_table import ShardedTable
from tests.compare import assert_same_as_duckdb, run_duckdb
from tests.distributed.conftest import WORKERS, Opened
from tests.distributed.test_crew import TABLES
from tests.distributed.test_faults import until

MADE = "select k, g, n, id, price * 2 as double_price from t where n is not null"
QUERIES = [
    "select * from made", "select count(*), sum(n), max(g), sum(double_price) from made",
    "select g, count(*), avg(n) from made group by g", "select count(*) from made, u where made.k = u.k",
    "select id, n from made order by n, id limit 5", "select id from made where k not in (select k from u where k is not null)",
    "select a.id from made a join made b on a.id = b.id + 1", "select distinct g from made where n > 200",
    "select k from made intersect select k from u",
]  # fmt: skip


def sharded(connection: Any, name: str) -> bool:
    return isinstance(connection.catalog.table(name), ShardedTable)


@pytest.fixture
def made() -> dict[str, pa.Table]:
    return {**TABLES, "made": run_duckdb(MADE, TABLES)}


def test_a_created_table_stays_on_the_workers(opened: Opened, made: dict[str, pa.Table]) -> None:
    connection = opened(TABLES)
    cursor = connection.execute(f"create table made as {MADE}")
    assert cursor.rowcount == made["made"].num_rows
    assert sharded(connection, "made")
    for query in QUERIES:
        assert_same_as_duckdb(query, made, connection=connection)
    connection.execute("create or replace table made (a, b) as select id, n from made where n > 0")
    expected = run_duckdb("select count(*), sum(id), sum(n) from t where n > 0", TABLES)
    found = connection.sql("select count(*), sum(a), sum(b) from made").to_arrow()
    assert [*found.to_pylist()[0].values()] == [*expected.to_pylist()[0].values()]


def test_rows_may_be_inserted_into_one(opened: Opened, made: dict[str, pa.Table]) -> None:
    connection = opened(TABLES)
    connection.execute(f"create table made as {MADE}")
    connection.execute("insert into made (id, n) values (-1, 5)")
    extra = [{"id": -1, "n": 5}]
    rows = pa.concat_tables([made["made"], pa.Table.from_pylist(extra, made["made"].schema)])
    query = "select count(*), sum(n), min(id), count(g) from made"
    assert_same_as_duckdb(query, {"made": rows}, connection=connection)


def test_a_kept_frame_and_its_columns_go_together(
    opened: Opened, made: dict[str, pa.Table]
) -> None:
    connection = opened(TABLES)
    frame = connection.sql(MADE).persist()
    assert frame.count() == made["made"].num_rows
    rows = frame.to_arrow()
    assert rows.num_rows == made["made"].num_rows
    connection.register("again", frame)
    assert sharded(connection, "again")
    assert_same_as_duckdb(
        "select sum(n) from again", {"again": made["made"]}, connection=connection
    )
    crew = connection._runner.crew
    before = {len(member.tables) for member in crew._members.team.members}
    connection.unregister("again")
    del frame
    connection.sql("select 1").to_arrow()
    gc.collect()
    connection.sql("select 2").to_arrow()
    after = {len(member.tables) for member in crew._members.team.members}
    assert (before, after) == ({2}, {0})


def test_few_rows_and_those_of_one_worker_come_to_the_client(opened: Opened) -> None:
    connection = opened(TABLES, replicate_below="1MB")
    connection.execute("create table few as select * from t")
    assert not sharded(connection, "few")
    assert_same_as_duckdb("select sum(n) from few", {"few": TABLES["t"]}, connection=connection)
    connection.set_option("replicate_below", 0)
    connection.execute("create table first as select sum(n)::bigint as s from t")
    assert not sharded(connection, "first")
    assert_same_as_duckdb(
        "select s * 2 from first",
        {"first": run_duckdb("select sum(n)::bigint as s from t", TABLES)},
        connection=connection,
    )


def test_one_that_fails_does_not_appear(opened: Opened) -> None:
    connection = opened(TABLES)
    with pytest.raises(errors.ConversionError):
        connection.execute("create table wrong as select id, cast(g as integer) as i from t")
    assert "wrong" not in connection.catalog.names()


def test_rows_that_are_lost_with_a_worker_are_missed(client: Any, opened: Opened) -> None:
    connection = opened(TABLES)
    connection.execute("create table made as select id, n from t")
    os.kill(next(iter(client.run(os.getpid).values())), signal.SIGKILL)

    def missed() -> bool:
        try:
            connection.sql("select sum(n) from made").to_arrow()
        except errors.ClusterError as error:
            return 'Rows of "made" were lost' in error.message and "create" in error.message
        return False

    until(missed)
    assert_same_as_duckdb("select sum(n) from t", TABLES, connection=connection)
    connection.execute("create or replace table made as select id, n from t")
    assert connection.sql("select count(*) from made").fetchall() == [(TABLES["t"].num_rows,)]


@pytest.mark.filterwarnings("default")
def test_a_frame_of_dask_is_taken_and_given_back(client: Any, opened: Opened) -> None:
    frames = pytest.importorskip("dask.dataframe", reason="the extra dask is not installed")
    connection = opened(TABLES)
    table = TABLES["t"].select(["id", "n", "g"])
    given = frames.from_pandas(table.to_pandas(), npartitions=2 * WORKERS)
    connection.register("given", given[given.id >= 10])
    assert sharded(connection, "given")
    there = {"given": table.filter(pa.compute.greater_equal(table["id"], 10))}
    for query in (
        "select g, count(*), sum(id) from given group by g",
        "select count(n) from given",
    ):
        assert_same_as_duckdb(query, there, connection=connection)
    back = connection.sql("select id + 1 as more, g from given where id < 500").to_dask()
    assert back.npartitions == WORKERS
    rows = back.compute()
    assert sorted(rows["more"]) == list(range(11, 501))
    assert rows["g"].isna().sum() == table["g"].slice(10, 490).null_count


def test_without_a_cluster_rows_are_kept_here(tmp_path: Path) -> None:
    with fuseline.connect("cpu") as connection:
        connection.register("t", TABLES["t"])
        assert connection.sql("select id from t where id < 5").persist().count() == 5
        with pytest.raises(errors.ClusterError, match=r"connect\(cluster=...\)"):
            connection.table("t").to_dask()
