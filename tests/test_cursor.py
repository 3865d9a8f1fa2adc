"""Cursors: rows, their description, and their end."""

from datetime import date

import pytest

from fuseline.errors import FuselineError


def test_a_cursor_gives_rows_and_describes_them(connection):
    cursor = connection.execute("select x::integer as x, 1.5 as d from range(5) t(x) order by x")
    assert cursor.description[0] == ("x", "INTEGER", None, None, None, None, True)
    assert cursor.description[1][:2] == ("d", "DECIMAL(2,1)")
    assert cursor.description[1][4:6] == (2, 1)
    assert cursor.rowcount == 5
    assert cursor.fetchone()[0] == 0
    assert [r[0] for r in cursor.fetchmany(2)] == [1, 2]
    assert [r[0] for r in cursor] == [3, 4]
    assert cursor.fetchone() is None
    assert cursor.fetchall() == []
    assert cursor.to_arrow().num_rows == 5


def test_values_are_python_objects(connection):
    text = "select 1 a, 1.50 b, 'x' c, date '2024-02-29' d, null e, true f"
    row = connection.execute(text).fetchone()
    assert [str(v) for v in row] == ["1", "1.50", "x", "2024-02-29", "None", "True"]
    assert row[3] == date(2024, 2, 29)


def test_a_closed_cursor_says_so(connection):
    with connection.execute("select 1") as cursor:
        pass
    with pytest.raises(FuselineError, match="cursor is closed"):
        cursor.fetchall()
