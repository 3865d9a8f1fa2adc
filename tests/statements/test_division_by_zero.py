"""`error_on_division_by_zero = false`: divisions of which 0 is the divisor give NULL, and floats what they give anyway."""

from __future__ import annotations

import pytest

import fuseline
from fuseline.errors import ExecutionError
from tests.compare import assert_same_as_duckdb

SETUP = [
    "create table t as select i, i::hugeint as h, i::decimal(20, 2) as d, i::double as f, i::utinyint as u"
    " from range(3) r(i) union all select null, null, null, null, null",
    "create view v as select i, 7 // i as q from t",
    "create macro m(a, b) as a % b",
    "set error_on_division_by_zero = false",
]
QUERIES = """
select 1 // 0, 1 % 0, 1.5 % 0, 1.5 // 0, 1.5::double // 0, 1.5::double % 0, mod(1, 0), divide(1, 0), fmod(1, 0), 1 / 0, 5 // 2
select i, 7 // i, 7 % i, 7 // h, 7 % h, 7 // d, 7.5 % d, 7 // f, 7 % f, u // u, u % u, 7 / i, interval 3 days / i from t
select sum(10 // i), count(*) filter (where 10 % i = 0), max(10 % h) from t
select i % 2 as g, sum(i // i) from t group by all
select q, m(i, i), list_transform([4, 5], lambda x: x % i) from v
select 99999999999999999999999999999999999999 // i from t
""".strip().splitlines()


@pytest.mark.parametrize("query", QUERIES)
def test_a_divisor_of_zero_gives_null(query: str) -> None:
    assert_same_as_duckdb(query, setup=SETUP, fuse=("always", "never"))


def test_the_setting_holds_for_known_texts_other_constants_and_frames() -> None:
    with fuseline.connect(device="cpu") as connection:
        with pytest.raises(ExecutionError, match="Division by zero"):
            connection.sql("select 7 // 0").fetchall()
        connection.execute("set error_on_division_by_zero = false")
        asked = [connection.sql(f"select 7 // {i}").fetchall()[0][0] for i in (2, 0, 3)]
        frame = connection.sql("select range as i from range(2)")
        assert asked == [3, None, 2]
        assert frame.select(7 // frame["i"]).fetchall() == [(None,), (7,)]
        connection.execute("reset error_on_division_by_zero")
        with pytest.raises(ExecutionError, match="Division by zero"):
            connection.sql("select 7 // 0").fetchall()
