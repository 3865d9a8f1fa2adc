"""Queries over a cluster of CPU workers, each with a share of the rows: DuckDB's answers, whatever the plan needs to bring together."""

from __future__ import annotations

import subprocess
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import fuseline
from fuseline import errors
from tests.compare import assert_same_as_duckdb, run_duckdb
from tests.distributed.conftest import WORKERS, Opened

ROWS = 700


def _tables() -> dict[str, pa.Table]:
    made = np.random.default_rng(14)

    def holed(values: Any, share: float = 0.1) -> pa.Array:
        return pa.array(values, mask=made.random(len(values)) < share)

    facts = {
        "id": np.arange(ROWS),
        "k": holed(made.integers(0, 60, ROWS)),
        "g": holed(made.choice(["a", "b", "c", "ü"], ROWS)),
        "n": holed(made.integers(-100, 100, ROWS).astype(np.int32)),
        "price": pa.array([Decimal(int(x)) / 100 for x in made.integers(-9999, 9999, ROWS)]),
        "d": holed(made.normal(size=ROWS)),
        "day": holed(made.integers(0, 9000, ROWS).astype("datetime64[D]")),
    }
    sides = {"k": holed(made.integers(0, 90, 200)), "w": made.integers(0, 50, 200)}
    return {"t": pa.table(facts), "u": pa.table(sides), "none": pa.table(sides).slice(0, 0)}


TABLES = _tables()
QUERIES = [
    "select * from t", "select id, n + 1 from t where n > 3 order by id",
    "select count(*), count(n), sum(n), sum(price), avg(price), avg(n), min(g), max(day) from t",
    "select count(*), sum(n), avg(d) from t where id < 0",
    "select g, count(*), sum(price), avg(n), min(d), bool_and(n > 0), bit_xor(id) from t group by g",
    "select k, avg(price), first(id order by id) from t group by k having count(*) > 5",
    "select g, count(distinct k), sum(distinct n) from t group by g",
    "select g, median(d), quantile_disc(n, 0.3), mode(k) from t group by g",
    "select string_agg(g, '-' order by id) from t", "select stddev_samp(d), corr(d, n) from t",
    "select distinct g, k % 3 from t", "select distinct on (g) g, id from t order by g, id",
    "select id, n from t order by n nulls last, id limit 7 offset 3",
    "select id from t order by d desc nulls first, id limit 100", "select count(*) from (select id from t limit 33)",
    "select t.id, w from t join u on t.k = u.k", "select sum(w), count(*) from t left join u on t.k = u.k and w > 20",
    "select t.id, u.w from t right join u on t.k = u.k and t.n > 0",
    "select count(*), count(t.id), count(u.w) from t full join u on t.k = u.k",
    "select id from t where k in (select k from u where w > 25)",
    "select id from t where k not in (select k from u where k is not null)",
    "select count(*) from t where k not in (select k from u)",
    "select id from t where exists (select 1 from u where u.k = t.k and u.w > t.n)",
    "select id, (select max(w) from u where u.k = t.k) from t",
    "select id from t where n > (select avg(n) from t)", "select id, (select count(*) from t) from t",
    "select count(*) from t, (select count(*) from u where w > 10)",
    "select w, count(*) from u group by w union all select 0, count(*) from t",
    "select count(*) from t, u where t.n < u.w", "select a.id, b.id from t a join t b on a.id = b.id + 1",
    "select k from t intersect select k from u", "select k from t except all select k from u",
    "select id from t union all select w from u", "select g from t union select 'z'",
    "select count(*) from t join none on t.k = none.k", "select max(w) from none", "select w, count(*) from none group by w",
    "with c as (select k, sum(n) as s from t group by k) select count(*) from c a join c b on a.s = b.s",
    "select x, count(*) from (select k as x from t union all select k from u) group by x",
    "select 1 as one", "select i from range(5) r(i)", "select g, sum(n) from t group by rollup (g)",
    "select count(*) from t where day >= date '1980-01-01' and g like '%b%'",
]  # fmt: skip


@pytest.fixture(scope="module")
def shared(client: Any, tmp_path_factory: pytest.TempPathFactory) -> Any:
    folder = tmp_path_factory.mktemp("cluster")
    with fuseline.connect("cpu", cluster=client, replicate_below=0) as connection:
        for name, table in TABLES.items():
            pq.write_table(table, folder / f"{name}.parquet", row_group_size=50)
            connection.read_parquet(folder / f"{name}.parquet", name)
        yield connection


@pytest.mark.parametrize("query", QUERIES)
def test_answers_are_those_of_duckdb(query: str, shared: Any) -> None:
    assert_same_as_duckdb(query, TABLES, connection=shared)


@pytest.mark.parametrize("fuse", ["always", "never"])
def test_settings_reach_the_workers(fuse: str, opened: Opened) -> None:
    query = "select g, sum(n), avg(price) from t join u on t.k = u.k where w > 5 group by g"
    assert_same_as_duckdb(query, TABLES, connection=opened(TABLES, fuse=fuse))


