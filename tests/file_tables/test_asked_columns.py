"""Files of text are read for the columns that a query asks for: bad values in others are as little an error as in DuckDB, and columns that are asked for later are read then."""

from __future__ import annotations

import os
from pathlib import Path

import duckdb
import pyarrow as pa
import pytest

import fuseline
from fuseline.errors import ConversionError, FileError
from fuseline.file_tables.csv_source import CsvSource
from tests.compare import Ordering, connected, difference

from .test_csv_dialects import check

ASKED = (
    "count(*)", "sum(a)", "sum(b)", "count(c)", "sum(a), sum(b)", "sum(b), max(c)", "count(*), sum(a), sum(b), max(c)"
)  # fmt: skip
ROWS = b"".join(b"%d,%d,x%d\n" % (i, i, i) for i in range(30))
BAD = {
    "cast": b"5,oops,z\n",
    "casts": b"5,oops,z\noops,4,y\n",
    "text": b"5,3,\xff\xfe\n",
    "number": b"5,\xff,z\n",
    "first": b"\xff,oops,z\n",
    "quoted": b'5,3,"\xff"\n',
    "both": b"5,oops,\xff\n",
    "few": b"5,\xff\n",
    "many": b"5,3,\xff,4\n",
    "beyond": b"5,oops,z,\xff\n",
}
OPTIONS = ("", "ignore_errors = true", "null_padding = true", "store_rejects = true", "strict_mode = false, ignore_errors = true")  # fmt: skip


@pytest.fixture(autouse=True)
def _folder(tmp_path, monkeypatch) -> None:
    monkeypatch.chdir(tmp_path)


@pytest.fixture
def connection(backend):
    with connected({}, device=backend) as opened:
        yield opened


@pytest.fixture
def readings(monkeypatch) -> list[list[str]]:
    """The columns of each reading of a CSV file."""
    found: list[list[str]] = []
    tables = CsvSource.tables

    def noted(self, columns):
        found.append(sorted(columns))
        return tables(self, columns)

    monkeypatch.setattr(CsvSource, "tables", noted)
    return found


def same(connection: fuseline.Connection, query: str) -> None:
    expected = duckdb.connect().sql(query).to_arrow_table()
    assert difference(expected, connection.sql(query).to_arrow(), Ordering(True)) is None, query


@pytest.mark.parametrize("options", OPTIONS)
@pytest.mark.parametrize("kind", BAD)
def test_bad_values_count_where_they_are_asked_for(kind, options, connection) -> None:
    Path("f.csv").write_bytes(b"a,b,c\n" + ROWS + BAD[kind] + b"9,9,z\n")
    told = "auto_detect = false, header = true, columns = {a: 'BIGINT', b: 'BIGINT', c: 'VARCHAR'}"
    source = f"read_csv('f.csv', {told}{', ' * bool(options)}{options})"
    # Each after the other and before it: what was read for one query does not tell of another
    for asked in (*ASKED, *reversed(ASKED)):
        # Tables of rejects have one reading here, and rows are counted by reading the first column, which c alone does not need
        if "store_rejects" in options or kind == "first":
            with connected({}, device="cpu") as fresh:
                check(fresh, f"select {asked} from {source}")
        else:
            check(connection, f"select {asked} from {source}")


@pytest.mark.parametrize(
    "options",
    ["", "ignore_errors = true", "all_varchar = true", "null_padding = true", "header = false"],
)
@pytest.mark.parametrize("at", [0, 1, 2040, 2050, 20_470, 20_490])
def test_what_is_no_text_is_an_error_in_the_sample(at, options, connection) -> None:
    rows = [b"%d,%d,x\n" % (i, i) for i in range(22_000)]
    rows[at] = b"5,5,\xff\n"
    Path("f.csv").write_bytes(b"a,b,c\n" + b"".join(rows))
    source = f"read_csv('f.csv'{', ' * bool(options)}{options})"
    check(connection, f"select count(*) from {source}")


def test_columns_are_read_with_those_that_were_asked_for(connection, readings) -> None:
    Path("f.csv").write_bytes(b"a,b,c,d\n" + b"".join(b"%d,%d,x%d,\n" % (i, -i, i % 3) for i in range(50)))  # fmt: skip
    os.utime("f.csv", (1, 1))  # it has settled
    for query in (
        "select count(*) from 'f.csv'",
        "select count(*) + 1 from 'f.csv'",
        "select max(a) from 'f.csv' where b < -48",  # the numbers of rows are no bounds of b
        "select min(b) from 'f.csv' where a > 3",
        "select c, count(*) n from 'f.csv' group by c order by c",
        "select 1 one from 'f.csv' where a < 2",
    ):
        same(connection, query)
    assert readings == [[], ["a", "b"], ["a", "b", "c"]]
    same(connection, "select * from 'f.csv' order by a")
    same(connection, "describe from 'f.csv'")
    same(connection, "select count(d), count(*) from 'f.csv'")
    assert readings[3:] == [["a", "b", "c", "d"]]


