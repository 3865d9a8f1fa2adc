"""The Ibis backend: expressions and Ibis's own TPC-H queries answer as on Ibis's DuckDB backend."""

from __future__ import annotations

import importlib
import inspect
import re
from collections.abc import Callable, Iterator
from datetime import date, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import fuseline
from benchmarks.data import tpch_tables
from tests.compare import Ordering, difference
from tests.test_layout import ROOT

ibis = pytest.importorskip("ibis")
from ibis import _  # noqa: E402
from ibis.common.exceptions import TableNotFound  # noqa: E402

from fuseline.interop.ibis_answers import with_types  # noqa: E402
from fuseline.interop.ibis_backend import Backend  # noqa: E402

# Ibis calls what DuckDB 2 has given other names, and sets an option that pandas 3 will not have for long
pytestmark = [
    pytest.mark.filterwarnings("ignore:fetch_arrow_table:DeprecationWarning"),
    pytest.mark.filterwarnings("ignore:The 'future.infer_string' option"),
]

TRIPS = pa.table(
    {
        "id": pa.array([1, 2, 3, 4, 5, 6, 7, None], pa.int64()),
        "small": pa.array([1, -2, 3, None, 120, -120, 7, 0], pa.int8()),
        "fare": pa.array([10.5, 3.25, None, 8.0, 100.0, -1.5, 0.0, 7.75]),
        "price": pa.array([Decimal(x) / 100 for x in (1050, 325, 7, 800, 9999, 150, 0)] + [None], pa.decimal128(9, 2)),
        "driver": pa.array(["Ann", "Bob", "Ann", None, "Çem", "bob", "", "Eve"]),
        "day": pa.array([date(2026, 1, d) for d in (1, 2, 3, 4, 5, 31, 1)] + [None]),
        "at": pa.array([datetime(2026, 1, d, d, 2 * d, 3 * d, 4567 * d) for d in range(1, 8)] + [None]),
        "paid": pa.array([True, False, None, True, True, False, True, False]),
    }
)  # fmt: skip
DRIVERS = pa.table({"driver": ["Ann", "Bob", "Dan", None], "age": [31, 45, 28, 60]})
Made = Callable[[Any, Any], Any]

