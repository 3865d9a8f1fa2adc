"""The connection: registered objects, plans that are kept, settings, and errors that leave it usable."""

import gc
import io
import subprocess
import sys
import threading
import time
import weakref
from collections import UserDict
from datetime import UTC, date, datetime
from types import SimpleNamespace

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import fuseline
from fuseline.errors import (
    AmbiguousName,
    ConnectionClosed,
    ConversionError,
    DeviceError,
    FileError,
    FuselineError,
    Interrupted,
    InvalidQuery,
    MemoryLimitError,
    OutOfRange,
    ParseError,
    TypeMismatch,
    UnknownAttribute,
    UnknownName,
    Unsupported,
    WrongArguments,
)
from tests.compare import missing_for_gpu

no_gpu = pytest.mark.skipif(not missing_for_gpu(), reason="a GPU can be used here")


@pytest.fixture
def file(tmp_path):
    path = tmp_path / "x.parquet"
    pq.write_table(pa.table({"a": [1, 2, 3], "s": ["x", "y", None]}), path)
    return path


def rows(connection, text, params=None):
    return connection.sql(text, params).fetchall()


# Objects


def test_a_file_gets_a_name(connection, file):
    frame = connection.read_parquet(file, "f")
    assert rows(connection, "select max(a) from f") == [(3,)]
    assert frame.fetchall() == [(1, "x"), (2, "y"), (3, None)]
    assert connection.read_parquet([file, file]).fetchall() == frame.fetchall() * 2


def test_a_registered_object_is_read_and_replaced(connection):
    connection.register("t", {"a": [1, 2]})
    assert rows(connection, "select sum(a)::int from t") == [(3,)]
    connection.register("T", pa.table({"b": ["x"]}))
    assert rows(connection, "select * from t") == [("x",)]
    connection.unregister("t")
    with pytest.raises(UnknownName):
        connection.table("t")
    with pytest.raises(UnknownName):
        connection.unregister("t")


def test_a_frame_of_a_replaced_table_keeps_its_rows(connection):
    frame = connection.register("t", {"a": [1]})
    connection.register("t", {"a": [2]})
    assert frame.fetchall() == [(1,)]
    assert rows(connection, "from t") == [(2,)]


def test_columns_without_a_sql_type_fail_only_when_they_are_named(connection):
    with pytest.warns(UserWarning, match='"t" is without the columns "l"'):
        connection.register("t", pa.table({"a": [1], "l": pa.array([1], pa.time64("ns"))}))
    assert rows(connection, "select a from t") == [(1,)]
    assert rows(connection, "select * exclude (l) from t") == [(1,)]
    for text in ("select l from t", "select * from t", "from t", "select t.* from t"):
        with pytest.raises(Unsupported, match='"l" has the type TIME_NS'):
            connection.sql(text)


def test_a_kept_plan_is_of_its_day(connection, monkeypatch):
    moments = [datetime(2026, 12, 31, 23, tzinfo=UTC), datetime(2027, 1, 1, 1, tzinfo=UTC)]
    monkeypatch.setattr("fuseline.plan.temporal.zones.clock", lambda: moments[0])
    query = "select current_date"
    assert rows(connection, query) == rows(connection, query) == [(moments.pop(0).date(),)]
    assert rows(connection, query) == [(moments[0].date(),)]
    connection.sql("set timezone = 'America/New_York'")
    assert rows(connection, query) == [(date(2026, 12, 31),)]


def test_a_frame_can_be_registered(connection):
    connection.register("t", connection.sql("select 5 as a"))
    assert rows(connection, "from t") == [(5,)]


# Plans


def test_parameters_are_values_of_one_text(connection):
    for value in (1, 2, "x", None):
        assert rows(connection, "select ? as a", [value]) == [(value,)]
    assert rows(connection, "select $b - $a as d", {"a": 1, "b": 3}) == [(2,)]


class Shown(UserDict):
    def __repr__(self) -> str:
        return "the same for all"


class Letters(str):
    __repr__ = Shown.__repr__


class Values(list):
    __repr__ = Shown.__repr__


def test_values_that_look_alike_are_others(connection):
    for value in (1, 2):
        assert rows(connection, "select ?[1]", [Values([value])]) == [(value,)]
        assert rows(connection, "select (?).a", [Shown(a=value)]) == [(value,)]
        assert rows(connection, "select (?).a[1]", [{"a": Values([value])}]) == [(value,)]
        assert rows(connection, "select ?", [Letters(value)]) == [(str(value),)]


def test_the_second_run_of_a_text_takes_its_plan_from_the_cache(connection, file):
    text = f"select a, count(*) as n from '{file}' where a > 1 group by a order by a"
    first, second = connection.sql(text), connection.sql(text)
    assert first.to_arrow().equals(second.to_arrow())
    assert not first.profile.cached_plan
    assert second.profile.cached_plan


