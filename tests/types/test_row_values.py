"""Row values, (1, 'a'): structs whose fields have places and no names, of the type TUPLE."""

from __future__ import annotations

from pathlib import Path

import duckdb
import pyarrow as pa
import pytest

import fuseline
from fuseline.errors import FuselineError
from tests.compare import assert_same_as_duckdb

ROWS = pa.table({"a": [1, 1, None, 2], "b": ["x", "x", "y", None]})
EVERY_WAY = ("always", "never")


@pytest.mark.parametrize(
    "query",
    [
        "select (1, 'a'), row(1, 'a'), row(1), (1, (2, [3])), typeof((1, null))",
        "select (a, b) as r from t order by r",
        "select (a, b) as r, count(*) from t group by r order by r",
        "select distinct (a, b) as r from t order by r desc",
        "select count(distinct (a, b)), max((a, b)), min((a, b)), list((a, b) order by (a, b)) from t",
        "select (a, b) as r from t union select (1, 'x') order by r",
        "select r[1], struct_extract_at(r, 2), struct_extract(r, 1) from (select (a, b) as r from t) order by all",
        "select lag((a, b)) over (order by (a, b)) as r from t order by all",
        "select count(*) from (select (a, b) as r from t) as s join (select (a, b) as r from t) as u on s.r = u.r",
    ],
)
def test_rows_are_values(query: str) -> None:
    assert_same_as_duckdb(query, {"t": ROWS}, fuse=EVERY_WAY)


@pytest.mark.parametrize(
    "query",
    [
        "select r = (1, 'x'), r < (2, 'a'), r is distinct from (null, 'y') from t order by all",
        "select (a, b) = r, (a, b) in (r, null), (a, b) between (1, 'a') and r from t order by all",
        "select r in ((1, 'x'), (2, null)), r not in ((1, 'x')) from t order by all",
        "select r in (select (a, b) from s), r in (select a, b from s) from t order by all",
        "select r = {'x': 1, 'y': 'x'}, coalesce(null, r, {'x': 1, 'y': 'x'}) from t order by all",
        "select (1, 2) > all (select (1, i) from range(2) as u(i)), (1, 1) = any (select (1, i) from range(2) as u(i))",
        "select row(1, 'x') < r, row(1) < row(2) and (1, 2)<(1, 3), row(row(1) < row(2)) <= row(true) from t order by all",
        "select {'a': 1}::struct(a int) < {'a': 2}, map {'a': 1}::map(varchar, int) < map {'b': 1}, (1) << 2, (3)<(4)",
        "select (1, 2) = null, null = (1, 2), ((1, 2), 3) = ((1, null), 3)",
    ],
)
def test_rows_are_compared(query: str) -> None:
    """Value by value, NULL being one that is equal to itself and above others; a row that is NULL is unknown."""
    source = "(select a, b, (a, b) as r from s union all select null, null, null) as t"
    assert_same_as_duckdb(query.replace("from t", f"from {source}"), {"s": ROWS})


@pytest.mark.parametrize(
    "query",
    [
        "select (1, 'a, b', null, '')::varchar, row(1)::varchar, concat((1, 2), 'x'), (1, 2) || 'x'",
        "select '(1, NULL)'::tuple(int, varchar), '( 1 , ''a,b'')'::tuple(int, varchar), '()'::tuple(int)",
        "select try_cast('(1, x)' as tuple(int, int)), try_cast('(1)' as tuple(int, int))",
        "select (1, 2)::tuple(varchar, double), (1, 2)::struct(a int, b int), {'a': 1, 'b': 2}::tuple(int, bigint)",
        "select to_json((1, ['a'])), '[1]'::json::tuple(int, int), '[1, 2, 3]'::json::tuple(int, int)",
        "select typeof([(1, 'a'), (2.5, null)]), [(1, 'a'), {'x': 2, 'y': 'b'}]",
        "select unnest((1, 'a')), unnest([(1, 'a'), (2, 'b')], recursive := true)",
    ],
)
def test_rows_are_cast(query: str) -> None:
    assert_same_as_duckdb(query, {})