EXPRESSIONS: dict[str, Made] = {
    # rows and columns
    "all": lambda t, d: t,
    "select": lambda t, d: t.select("id", twice=t.id * 2),
    "mutate": lambda t, d: t.mutate(total=t.fare + t.id, id=_.id + 1),
    "drop": lambda t, d: t.drop("fare", "at"),
    "rename": lambda t, d: t.rename(number="id"),
    "relocate": lambda t, d: t.relocate("day", before="id"),
    "filter": lambda t, d: t.filter(t.fare > 3, t.driver.notnull()),
    "filter or": lambda t, d: t.filter((_.fare > 50) | (_.small < 0)),
    "order": lambda t, d: t.order_by(ibis.desc("driver"), "id"),
    "nulls first": lambda t, d: t.order_by(ibis.asc("fare", nulls_first=True)).select("fare"),
    "limit": lambda t, d: t.order_by("id").limit(3, offset=2),
    "distinct": lambda t, d: t.select("driver").distinct(),
    "distinct on": lambda t, d: t.order_by("id").distinct(on="paid", keep="first").select("paid"),
    "count": lambda t, d: t.count(),
    "dropna": lambda t, d: t.drop_null(["fare", "driver"]),
    "fillna": lambda t, d: t.fill_null({"fare": 0.0, "driver": "nobody"}),
    "cast": lambda t, d: t.select(_.id.cast("float32").name("a"), _.fare.cast("string").name("b")),
    "try cast": lambda t, d: t.select(n=_.driver.try_cast("int64")),
    "literal": lambda t, d: t.select(a=ibis.literal("x"), b=ibis.literal(1.5), c=ibis.null("int64")),
    "dates literal": lambda t, d: t.filter(_.day > ibis.date("2026-01-02")),
    "in": lambda t, d: t.filter(_.driver.isin(["Ann", "Eve"])),
    "not in": lambda t, d: t.filter(_.id.notin([1, 2])),
    "between": lambda t, d: t.filter(_.fare.between(3, 10)),
    "is null": lambda t, d: t.select(_.fare.isnull().name("a"), _.driver.notnull().name("b")),
    "coalesce": lambda t, d: t.select(c=ibis.coalesce(_.fare, _.id, 0.5)),
    "nullif": lambda t, d: t.select(c=_.driver.nullif("Ann")),
    "ifelse": lambda t, d: t.select(c=ibis.ifelse(_.fare > 8, "dear", "cheap")),
    "cases": lambda t, d: t.select(c=ibis.cases((_.fare > 50, 2), (_.fare > 5, 1), else_=0)),
    "case of value": lambda t, d: t.select(c=_.driver.cases(("Ann", "a"), ("Bob", "b"), else_="?")),
    "greatest": lambda t, d: t.select(g=ibis.greatest(_.id, _.small), l=ibis.least(_.id, 3)),
    "identical": lambda t, d: t.select(c=_.fare.identical_to(_.price.cast("float64"))),
    # numbers
    "arithmetic": lambda t, d: t.select(a=_.id + 1, b=_.id - 2.5, c=_.id * 3, e=_.fare / 3, f=-_.id),
    "floor divide": lambda t, d: t.select(a=_.id // 3, b=_.id % 3, c=_.fare // 2),
    "power": lambda t, d: t.select(a=_.fare.abs() ** 2, b=_.fare.abs().sqrt(), c=_.id.exp()),
    "logarithms": lambda t, d: t.select(a=_.id.ln(), b=_.id.log10(), c=_.id.log2(), e=_.id.log(3)),
    "rounding": lambda t, d: t.select(a=_.fare.round(), b=_.fare.round(1), c=_.fare.floor(), e=_.fare.ceil()),
    "decimal rounding": lambda t, d: t.select(a=_.price.round(1), b=_.price * 2, c=_.price + _.price),
    "sign": lambda t, d: t.select(a=_.fare.sign(), b=_.fare.abs(), c=_.fare.clip(0, 9)),
    "trigonometry": lambda t, d: t.select(a=_.fare.sin(), b=_.fare.cos(), c=_.id.atan(), e=_.id.atan2(_.fare)),
    "bits": lambda t, d: t.select(a=_.id & 3, b=_.id | 8, c=_.id ^ 5, e=_.id << 2, f=_.id >> 1),
    "nan": lambda t, d: t.select(a=_.fare.isnan(), b=_.fare.isinf()),
    # text
    "upper": lambda t, d: t.select(a=_.driver.upper(), b=_.driver.lower(), c=_.driver.length()),
    "concat": lambda t, d: t.select(a=_.driver + "!", b=_.driver.concat("-", _.driver)),
    "substring": lambda t, d: t.select(a=_.driver.substr(1, 2), b=_.driver[0:2], c=_.driver.left(1), e=_.driver.right(2)),
    "strip": lambda t, d: t.select(a=(" " + _.driver + " ").strip(), b=(" " + _.driver).lstrip()),
    "contains": lambda t, d: t.select(a=_.driver.contains("n"), b=_.driver.startswith("A"), c=_.driver.endswith("b")),
    "like": lambda t, d: t.filter(_.driver.like("%o%")),
    "ilike": lambda t, d: t.filter(_.driver.ilike("B%")),
    "replace": lambda t, d: t.select(a=_.driver.replace("n", "m"), b=_.driver.reverse(), c=_.driver.repeat(2)),
    "pad": lambda t, d: t.select(a=_.driver.lpad(5, "*"), b=_.driver.rpad(5, ".")),
    "find": lambda t, d: t.select(a=_.driver.find("n"), b=_.driver.ascii_str()),
    "regex": lambda t, d: t.select(a=_.driver.re_search("^[AB]"), b=_.driver.re_replace("n+", "N")),
    "regex extract": lambda t, d: t.select(a=_.driver.re_extract("([a-z]+)", 1)),
    "split part": lambda t, d: t.select(a=("a,b," + _.driver).split(",")[2]),
    "capitalize": lambda t, d: t.select(a=_.driver.capitalize()),
    "levenshtein": lambda t, d: t.select(a=_.driver.levenshtein("Bob")),
    # dates
    "date parts": lambda t, d: t.select(a=_.day.year(), b=_.day.month(), c=_.day.day(), e=_.day.quarter()),
    "weeks": lambda t, d: t.select(a=_.day.week_of_year(), b=_.day.day_of_year(), c=_.day.day_of_week.index()),
    "day name": lambda t, d: t.select(a=_.day.day_of_week.full_name()),
    "time parts": lambda t, d: t.select(a=_.at.hour(), b=_.at.minute(), c=_.at.second(), e=_.at.millisecond()),
    "truncate": lambda t, d: t.select(a=_.at.truncate("h"), b=_.day.truncate("M"), c=_.at.date()),
    "date plus": lambda t, d: t.select(a=_.day + ibis.interval(days=3), b=_.at - ibis.interval(months=1)),
    "date minus": lambda t, d: t.select(a=_.day.delta(ibis.date("2025-12-31"), unit="day")),
    "strftime": lambda t, d: t.select(a=_.day.strftime("%Y/%m/%d"), b=_.at.epoch_seconds()),
    "parse": lambda t, d: t.select(a=_.day.strftime("%d-%m-%Y").as_date("%d-%m-%Y")),
    # aggregates
    "sums": lambda t, d: t.agg(a=_.id.sum(), b=_.fare.sum(), c=_.small.sum(), e=_.price.sum()),
    "means": lambda t, d: t.agg(a=_.id.mean(), b=_.fare.mean(), c=_.price.mean()),
    "extremes": lambda t, d: t.agg(a=_.fare.min(), b=_.driver.max(), c=_.day.min(), e=_.at.max()),
    "counts": lambda t, d: t.agg(a=_.count(), b=_.fare.count(), c=_.driver.nunique()),
    "deviations": lambda t, d: t.agg(a=_.fare.std(), b=_.fare.var(how="pop"), c=_.id.std(how="pop")),
    "median": lambda t, d: t.agg(a=_.fare.median(), b=_.fare.quantile(0.25)),
    "filtered": lambda t, d: t.agg(a=_.fare.sum(where=_.paid), b=_.id.count(where=_.small > 0)),
    "any all": lambda t, d: t.agg(a=_.paid.any(), b=_.paid.all()),
    "correlation": lambda t, d: t.agg(a=_.fare.corr(_.id, how="pop"), b=_.fare.cov(_.id)),
    "arg max": lambda t, d: t.agg(a=_.driver.argmax(_.fare), b=_.driver.argmin(_.id)),
    "bit aggregates": lambda t, d: t.agg(a=_.id.bit_and(), b=_.id.bit_or(), c=_.id.bit_xor()),
    "group concat": lambda t, d: t.group_by("paid").agg(a=_.driver.group_concat(order_by="id")),
    "collect": lambda t, d: t.group_by("paid").agg(a=_.id.collect(order_by="id")),
    "grouped": lambda t, d: t.group_by("driver").agg(n=_.count(), total=_.fare.sum()),
    "grouped by expression": lambda t, d: t.group_by(first=_.driver.left(1)).agg(n=_.count()),
    "having": lambda t, d: t.group_by("paid").having(_.count() > 1).agg(n=_.fare.max()),
    "value counts": lambda t, d: t.driver.value_counts(),
    "top k": lambda t, d: t.driver.topk(1).select("driver"),
    "mode": lambda t, d: t.agg(a=_.paid.mode()),
    "first last": lambda t, d: t.agg(a=_.id.first(order_by="fare"), b=_.id.last(order_by="fare")),
    # joins and sets
    "join": lambda t, d: t.join(d, "driver").select("id", "driver", "age"),
    "left join": lambda t, d: t.left_join(d, "driver").select("id", "age"),
    "outer join": lambda t, d: t.outer_join(d, "driver").select("id", "age"),
    "semi join": lambda t, d: t.semi_join(d, "driver"),
    "anti join": lambda t, d: t.anti_join(d, "driver"),
    "cross join": lambda t, d: t.cross_join(d).select("id", "age"),
    "inequality join": lambda t, d: t.join(d, t.id * 10 > d.age).select("id", "age"),
    "asof join": lambda t, d: t.asof_join(d.rename(of="driver"), t.id >= d.age - 30).select("id", "age"),
    "union": lambda t, d: t.select("driver").union(d.select("driver")),
    "union distinct": lambda t, d: t.select("driver").union(d.select("driver"), distinct=True),
    "intersect": lambda t, d: t.select("driver").intersect(d.select("driver")),
    "difference": lambda t, d: t.select("driver").difference(d.select("driver")),
    "exists": lambda t, d: t.filter((d.driver == t.driver).any()),
    "scalar subquery": lambda t, d: t.filter(t.fare > t.fare.mean()),
    # windows
    "row number": lambda t, d: t.mutate(n=ibis.row_number().over(order_by="at")),
    "rank": lambda t, d: t.mutate(r=ibis.rank().over(group_by="paid", order_by="fare")),
    "lag": lambda t, d: t.mutate(a=_.fare.lag().over(order_by="at"), b=_.id.lead(2).over(order_by="at")),
    "running sum": lambda t, d: t.mutate(a=_.id.cumsum(order_by="at")),
    "moving mean": lambda t, d: t.mutate(a=_.fare.mean().over(rows=(-1, 1), order_by="at")),
    "share": lambda t, d: t.group_by("paid").mutate(a=_.fare / _.fare.sum()),
    "ntile": lambda t, d: t.mutate(a=ibis.ntile(3).over(order_by="at")),
    # shapes
    "pivot longer": lambda t, d: t.select("at", "id", "small").pivot_longer(["id", "small"]),
    "pivot wider": lambda t, d: t.filter(_.id < 4).pivot_wider(names_from="driver", names=["Ann", "Bob"], values_from="id", values_agg="sum"),
    "view": lambda t, d: t.view().join(t, "id").count(),
    "unnest": lambda t, d: t.select(a=ibis.array([1, 2, 3]).unnest()).distinct(),
    "array": lambda t, d: t.select(a=ibis.array([_.id, 2])),
    "struct": lambda t, d: t.select(a=ibis.struct({"x": _.id, "y": _.driver})),
    "hash": lambda t, d: t.select(a=_.driver.hash(), b=_.id.hash()),
    "typeof": lambda t, d: t.select(a=_.id.typeof()),
    "range": lambda t, d: ibis.range(5).unnest().name("x").as_table(),
}  # fmt: skip


@pytest.fixture(scope="module")
def both(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Any, Any]]:
    ours, theirs = ibis.connect("fuseline://"), ibis.duckdb.connect()
    folder = tmp_path_factory.mktemp("ibis")
    for name, table in {"trips": TRIPS, "drivers": DRIVERS}.items():
        pq.write_table(table, folder / f"{name}.parquet")
        for connection in (ours, theirs):
            connection.read_parquet(folder / f"{name}.parquet", table_name=name)
    yield ours, theirs
    ours.disconnect()
    theirs.disconnect()