def test_a_kept_plan_costs_less_than_two_milliseconds(connection, file):
    text = f"select a, count(*) as n from '{file}' where a > 1 group by a order by a"
    spent = []
    for _ in range(20):
        frame = connection.sql(text)
        frame.to_arrow()
        spent.append(frame.profile.plan_seconds)
    assert min(spent[1:]) < 0.002


def test_a_change_of_the_catalog_or_a_setting_makes_a_new_plan(connection):
    connection.execute("create table t as select 1 a")
    assert rows(connection, "from t") == [(1,)]
    connection.execute("create or replace table t as select 'x' b")
    assert rows(connection, "from t") == [("x",)]
    frame = connection.sql("from t")
    frame.to_arrow()
    connection.execute("set threads = 1")
    frame.to_arrow()
    assert not frame.profile.cached_plan


def test_a_file_that_changed_is_read_anew(connection, file):
    named = connection.read_parquet(file, "f")
    text = f"select count(*)::int, sum(a)::int from '{file}'"
    assert rows(connection, text) == [(3, 6)]
    pq.write_table(pa.table({"a": [10, 20, 30, 40], "s": ["a"] * 4}), file)
    assert rows(connection, text) == [(4, 100)]
    assert rows(connection, "select count(*)::int from f") == [(4,)]
    assert len(named) == 4


def test_a_file_with_other_columns_needs_a_new_query(connection, file):
    named = connection.read_parquet(file, "f")
    pq.write_table(pa.table({"b": [1.5]}), file)
    with pytest.raises(FileError, match='"a" is no longer BIGINT'):
        named.to_arrow()
    assert rows(connection, "from f") == [(1.5,)]


def test_a_new_file_in_a_folder_is_seen(connection, file):
    text = f"select count(*)::int from read_parquet('{file.parent}')"
    assert rows(connection, text) == [(3,)]
    pq.write_table(pa.table({"a": [1], "s": ["x"]}), file.parent / "y.parquet")
    assert rows(connection, text) == [(4,)]


def test_kept_plans_do_not_keep_tables_that_are_gone(connection):
    connection.execute("create table t as select 1 a")
    rows(connection, "from t")
    connection.table("t").to_arrow()
    table = weakref.ref(connection.catalog.table("t"))
    connection.execute("drop table t")
    rows(connection, "select 1")
    gc.collect()
    assert table() is None


def test_scanned_columns_are_kept_and_dropped_with_their_table(connection, file):
    rows(connection, f"select a from '{file}'")
    assert [s.column for s in connection.cache.stats()] == ["a"]
    connection.register("t", {"c": [1]})
    rows(connection, "select c from t")
    connection.unregister("t")
    assert [s.column for s in connection.cache.stats()] == ["a"]


# Settings and devices


def test_settings_by_argument_environment_and_statement(monkeypatch):
    monkeypatch.setenv("FUSELINE_THREADS", "3")
    with fuseline.connect("cpu", memory_limit="1GB") as connection:
        assert (connection.settings.threads, connection.settings.memory_limit) == (3, 10**9)
        connection.execute("set memory_limit = '2GB'")
        assert connection.settings.memory_limit == 2 * 10**9
        connection.execute("reset memory_limit")
        assert connection.settings.memory_limit == 10**9


def test_a_setting_that_does_not_exist_changes_nothing(connection):
    with pytest.raises(UnknownName, match='"threads"'):
        connection.execute("set thread = 4")
    with pytest.raises(InvalidQuery, match="'4GB'"):
        connection.execute("set memory_limit = 'much'")
    assert rows(connection, "select 1") == [(1,)]


@no_gpu
def test_a_gpu_that_is_missing_says_what_to_install(connection):
    with pytest.raises(DeviceError, match=r"fuseline\[cuda13\]|driver|no GPU"):
        fuseline.connect(device="gpu")
    with pytest.raises(DeviceError):
        connection.execute("set device = 'gpu'")
    assert connection.device == "cpu"
    assert rows(connection, "select 1") == [(1,)]


@no_gpu
def test_auto_is_the_cpu_where_there_is_no_gpu():
    with fuseline.connect() as connection:
        assert connection.device == "cpu"


def test_require_gpu_gives_all_reasons_before_anything_runs(connection):
    connection.execute("set require_gpu = true")
    with pytest.raises(DeviceError, match=r"require_gpu is set.*runs on the CPU"):
        rows(connection, "select 1 as a")
    connection.execute("set require_gpu = false")
    assert rows(connection, "select 1") == [(1,)]


def test_a_memory_limit_stops_a_query_and_nothing_else(connection):
    connection.execute("set memory_limit = '1MB'")
    with pytest.raises(MemoryLimitError, match="SET memory_limit"):
        rows(connection, "select * from range(1000000)")
    assert rows(connection, "select count(*)::int from range(10)") == [(10,)]


