"""connect("grpc://..."): the interface of a connection, whose texts a server carries out."""

from __future__ import annotations

import re
import subprocess
import sys
import threading
from datetime import date
from decimal import Decimal

import pyarrow as pa
import pytest

import fuseline
from fuseline import errors
from tests.compare import Ordering, difference

from .serving_here import address, served

SALES = pa.table({"city": ["Oslo", "Rome", "Oslo", None], "sold": [3, 5, 4, 1]})


@pytest.fixture
def remote(tmp_path):
    with served(tmp_path, {"sales": SALES}, writable=True) as service:
        connection = fuseline.connect(address(service))
        with connection:
            yield connection


def test_queries_give_frames_with_all_their_methods(remote) -> None:
    query = "select city, sum(sold) as total, 1::hugeint as h, 1.5 as d from sales group by all"
    with fuseline.connect(device="cpu") as local:
        local.register("sales", SALES)
        expected = local.sql(query).to_arrow()
    frame = remote.sql(query)
    assert difference(expected, frame.to_arrow(), Ordering(False)) is None
    assert [str(kind) for kind in frame.schema.values()] == ["VARCHAR", "HUGEINT", "HUGEINT", "DECIMAL(2,1)"]  # fmt: skip
    assert frame.filter(fuseline.col("total") > 5).sort("city").fetchall() == [("Oslo", 7, 1, Decimal("1.5"))]  # fmt: skip
    assert remote.table("sales").to_pandas().shape == (4, 2)
    assert remote.sql("select * from sales limit 0").fetchall() == []
    assert "server at grpc://" in repr(remote)


def test_a_frame_sees_the_rows_of_now(remote) -> None:
    remote.execute("create table t (a integer)")
    frame = remote.sql("select a from t order by a")
    assert frame.fetchall() == []
    assert remote.execute("insert into t values (1), (2)").rowcount == 2
    assert frame.fetchall() == [(1,), (2,)]
    assert remote.sql("insert into t values (3) returning a").fetchall() == [(3,)]
    assert frame.fetchall() == [(1,), (2,), (3,)]
    remote.execute("insert into t values (4); insert into t values (5)")
    assert remote.execute("select 1; select count(*) from t").fetchone() == (5,)


def test_cursors_parameters_and_many_rows(remote) -> None:
    cursor = remote.cursor()
    assert cursor.execute("select city, sold from sales where sold > ? order by 2", [3]).fetchone() == ("Oslo", 4)  # fmt: skip
    assert cursor.fetchmany(5) == [("Rome", 5)]
    assert [column[0] for column in cursor.description] == ["city", "sold"]
    values = [True, 2**40, 0.5, "ü", b"\0", date(2024, 2, 29), Decimal("1.25"), None]
    marks = ", ".join("?" * len(values))
    assert remote.execute(f"select {marks}", values).fetchone() == tuple(values)
    assert remote.sql("select $a + $b", {"a": 1, "b": 2}).fetchall() == [(3,)]
    remote.execute("create table t (a integer, b varchar)")
    rows = [(i, str(i)) for i in range(1000)]
    assert remote.executemany("insert into t values (?, ?)", rows).rowcount == 1000
    assert remote.sql("select sum(a), count(distinct b) from t").fetchall() == [(499500, 1000)]
    with pytest.raises(fuseline.FuselineError, match="Several statements with parameters"):
        remote.execute("select ?; select ?", [1])


def test_transactions(remote) -> None:
    remote.execute("create table t as select 1 as a")
    remote.begin()
    remote.execute("delete from t")
    assert remote.sql("from t").fetchall() == []
    remote.rollback()
    assert remote.sql("from t").fetchall() == [(1,)]
    remote.execute("begin transaction")
    remote.execute("insert into t values (2)")
    remote.commit()
    assert remote.sql("select count(*) from t").fetchall() == [(2,)]
    with pytest.raises(errors.TransactionError, match="no transaction"):
        remote.execute("commit")
    with pytest.raises(fuseline.FuselineError, match="nothing to roll back"):
        remote.rollback()