def same(ours: Any, theirs: Any, make: Callable[[Any], Any]) -> None:
    """What our backend gives for an expression has Ibis's types, and the rows of DuckDB's."""
    made = make(theirs).as_table()
    wanted = made.schema().to_pyarrow()
    expected = with_types(theirs.con.sql(theirs.compile(made)).to_arrow_table(), wanted)
    found = ours.to_pyarrow(make(ours).as_table())
    assert found.schema == wanted
    assert difference(expected, found, Ordering(False)) is None


@pytest.mark.parametrize("name", EXPRESSIONS)
def test_an_expression(both: tuple[Any, Any], name: str) -> None:
    same(*both, lambda c: EXPRESSIONS[name](c.table("trips"), c.table("drivers")))


def queries_of_ibis(suite: str) -> dict[str, Callable[..., Any]]:
    """TPC-H (`h`) or TPC-DS (`ds`) as Ibis's own tests write it, without those that it marks as beyond it.

    A decorator of theirs lacks its argument, and has the function in its place.
    """
    module = importlib.import_module(f"ibis.backends.tests.tpc.{suite}.test_queries")
    found = {}
    for name, test in sorted(vars(module).items()):
        number = re.fullmatch(r"test_(\d\d)", name)
        if number is None or any(map(_is_beyond_ibis, getattr(test, "pytestmark", ()))):
            continue
        inner = inspect.unwrap(test)
        if "test" in inspect.signature(inner).parameters:
            inner = inspect.getclosurevars(test).nonlocals["suite_name"]
        found[f"q{number[1]}"] = inner
    return found


