"""over(), window functions and running aggregates of dataframe calls, fused and unfused."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import timedelta
from typing import Any

import pytest

from fuseline import all_, avg, col, count, exclude, fn, lit, max_, sum_, when
from fuseline.errors import InvalidQuery, TypeMismatch, UnknownName, WrongArguments
from tests.compare import connected
from tests.frame.answers import TABLES, assert_duckdb_says


@pytest.fixture(scope="module", params=["always", "never"])
def db(request: Any) -> Iterator[Any]:
    with connected(TABLES, fuse=request.param) as connection:
        yield connection


ROWS = "rows between {} and {}"
WINDOWS = [
    (lambda: col("sold").sum().over("shop"), "sum(sold) over (partition by shop)"),
    (lambda: sum_("sold").over(order_by="id"), "sum(sold) over (order by id)"),
    (lambda: avg("price").over("shop", order_by=col("day").desc()), "avg(price) over (partition by shop order by day desc)"),
    (lambda: count().over("shop", "flag"), "count(*) over (partition by shop, flag)"),
    (lambda: count().over(["shop", "flag"]), "count(*) over (partition by shop, flag)"),
    (lambda: max_("weight").over(col("id") % 2), "max(weight) over (partition by id % 2)"),
    (lambda: col("sold").sum().filter(col("flag")).over(), "sum(sold) filter (where flag) over ()"),
    (lambda: count("shop", distinct=True).over("flag"), "count(distinct shop) over (partition by flag)"),
    (lambda: col("sold").sum().over(order_by="id", frame=(-1, 0)), "sum(sold) over (order by id rows between 1 preceding and current row)"),
    (lambda: col("sold").sum().over(order_by="id", frame=(1, None)), "sum(sold) over (order by id rows between 1 following and unbounded following)"),
    (lambda: col("sold").sum().over(order_by="id", frame=("groups", -1, 1)), "sum(sold) over (order by id groups between 1 preceding and 1 following)"),
    (lambda: col("sold").sum().over(order_by="day", frame=("range", timedelta(days=-2), timedelta(days=2))), "sum(sold) over (order by day range between interval 2 days preceding and interval 2 days following)"),
    (lambda: col("id").sum().over(order_by="id", frame=("range", -2, 0)), "sum(id) over (order by id range between 2 preceding and current row)"),
    (lambda: col("sold").sum().over(order_by="day", frame=("range", None, 0), exclude="ties"), "sum(sold) over (order by day range between unbounded preceding and current row exclude ties)"),
    (lambda: col("sold").shift().over(order_by="id"), "lag(sold, 1) over (order by id)"),
    (lambda: col("sold").shift(-2, 7).over("shop", order_by="id"), "lead(sold, 2, 7) over (partition by shop order by id)"),
    (lambda: col("id").diff().over(order_by="day"), "id - lag(id) over (order by day)"),
    (lambda: col("id").pct_change().over(order_by="id"), "id / lag(id) over (order by id) - 1"),
    (lambda: col("day").rank().over("shop"), "rank() over (partition by shop order by day)"),
    (lambda: col("day").rank("dense", descending=True), "dense_rank() over (order by day desc)"),
    (lambda: col("day").rank("max"), "rank() over (order by day) + count(*) over (partition by day) - 1"),
    (lambda: col("day").rank("average").over("shop"), "rank() over (partition by shop order by day) + (count(*) over (partition by shop, day) - 1) / 2"),
    (lambda: col("id").rank("percent"), "percent_rank() over (order by id)"),
    (lambda: col("id").rank("cume_dist"), "cume_dist() over (order by id)"),
    (lambda: fn.row_number().over("shop", order_by=["day", "id"]), "row_number() over (partition by shop order by day, id)"),
    (lambda: fn.ntile(3).over(order_by="id"), "ntile(3) over (order by id)"),
    (lambda: fn.lag("sold", 2).over(order_by="id"), "lag(sold, 2) over (order by id)"),
    (lambda: fn.nth_value("sold", 2).over("shop", order_by="id"), "nth_value(sold, 2) over (partition by shop order by id)"),
    (lambda: col("sold").first_value().over("shop", order_by="id"), "first_value(sold) over (partition by shop order by id)"),
    (lambda: col("sold").last_value(ignore_nulls=True).over("shop", order_by="id"), "last_value(sold ignore nulls) over (partition by shop order by id)"),
    (lambda: col("sold").first().over("shop", order_by="id"), "first(sold) over (partition by shop order by id)"),
    (lambda: col("sold").last().over("shop", order_by="id", frame=(None, None)), "last(sold) over (partition by shop order by id rows between unbounded preceding and unbounded following)"),
    (lambda: col("sold").fill_null(strategy="forward").over(order_by="id"), "last_value(sold ignore nulls) over (order by id rows between unbounded preceding and current row)"),
    (lambda: col("flag").backward_fill().over("shop", order_by="id"), "first_value(flag ignore nulls) over (partition by shop order by id rows between current row and unbounded following)"),
    (lambda: col("sold").cum_sum().over(order_by="id"), "sum(sold) over (order by id rows unbounded preceding)"),
    (lambda: col("sold").cum_sum(reverse=True).over("shop", order_by="id"), "sum(sold) over (partition by shop order by id rows between current row and unbounded following)"),
    (lambda: col("price").cum_min().over(order_by="id"), "min(price) over (order by id rows unbounded preceding)"),
    (lambda: col("shop").cum_max().over(order_by="id"), "max(shop) over (order by id rows unbounded preceding)"),
    (lambda: col("sold").cum_count().over(order_by="id"), "count(sold) over (order by id rows unbounded preceding)"),
    (lambda: col("sold").cum_mean().over(order_by="id"), "avg(sold) over (order by id rows unbounded preceding)"),
    (lambda: col("id").rolling_sum(3).over(order_by="id"), "case when count(id) over w >= 3 then sum(id) over w end"),
    (lambda: col("sold").rolling_mean(3, min_samples=1).over(order_by="id"), "case when count(sold) over w >= 1 then avg(sold) over w end"),
    (lambda: col("sold").rolling_min(3, min_samples=2).over(order_by="id"), "case when count(sold) over w >= 2 then min(sold) over w end"),
    (lambda: col("id").rolling_std(3).over(order_by="id"), "case when count(id) over w >= 3 then stddev_samp(id) over w end"),
    (lambda: col("id").rolling_max(3, min_samples=0, center=True).over(order_by="id"), "max(id) over (order by id rows between 1 preceding and 1 following)"),
    (lambda: col("sold").rolling_count(3).over(order_by="id"), "count(sold) over w"),
    (lambda: col("sold") * 1.0 / col("sold").sum().over("shop"), "sold * 1.0 / sum(sold) over (partition by shop)"),
    (lambda: col("sold").n_unique().over("flag"), "count(distinct sold) over (partition by flag)"),
]  # fmt: skip


@pytest.mark.by_day
@pytest.mark.parametrize(("build", "text"), WINDOWS, ids=[text for _, text in WINDOWS])
def test_over_is_what_sql_says(build: Any, text: str, db: Any) -> None:
    frame = db.table("sales").select("id", x=build())
    window = " window w as (order by id rows between 2 preceding and current row)"
    assert_duckdb_says(
        frame, f"select id, {text} as x from sales{window if 'over w' in text else ''}"
    )


def test_without_over_rows_are_seen_as_they_come(db: Any) -> None:
    sales = db.table("sales")
    frame = sales.select("id", a=col("id").shift(), b=col("id").cum_sum(), c=fn.row_number())
    query = "select id, lag(id) over () a, sum(id) over (rows unbounded preceding) b, row_number() over () c from sales"
    assert_duckdb_says(frame, query)


def test_windows_of_windows(db: Any) -> None:
    changed = (col("sold").fill_null(0) > 3) != (col("sold").fill_null(0) > 3).shift(
        fill=False
    ).over(order_by="id")
    frame = db.table("sales").with_columns(run=changed.cast("integer").sum().over(order_by="id"))
    query = """select *, sum(changed::integer) over (order by id) as run from (
        select *, (coalesce(sold, 0) > 3) != lag(coalesce(sold, 0) > 3, 1, false) over (order by id) as changed from sales)"""
    assert_duckdb_says(frame, f"select * exclude (changed) from ({query})")


def test_filter_by_a_window_is_qualify(db: Any) -> None:
    frame = db.table("sales").filter(fn.row_number().over("shop", order_by="id") == 1)
    assert_duckdb_says(
        frame, "select * from sales qualify row_number() over (partition by shop order by id) = 1"
    )


def test_sort_and_distinct_by_a_window(db: Any) -> None:
    order = count().over("shop").desc()
    frame = db.table("sales").sort(order, "id")
    assert_duckdb_says(
        frame, "select * from sales order by count(*) over (partition by shop) desc, id"
    )
    frame = db.table("sales").sort("id").distinct(count().over("shop")).select("id")
    assert sorted(frame.fetchall()) == [(1,), (2,), (4,)]


def test_aggregates_of_windows(db: Any) -> None:
    frame = (
        db.table("sales")
        .group_by("shop")
        .agg(step=max_(col("id").diff().over("shop", order_by="id")))
    )
    query = """select shop, max(step) as step from (
        select shop, id - lag(id) over (partition by shop order by id) as step from sales) group by shop"""
    assert_duckdb_says(frame, query)


def test_names_are_those_of_sql(db: Any) -> None:
    frame = db.table("sales").select(
        col("sold").sum().over("shop", order_by=col("id").desc()),
        fn.row_number().over(order_by="id"),
    )
    query = "select sum(sold) over (partition by shop order by id desc), row_number() over (order by id) from sales"
    assert frame.columns == db.sql(query).columns


def test_expressions_for_several_columns(db: Any) -> None:
    sales = db.table("sales")
    assert_duckdb_says(
        sales.select(col("id", "sold") * 2), "select columns('^(sold|id)$') * 2 from sales"
    )
    assert_duckdb_says(sales.agg(all_().count()), "select count(columns(*)) from sales")
    assert_duckdb_says(
        sales.select(exclude("id", "^.*[eg].*$")), "select shop, day, sold from sales"
    )
    assert_duckdb_says(
        sales.with_columns(col("^s.*d$") + 1),
        "select * replace (sold + 1 as sold) from sales",
    )
    assert sales.select(col("id", "sold").suffix("_x"), col("id").prefix("y_")).columns == [
        "id_x",
        "sold_x",
        "y_id",
    ]
    assert_duckdb_says(
        sales.select(col("id", "sold") - col("id", "sold").mean().over()),
        "select id - avg(id) over () as id, sold - avg(sold) over () as sold from sales",
    )
    assert_duckdb_says(
        sales.filter(col("id", "sold") > 2), "select * from sales where id > 2 and sold > 2"
    )
    assert_duckdb_says(
        sales.group_by("shop").agg(exclude("flag", "day").max()),
        "select shop, max(id) id, max(sold) sold, max(price) price, max(weight) weight from sales group by shop",
    )


@pytest.mark.parametrize(("build", "error", "message"), [
    (lambda t: t.select(col("id").over("shop")), InvalidQuery, "neither an aggregate nor a window"),
    (lambda t: t.select(sum_("id").over("shop").over("id")), InvalidQuery, "over a window already"),
    (lambda t: t.select(col("id").cum_sum().over(frame=(0, 1))), InvalidQuery, "has one already"),
    (lambda t: t.select(sum_("id").over(frame=3)), WrongArguments, "`frame`"),
    (lambda t: t.select(sum_("id").over(frame=(1, -1))), InvalidQuery, "cannot end with"),
    (lambda t: t.select(sum_("id").over(frame=("range", -1, 0))), InvalidQuery, "exactly one ORDER BY"),
    (lambda t: t.select(sum_("id").over(exclude="group")), InvalidQuery, "goes with a `frame`"),
    (lambda t: t.select(col("id").rank("middle")), InvalidQuery, "no method 'middle'"),
    (lambda t: t.select(col("id").shift("a")), WrongArguments, "number of rows"),
    (lambda t: t.select(col("id").rolling_sum(0)), WrongArguments, "window_size"),
    (lambda t: t.select(col("id").fill_null()), WrongArguments, "value, or strategy="),
    (lambda t: t.select(col("id").fill_null(strategy="both")), InvalidQuery, "forward"),
    (lambda t: t.group_by(fn.row_number()).agg(count()), InvalidQuery, "no group key"),
    (lambda t: t.group_by("shop").agg(sum_("id").over()), InvalidQuery, "inside of an aggregate"),
    (lambda t: t.select(col("id") + all_()["x"]), TypeError, "subscriptable"),
    (lambda t: t.join(t, on=all_() == 1), InvalidQuery, "several columns"),
    (lambda t: t.select(col("id", "nope")), UnknownName, "nope"),
    (lambda t: t.select(col("^z.*$")), UnknownName, "finds"),
    (lambda t: t.select(col("^($")), InvalidQuery, "no regular expression"),
    (lambda t: t.select(col("id", "sold") + col("id", "sold", "day")), InvalidQuery, "different numbers"),
    (lambda t: t.filter(col("id") == None), InvalidQuery, r"is_null\(\)"),  # noqa: E711
    (lambda t: t.filter(col("id") != None), InvalidQuery, r"is_not_null\(\)"),  # noqa: E711
    (lambda t: t.filter(col("shop").is_in(t.select("id", "sold"))), InvalidQuery, "one column"),
    (lambda t: t.filter(col("flag").is_in(t.select("day"))), TypeMismatch, "is_in"),
])  # fmt: skip
def test_bad_windows_and_choices(build: Any, error: type[Exception], message: str, db: Any) -> None:
    with pytest.raises(error, match=message):
        build(db.table("sales"))


def test_comparison_with_lit_none_is_null(db: Any) -> None:
    assert_duckdb_says(
        db.table("sales").select(x=col("id") == lit(None)), "select id = null as x from sales"
    )
    assert_duckdb_says(
        db.table("sales").select(x=when(col("id").eq_null(1)).then(1)),
        "select case when id is not distinct from 1 then 1 end as x from sales",
    )
