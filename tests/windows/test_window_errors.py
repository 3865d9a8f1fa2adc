"""Windows that have no meaning are refused, at their place, where DuckDB refuses them too."""

from __future__ import annotations

import duckdb
import pytest

from fuseline.errors import FuselineError
from tests.compare import connected

from .window_queries import table

TABLES = {"t": table(20, 4)}
REFUSED = """
select ntile(^0^) over (order by id) from t
select ^ntile(k)^ over (order by id) from t
select sum(u) over (order by id rows between ^null^ preceding and current row) from t
select sum(u) over (order by id rows between -^1^ preceding and current row) from t
select sum(u) over (order by id groups between -^1^ preceding and current row) from t
select sum(u) over (order by id rows between ^k^ preceding and current row) from t
select sum(u) over (order by id range between ^null^ preceding and current row) from t
select sum(u) over (order by id range between -^1^ preceding and current row) from t
select sum(u) over (order by id, k range between ^1^ preceding and current row) from t
select sum(u) over (range between ^1^ preceding and current row) from t
select sum(u) over (order by s range between ^1^ preceding and current row) from t
select sum(u) over (order by id rows between current row and ^1^ preceding) from t
select sum(u) over (order by id rows between ^1^ following and current row) from t
select sum(^sum(u)^ over ()) over () from t
select id from t where ^row_number()^ over () = 1
select sum(u) filter (where ^row_number()^ over () > 1) over () from t
select sum(u) from t group by ^row_number()^ over ()
select sum(u) from t having ^count(*)^ over () = 1
select sum(^row_number()^ over ()) from t
select row_number() over () as n from t group by ^1^
select ^row_number()^ from t
select ^row_number(id)^ over () from t
select ^row_number()^ filter (where id > 1) over () from t
select ^lag(distinct u)^ over (order by id) from t
select ^abs(id)^ over () from t
select sum(u) over ^w^ from t
select sum(u) over (^w^ order by id) from t window w as (order by k)
select sum(u) over (^w^ partition by p) from t window w as (partition by q)
select sum(u) over (^w^) from t window w as (order by id rows 1 preceding)
select sum(u) over w from t window w as (partition by p), ^w^ as (order by id)
select sum(u) over v from t window v as (^w^ order by id), w as (partition by p)
select id from t qualify ^id < 3^
select p from t group by p qualify row_number() over (order by p) < 3 and ^id^ = 2
select sum(^u^) over () from t group by p
select sum(^u^) over (), sum(u) from t
select id from t limit ^row_number()^ over ()
select ^sum(u ignore nulls)^ over (order by id) from t
select sum(u) over (order by id rows between ^count(*)^ over () preceding and current row) from t
select * from t join t o on ^row_number()^ over () = 1
values (^row_number()^ over ())
""".strip().splitlines()


@pytest.mark.parametrize("marked", REFUSED)
def test_a_window_without_meaning_is_refused_at_its_place(marked: str) -> None:
    before, place, after = marked.split("^")
    query = before + place + after
    with duckdb.connect() as reference:
        reference.register("t", TABLES["t"])
        with pytest.raises(duckdb.Error):
            reference.execute(query)
    with connected(TABLES) as connection:
        with pytest.raises(FuselineError) as refused:
            connection.sql(query).to_arrow()
        span = refused.value.span
        assert span is not None
        assert span.start <= query.index(place, len(before)) < span.end
        assert connection.sql("select 1 as x").to_arrow().num_rows == 1
