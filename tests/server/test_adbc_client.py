"""What ADBC's driver, which we did not write, gets from the server: DuckDB's answers, the catalog, updates, transactions, sessions."""

from __future__ import annotations

from collections.abc import Iterator
from decimal import Decimal
from typing import Any

import adbc_driver_flightsql as options
import adbc_driver_manager
import duckdb
import polars as pl
import pyarrow as pa
import pytest

from fuseline.server.flight_service import FlightService
from tests.compare import Ordering, difference, run_duckdb
from tests.server.serving_here import arrow, client, served

T = pa.table({"a": [1, 2, 3], "b": ["x", "y", None]})


@pytest.fixture(scope="module")
def service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[FlightService]:
    with served(tmp_path_factory.mktemp("tables"), {"t": T}, writable=True) as started:
        yield started


@pytest.fixture
def connection(service: FlightService) -> Iterator[Any]:
    with client(service) as opened:
        yield opened


@pytest.fixture
def session(service: FlightService) -> Iterator[Any]:
    """A client that keeps cookies, and with them a session."""
    cookies = {options.DatabaseOptions.WITH_COOKIE_MIDDLEWARE.value: "true"}
    with client(service, cookies) as opened:
        yield opened


def rows(connection: Any, query: str, params: Any = None) -> list[tuple[Any, ...]]:
    with connection.cursor() as cursor:
        cursor.execute(query, params)
        found: list[tuple[Any, ...]] = cursor.fetchall()
        return found


TYPES = """select * from (values
    (1::tinyint, 2::smallint, 3::int, 4::bigint, 5::utinyint, 6::usmallint, 7::uinteger, 8::ubigint, 9::hugeint,
     1.5::decimal(9, 2), 1e300::double, 2.5::float, true, 'text ü', '\\x00ab'::blob, date '2020-02-29',
     time '12:34:56.789', timestamp '1969-12-31 23:59:59.999999', timestamptz '2024-07-01 12:00:00+02',
     interval '1 month 2 days 3 seconds', [1, null, 3], {'x': 1, 'y': 'z'}, map {'k': [1.5]}, [{'a': [1]}], null),
    (null, null, null, null, null, null, null, null, null, null, null, null, null, null, null, null, null, null, null,
     null, null, null, null, null, null)) t"""
ANSWERS = [
    TYPES,
    f"select * from ({TYPES}) limit 0",
    "select 1 as one, 'two' as two, 1 as one",
    "select a, sum(a) over (order by a) as s from (values (1), (2), (3)) v(a) order by a",
    "select range as n, range % 7 as k from range(200000) order by n",
    "show tables",
    "select 'a' where 1 = 0",
    "select sum(range) as s from range(1000)",
    "select 0.0/0 as nan, '-infinity'::double as low",
    "select uuid '01234567-89ab-cdef-0123-456789abcdef' as u, null::uuid as n",
    "select x from (select 'b'::enum('b', 'a') as x union all select 'a' union all select null) order by x",
    "select timestamp_s '2020-01-01 00:00:00' as s, timestamp_ns '2020-01-01 00:00:00.123456789' as ns",
]


@pytest.mark.parametrize("query", ANSWERS, ids=range(len(ANSWERS)))
def test_answers_are_duckdbs(query: str, connection: Any) -> None:
    if query == "show tables":
        assert ("t",) in rows(connection, query)
        return
    assert difference(run_duckdb(query), arrow(connection, query), Ordering(False)) is None


def test_an_answer_has_the_columns_that_were_told(connection: Any) -> None:
    with connection.cursor() as cursor:
        told = cursor.adbc_execute_schema(TYPES)
        cursor.execute(TYPES)
        assert cursor.fetch_arrow_table().schema == told


PARAMETERS = [7, 2**40, -1.5, "text ü", None, b"\x00\xff", True]


@pytest.mark.parametrize("value", PARAMETERS, ids=str)
def test_a_parameter_of_each_type(value: object, connection: Any) -> None:
    found = rows(connection, "select ? as p, a from t where a = ?", (value, 2))
    assert found == [(value, 2)]


