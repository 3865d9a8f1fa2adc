"""Every type in every output format, with NULL, extremes, no rows and names that repeat: what DuckDB's client gives, where it has the call."""

from __future__ import annotations

import atexit
import contextlib
import io
import json
import math
from collections.abc import Callable
from decimal import Decimal
from functools import cache
from pathlib import Path
from typing import Any

import duckdb
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.csv
import pytest

import fuseline
from fuseline.cli.shell.output_modes import ROW_MODES, Header
from fuseline.errors import TypeMismatch
from fuseline.frame.fitted_table import csv_columns, print_table, rows_of_batches
from fuseline.plan.types import VARCHAR
from tests.compare import assert_same_as_duckdb

DIGITS = "9" * 38
VALUES = {
    "boolean": ["true", "false"], "tinyint": ["-128", "127"], "smallint": ["-32768", "32767"],
    "integer": ["-2147483648", "2147483647"],
    "bigint": ["-9223372036854775808", "9223372036854775807"],
    "utinyint": ["0", "255"], "usmallint": ["0", "65535"], "uinteger": ["0", "4294967295"],
    "ubigint": ["0", "18446744073709551615"], "hugeint": [f"-{DIGITS}", DIGITS, "0"],
    "float": ["'nan'", "'inf'", "'-inf'", "-0.0", "3.4e38", "1e-45", "0.1"],
    "double": ["'nan'", "'inf'", "'-inf'", "-0.0", "1.7976931348623157e308", "5e-324", "0.1"],
    "decimal(1, 0)": ["9", "-9"], "decimal(4, 2)": ["99.99", "-99.99", "0.01"],
    "decimal(18, 3)": ["999999999999999.999", "-0.001"],
    "decimal(38, 0)": [DIGITS, f"-{DIGITS}"],
    "decimal(38, 38)": [f"'0.{DIGITS}'", f"'-0.{DIGITS}'"],
    "date": ["'0001-01-01'", "'9999-12-31'", "'1970-01-01'"],
    "timestamp": ["'0001-01-01 00:00:00'", "'9999-12-31 23:59:59.999999'", "'1969-12-31 23:59:59'"],
    "interval": ["'1 year 2 months 3 days 04:05:06.789'", "'-1 day'", "'0 days'"],
    "varchar": ["''", "'a'", "'é€😀'", "'a''b\"c,d'", "'NULL'", "'two\nlines'", "' '", "'\t\\'"],
}  # fmt: skip


def json_text(table: pa.Table) -> str:
    header = Header(tuple(table.column_names), (VARCHAR,) * table.num_columns)
    rows = rows_of_batches(table.to_batches(max_chunksize=2), header.types)
    return "".join(ROW_MODES["json"](header, rows))


@cache
def database() -> duckdb.DuckDBPyConnection:
    atexit.register(database.cache_clear)
    return duckdb.connect()


def query(kind: str, which: str) -> str:
    values = {"some": VALUES[kind], "none": [], "with NULL": ["null", *VALUES[kind]]}[which]
    rows = ", ".join(f"(cast({v} as {kind}))" for v in values or ["null"])
    return f"select x, x as y from (values {rows}) v(x){'' if values else ' where false'}"


CASES = [(kind, which) for kind in VALUES for which in ("some", "none", "with NULL")]


def same(mine: Any, theirs: Any) -> bool:
    if isinstance(theirs, float) and math.isnan(theirs):
        return isinstance(mine, float) and math.isnan(mine)
    return type(mine) is type(theirs) and mine == theirs


@pytest.mark.parametrize(("kind", "which"), CASES)
def test_arrow(kind: str, which: str) -> None:
    assert_same_as_duckdb(query(kind, which), ordered=True)


@pytest.mark.parametrize(("kind", "which"), CASES)
def test_rows_as_python_values(kind: str, which: str, connection: Any) -> None:
    text = query(kind, which)
    rows = connection.sql(text).fetchall()
    cursor = connection.execute(text)
    one, some = cursor.fetchone(), cursor.fetchmany(2)
    read = [*([one] if one else []), *some, *cursor.fetchall()]
    others = (list(iter(connection.sql(text))), list(connection.execute(text)), read)
    for other in others:
        assert repr(other) == repr(rows)
    expected = duck(text)
    assert len(rows) == len(expected)
    assert all(
        same(a, b) for r, e in zip(rows, expected, strict=True) for a, b in zip(r, e, strict=True)
    )


def duck(text: str) -> list[tuple[Any, ...]]:
    with database().cursor() as connection:
        return connection.execute(text).fetchall()


@pytest.mark.parametrize(("kind", "which"), CASES)
def test_pandas(kind: str, which: str, connection: Any) -> None:
    frame = connection.sql(query(kind, which)).to_pandas()
    with database().cursor() as theirs:
        expected = theirs.execute(query(kind, which)).df()
    assert list(frame.columns) == list(expected.columns)
    assert frame.shape == expected.shape
    if kind.startswith("decimal") or kind == "interval":
        rows = connection.sql(query(kind, which)).fetchall()
        if kind != "interval":
            assert [v if v is not None else None for v in frame["x"]] == [r[0] for r in rows]
        return
    if which != "none" or kind != "varchar":
        # Whole numbers that fit 64 bits are such, where DuckDB's client makes doubles
        pd.testing.assert_frame_equal(frame, expected, check_dtype=kind != "hugeint")


