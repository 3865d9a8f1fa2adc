"""What DuckDB refuses since types or numbers of arguments do not fit, and a lenient reader would answer."""

from __future__ import annotations

import duckdb
import pytest

from fuseline.errors import FuselineError
from tests.compare import assert_same_as_duckdb, connected

REFUSED = [
    "select ifnull(1, 2, 3)",
    "select ifnull(1)",
    "insert into t values (2) returning (select max(i) from t)",
    "delete from t where i = 2 returning (select 1)",
    "update t set i = 5 returning exists (select 1)",
    "update t set i = 5 returning i in (select 1)",
    "select [1] || null::varchar",
    "select null::varchar || [1]",
    "select ['a'] || 'b'",
    "select list_concat([1], null::varchar)",
    "select '2' + 1",
    "select i + '2' from t",
    "select '2' - i from t",
    "select '2' * 1.5",
    "select b * '2' from t",
    "select '2' / i from t",
    "select '2' << i from t",
    "select '2' * null",
    "select 1 & 'x'",
    "select coalesce(null::varchar, 1)",
    "select case when i > 1 then 1 else null::varchar end from t",
    "select year(null::varchar)",
    "select [1, null::varchar]",
    "pivot t on (i, b) in ((1, 2)) using count(*)",
]
ANSWERED = [
    "select ifnull(null, 2), ifnull(i, b) from t",
    "select [1] || null, ['a'] || ['b'], 'a' || null::varchar",
    "select i - '2', i / '2', '2' * i, '2' + b, '2' + 1.5, i % '2', null::varchar || i from t",
    "select '2' & i, i | '2', xor(b, '2'), i << '2', '2' >> b from t",
    "select '2' + null, null - '2', null / '2', null & '2', '2' % null",
    "select '2' + timestamp '2020-01-01', timestamp '2020-01-01' + '3 days', interval 3 day - '2', interval 3 day / '2', time '10:00' - '2'",
    "select coalesce(null::varchar, 'a'), null::varchar = 1",
    "select * from t pivot (count(*) for (i, b) in ((1, 2), (3, 4)))",
]
TABLE = "create table t as select 1 as i, 2::bigint as b"


@pytest.mark.parametrize("query", REFUSED)
def test_it_is_refused_here_too(query: str) -> None:
    rival = duckdb.connect()
    rival.execute(TABLE)
    with pytest.raises(duckdb.Error):
        rival.execute(query)
    with connected({}) as connection:
        connection.sql(TABLE)
        with pytest.raises(FuselineError) as refused:
            connection.execute(query)
        assert refused.value.span is not None


@pytest.mark.parametrize("query", ANSWERED)
def test_what_is_next_to_it_is_answered(query: str, backend: str) -> None:
    assert_same_as_duckdb(query, setup=(TABLE,), backend=backend, fuse=("always", "never"))


def test_values_of_execute_are_read_as_constants() -> None:
    with connected({}) as connection:
        connection.sql("prepare p as select $1 + 1")
        assert connection.sql("execute p(2)").fetchall() == [(3,)]
        with pytest.raises(FuselineError, match="cast it"):
            connection.sql("execute p('2')")