def test_debug_describes_a_run_on_standard_error(connection, capsys):
    connection.execute("set debug = 3")
    rows(connection, "select 1 as a where 1 = 1")
    said = capsys.readouterr().err
    assert "planning" in said
    assert "device" in said


# Errors


@pytest.mark.parametrize(
    ("text", "kind"),
    [
        ("select * fro t", ParseError),
        ("select * from tt", UnknownName),
        ("select aa from t", UnknownName),
        ("select a from t, t u", AmbiguousName),
        ("select a + 'x' || date '2024-01-01' + true from t", FuselineError),
        ("select a from t where sum(a) > 1", InvalidQuery),
        ("select a, count(*) from t", InvalidQuery),
        ("select cast('x' as integer)", ConversionError),
        ("select 9223372036854775807 + a from t", OutOfRange),
        ("select substring(a) from t", (TypeMismatch, UnknownName)),
    ],
)
def test_an_error_has_its_class_and_leaves_the_connection_usable(connection, text, kind):
    connection.register("t", {"a": [1, 2]})
    with pytest.raises(kind):
        connection.sql(text).to_arrow()
    assert rows(connection, "select sum(a)::int from t") == [(3,)]


def test_an_error_points_into_its_text(connection):
    with pytest.raises(UnknownName) as error:
        connection.sql("select 1;\nselect nothing from range(3)")
    assert "LINE 2: select nothing from range(3)\n               ^^^^^^^" in str(error.value)


def test_a_closed_connection_says_so():
    connection = fuseline.connect("cpu")
    frame = connection.sql("select 1")
    connection.close()
    for call in (
        connection.close,
        lambda: connection.sql("select 1"),
        frame.to_arrow,
        lambda: connection.table("t"),
    ):
        with pytest.raises(ConnectionClosed, match=r"fuseline.connect\(\)"):
            call()


def test_another_thread_can_stop_a_query(connection):
    stopped = []

    def long_query():
        try:
            for _ in range(1000):
                connection.sql("select sum(range) from range(1000000)").to_arrow()
        except Interrupted:
            stopped.append(True)

    thread = threading.Thread(target=long_query)
    thread.start()
    while thread.is_alive():
        connection.interrupt()
        time.sleep(0.001)
    assert stopped == [True]
    assert rows(connection, "select 1") == [(1,)]


def test_threads_share_a_connection(connection):
    connection.register("t", {"a": list(range(100))})
    answers = []

    def work(n):
        connection.execute(f"create table t{n} as select a from t where a < {n}")
        answers.append((n, rows(connection, f"select count(*)::int from t{n}")))

    threads = [threading.Thread(target=work, args=(n,)) for n in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(answers) == [(n, [(n,)]) for n in range(8)]


def test_importing_fuseline_imports_nothing_heavy():
    code = (
        "import sys, fuseline; "
        "print([m for m in ('numba', 'pylibcudf', 'duckdb', 'dask', 'sqlglot', 'pyarrow') if m in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


@pytest.mark.parametrize(("call", "message"), [
    (lambda c: c.sql(None), "SQL is given as a str, not as NoneType"),
    (lambda c: c.sql("select ?", 1), "params takes a list or a dictionary, not int"),
    (lambda c: c.sql("select ?", "a"), "params takes a list or a dictionary, not str"),
    (lambda c: c.read_parquet(None), "A path is a str or a pathlib.Path, .* not None"),
    (lambda c: c.read_csv(io), "A path is a str or a pathlib.Path, .* not <module"),
    (lambda c: c.read_json(SimpleNamespace(read=dict)), "What .* reads is no text and no bytes"),
    (lambda c: fuseline.connect(None, False, 5), "config= takes a dictionary of settings, not 5"),
    (lambda c: c.register(None, {"a": [1]}), "name is a str that is not empty, not None"),
    (lambda c: c.register("", {"a": [1]}), "name is a str that is not empty, not ''"),
])  # fmt: skip
def test_an_argument_of_the_wrong_kind_is_refused_by_name(connection, call, message):
    with pytest.raises((InvalidQuery, TypeMismatch, WrongArguments), match=message):
        call(connection)
    assert connection.sql("select 1").fetchall() == [(1,)]


def test_each_thread_reads_the_rows_of_its_own_execute():
    with fuseline.connect(device="cpu") as connection:
        connection.execute("select 1")
        other = threading.Thread(target=connection.execute, args=("select 2",))
        other.start()
        other.join()
        assert connection.fetchall() == [(1,)]
        with pytest.raises(UnknownAttribute, match='Did you mean "sql"'):
            connection.sgl("select 1")
        assert connection.query("select 1 + ?", [1]).fetchall() == [(2,)]
