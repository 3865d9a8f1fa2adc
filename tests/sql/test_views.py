"""Views: what is kept of a view between queries is its parsed text alone, so nothing of its tables may be old."""

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import fuseline
from fuseline.catalog import View
from fuseline.errors import FuselineError, InvalidQuery, UnknownName, Unsupported


@pytest.fixture
def connection():
    with fuseline.connect(device="cpu") as connection:
        connection.execute("create table t as select * from (values (1, 'x'), (2, 'y')) as v(a, b)")
        connection.execute("create view v as select * from t")
        assert rows(connection, "from v") == [(1, "x"), (2, "y")]
        yield connection


def rows(connection, text):
    return connection.sql(text).fetchall()


def names(connection, text):
    return [column[0] for column in connection.execute(text).description]


def write(path: Path, **columns: list[object]) -> None:
    """Put another file in the place of `path`, as programs that write do."""
    new = path.with_suffix(".new")
    pq.write_table(pa.table(columns), new)
    new.rename(path)


def test_a_replaced_view_is_read_anew(connection):
    connection.execute("create or replace view v as select b, a + 10 as a from t")
    assert rows(connection, "from v") == [("x", 11), ("y", 12)]
    connection.execute("drop view v; create view v(n) as select 7")
    assert (names(connection, "from v"), rows(connection, "from v")) == (["n"], [(7,)])


def test_a_view_has_the_columns_that_its_table_has_now(connection):
    connection.execute("drop table t")
    with pytest.raises(UnknownName, match=r'no table "t".*in the view "v"'):
        connection.sql("select 1 from v")
    connection.execute("create table t as select 5 as c, 6 as d")
    assert (names(connection, "from v"), rows(connection, "from v")) == (["c", "d"], [(5, 6)])


def test_a_table_in_the_place_of_a_view(connection):
    connection.execute("drop view v; create table v as select 8 as z")
    assert (names(connection, "from v"), rows(connection, "from v")) == (["z"], [(8,)])


def test_a_view_has_the_columns_that_its_file_has_now(connection, tmp_path):
    path = tmp_path / "x.parquet"
    write(path, a=[1])
    connection.execute(f"create view f as select * from '{path}'")
    assert rows(connection, "select * from f") == [(1,)]
    write(path, a=["one"], c=[2.5])
    assert rows(connection, "select * from f") == [("one", 2.5)]
    path.unlink()
    with pytest.raises(FuselineError, match=r"no file .*in the view"):
        connection.sql("select a from f")


def test_a_view_of_a_view(connection):
    connection.execute("create view w as select * from v where a > 1")
    assert rows(connection, "from w") == [(2, "y")]
    connection.execute("create or replace view v as select 3 as a, 'z' as c")
    assert (names(connection, "from w"), rows(connection, "from w")) == (["a", "c"], [(3, "z")])
    connection.execute("create or replace view v as select * from w")
    with pytest.raises(InvalidQuery, match="reads itself"):
        connection.sql("from w")


def test_names_of_the_query_around_do_not_reach_into_a_view(connection):
    assert rows(connection, "with t as (select 99 as a) select v.a, t.a from v, t") == [
        (1, 99),
        (2, 99),
    ]
    assert rows(connection, "with v as (select 98 as a) from v") == [(98,)]
    assert rows(connection, "with v as (select a + 1 as a from v) from v") == [(2,), (3,)]


def test_each_mention_of_a_view_has_columns_of_its_own(connection):
    query = "select x.a, y.a from v as x join v as y on x.a = y.a - 1"
    assert rows(connection, query) == [(1, 2)]
    connection.execute("create view twice as select * from v, v as u")
    assert names(connection, "from twice") == ["a", "b", "a_1", "b_1"]
    assert rows(connection, "select count(*) from twice as x, twice as y") == [(16,)]


def test_an_error_in_a_view_shows_its_place_each_time(connection):
    connection.execute("create or replace view w as select\n  b, sum(a) as total from t group by b")
    connection.execute("create or replace table t as select 1 as b")
    shown = []
    for query in ("from w", "select 1 from w as x, w", "from w"):
        with pytest.raises(UnknownName) as caught:
            connection.sql(query)
        shown.append(str(caught.value).split("\n"))
    assert shown[0] == shown[1] == shown[2]
    assert 'no column "a"' in shown[0][0]
    assert 'in the view "w"' in shown[0][0]
    assert shown[0][1:] == [
        "LINE 2:   b, sum(a) as total from t group by b",
        "                 ^",
    ]


def test_threads_bind_one_view_at_once(connection):
    connection.execute(
        "create view deep as select x.a, y.b from v as x join v as y on x.a = y.a where x.a between 0 and 5"
    )
    queries = [f"select a + {i}, b from deep where a < {i}" for i in range(60)]
    with ThreadPoolExecutor(8) as pool:
        found = list(pool.map(lambda q: rows(connection, q), queries))
    assert [sorted(f) for f in found] == [
        [(a + i, b) for a, b in ((1, "x"), (2, "y")) if a < i] for i in range(60)
    ]


def test_threads_bind_while_a_view_is_replaced(connection):
    def replace(i):
        connection.execute(f"create or replace view v as select {i} as a, {i} as b")

    replace(-1)
    with ThreadPoolExecutor(8) as pool:
        replaced = [pool.submit(replace, i) for i in range(40)]
        found = [pool.submit(rows, connection, f"select a - b, {i} from v") for i in range(40)]
        assert [f.result() for f in replaced] == [None] * 40
        assert [f.result() for f in found] == [[(0, i)] for i in range(40)]


def test_who_parses_a_view_binds_that_tree():
    """Another thread may have parsed it meanwhile, and marks its own as read."""
    view = View("v", "select 1", ())

    def parse(text):
        assert view.tree(lambda _: "another's") == "another's"
        return "own"

    assert view.tree(parse) == "own"
    assert view.tree(parse) in ("own", "another's")


@pytest.mark.parametrize(
    ("query", "columns"),
    [
        ("select * from t", ["a", "b"]),
        ("select * from t as u(x)", ["x", "b"]),
        ("select * from t, t as u", ["a", "b", "a", "b"]),
        ("select * from t join t as u using (b)", ["a", "b", "a"]),
        ("select * from t natural join t as u", ["a", "b"]),
        ("select * from t semi join t as u using (a)", ["a", "b"]),
        ("select * exclude (a) from t", ["b"]),
        ("select * rename (a as c) from t", ["c", "b"]),
        ("select * replace (b as a) from t", ["a", "b"]),
        ("select *, * from t", ["a", "b", "a", "b"]),
        ("with t as (select 1 as z) select * from t", ["z"]),
        ("select * from (select * from t) as s(y)", ["y", "b"]),
    ],
)
def test_all_columns(connection, query, columns):
    assert names(connection, query) == columns


@pytest.mark.parametrize("query", [
    "select * from t where a > 1", "select * from t order by a desc limit 1", "select * from t limit 1 offset 1",
    "select distinct * from t where a = 2", "select * from t group by all having a = 2",
])  # fmt: skip
def test_all_columns_and_another_clause(connection, query):
    assert rows(connection, query) == [(2, "y")]


def test_all_columns_of_a_file_with_one_that_has_no_type(connection, tmp_path):
    path = tmp_path / "x.parquet"
    pq.write_table(pa.table({"a": [1], "l": pa.array([1], pa.time64("ns"))}), path)
    with pytest.raises(Unsupported, match="EXCLUDE"):
        connection.sql(f"select * from '{path}'")
    connection.execute(f"create view f as select * exclude (l) from '{path}'")
    assert rows(connection, "from f") == [(1,)]