def _is_beyond_ibis(mark: pytest.Mark) -> bool:
    return mark.name == "xfail" or mark.kwargs.get("raises") is NotImplementedError


def same_query(both: tuple[Any, Any], query: Callable[..., Any]) -> None:
    """What both backends give for a query over the tables that its parameters name."""
    same(*both, lambda c: query(*(c.table(t) for t in inspect.signature(query).parameters)))


QUERIES = queries_of_ibis("h")


@pytest.fixture(scope="module")
def tpch() -> Iterator[tuple[Any, Any]]:
    ours, theirs = Backend.from_connection(fuseline.connect()), ibis.duckdb.connect()
    for name, path in tpch_tables(0.01).items():
        for connection in (ours, theirs):
            connection.read_parquet(path, table_name=name)
    yield ours, theirs
    ours.disconnect()
    theirs.disconnect()


@pytest.mark.parametrize("name", QUERIES)
def test_a_query_of_ibis(tpch: tuple[Any, Any], name: str) -> None:
    same_query(tpch, QUERIES[name])


@pytest.fixture
def con() -> Iterator[Any]:
    made = ibis.fuseline.connect(device="cpu")
    yield made
    made.disconnect()


def test_tables_are_made_filled_listed_and_dropped(con: Any) -> None:
    made = con.create_table("t", schema={"a": "int32", "b": "string"})
    con.insert("t", {"a": [1, 2], "b": ["x", None]})
    con.insert("t", made.filter(_.a > 1))
    assert made.order_by("a").to_pyarrow().to_pylist() == [
        {"a": 1, "b": "x"},
        {"a": 2, "b": None},
        {"a": 2, "b": None},
    ]
    copied = con.create_table("u", made.group_by("b").agg(n=_.count()), temp=True)
    assert copied.schema() == ibis.schema({"b": "string", "n": "int64"})
    con.create_table("w", {"b": ["x"]})
    con.create_table("w", {"a": [1.5]}, schema={"a": "decimal(5, 2)"}, overwrite=True)
    assert con.table("w").to_pyarrow()["a"].to_pylist() == [Decimal("1.50")]
    view = con.create_view("v", made.select("a"))
    assert view.count().execute() == 3
    assert con.list_tables(like="^.$") == ["t", "u", "v", "w"]
    con.drop_view("v")
    con.drop_table("u")
    con.drop_table("w")
    con.drop_table("u", force=True)
    assert con.list_tables(like="^.$") == ["t"]


