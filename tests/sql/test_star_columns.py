"""`* EXCLUDE (table.column)` where USING has merged a column: * shows it where the next table has it."""

from __future__ import annotations

import pytest

from tests.compare import assert_same_as_duckdb

TABLES = {
    "a": {"x": [1, 5, None], "y": [2, 6, 0]},
    "b": {"x": [1, 7], "z": [3, 8]},
    "c": {"x": [1, 9], "w": [10, 11], "y": [2, 12]},
}
QUERIES = [
    "select * exclude (a.x) from a {0} join b using (x)",
    "select * exclude (b.x) from a {0} join b using (x)",
    "select * exclude (a.x, b.x) from a {0} join b using (x)",
    "select * exclude (a.x, a.y) from a {0} join c using (x, y)",
    "select * exclude (a.x, c.y) from a natural {0} join c",
    "select * exclude (a.x) from a {0} join b using (x) {0} join c using (x)",
    "select * exclude (a.x, b.x) from a {0} join b using (x) {0} join c using (x)",
    "select * exclude (a.x) rename (b.x as n) from a {0} join b using (x)",
    "select * rename (a.x as n) from a {0} join b using (x)",
    "select * rename (b.x as n) from a {0} join b using (x)",
    "select * exclude (a.x) replace (z + 1 as z) from a {0} join b using (x)",
    "select a.* exclude (a.x) rename (y as n), b.* from a {0} join b using (x)",
    "select columns(* exclude (a.x)) from a {0} join b using (x)",
    "select * exclude (a.x) from c, a {0} join b using (x)",
    'select * from (select x as "X", y from a) l {0} join b using (x)',
    'select * exclude (l.x) from (select x as "X", y from a) l {0} join b using (x)',
]


@pytest.mark.parametrize("query", QUERIES)
@pytest.mark.parametrize("kind", ["", "left", "right", "full"])
def test_a_merged_column_is_shown_of_the_next_table(query: str, kind: str) -> None:
    assert_same_as_duckdb(f"{query.format(kind)} order by all", TABLES, fuse=("never",))


def test_of_asof_and_semi_joins_and_of_no_rows(backend: str) -> None:
    for query in (
        "select * exclude (a.x) from a asof join b using (x) order by all",
        "select * exclude (b.x) from a asof join b using (x) order by all",
        "select * exclude (a.x) from a semi join b using (x)",
        "select * exclude (a.x) from a full join (select 3 as x where false) f using (x) order by all",
    ):
        assert_same_as_duckdb(query, TABLES, backend=backend, fuse=("always", "never"))
