"""Days and moments of CSV: which types they have where formats are told, where types are, and where they are mixed, as in DuckDB."""

from __future__ import annotations

from pathlib import Path

import duckdb
import pytest

import fuseline
from tests.compare import Ordering, difference

VALUES = (
    ("2020-01-01", "2021-02-03"),
    ("01/02/2020", "13/04/2021"),
    ("2020/01/02", "2020/03/04"),
    ("2020-01-01 10:00:00", "2021-02-03 11:12:13"),
    ("2020-01-01 10:00", "2020-01-02"),
    ("2020-01-02", "2020-01-01 10:00:01"),
    ("2020-01-02", "2020-01-01 10:00:01Z"),
    ("01.02.2020 10:00", "03.04.2021 11:00"),
    ("01/02/2020 10:00:00", "03/04/2020 11:00:00"),
    ("20200101", "20210203"),
    ("10:00:00", "11:12:13"),
    ("2020-01-02 10:00", "inf"),
    ("2020-01-02", "5"),
    ("x", "2020-01-02"),
)
OPTIONS = (
    "header = true",
    "dateformat = '%d/%m/%Y'",
    "dateformat = '%Y%m%d'",
    "dateformat = '%H:%M:%S'",
    "dateformat = 'auto'",
    "timestampformat = '%Y-%m-%d %H:%M:%S'",
    "timestampformat = '%d/%m/%Y'",
    "timestampformat = '%Y%m%d'",
    "timestampformat = '%d.%m.%Y %H:%M'",
    "dateformat = '%d.%m.%Y', timestampformat = '%Y'",
    "types = {'c': 'date'}",
    "types = {'c': 'timestamp'}",
    "types = {'c': 'timestamp'}, dateformat = '%d/%m/%Y'",
    "columns = {'c': 'date', 'k': 'int'}",
    "columns = {'c': 'timestamp', 'k': 'int'}, header = true",
    "columns = {'c': 'date', 'k': 'int'}, auto_detect = false, header = true",
)


@pytest.mark.parametrize("options", OPTIONS)
def test_types_are_those_of_duckdb(options: str, tmp_path: Path) -> None:
    path = tmp_path / "f.csv"
    query = f"from read_csv('{path}', {options})"
    with fuseline.connect(device="cpu") as ours, duckdb.connect() as theirs:
        ours.sql("set timezone = 'UTC'")
        theirs.sql("set timezone = 'UTC'")
        for values in VALUES:
            path.write_text("c,k\n" + "".join(f"{v},{i}\n" for i, v in enumerate(values)))
            try:
                expected = theirs.sql(query).to_arrow_table()
            except duckdb.Error:
                with pytest.raises(fuseline.FuselineError):
                    ours.sql(query).to_arrow()
            else:
                found = ours.sql(query).to_arrow()
                assert difference(expected, found, Ordering(True)) is None, values


PAIRS = {
    "iso": ("2020-01-01", "2021-02-03"),
    "either": ("01/02/2020", "03/04/2021"),
    "day first": ("13/02/2020", "03/04/2021"),
    "month first": ("01/13/2020", "02/03/2021"),
    "dots": ("13.02.2020", "03.04.2021"),
    "slashes": ("2020/01/02", "2020/03/04"),
    "moments": ("2020-01-01 10:00:00", "2020-01-02 10:00:00"),
    "moments by day": ("13/01/2020 10:00:00", "03/04/2021 10:00:00"),
    "with zones": ("2020-01-01 10:00:00Z", "2020-01-02 10:00:00+02"),
    "numbers": ("20200101", "20200202"),
    "texts": ("a", "2020-01-01"),
}


@pytest.mark.parametrize("first", PAIRS)
def test_the_first_format_of_a_file_is_that_of_all_columns(first: str, tmp_path: Path) -> None:
    path = tmp_path / "f.csv"
    with fuseline.connect(device="cpu") as ours, duckdb.connect() as theirs:
        for connection in (ours, theirs):
            connection.execute("set timezone = 'UTC'")
        for second, values in PAIRS.items():
            rows = zip(PAIRS[first], values, PAIRS["iso"], strict=True)
            path.write_text("a,b,c\n" + "".join(",".join(row) + "\n" for row in rows))
            expected = theirs.sql(f"from read_csv('{path}')").to_arrow_table()
            found = ours.sql(f"from read_csv('{path}')").to_arrow()
            assert difference(expected, found, Ordering(True)) is None, second


@pytest.mark.parametrize("size", [1, 2048, 2049, 20_480])
def test_samples_are_of_whole_chunks(size: int, tmp_path: Path) -> None:
    path = tmp_path / "f.csv"
    query = f"select typeof(c) from read_csv('{path}', sample_size = {size}, ignore_errors = true) limit 1"
    chunk = -(-size // 2048) * 2048
    with fuseline.connect(device="cpu") as ours, duckdb.connect() as theirs:
        for before in (1, chunk - 2, chunk - 1, chunk):
            path.write_text("c,k\n" + "1,1\n" * before + "x,1\n1,1\n")
            assert ours.sql(query).fetchall() == theirs.sql(query).fetchall(), before


@pytest.mark.parametrize("content", ["c\n\n1.5\n\n", "c\nx\n\ny\n", "c\r\n1\r\n\r\n2\r\n", "c\n0b1\n\n0B1_0\n"])  # fmt: skip
def test_empty_lines_are_rows_where_an_empty_text_is_null(content: str, tmp_path: Path) -> None:
    path = tmp_path / "f.csv"
    path.write_text(content, newline="")
    with fuseline.connect(device="cpu") as ours, duckdb.connect() as theirs:
        for options in (
            "header = true",
            "nullstr = 'NULL'",
            "nullstr = ['', 'NULL']",
            "nullstr = 'NULL', all_varchar = true",
            "nullstr = 'x', columns = {'c': 'varchar'}",
            "nullstr = 'x', auto_detect = false, columns = {'c': 'varchar'}",
            "nullstr = 'NULL', ignore_errors = true",
            "nullstr = 'NULL', null_padding = true",
        ):
            query = f"from read_csv('{path}', {options})"
            expected, found = theirs.sql(query).to_arrow_table(), ours.sql(query).to_arrow()
            assert difference(expected, found, Ordering(True)) is None, options


@pytest.mark.parametrize("kind", ["date", "timestamp", "varchar"])
def test_tables_are_filled_with_days_of_other_orders(kind: str, tmp_path: Path) -> None:
    path = tmp_path / "f.csv"
    path.write_text("c,k\n13/02/2020,1\n01/02/2021,2\n,3\n")
    found = []
    for connection in (fuseline.connect(device="cpu"), duckdb.connect()):
        with connection:
            connection.execute(f"create table t (c {kind}, k integer)")
            try:
                connection.execute(f"copy t from '{path}'")
            except (fuseline.FuselineError, duckdb.Error):
                found.append("refused")
            else:
                found.append(connection.execute("select * from t order by k").fetchall())
    assert found[0] == found[1]