@pytest.mark.parametrize(
    "query",
    [
        "select list_zip([1, 2], ['a']), array_zip([1], null, [2, 3], true), list_zip(null), list_zip([1, 2], [3], null)",
        "select list_zip(l, [1, 2], k) from (values ([5], true), (null, false), ([5, 6, 7], null)) as t(l, k)",
        "select struct_values({'a': 1, 'b': 'x'}), struct_values(null), struct_values(null::struct(a int))",
        "select struct_contains((1, 'a'), 'a'), struct_has((1, null), 2), struct_contains((1, null), null::int)",
        "select struct_position((1, null), null::int), struct_indexof(('1', 1), 1), struct_position((1, 2), '2')",
        "select struct_concat((1, 2), row('a')), list_transform(list_zip([1, 2], [3, 4]), lambda x: x[1] + x[2])",
        "select map([(1, 2)], ['x'])[(1, 2)], map_from_entries([(1, 'a'), (2, 'b')])",
    ],
)
def test_functions_of_rows(query: str) -> None:
    assert_same_as_duckdb(query, {})


def test_tables_hold_rows(tmp_path: Path) -> None:
    with fuseline.connect(tmp_path, device="cpu") as connection:
        connection.execute("create table t (r tuple(int, varchar), l tuple(int)[])")
        connection.execute("insert into t values ((1, 'a'), [row(2)]), ('(3, b)', null)")
    with fuseline.connect(tmp_path, device="cpu") as connection:
        found = connection.sql("select * from t order by r")
        assert found.fetchall() == [((1, "a"), [(2,)]), ((3, "b"), None)]
        assert found.to_arrow().schema.field("r").type == pa.struct(
            [("element1", pa.int32()), ("element2", pa.string())]
        )
        assert connection.sql("select typeof(r), typeof(l) from t limit 1").fetchall() == [
            ("TUPLE(INTEGER, VARCHAR)", "TUPLE(INTEGER)[]")
        ]


@pytest.mark.parametrize(
    ("query", "message"),
    [
        ("select (1, 2).a", 'has no field "a": its values have places'),
        ("select (1, 2)['a']", "constant integer"),
        ("select (1, 2)[3]", "has 2 fields"),
        ("select (1, 2) = (1, 2, 3)", "A row of 2 values cannot be compared with one of 3"),
        ("select (1, 2)::tuple(int)", "cannot be cast"),
        ("select struct_keys((1, 2))", "has no names"),
        ("select struct_contains({'a': 1}, 1)", "is no row value"),
        ("select row()", "A row without values"),
    ],
)
def test_what_rows_do_not_take(query: str, message: str) -> None:
    with pytest.raises(FuselineError, match=message):
        fuseline.connect(device="cpu").sql(query)


def test_parameters_in_rows_have_their_numbers() -> None:
    assert_same_as_duckdb("select (?, ?), [?]", params=[1, "a", 2])


def test_rows_are_shown_as_tuples(capsys: pytest.CaptureFixture[str]) -> None:
    frame = fuseline.connect(device="cpu").sql(
        "select (1, 'a') as r, [row(2)] as l, {'a': (1, null)} as s, interval 1 day as i"
    )
    frame.show()
    shown = capsys.readouterr().out
    for part in ("(1, a)", "[(2)]", "{'a': (1, NULL)}"):
        assert part in shown
    assert "(1, a)" in frame._repr_html_()
    assert "element1" not in shown + repr(frame) + frame._repr_html_()
    found = frame.to_pandas()
    assert (found.r[0], list(found.l[0]), found.s[0]) == ((1, "a"), [(2,)], {"a": (1, None)})
    assert frame.fetchnumpy()["r"][0] == (1, "a")


def test_nested_values_are_fetched_as_duckdbs_client_gives_them() -> None:
    query = """select [interval 1 day, null], {'h': 5::hugeint, 't': (interval '-3 months', [1::hugeint])},
        map {'k': interval 2 hours}, [(1::hugeint, 'a')], map {7::hugeint: [interval 1 second]}"""
    wanted = duckdb.sql(query).fetchall()
    assert fuseline.connect(device="cpu").sql(query).fetchall() == wanted