@pytest.mark.parametrize("group_rows", [7, 300, 10_000])
def test_any_cut_of_the_rows_gives_the_same(group_rows: int, opened: Opened) -> None:
    """More row groups than workers, as many, and one alone."""
    connection = opened(TABLES, group_rows)
    for query in (
        "select sum(n), count(*) from t join u on t.k = u.k", "select id from t order by n, id limit 5",
    ):  # fmt: skip
        assert_same_as_duckdb(query, TABLES, connection=connection)


def test_small_tables_are_read_whole_by_the_one_worker_that_is_asked(
    opened: Opened, monkeypatch: pytest.MonkeyPatch
) -> None:
    from fuseline.distributed.crew import Crew

    connection, asked = opened(TABLES, replicate_below="1GB"), []
    parts = Crew._parts
    monkeypatch.setattr(Crew, "_parts", lambda *given: asked.append(len(given[1])) or parts(*given))
    assert_same_as_duckdb("select g, sum(n) from t group by g", TABLES, connection=connection)
    connection.set_option("replicate_below", 0)
    assert_same_as_duckdb("select g, sum(n) from t group by g", TABLES, connection=connection)
    assert asked == [1, WORKERS]


def test_rows_of_the_client_are_on_every_worker(shared: Any) -> None:
    given = pa.table({"k": [1, 2, 2, None]})
    shared.register("mine", given)
    query = "select count(*), sum(t.n) from t join mine on t.k = mine.k"
    assert_same_as_duckdb(query, {**TABLES, "mine": given}, connection=shared)


