"""Operators that need all rows, in pieces: rows spilled at once, over tables of few rows and odd values."""

from datetime import date, datetime
from decimal import Decimal

import pyarrow as pa
import pytest

from fuseline.operators import cpu, one_group, pulling
from fuseline.plan import physical as p
from fuseline.runtime import executor
from tests.compare import assert_same_as_duckdb, connected

ODD = {
    "g": [1, 2, None, 1, 2, None, 1, 1, 3, 4, 4],
    "i": [5, None, -(2**63), 2**63 - 1, 0, 7, 5, 5, None, 2, 2],
    "f": [1.5, float("nan"), float("inf"), -0.0, None, 0.0, float("-inf"), 1e308, None, 3.0, 3.0],
    "d": [None if n == 3 else Decimal(n * 7 % 5) / 4 for n in range(11)],
    "t": [None if n == 4 else date(2000, 1, 1 + n * 5 % 11) for n in range(11)],
    "m": [datetime(1990 + n * 3 % 11, 1, 1, 0, 0, n) for n in range(11)],
    "s": ["b", "", None, "ab", "ä", "b", "zz", "a", None, "b", "b"],
    "o": [3, 1, 2, 5, 4, 9, 8, 7, 6, 11, 10],
}
TABLES = {
    "odd": pa.table(ODD).cast(pa.table(ODD).schema.set(3, pa.field("d", pa.decimal128(15, 2)))),
    "equal": pa.table({name: [values[0] or 1] * 7 for name, values in ODD.items() if name != "d"}),
}
TABLES["equal"] = TABLES["equal"].append_column(
    "d", pa.array([Decimal(2)] * 7, pa.decimal128(15, 2))
)
TABLES["one"] = TABLES["odd"].slice(0, 1)
TABLES["none"] = TABLES["odd"].slice(0, 0)


@pytest.fixture(params=["spilled", "in memory"])
def pieces(request, monkeypatch, limits):
    """Every plan is run in pieces, of two rows at first."""
    monkeypatch.setattr(executor, "_run_with_whole_tables", lambda *run: None)
    monkeypatch.setattr(pulling.Pull, "piece_rows", lambda pull, node, size=0: 2)
    if request.param == "spilled":
        limits(SHARE_IN_MEMORY=1 << 60, SHARE_OF_SORT=1 << 60)


def test_rows_that_come_in_order_are_cut_again(monkeypatch):
    """Values of the first rows do not cut the others."""
    monkeypatch.setattr(executor, "_run_with_whole_tables", lambda *run: None)
    monkeypatch.setattr(pulling.Pull, "room", lambda pull, device: 60_000)
    largest = 0
    ours = cpu.OPERATORS[p.SortRows]

    def noted(node, inputs, context):
        nonlocal largest
        largest = max(largest, inputs[0].num_rows)
        return ours(node, inputs, context)

    monkeypatch.setitem(cpu.OPERATORS, p.SortRows, noted)
    rows = range(10_000)
    columns = {"up": list(rows), "down": [-n for n in rows], "few": [n % 2 for n in rows]}
    tables = {"t": pa.table(columns | {"two": [max(0, n - 7_000) for n in rows]})}
    with connected({"t": tables["t"]}) as connection:
        for key in ("up", "down", "few", "two"):
            query = f"select {key}, up as n from t order by {key}"
            assert_same_as_duckdb(query, tables, connection=connection)
    assert 0 < largest <= 1_500


def check(backend, query, table):
    with connected({"t": TABLES[table]}, backend) as connection:
        assert_same_as_duckdb(query, {"t": TABLES[table]}, connection=connection)


ONE_GROUP = """
select median(i), median(f), median(d), median(m), quantile_cont(f, 0.3), quantile_cont(d, 0.9),
  quantile_disc(s, 0.5), quantile_disc(t, 0), quantile_disc(i, 1), median(o) filter (g = 1),
  count(distinct f), sum(distinct d), count(distinct s) filter (o > 3), avg(distinct o),
  median(distinct o), approx_count_distinct(g), first(s order by o), last(s order by o desc),
  first(i order by t desc nulls first, o) filter (g is not null), arg_min(s, o), arg_max(i, f),
  arg_min(o, s) filter (g < 3), string_agg(s, '-' order by o), stddev_samp(o), count(*), max(s)
from t
"""
SPREADS = """
select var_samp(i), var_pop(o), stddev_samp(f), stddev_pop(f), var_samp(d) filter (o > 4), stddev_samp(distinct o),
  var_pop(f) filter (o < 3), covar_samp(o, i), covar_pop(d, o), covar_pop(o, f), corr(o, g), corr(d, o), corr(f, o),
  corr(o, o) filter (o < 3), covar_samp(o, g) filter (s = 'b'), stddev_samp(g), avg(o), sum(o)
from t
"""
ORDERED = """
select mode(i), mode(s), mode(f), mode(d) filter (o > 3), mode(g), mode() within group (order by s desc), mode(t),
  string_agg(s, '-' order by o), string_agg(s, '' order by f desc nulls first, o), string_agg(distinct s, '|' order by s desc),
  string_agg(s, ', ' order by g, o) filter (o % 2 = 0), any_value(s order by o desc), arg_max(distinct s, o), count(*)
from t
"""
ONE_GROUP_SPILLED = """
select median(f), quantile_disc(s, 0.5), avg(distinct o), median(distinct o),
  last(s order by f desc, o), arg_max(i, f), count(*) from t
"""


@pytest.mark.parametrize("table", TABLES)
@pytest.mark.usefixtures("pieces")
def test_aggregates_of_one_group(backend, table, request):
    spilled = "spilled" in request.node.name
    check(backend, ONE_GROUP_SPILLED if spilled else ONE_GROUP, table)


@pytest.mark.parametrize("table", TABLES)
@pytest.mark.parametrize("query", [SPREADS, ORDERED], ids=["spreads", "ordered"])
@pytest.mark.usefixtures("pieces")
def test_aggregates_of_one_group_without_its_rows_together(backend, table, query, monkeypatch):
    """None of these waits for all rows at once."""
    monkeypatch.setattr(one_group, "_together", None)
    check(backend, query, table)


@pytest.mark.by_day(2)
@pytest.mark.parametrize("table", TABLES)
@pytest.mark.usefixtures("pieces")
@pytest.mark.parametrize(
    "query",
    [
        "select distinct on (g) g, i, s from t order by g, o",
        "select distinct on (g, s) g, s, o from t order by g, s, o desc",
        "select distinct on (f) f, o from t order by f desc, o",
        "select distinct on (o % 3) o, s from t order by o % 3, s nulls first, o",
        "select distinct on (1) o from t order by o",
        "select count(*) from (select distinct on (d) d, t from t)",
        "select a.x, l.o from range(5) a(x), lateral (select o from t where t.g = a.x order by o limit 2 offset 1) l order by all",
        "select g, median(f), quantile_disc(s, 0.4), string_agg(s, ',' order by o), count(distinct i) from t group by g order by g",
        "select * from t order by f, s desc nulls first, o",
        "select g, o from t order by g nulls first, o desc",
    ],
)
def test_rows_of_groups_and_in_order(backend, query, table):
    check(backend, query, table)