def test_parameters_of_arrows_types(connection: Any) -> None:
    """Values of a batch keep what SQL has for their types."""
    given = {
        "d": pa.array([18_000], pa.date32()),
        "n": pa.array([Decimal("1.50")], pa.decimal128(9, 2)),
        "t": pa.array([1_600_000_000_000_000], pa.timestamp("us", "UTC")),
        "i": pa.array([-7], pa.int8()),
        "s": pa.array(["x"], pa.dictionary(pa.int8(), pa.string())),
    }
    found = arrow(
        connection, "select ? as d, ? as n, ? as t, ? as i, ? as s", pa.record_batch(given)
    )
    assert found.to_pylist() == pa.table(given).to_pylist()


def test_named_parameters(connection: Any) -> None:
    batch = pa.record_batch({"low": [2]})
    assert arrow(connection, "select count(*) as n from t where a >= $low", batch).to_pylist() == [
        {"n": 2}
    ]


def test_parameters_whose_columns_have_one_name(connection: Any) -> None:
    batch = pa.RecordBatch.from_arrays([pa.array([1]), pa.array(["x"])], names=["p", "p"])
    assert arrow(connection, "select ? as a, ? as b", batch).to_pylist() == [{"a": 1, "b": "x"}]


def test_an_unknown_table_is_the_clients_mistake(connection: Any) -> None:
    with pytest.raises(adbc_driver_manager.ProgrammingError, match='no table "nope"') as error:
        arrow(connection, "select * from nope")
    assert error.value.status_code == adbc_driver_manager.AdbcStatusCode.INVALID_ARGUMENT
    assert "/" not in str(error.value).replace("pyarrow/_flight.pyx", "")


def test_what_is_not_supported_says_so(connection: Any) -> None:
    with pytest.raises(adbc_driver_manager.NotSupportedError, match="transactions"):
        arrow(connection, "begin")


def test_the_catalog(connection: Any) -> None:
    arrow(connection, "create or replace table keyed (k int, l int, v text, primary key (k, l))")
    arrow(connection, "create or replace view seen as select a from t")
    found = connection.adbc_get_objects(table_name_filter="%e%").read_all().to_pylist()
    assert [catalog["catalog_name"] for catalog in found] == ["memory"]
    tables = found[0]["catalog_db_schemas"][0]["db_schema_tables"]
    assert [(t["table_name"], t["table_type"]) for t in tables] == [
        ("keyed", "TABLE"),
        ("seen", "VIEW"),
    ]
    columns = [(c["column_name"], c["xdbc_type_name"]) for c in tables[0]["table_columns"]]
    assert columns == [("k", "INTEGER"), ("l", "INTEGER"), ("v", "VARCHAR")]
    assert connection.adbc_get_table_types() == ["TABLE", "VIEW"]
    assert connection.adbc_get_table_schema("t").names == ["a", "b"]


def test_what_the_server_is(connection: Any) -> None:
    """The driver asks first, and panics where the union of values has another type."""
    assert connection.adbc_get_info()["vendor_name"] == "Fuseline"


def test_updates_say_how_many_rows(connection: Any) -> None:
    with connection.cursor() as cursor:
        cursor.execute("create or replace table u (x int, y text)")
        cursor.executemany("insert into u values (?, ?)", [(i, str(i)) for i in range(100)])
        assert cursor.rowcount == 100
        cursor.executemany("update u set x = x + ? where y = ?", [(1, "5"), (1, "6")])
        assert cursor.rowcount == 2
    assert rows(connection, "select count(*), sum(x) from u") == [(100, 4952)]


def test_a_change_is_seen_by_all_clients(service: FlightService, connection: Any) -> None:
    arrow(connection, "create or replace table common as select 1 as x")
    with client(service) as other:
        assert rows(other, "select x from common") == [(1,)]
        arrow(other, "insert into common values (2)")
    assert rows(connection, "select count(*) from common") == [(2,)]


@pytest.mark.parametrize("mode", ["create", "append", "replace", "create_append"])
def test_bulk_ingest(mode: str, connection: Any) -> None:
    given = pa.table({"n": range(1000), "t": [str(i) for i in range(1000)]})
    arrow(connection, "drop table if exists ingested")
    if mode in ("append", "replace"):
        arrow(connection, "create table ingested (n bigint, t text)")
        arrow(connection, "insert into ingested values (-1, '')")
    with connection.cursor() as cursor:
        assert cursor.adbc_ingest("ingested", given.to_reader(max_chunksize=100), mode) == 1000
    expected = 1001 if mode == "append" else 1000
    assert rows(connection, "select count(*) from ingested") == [(expected,)]