@pytest.mark.parametrize(("kind", "which"), CASES)
def test_polars(kind: str, which: str, connection: Any) -> None:
    frame = connection.sql(query(kind, which))
    if kind == "interval":
        with pytest.raises(TypeMismatch, match='"x" is INTERVAL, which Polars does not have'):
            frame.to_polars()
        return
    made = frame.to_polars()
    with database().cursor() as theirs:
        expected = pl.from_arrow(theirs.sql(query(kind, which)).to_arrow_table())
    assert isinstance(expected, pl.DataFrame)
    assert made.schema == expected.schema
    assert made.equals(expected)
    assert pl.DataFrame(frame).equals(made)


@pytest.mark.parametrize(("kind", "which"), CASES)
def test_the_c_stream(kind: str, which: str, connection: Any) -> None:
    frame = connection.sql(query(kind, which))
    assert pa.table(frame).to_pydict().__repr__() == frame.to_arrow().to_pydict().__repr__()


@pytest.mark.parametrize(("kind", "which"), CASES)
def test_csv_is_what_duckdb_reads_back(
    kind: str, which: str, connection: Any, tmp_path: Path
) -> None:
    path = tmp_path / "x.csv"
    pyarrow.csv.write_csv(csv_columns(connection.sql(query(kind, which)).to_arrow()), path)
    read = f"read_csv('{path}', header=true, all_varchar=true, allow_quoted_nulls=false, quote='\"', escape='\"', delim=',')"
    text = query(kind, which)
    cast = "" if kind == "varchar" else f"::{kind}"
    with database().cursor() as theirs:
        back = theirs.sql(f"select x{cast}, y{cast} from (from {read} limit 100)").fetchall()
    assert repr(back) == repr(duck(text))


@pytest.mark.parametrize(("kind", "which"), CASES)
def test_json(kind: str, which: str, connection: Any) -> None:
    table = connection.sql(query(kind, which)).to_arrow()
    rows = json.loads(json_text(table), parse_float=Decimal)
    texts = duck(f"select x::varchar from ({query(kind, which)})")
    assert len(rows) == len(texts)
    for row, (text,) in zip(rows, texts, strict=True):
        assert list(row) == ["x", "y"]
        shown = str(row["x"]).lower() if isinstance(row["x"], bool) else row["x"]
        if text is None or not isinstance(shown, int | Decimal):
            assert shown == text
        else:
            assert math.isclose(float(shown), float(text), rel_tol=1e-7, abs_tol=1e-44)
            assert kind in ("float", "double") or Decimal(shown) == Decimal(text)


@pytest.mark.parametrize(("kind", "which"), CASES)
def test_what_is_shown(kind: str, which: str, connection: Any) -> None:
    frame = connection.sql(query(kind, which))
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed):
        frame.show(None)
        print_table(frame.to_arrow(), [c.type for c in frame.plan.columns], None)
    texts = duck(f"select x::varchar from ({query(kind, which)})")
    html = frame._repr_html_()
    for (text,) in texts:
        if kind not in ("varchar", "float", "double", "decimal(38, 38)"):  # .9 is 0.9 here
            assert printed.getvalue().count(text or "NULL") >= 4
            assert (text or "NULL") in html
        if kind not in ("varchar", "float", "double", "hugeint") and "38" not in kind:
            assert (text or "NULL") in repr(frame)  # where it is not too wide


REPEATED = 'select 1 as a, 2 as a, 3 as "A", 4 as a_1'
FORMATS: dict[str, Callable[[Any], Any]] = {
    "rows": lambda f: f.fetchall(),
    "arrow": lambda f: f.to_arrow().column_names,
    "pandas": lambda f: list(f.to_pandas().columns),
    "json": lambda f: list(json.loads(json_text(f.to_arrow()))[0]),
    "html": lambda f: f._repr_html_().count("<th "),
}


@pytest.mark.parametrize(("name", "expected"), [
    ("rows", [(1, 2, 3, 4)]),
    ("arrow", ["a", "a", "A", "a_1"]),
    ("json", ["a", "a_1", "A_2", "a_1_1"]),
    ("html", 4),
])  # fmt: skip
def test_names_that_repeat(name: str, expected: Any, connection: Any) -> None:
    assert FORMATS[name](connection.sql(REPEATED)) == expected


def test_names_that_repeat_in_pandas_and_polars(connection: Any) -> None:
    with database().cursor() as theirs:
        expected = list(theirs.execute(REPEATED).df().columns)
    assert FORMATS["pandas"](connection.sql(REPEATED)) == expected
    assert list(connection.sql(REPEATED).to_polars().columns) == expected


@pytest.mark.parametrize(
    "statement", ["set threads = 2", "create table z (a integer)", "drop table if exists z"]
)
def test_answers_of_statements(statement: str, connection: Any) -> None:
    frame = connection.sql(statement)
    for method in (
        frame.fetchall,
        frame.to_arrow,
        frame.to_pandas,
        frame.to_polars,
        frame.show,
        frame._repr_html_,
    ):
        method()
    again = connection.execute(statement.replace("table z", "table if not exists z"))
    assert (again.description, again.rowcount) == (None, -1)


def test_many_columns_of_objects_are_added_at_once(recwarn: pytest.WarningsRecorder) -> None:
    """pandas warns of a frame to which 100 are added one by one."""
    with fuseline.connect("cpu") as connection:
        sums = ", ".join(f"sum(x + {i}) as c{i}, {i} as n{i}" for i in range(150))
        frame = connection.sql(f"select {sums} from range(3) t(x)").to_pandas()
    assert list(frame.columns) == [f"{kind}{i}" for i in range(150) for kind in "cn"]
    assert frame["c7"].tolist() == [24]
    assert frame["n7"].tolist() == [7]
    assert not recwarn.list
