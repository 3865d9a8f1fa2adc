"""Joins, pivots, lists as rows, summaries, samples, and SQL over a frame."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import duckdb
import pytest

import fuseline
from fuseline import all_, avg, col, count, fn, lit, max_, sum_
from fuseline.errors import (
    AmbiguousName,
    CatalogError,
    InvalidQuery,
    TypeMismatch,
    UnknownName,
    WrongArguments,
)
from tests.compare import connected, rows
from tests.frame.answers import SALES, TABLES, assert_duckdb_says


@pytest.fixture(scope="module", params=["always", "never"])
def db(request: Any) -> Iterator[Any]:
    with connected(TABLES, fuse=request.param) as connection:
        yield connection


FRAMES = [
    (lambda db: db.table("sales").join(db.table("quotes"), on=[("shop", "name")]), "select s.*, name, q.day as day_right, quote from sales s join quotes q on shop = name"),
    (lambda db: db.table("sales").join(db.table("quotes"), left_on=["shop", "day"], right_on=["name", "day"], how="left"), "select s.*, name, quote from sales s left join quotes q on shop = name and s.day = q.day"),
    (lambda db: db.table("sales").select("day", "id").join(db.table("quotes"), on="day", how="outer"), "select * from (select day, id from sales) full join quotes using (day)"),
    (lambda db: db.table("sales").select("id").cross_join(db.table("quotes")), "select id, q.* from sales, quotes q"),
    (lambda db: db.table("sales").filter(col("shop").is_in(db.table("quotes").select("name"))), "from sales where shop in (select name from quotes)"),
    (lambda db: db.table("sales").filter(~col("shop").is_in(db.table("quotes").filter(col("name").is_not_null()).select("name"))), "from sales where shop not in (select name from quotes where name is not null)"),
    (lambda db: db.table("sales").join_asof(db.table("quotes"), on="day"), "select s.*, name, q.day as day_right, quote from sales s asof left join quotes q on s.day >= q.day"),
    (lambda db: db.table("sales").rename({"shop": "name"}).join_asof(db.table("quotes"), on="day", by="name", how="inner", strategy="forward"), "select s.id, s.shop as name, s.* exclude (id, shop), q.day as day_right, quote from sales s asof join quotes q on shop = name and s.day <= q.day"),
    (lambda db: db.table("sales").select("shop", "id").union_by_name(db.table("quotes").select("quote", shop="name")), "select shop, id from sales union all by name select quote, name as shop from quotes"),
    (lambda db: db.table("sales").select("id").union_by_name(db.table("sales").select(id=lit(1.5)), distinct=True), "select id from sales union by name select 1.5::double as id"),
    (lambda db: db.table("sales").pivot("shop", sum_("sold"), index="flag").sort("flag"), "select * from (pivot sales on shop using sum(sold) group by flag) order by flag"),
    (lambda db: db.table("sales").select("shop", "flag", "sold").pivot("shop", [sum_("sold").alias("s"), count().alias("n")]), "pivot (select shop, flag, sold from sales) on shop using sum(sold) as s, count(*) as n group by flag"),
    (lambda db: db.table("sales").pivot("shop", index="flag"), "pivot sales on shop using count(*) group by flag"),
    (lambda db: db.table("sales").pivot("shop", sum_("sold") + max_("sold"), index="flag", columns=["b", "zz"]), "select flag, sum(sold) filter (shop = 'b') + max(sold) filter (shop = 'b') as b, sum(sold) filter (shop = 'zz') + max(sold) filter (shop = 'zz') as zz from sales group by flag"),
    (lambda db: db.table("sales").select("id", "sold", "price").unpivot("sold", "price"), "unpivot (select id, sold, price from sales) on sold, price"),
    (lambda db: db.table("sales").select("id", "sold", "price").unpivot(index="id", name="what", value="v", include_nulls=True), "from (select id, sold, price from sales) unpivot include nulls (v for what in (sold, price))"),
    (lambda db: db.table("lists").unnest("l"), "select k, unnest(l) as l, w, s from lists"),
    (lambda db: db.table("lists").unnest("l", "w").select("k", "l", "w"), "select k, unnest(l) as l, unnest(w) as w from lists"),
    (lambda db: db.table("lists").unnest("s").select("k", "x", "y"), "select k, s.x, s.y from lists"),
    (lambda db: db.table("lists").select("k", "l").explode("l"), "select k, unnest(case when len(l) > 0 then l else [null] end) as l from lists"),
    (lambda db: db.table("sales").value_counts("shop"), "select shop, count(*) as count from sales group by shop order by count desc, shop"),
    (lambda db: db.table("sales").value_counts("shop", "flag", name="n"), "select shop, flag, count(*) as n from sales group by all order by n desc, shop, flag"),
    (lambda db: db.table("sales").sort("id").tail(3), "from sales where id > 4 order by id"),
    (lambda db: db.table("sales").top_k(2, "sold"), "from sales order by sold desc nulls last limit 2"),
    (lambda db: db.table("sales").bottom_k(3, "sold"), "from sales order by sold limit 3"),
    (lambda db: db.table("sales").sort("id").with_row_index("n", 5).select("n", "id"), "select row_number() over (order by id) + 4 as n, id from sales order by id"),
    (lambda db: db.table("sales").cast({"id": "varchar", "sold": "double"}), "select * replace (id::varchar as id, sold::double as sold) from sales"),
    (lambda db: db.table("sales").fill_null(0).select("sold", "shop"), "select coalesce(sold, 0) as sold, shop from sales"),
    (lambda db: db.table("sales").fill_null("-").select("sold", "shop"), "select sold, coalesce(shop, '-') as shop from sales"),
    (lambda db: db.table("sales").rename(str.upper), "select id as ID, shop as SHOP, day as DAY, sold as SOLD, price as PRICE, weight as WEIGHT, flag as FLAG from sales"),
    (lambda db: db.table("sales").group_by("shop").sum("sold", "id"), "select shop, sum(sold) as sold, sum(id) as id from sales group by shop"),
    (lambda db: db.table("sales").select("shop", "sold", "id").group_by("shop").max(), "select shop, max(sold) as sold, max(id) as id from sales group by shop"),
    (lambda db: db.table("sales").group_by("shop").len(), "select shop, count(*) as len from sales group by shop"),
    (lambda db: db.table("sales").sql("select shop, sum(sold) as s from self where id > ? group by all", [2]), "select shop, sum(sold) as s from sales where id > 2 group by all"),
    (lambda db: db.table("sales").filter(col("id") > 2).query("x", "select x.id, y.id as z from x join x y on x.id < y.id"), "select x.id, y.id as z from sales x join sales y on x.id < y.id where x.id > 2"),
    (lambda db: db.table("sales").project("id * 2 as two, shop").order("two desc").limit(2), "select id * 2 as two, shop from sales order by two desc limit 2"),
    (lambda db: db.table("sales").aggregate("shop, sum(sold)", "shop"), "select shop, sum(sold) from sales group by shop"),
    (lambda db: db.table("sales").aggregate("count(*)"), "select count(*) from sales"),
    (lambda db: db.table("sales").pipe(lambda frame, n: frame.limit(n), 0), "from sales limit 0"),
    (lambda db: db.table("sales").agg(all_().count()), "select count(columns(*)) from sales"),
    (lambda db: db.table("sales").agg(a=col("sold").n_unique(), b=col("sold").median(), c=col("sold").quantile(0.25), d=col("sold").std(), e=col("sold").var(), f=col("flag").all(), g=col("flag").any(), h=col("id").product(), i=col("shop").mode().cast("varchar").str.len()), "select count(distinct sold) a, median(sold) b, quantile_cont(sold, 0.25) c, stddev(sold) d, var_samp(sold) e, bool_and(flag) f, bool_or(flag) g, product(id) h, length(mode(shop)::varchar) i from sales"),
    (lambda db: db.table("sales").agg(a=col("shop").implode().order_by(col("day").desc(), "id"), b=col("id").first().order_by("day"), c=col("id").last().order_by("day", "id")), "select list(shop order by day desc, id) a, first(id order by day) b, last(id order by day, id) c from sales"),
]  # fmt: skip


@pytest.mark.parametrize(("build", "query"), FRAMES, ids=[query for _, query in FRAMES])
def test_the_answer_is_that_of_sql(build: Any, query: str, db: Any) -> None:
    assert_duckdb_says(build(db), query)


def test_describe_is_duckdbs(db: Any) -> None:
    frame = db.table("sales").select("id", "shop", "sold", "weight", "price")
    with duckdb.connect() as connection:
        connection.register("sales", SALES.select(frame.columns))
        expected = connection.table("sales").describe().to_arrow_table()
    found = frame.describe().to_arrow()
    assert found.column_names == expected.column_names
    assert [_rounded(row) for row in rows(found)] == [_rounded(row) for row in rows(expected)]


def _rounded(row: tuple[Any, ...]) -> str:
    return str([round(value, 12) if isinstance(value, float) else value for value in row])


def test_samples(db: Any) -> None:
    frame = db.table("sales").select("id")
    assert (
        frame.sample(3, seed=7).sort("id").fetchall()
        == frame.sample(3, seed=7).sort("id").fetchall()
    )
    drawn = frame.sample(3)
    assert drawn.sort("id").fetchall() == drawn.sort("id").fetchall()
    assert frame.sample(100).count() == 7
    assert frame.sample(fraction=0.5).count() == 4
    assert frame.sample(fraction=1.0, method="bernoulli").count() == 7
    seen = {frame.select("id").sample(1, seed=seed).fetchall()[0] for seed in range(60)}
    assert len(seen) > 3


def test_tables_and_views_of_frames() -> None:
    with connected(TABLES) as db:
        few = db.table("sales").filter(col("id") < 3).select("id", "shop")
        assert few.create_table("few").count() == 2
        few.insert_into("few")
        db.table("sales").select("shop", id=col("id") + 100).limit(1).insert_into(
            "few", by_name=True
        )
        assert db.sql("select count(*), max(id) from few").fetchall() == [(5, 101)]
        with pytest.raises(CatalogError, match="already"):
            few.create_table("few")
        few.create_table("few", if_not_exists=True)
        assert few.create_table("few", replace=True).count() == 2
        few.create_view("seen")
        text = "select a.id, b.shop from seen a join seen b using (id) join (from seen) c using (id) order by 1"
        assert db.sql(text).fetchall() == [(1, "a"), (2, "b")]
        few.limit(1).create_view("seen")
        assert db.table("seen").count() == 1
        with pytest.raises(CatalogError, match="already"):
            few.create_view("seen", replace=False)
        with pytest.raises(CatalogError, match="is a table"):
            few.create_view("few")
        db.execute("alter view seen rename to met; drop view met")
        assert "met" not in db.catalog.names()


def test_self_is_the_frame_whatever_the_catalog_has() -> None:
    with connected(TABLES) as db:
        db.execute('create table "self" as select 42 as id')
        frame = db.table("sales").select("id").limit(1)
        assert frame.sql("from self").fetchall() == [(1,)]
        assert frame.sql('select (select id from main."self"), id from SELF').fetchall() == [
            (42, 1)
        ]
        assert db.sql("from self").fetchall() == [(42,)]
        assert frame.sql("with self as (select 7 as seven) from self").fetchall() == [(7,)]
        assert frame.sql("select id from self union all from self order by 1").fetchall() == [
            (1,),
            (1,),
        ]


@pytest.mark.parametrize(("build", "error", "message"), [
    (lambda t: t.join(t, left_on="id"), InvalidQuery, "both `left_on` and `right_on`"),
    (lambda t: t.join(t, on="id", left_on="id", right_on="id"), InvalidQuery, "both `left_on`"),
    (lambda t: t.join(t, left_on=["id", "shop"], right_on="id"), InvalidQuery, "2 columns and `right_on` 1"),
    (lambda t: t.join(t, on=[("id", "shop", "day")]), InvalidQuery, "two columns"),
    (lambda t: t.join_asof(t), InvalidQuery, "ASOF"),
    (lambda t: t.join_asof(t, on="id", how="full"), InvalidQuery, '"left" or "inner"'),
    (lambda t: t.join_asof(t, on="id", strategy="nearest"), InvalidQuery, "forward"),
    (lambda t: t.union_by_name(t.sql("select 1 as a, 2 as A")), AmbiguousName, "different names"),
    (lambda t: t.pivot("nope"), UnknownName, "nope"),
    (lambda t: t.pivot("shop", "sold"), InvalidQuery, "neither a group key"),
    (lambda t: t.pivot("shop", columns=["a", "a"]), InvalidQuery, "twice"),
    (lambda t: t.unpivot("id", "shop"), TypeMismatch, "does not mix"),
    (lambda t: t.explode("id"), TypeMismatch, "only a list"),
    (lambda t: t.explode(), InvalidQuery, "names of columns"),
    (lambda t: t.sample(), WrongArguments, "fraction="),
    (lambda t: t.sample(fraction=2), WrongArguments, "between 0 and 1"),
    (lambda t: t.sample(3, method="system"), InvalidQuery, "takes a fraction"),
    (lambda t: t.sample(3, method="other"), InvalidQuery, "reservoir"),
    (lambda t: t.tail(-1), InvalidQuery, "not negative"),
    (lambda t: t.cast("id"), WrongArguments, "dictionary"),
    (lambda t: t.group_by("shop", as_index=False), WrongArguments, "no option as_index"),
    (lambda t: t.group_by(by=["shop"]), WrongArguments, "no option by"),
    (lambda t: t.sort("id", ascending=False), WrongArguments, "descending="),
    (lambda t: t.sort(by="id"), WrongArguments, "first arguments"),
    (lambda t: t.drop_nulls(subset=["id"]), WrongArguments, "first arguments"),
    (lambda t: t.drop("id", axis=1), WrongArguments, "no axis"),
    (lambda t: t.unpivot(id_vars="id"), WrongArguments, "index="),
    (lambda t: t.sample(frac=0.5), WrongArguments, "fraction="),
    (lambda t: t.select(col("id").rolling_sum(window=2)), WrongArguments, "window_size="),
    (lambda t: t.limit(cuont=3), WrongArguments, '"count"'),
    (lambda t: t.select(col("shop").str.startswith("a")), AttributeError, "starts_with"),
    (lambda t: t.select(col("id").dt.dayofweek()), AttributeError, "weekday"),
    (lambda t: t.collect(), AttributeError, "to_arrow"),
    (lambda t: t.melt(), AttributeError, "unpivot"),
    (lambda t: t.sql("select * from selff"), UnknownName, '"self"'),
])  # fmt: skip
def test_bad_calls(build: Any, error: type[Exception], message: str, db: Any) -> None:
    with pytest.raises(error, match=message):
        build(db.table("sales"))


def test_aggregates_by_name(db: Any) -> None:
    frame = db.table("sales").group_by("shop").agg(avg("sold"), fn.arg_max("id", "day").alias("a"))
    assert_duckdb_says(
        frame, "select shop, avg(sold), arg_max(id, day) as a from sales group by shop"
    )


def test_views_of_frames_end_with_the_connection_of_a_folder(tmp_path: Path) -> None:
    with fuseline.connect(str(tmp_path / "shop"), device="cpu") as connection:
        kept = connection.sql("select 1 as a").create_table("kept")
        assert kept.create_view("seen").fetchall() == [(1,)]
        kept.insert_into("kept")
        assert connection.sql("select count(*) from kept, seen").fetchall() == [(2,)]
    with fuseline.connect(str(tmp_path / "shop"), device="cpu") as connection:
        assert connection.table("kept").count() == 2
        with pytest.raises(UnknownName, match="seen"):
            connection.table("seen")