def test_rows_in_memory_are_a_table(con: Any) -> None:
    rows = ibis.memtable({"a": [1, 2, None], "s": ["x", "y", "z"]})
    assert con.execute(rows.a.sum()) == 3
    assert con.to_pyarrow(rows.join(rows.view(), "s").count()).as_py() == 3
    assert con.list_tables(like="^ibis") == con.list_tables()


def test_answers_come_as_arrow_pandas_polars_batches_and_files(con: Any, tmp_path: Path) -> None:
    rows = con.create_table("t", TRIPS)
    assert rows.to_pyarrow().equals(TRIPS.cast(rows.schema().to_pyarrow()))
    assert rows.to_polars()["price"].to_list() == TRIPS["price"].to_pylist()
    batches = list(rows.to_pyarrow_batches(chunk_size=3))
    assert [batch.num_rows for batch in batches] == [3, 3, 2]
    rows.to_parquet(tmp_path / "t.parquet")
    assert con.read_parquet(tmp_path / "t.parquet").count().execute() == 8
    rows.to_csv(tmp_path / "t.csv")
    assert con.read_csv(tmp_path / "t.csv", table_name="of_csv").count().execute() == 8
    assert con.read_csv([tmp_path / "t.csv"], all_varchar=True).schema().types[0].is_string()
    (tmp_path / "t.json").write_text('{"a": 1}\n{"a": 2}\n')
    assert con.read_json(tmp_path / "t.json").a.sum().execute() == 3
    rows.select("id").to_json(tmp_path / "ids.json")
    assert con.read_json(tmp_path / "ids.json").id.max().execute() == 7
    rows.to_parquet(tmp_path / "by driver", partition_by=("driver", "paid"))
    assert con.read_parquet(tmp_path / "by driver").count().execute() == 8
    rows.to_csv(tmp_path / "t.tsv", delimiter="\t", header=False)
    assert (tmp_path / "t.tsv").read_text().startswith("1\t1\t10.5")
    assert rows.fare.sum().execute() == pytest.approx(128.0)
    assert rows.select("id").cache().count().execute() == 8