def test_ingest_does_not_replace_unasked(connection: Any) -> None:
    with connection.cursor() as cursor:
        cursor.adbc_ingest("once", T, "replace")
        with pytest.raises(adbc_driver_manager.Error, match="already"):
            cursor.adbc_ingest("once", T, "create")
        with pytest.raises(adbc_driver_manager.Error, match="no table"):
            cursor.adbc_ingest("nowhere", T, "append")


def test_a_transaction_is_seen_when_it_is_committed(
    service: FlightService, connection: Any
) -> None:
    arrow(connection, "create or replace table money as select 10 as m")
    with client(service, autocommit=False) as other:
        arrow(other, "update money set m = 20")
        assert rows(other, "select m from money") == [(20,)]
        assert rows(connection, "select m from money") == [(10,)]
        other.rollback()
        assert rows(other, "select m from money") == [(10,)]
        arrow(other, "update money set m = 30")
        other.commit()
    assert rows(connection, "select m from money") == [(30,)]


def test_the_first_to_commit_wins(service: FlightService, connection: Any) -> None:
    arrow(connection, "create or replace table money as select 10 as m")
    with client(service, autocommit=False) as one, client(service, autocommit=False) as two:
        arrow(one, "update money set m = m + 1")
        arrow(two, "update money set m = m + 2")
        one.commit()
        with pytest.raises(adbc_driver_manager.Error, match="Another transaction has changed"):
            two.commit()
    assert rows(connection, "select m from money") == [(11,)]


OPTION = options.ConnectionOptions.OPTION_SESSION_OPTION_PREFIX.value


def test_a_session_has_its_own_settings(session: Any, connection: Any) -> None:
    query = "select timestamptz '2024-07-01 12:00:00+00'::text as t"
    before = rows(connection, query)
    session.adbc_connection.set_options(**{f"{OPTION}timezone": "Asia/Tokyo"})
    assert rows(session, query) == [("2024-07-01 21:00:00+09",)]
    assert rows(connection, query) == before
    assert session.adbc_connection.get_option(f"{OPTION}timezone") == "Asia/Tokyo"


@pytest.mark.parametrize(
    ("name", "value"),
    [("allowed_paths", "/"), ("external_access", "true"), ("device", "gpu"), ("timezone", "Mars")],
)
def test_a_session_has_no_other_settings(name: str, value: str, session: Any) -> None:
    with pytest.raises(adbc_driver_manager.Error):
        session.adbc_connection.set_options(**{OPTION + name: value})


def test_prepared_sql_and_macros_are_of_a_session(session: Any, connection: Any) -> None:
    with pytest.raises(adbc_driver_manager.NotSupportedError, match="session"):
        arrow(connection, "create macro twice(x) as 2 * x")
    session.adbc_connection.set_options(**{f"{OPTION}deterministic": "true"})
    arrow(session, "create macro twice(x) as 2 * x")
    assert rows(session, "select twice(21)") == [(42,)]
    script = (
        "create macro thrice(x) as 3 * x; create or replace table made as select thrice(2) as x"
    )
    arrow(session, script)
    assert rows(connection, "select x from made") == [(6,)]
    with pytest.raises(adbc_driver_manager.ProgrammingError, match="twice"):
        rows(connection, "select twice(21)")


def test_polars_reads_a_query(service: FlightService) -> None:
    with client(service) as opened:
        frame = pl.read_database("select a, b from t order by a", opened)
    assert frame.rows() == [(1, "x"), (2, "y"), (3, None)]
    uri = f"flightsql://127.0.0.1:{service.port}?transport=tcp"
    again = pl.read_database_uri("select a, b from t order by a", uri, engine="adbc")
    assert again.equals(frame)


def test_duckdb_reads_what_the_driver_streams(connection: Any) -> None:
    with connection.cursor() as cursor:
        cursor.execute("select range as n from range(1000)")
        reader = cursor.fetch_record_batch()  # noqa: F841 - DuckDB finds it
        assert duckdb.sql("select sum(n) from reader").fetchall() == [(499500,)]
