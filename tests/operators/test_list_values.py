"""Functions of lists, aggregates that make lists, and aggregates of their elements answer as DuckDB."""

from __future__ import annotations

import pyarrow as pa
import pytest

import fuseline
from fuseline.errors import FuselineError
from tests.compare import assert_same_as_duckdb

TABLE = pa.table(
    {
        "i": [1, 2, 3, 4, 5, 1],
        "g": ["a", "b", "a", None, "b", "a"],
        "l": pa.array([[3, 1, 2, 1], None, [], [5, None, 7], [None], [1]], pa.list_(pa.int32())),
        "m": [[1, 9], [2], [None], None, [], [1, 1]],
        "w": [["b", "a"], [None], [], None, ["x", "", "y"], ["b"]],
        "s": ["a,b", None, "", ",", "abc", "x,,y"],
        "p": [[True, False, None, True], [True], [], None, [True], [False]],
        "d": [[1.5, 2.5], [float("nan"), 1.0], [], None, [None], [-1.0]],
    }
)
QUERIES = (
    "select list_position(l,1), list_position(l,null), array_position(w,'a'), list_indexof(l, i) from t",
    "select list_has_any(l,m), array_has_any(m,l), list_has_all(l,m), array_has_all(m,[1]) from t",
    "select list_sort(list_distinct(l)), list_sort(array_distinct(w)), list_unique(l), array_unique(m) from t",
    "select list_sort(list_intersect(l,m)), list_sort(array_intersect(m, [1])) from t",
    "select list_sort(l), list_sort(l,'desc'), list_sort(l,'desc','nulls first'), array_sort(w, 'ASC', 'NULLS FIRST'), list_sort(d) from t",
    "select list_reverse_sort(l), list_reverse_sort(l,'nulls first'), array_reverse_sort(w) from t",
    "select list_reverse(l), array_reverse(w), list_grade_up(l), list_grade_up(l,'desc') from t",
    "select list_append(l,9), array_append(w,'z'), list_prepend(0,l), array_push_front(l,0), array_push_back(l,null), list_append(l, 2.5) from t",
    "select list_resize(l,2), list_resize(l,3,i), array_resize(w,1), list_resize(l, null) from t",
    "select list_select(l,[1,-1,9]), array_select(w, [2,1]) from t",
    "select list_sum(l), list_avg(l), list_min(l), list_max(w), list_count(l), list_first(l), list_last(l), list_any_value(l) from t",
    "select list_sum(d), list_median(l), list_product(l), list_mode(m), list_string_agg(w), list_stddev_pop(l), list_var_samp(l), list_bool_and(p), list_bit_or(l) from t",
    "select list_aggregate(l,'sum'), list_aggr(w,'string_agg','|'), array_aggregate(l,'max'), list_aggregate(l, 'count'), list_aggregate(l,'quantile_cont',0.25) from t",
    "select array_to_string(l,','), array_to_string(w,'-'), array_to_string([1,2],'') from t",
    "select string_split(s,','), str_split(s,''), split(s,'b'), string_split(s, g), string_to_array(s, ',') from t",
    "select list(i), array_agg(g order by i, g nulls first) from t",
    "select g, list(i order by i desc), list(l order by i), array_agg(i) filter (where i > 1), count(*) from t group by g",
    "select g, list_sort(list(distinct i)) from t group by g",
    "select list(i) from t where false",
    "select list({'a':i,'b':g} order by i, g) from t",
    "select i, list(i) over (order by i, g rows between 1 preceding and current row) from t order by i, g",
    "select list_sum([1,2,3]), list_sort(['b','a']), list_sum(null), list_avg([]), list_contains([1],1)",
    "select i, list_sum(l) s from t where list_max(l) > 1 order by list_sum(l)",
    "select g, list_sum(list(i)) from t group by g",
    "select i, x from (select i, unnest(string_split(s, ',')) x from t)",
    "select list(x) from (select unnest([3,1,2]) x)",
    "select list(n) from (select [i] n from t where i > 3)",
    "select list(i order by i)[1:2], len(list(i)) from t",
    "select array_agg(i) from t having count(*) > 1",
)


@pytest.mark.parametrize("query", QUERIES)
def test_functions_of_lists_answer_as_duckdb(query: str) -> None:
    assert_same_as_duckdb(query, {"t": TABLE}, backend="cpu", fuse=("always", "never"))


@pytest.mark.parametrize("rows", [TABLE.slice(0, 0), TABLE.slice(2, 1), TABLE.slice(3, 2)])
def test_few_rows(rows: pa.Table) -> None:
    query = (
        "select list_sort(l), list_sum(l), list_has_any(l, m), list_unique(w), string_split(s, ','), "
        "list_position(m, i), list_resize(l, 2, 1), list_reverse(d) from t"
    )
    assert_same_as_duckdb(query, {"t": rows}, backend="cpu", fuse=("always", "never"))
    query = "select list(i order by i), list(l order by i) from t"
    assert_same_as_duckdb(query, {"t": rows}, backend="cpu", fuse=("always", "never"))


@pytest.mark.parametrize(
    "call",
    [
        "list_sum(5)", "list_avg(['a'])", "list_aggregate([1], 'nosuch')", "list_sort([1], 'up')", "list_sort([1], 'asc', 'nulls')",
        "list_resize([1], -1)", "list_has_any([1], ['a', 'b'])", "array_to_string(1, ',')", "list_select([1], 'x')",
    ],
)  # fmt: skip
def test_what_is_wrong_is_refused(call: str) -> None:
    with fuseline.connect("cpu") as connection:
        with pytest.raises(FuselineError):
            connection.sql(f"select {call}").fetchall()
        assert connection.sql("select 1").fetchall() == [(1,)]