@pytest.mark.parametrize(
    ("text", "kind", "message"),
    [
        ("select nope from sales", errors.UnknownName, "no column"),
        ("selec 1", errors.ParseError, "Syntax error"),
        ("select * from missing", errors.UnknownName, "no table"),
        ("select cast(city as integer) from sales", errors.ConversionError, "Could not convert"),
        ("from 'secret.parquet'", errors.AccessDenied, "may not be opened"),
        ("set threads = 2", errors.AccessDenied, "not taken from clients"),
        ("insert into sales values ('x', 1)", errors.CatalogError, "made of files"),
        ("", errors.InvalidQuery, "no statement"),
    ],
)
def test_errors_have_their_class_and_place(text, kind, message, remote) -> None:
    with pytest.raises(kind, match=message) as found:
        remote.sql(text).fetchall()
    assert "\x1e" not in str(found.value)
    assert "gRPC" not in str(found.value)
    if kind in (errors.ParseError, errors.UnknownName):
        assert re.search(r"\nLINE 1: .*\n +\^+", str(found.value))
        assert "\n" not in found.value.message


def test_what_is_only_of_this_process_is_refused(remote) -> None:
    for work, message in (
        (lambda: remote.register("x", SALES), "sees no objects of this process"),
        (lambda: remote.from_df(SALES), "sees no objects of this process"),
        (lambda: remote.read_parquet("sales.parquet"), "whose files SQL reads"),
        (lambda: remote.set_option("threads", 2), "settings are those of the server"),
    ):
        with pytest.raises(errors.Unsupported, match=message):
            work()


def test_a_query_that_runs_at_the_server_is_stopped(remote) -> None:
    slow = "select count(*) from range(100000) a, range(100000) b where a.range + b.range < 0"
    ended = threading.Event()

    def interrupt() -> None:
        while not ended.wait(0.1):  # the first ones may come before the query
            remote.interrupt()

    thread = threading.Thread(target=interrupt)
    thread.start()
    with pytest.raises(errors.Interrupted):
        remote.sql(slow).fetchall()
    ended.set()
    thread.join()
    assert remote.sql("select 1").fetchall() == [(1,)]


def test_addresses_and_logins(tmp_path) -> None:
    for given, message in (
        ("grpc://", "address is"),
        ("grpc+unix://x", "address is"),
    ):
        with pytest.raises(errors.WrongArguments, match=message):
            fuseline.connect(given)
    for more in ({"read_only": True}, {"login": {"tokn": "x"}}, {"login": {"user": "x"}}):
        with pytest.raises(errors.WrongArguments):
            fuseline.connect("grpc://127.0.0.1:1", **more)
    with pytest.raises(errors.WrongArguments, match="login="):
        fuseline.connect(login={"token": "x"})
    with pytest.raises(errors.OperationalError, match="does not answer"):
        fuseline.connect("grpc://127.0.0.1:1")
    closed = None
    with served(tmp_path, {"sales": SALES}) as service:
        closed = fuseline.connect(address(service))
        closed.close()
    with pytest.raises(errors.ConnectionClosed):
        closed.sql("select 1")


def test_a_server_of_its_own_process_with_a_token(tmp_path) -> None:
    tokens = tmp_path / "tokens"
    tokens.write_text("0123456789abcdef0123456789abcdef\n")
    tokens.chmod(0o600)
    command = [sys.executable, "-m", "fuseline", "serve", "--port", "0", "--token-file", str(tokens), "--set", "device=cpu"]  # fmt: skip
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True) as process:  # fmt: skip
        try:
            assert process.stdout is not None
            said = process.stdout.readline()
            place = re.search(r"grpc://\S+:\d+", said)
            assert place is not None, said
            with pytest.raises(errors.OperationalError):
                fuseline.connect(place[0])
            login = {"token": tokens.read_text().strip()}
            with fuseline.connect(place[0], login=login) as connection:
                assert connection.sql("select 6 * 7").fetchall() == [(42,)]
        finally:
            process.terminate()