@pytest.mark.parametrize(
    "make",
    [
        lambda t: t.order_by("at"),
        lambda t: t.filter(_.day.notnull()).select(d=_.day - ibis.date("2026-01-03")).order_by("d"),
        lambda t: t.order_by("at").select(a=ibis.array([_.id, 2]), s=ibis.struct({"x": _.driver})),
        lambda t: t.limit(0),
    ],
    ids=["columns", "days between", "nested", "none"],
)
def test_pandas_frames_are_those_of_duckdbs_backend(both: tuple[Any, Any], make: Any) -> None:
    ours, theirs = (c.execute(make(c.table("trips"))) for c in both)
    if pd.__version__.startswith("2."):  # for which DuckDB's backend gives nanoseconds
        ours = ours.astype(theirs.dtypes)
    pd.testing.assert_frame_equal(ours, theirs)


def test_numbers_with_nulls_are_numbers_in_pandas(con: Any) -> None:
    rows = con.create_table("t", TRIPS).select(_.id, d=_.day - ibis.date("2026-01-03"))
    sums = rows.group_by("id").agg(s=_.id.sum(), d=_.d.max()).execute()
    assert sums.dtypes.astype(str).to_dict() == {
        "id": "float64",
        "s": "float64",
        "d": "timedelta64[s]",
    }
    assert sums.isna().sum().to_dict() == {"id": 1, "s": 1, "d": 1}


def test_texts_of_sql_are_tables(con: Any) -> None:
    con.create_table("t", TRIPS)
    found = con.sql("select driver, count(*) as n from t group by driver")
    assert found.schema() == ibis.schema({"driver": "string", "n": "int64"})
    assert found.filter(_.driver == "Ann").n.execute().tolist() == [2]
    assert con.table("t").alias("s").sql("select max(id) as m from s").execute().m[0] == 7
    with pytest.raises(fuseline.Error, match="nonsense"):
        con.sql("select nonsense from t")


def test_a_folder_is_a_database(tmp_path: Path) -> None:
    made = ibis.connect(f"fuseline://{tmp_path}/shop?device=cpu")
    made.create_table("t", TRIPS)
    made.disconnect()
    again = ibis.fuseline.connect(tmp_path / "shop", read_only=True, device="cpu")
    assert again.list_tables() == ["t"]
    assert again.table("t").id.max().execute() == 7
    again.disconnect()


def test_what_is_not_there_is_said(con: Any) -> None:
    with pytest.raises(TableNotFound):
        con.table("nothing")
    with pytest.raises(TableNotFound):
        con.table("nothing", database="other")
    with pytest.raises(fuseline.Error, match="no folder"):
        ibis.fuseline.connect("nothing/there/a.duckdb")
    assert con.version == fuseline.__version__


def test_the_example_of_the_page_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    page = (ROOT / "docs/ibis.md").read_text()
    exec(re.search(r"```python\n(.*?)```", page, re.DOTALL)[1], {})  # type: ignore[index]


def test_numbers_that_a_type_does_not_hold_are_no_others() -> None:
    """Fractions are cut off, as DuckDB's backend does; what is too large, or no number, is an error."""
    whole = pa.schema({"a": pa.int32()})
    assert with_types(pa.table({"a": [1.9, -1.9, None]}), whole)["a"].to_pylist() == [1, -1, None]
    for value in (3e9, float("nan"), float("inf")):
        with pytest.raises(pa.ArrowInvalid):
            with_types(pa.table({"a": [value]}), whole)


def test_cached_tables_may_outlive_their_connection() -> None:
    own = ibis.connect("fuseline://")
    cached = (
        ibis.memtable({"a": [1, 2]}).mutate(b=_.a).pipe(lambda t: own.create_table("t", t)).cache()
    )
    assert cached.count().execute() == 2
    own.disconnect()
    own._finalize_cached_table(cached.op().name)