def test_a_second_run_sends_no_plan(shared: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    from fuseline.distributed import crew

    plans = []
    sent = crew.Crew._sent
    monkeypatch.setattr(crew.Crew, "_sent", lambda *given: plans.append(sent(*given)) or plans[-1])
    for _ in range(2):
        shared.sql("select sum(id) + 17 from t").to_arrow()
    assert [plan is None for plan in plans] == [False] * WORKERS + [True] * WORKERS
    assert plans[0].plan is plans[1].plan, "it was packed once for all"
    shared.set_option(
        "worker_grace", 21
    )  # changes no plan; workers get it with one, none with each query
    shared.sql("select sum(id) + 17 from t").to_arrow()
    assert [plan.settings.worker_grace for plan in plans[2 * WORKERS :]] == [21] * WORKERS
    shared.set_option("worker_grace", 20)


def test_an_order_is_small(shared: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """The client packs one for the first worker and one for the others, and each worker unpacks it before it begins."""
    from fuseline.distributed.members import Members

    orders: list[Any] = []
    begin = Members.begin_query
    monkeypatch.setattr(
        Members, "begin_query", lambda *given: orders.extend(given[-1]) or begin(*given)
    )
    for _ in range(2):
        shared.sql("select sum(id) + 18 from t").to_arrow()
    assert max(len(order.packed) for order in orders[WORKERS:]) < 300


def test_settings_may_go_there_and_back(shared: Any) -> None:
    """A plan of before is sent anew: workers have dropped it meanwhile."""
    query = "select count(*), sum(id) + 3 from t where n > 0"
    assert_same_as_duckdb(query, TABLES, connection=shared)
    shared.set_option("deterministic", True)
    assert_same_as_duckdb("select sum(n) + 5 from t", TABLES, connection=shared)
    shared.reset_option("deterministic")
    assert_same_as_duckdb(query, TABLES, connection=shared)


def test_who_waits_for_a_turn_is_stopped_too(shared: Any) -> None:
    query = "select count(*) + 6 from t where n > (select avg(n) from t)"
    with shared._runner._cluster.turn.held(lambda: None):
        shared.set_option("statement_timeout", 0.3)
        with pytest.raises(errors.Interrupted, match="statement_timeout"):
            shared.sql(query).to_arrow()
    shared.reset_option("statement_timeout")
    assert_same_as_duckdb(query, TABLES, connection=shared)


def test_who_meets_nobody_waits_for_no_turn(shared: Any) -> None:
    """The client merges what each worker has of an aggregate and of the first rows of an order."""
    with shared._runner._cluster.turn.held(lambda: None):
        for query in (
            "select sum(n) + 6, avg(price) from t having count(*) > 5",
            "select id, n from t order by n desc, id limit 3 offset 2",
        ):
            assert_same_as_duckdb(query, TABLES, connection=shared)
            text = shared.sql(query).explain("analyze")
            assert "run by the client" in text
            assert text.count("Stage ") == 1


def test_explain_analyze_shows_all_workers(shared: Any) -> None:
    text = shared.sql("select g, sum(n) from t where id >= 0 group by g").explain("analyze")
    assert f"{WORKERS} workers" in text
    (exchanged,) = [line.split() for line in text.splitlines() if "Exchange gather" in line]
    assert exchanged[1] == str(len({*TABLES["t"]["g"].to_pylist()}))  # which the first has alone


def test_errors_of_workers_are_ours_and_the_connection_goes_on(shared: Any) -> None:
    for text, kind, words in (
        ("select sum(cast(g as integer)) from t", errors.ConversionError, "INTEGER"),
        ("select (select id from t where n > 0)", errors.ExecutionError, "More than one row"),
        ("select cast(n as tinyint) * cast(100 as tinyint) from t", errors.OutOfRange, "TINYINT"),
    ):
        with pytest.raises(kind, match=words) as raised:
            shared.sql(text).to_arrow()
        assert text.split()[0] in str(raised.value) or raised.value.span is None
        assert_same_as_duckdb("select count(*) from t", TABLES, connection=shared)


def test_what_does_not_fit_is_an_error_and_the_connection_goes_on(opened: Opened) -> None:
    """Nothing comes in pieces where workers meet."""
    connection = opened(TABLES, memory_limit="4kB", column_cache_limit="1kB")
    query = "select count(*), max(a.g) from t a join t b on a.k = b.k"
    with pytest.raises(errors.MemoryLimitError, match="SET memory_limit"):
        connection.sql(query).to_arrow()
    connection.set_option("memory_limit", "1GB")
    assert_same_as_duckdb(query, TABLES, connection=connection)


def test_queries_are_stopped(shared: Any) -> None:
    heavy = "select count(*) from t a, t b, t c where a.n + b.n + c.n = 7"
    shared.set_option("statement_timeout", 0.5)
    with pytest.raises(errors.Interrupted, match="statement_timeout"):
        shared.sql(heavy).to_arrow()
    shared.reset_option("statement_timeout")
    found: list[BaseException] = []

    def run() -> None:
        try:
            shared.sql(heavy).to_arrow()
        except BaseException as error:
            found.append(error)

    thread = threading.Thread(target=run)
    thread.start()
    while thread.is_alive():
        time.sleep(0.3)
        shared.interrupt()
    assert [type(error) for error in found] == [errors.Interrupted]
    assert_same_as_duckdb("select sum(n) from t", TABLES, connection=shared)


def test_connections_of_several_threads_take_turns(opened: Opened) -> None:
    """Each query needs all workers: two that have some each would wait for ever."""
    some = {"t": TABLES["t"].slice(0, 100)}
    pairs = [(opened(TABLES), TABLES), (opened(some), some)]

    def run(number: int) -> None:
        connection, tables = pairs[number % 2]
        assert_same_as_duckdb("select g, count(*) from t group by g", tables, connection=connection)

    with ThreadPoolExecutor(4) as pool:
        list(pool.map(run, range(24)))


def test_statements_stay_on_the_client(shared: Any) -> None:
    shared.execute("create or replace table kept as select k, sum(n) as s from t group by k")
    shared.execute("create or replace view seen as select * from kept where s > 0")
    query = "select count(*) from (select k, sum(n) as s from t group by k) where s > 0"
    expected = run_duckdb(query, TABLES)
    assert shared.sql("select count(*) from seen").to_arrow().to_pylist() == expected.to_pylist()


def test_what_is_no_cluster_is_refused(client: Any) -> None:
    closed = type(client)(client.scheduler.address)
    closed.close()
    nowhere = "tcp://127.0.0.1:1"
    for given, words in ((7, "a Dask client"), (nowhere, "no Dask scheduler"), (closed, "closed")):
        with pytest.raises(errors.ClusterError, match=words):
            fuseline.connect("cpu", cluster=given)
    for more in ({}, {"cluster": client}, {"cluster": "local", "workers": True}):
        with pytest.raises(errors.WrongArguments, match="workers="):
            fuseline.connect("cpu", **{"workers": 2, **more})


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("fuseline.connect('cpu').sql('select 1').to_arrow(); print('distributed' in sys.modules)", "False"),
        ("sys.modules['distributed'] = None; fuseline.connect('cpu', cluster='local')", "pip install 'fuseline[dask]'"),
        ("fuseline.connect('cpu', cluster='local', workers=0)", "a number of processes, not 0"),
    ],
)  # fmt: skip
def test_dask_is_asked_for_where_there_is_a_cluster(text: str, said: str) -> None:
    command = [sys.executable, "-c", f"import sys, fuseline; {text}"]
    found = subprocess.run(command, check=False, capture_output=True, text=True)
    assert said in found.stdout + found.stderr


def test_a_script_without_a_main_guard_gets_one_error(tmp_path: Path) -> None:
    script = tmp_path / "script.py"
    script.write_text("import fuseline\nfuseline.connect('cpu', cluster='local', workers=2)\n")
    found = subprocess.run([sys.executable, script], check=False, capture_output=True, text=True)
    assert found.returncode == 1
    assert "ClusterError" in found.stderr.strip().splitlines()[-1]
    assert '__name__ == "__main__"' in found.stderr.strip().splitlines()[-1]
