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