@pytest.mark.parametrize(
    "query",
    [
        "select count(*) from 'f.csv' x join 'f.csv' y on x.a = y.b",
        "select a from 'f.csv' where a in (select b from 'f.csv') order by a",
        "select a, (select max(y.c) from 'f.csv' y where y.b = x.a) m from 'f.csv' x order by a",
        "with t as (select a, c from 'f.csv') select x.a from t x, t y where x.a = y.a and y.c = 'x1' order by x.a",
        "select count(*) from (select a, b from 'f.csv' where false)",
        "select count(*) from (select * from 'f.csv' order by b limit 3)",
        "select distinct c from 'f.csv' order by c",
        "select a + b s from 'f.csv' order by all limit 2",
        "select sum(a) over (order by b) s from 'f.csv' order by all",
        "select filename, count(*) n from read_csv('f*.csv', filename = true) group by all order by all",
        "select filename from read_csv('f*.csv', filename = true) order by all",
        "select count(*), count(d) from read_csv('*.csv', union_by_name = true)",
        "select d from read_csv('*.csv', union_by_name = true) order by all",
    ],
)
@pytest.mark.parametrize("before", ["", "select sum(b) from 'f.csv'", "select c from 'f.csv'"])
def test_queries_of_some_columns(query, before, connection) -> None:
    Path("f.csv").write_text("a,b,c\n" + "".join(f"{i},{i * 7 % 20},x{i % 3}\n" for i in range(20)))
    Path("f2.csv").write_text("a,b,c\n1,2,y\n")
    Path("g.csv").write_text("a,d\n1,2\n3,\n")
    if before:
        connection.sql(before).fetchall()
    same(connection, query)


def test_a_frame_asks_for_more_columns(connection, readings) -> None:
    Path("f.csv").write_text("a,b,c\n1,2,3\n4,5,6\n")
    os.utime("f.csv", (1, 1))
    frame = connection.read_csv("f.csv")
    assert frame.select("a").fetchall() == [(1,), (4,)]
    assert frame.select("b").fetchall() == [(2,), (5,)]
    assert connection.sql("select sum(a + b) from 'f.csv'").fetchall() == [(12,)]
    assert frame.fetchall() == [(1, 2, 3), (4, 5, 6)]
    assert readings == [["a"], ["a", "b"], ["a", "b", "c"]]


def test_a_file_that_changes_between_two_readings(connection) -> None:
    Path("f.csv").write_text("a,b\n1,2\n")
    os.utime("f.csv", (1, 1))
    assert connection.sql("select sum(a) from 'f.csv'").fetchall() == [(1,)]
    frame = connection.read_csv("f.csv")
    Path("f.csv").write_text("a,b\n3,4\n5,6\n")
    os.utime("f.csv", (2, 2))
    assert connection.sql("select sum(b) from 'f.csv'").fetchall() == [(10,)]
    assert frame.select("a", "b").fetchall() == [(3, 4), (5, 6)]
    Path("f.csv").write_text("a,z\n3,4\n")
    with pytest.raises(FileError, match=r'has changed and its column "b" is no longer'):
        frame.select("a").fetchall()


def test_an_error_names_a_column_that_is_asked_for(connection) -> None:
    Path("f.csv").write_bytes(b"a,b,c\n" + ROWS * 2000 + b"5,oops,\xff\n")
    assert connection.sql("select count(*), sum(a) from 'f.csv'").fetchall() == [(60_001, 870_005)]
    with pytest.raises(ConversionError, match=r'line 60002, column "b"'):
        connection.sql("select a, b from 'f.csv'").fetchall()
    with pytest.raises(FileError, match=r'not UTF-8, at line 60002, column "c"'):
        connection.sql("select a, c from 'f.csv'").fetchall()
    assert connection.sql("select max(a) from 'f.csv'").fetchall() == [(29,)]


def test_columns_of_arrow_files(connection) -> None:
    table = pa.table({"a": [1, 2], "b": ["x", None], "": [3, 4]})
    with pa.ipc.new_file("f.arrow", table.schema) as writer:
        writer.write_table(table)
    for query, rows in (
        ("select count(*) from 'f.arrow'", [(2,)]),
        ("select b from 'f.arrow'", [("x",), (None,)]),
        ("select sum(a) from 'f.arrow'", [(3,)]),
        ("from 'f.arrow'", [(1, "x", 3), (2, None, 4)]),
        ("select filename, a from read_arrow('f.arrow', filename = true)", [("f.arrow", 1), ("f.arrow", 2)]),
    ):  # fmt: skip
        assert connection.sql(query).fetchall() == rows
