"""Dataframe calls give what the same SQL gives; both backends."""

from __future__ import annotations

import io
import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import redirect_stdout
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from fuseline import avg, col, count, fn, lit, max_, sum_, when
from fuseline.errors import (
    AmbiguousName,
    ExecutionError,
    InvalidQuery,
    TypeMismatch,
    UnknownName,
    WrongArguments,
)
from tests.compare import assert_same, connected

SALES = pa.table({
    "id": [1, 2, 3, 4, 5, None], "shop": ["a", "b", "a", None, "b", "a"],
    "price": pa.array([Decimal("1.50"), Decimal("2.25"), None, Decimal("9.99"), Decimal("0.01"), Decimal("4.00")], pa.decimal128(10, 2)),
    "weight": [1.0, float("nan"), 0.5, None, 2.0, 3.0],
})  # fmt: skip
SHOPS = pa.table({"shop": ["a", "b", "c"], "city": ["Aix", "Bonn", "Cork"], "id": [10, 20, 30]})


@pytest.fixture
def db(backend: str) -> Iterator[Any]:
    with connected({"sales": SALES, "shops": SHOPS}, backend) as connection:
        yield connection


def assert_says(db: Any, frame: Any, query: str) -> None:
    """The frame's rows, names and types are those of the SQL, in the same order."""
    expected = db.sql(query).to_arrow()
    assert_same(expected, frame.to_arrow(), ordered=True, tolerance=0, near=0)


def test_the_schema_reads_as_sql(db: Any) -> None:
    assert repr(db.table("shops").schema) == "{'shop': VARCHAR, 'city': VARCHAR, 'id': BIGINT}"


def test_select_and_arithmetic(db: Any) -> None:
    frame = db.table("sales").select("id", gross=col("price") * 2 + 1).sort("id")
    assert_says(db, frame, "select id, price * 2 + 1 as gross from sales order by id")


def test_filter_keeps_true_alone(db: Any) -> None:
    frame = db.table("sales").filter(col("price") > 2, col("shop").is_not_null()).sort("id")
    assert_says(db, frame, "select * from sales where price > 2 and shop is not null order by id")


def test_or_not_and_between(db: Any) -> None:
    condition = ~(col("shop") == "a") | col("price").between(4, 5)
    frame = db.table("sales").filter(condition).sort("id")
    query = "select * from sales where not shop = 'a' or price between 4 and 5 order by id"
    assert_says(db, frame, query)


def test_group_by_with_expressions_over_aggregates(db: Any) -> None:
    frame = (
        db.table("sales")
        .group_by("shop")
        .agg(
            n=count(), total=sum_("price"), ratio=sum_("price") / count("price"), top=max_("price")
        )
        .sort("shop")
    )
    query = """select shop, count(*) as n, sum(price) as total, sum(price) / count(price) as ratio,
               max(price) as top from sales group by shop order by shop"""
    assert_says(db, frame, query)


def test_aggregate_filter_and_distinct(db: Any) -> None:
    frame = db.table("sales").agg(
        a=count("shop", distinct=True), b=sum_("price").filter(col("id") > 1), c=avg("weight")
    )
    query = """select count(distinct shop) as a, sum(price) filter (where id > 1) as b,
               avg(weight) as c from sales"""
    assert_says(db, frame, query)


@pytest.mark.parametrize("how", ["inner", "left", "right", "full", "semi", "anti"])
def test_join_on_a_name(db: Any, how: Any) -> None:
    left = db.table("sales").select("shop", "price")
    right = db.table("shops").select("shop", "city")
    frame = left.join(right, on="shop", how=how).sort("shop", "price")
    keyword = {"full": "full outer"}.get(how, how)
    query = f"""select * from (select shop, price from sales) {keyword} join
                (select shop, city from shops) using (shop) order by shop, price"""
    assert_says(db, frame, query)


def test_join_on_a_condition_renames_the_right_side(db: Any) -> None:
    a, b = db.table("sales"), db.table("shops")
    frame = a.join(b, on=(a["shop"] == b["shop"]) & (a["id"] < b["id"])).sort("id")
    assert frame.columns == ["id", "shop", "price", "weight", "shop_right", "city", "id_right"]
    assert len(frame) == 4


def test_join_of_two_frames_from_one_table(db: Any) -> None:
    a = db.table("sales").filter(col("id") < 4).select("id", "shop")
    b = db.table("sales").filter(col("id") > 1).select(other="id", shop="shop")
    assert_says(
        db,
        a.join(b, on=(a["shop"] == b["shop"]) & (a["id"] < b["other"])).sort("id"),
        """select x.id, x.shop, y.id as other, y.shop as shop_right from sales x join sales y
           on x.shop = y.shop and x.id < 4 and y.id > 1 and x.id < y.id order by 1""",
    )
    c = a.rename({"id": "earlier"})
    assert c.join(a, on=c["earlier"] == a["id"]).count() == 3
    assert a.join(c, on=a["id"] == c["earlier"]).count() == 3


def test_join_of_a_frame_with_itself(db: Any) -> None:
    a = db.table("shops")
    frame = a.join(a, on="id").sort("id")
    assert_says(
        db,
        frame,
        """select x.shop, x.city, x.id, y.shop as shop_right, y.city as city_right
           from shops x join shops y on x.id = y.id order by x.id""",
    )


def test_sort_nulls_and_directions(db: Any) -> None:
    frame = db.table("sales").sort(col("shop").desc().nulls_first(), col("id"))
    assert_says(db, frame, "select * from sales order by shop desc nulls first, id nulls last")


def test_limit_and_offset(db: Any) -> None:
    frame = db.table("sales").sort("id").limit(2, offset=1)
    assert_says(db, frame, "select * from sales order by id limit 2 offset 1")


def test_set_operations(db: Any) -> None:
    a, b = db.table("sales").select("shop"), db.table("shops").select("shop")
    assert_says(
        db,
        a.union(b).sort("shop"),
        "select shop from (from sales select shop union all from shops select shop) order by shop",
    )
    assert_says(
        db,
        a.union(b, distinct=True).sort("shop"),
        "select shop from (from sales select shop union from shops select shop) order by shop",
    )
    assert_says(
        db,
        a.intersect(b).sort("shop"),
        "select shop from (from sales select shop intersect from shops select shop) order by shop",
    )
    assert_says(
        db,
        b.except_(a).sort("shop"),
        "select shop from (from shops select shop except from sales select shop) order by shop",
    )


def test_distinct_rename_drop_with_columns(db: Any) -> None:
    frame = db.table("sales").drop("id", "weight", "price").distinct().rename({"shop": "s"})
    frame = frame.with_columns(upper=fn.upper(col("s"))).sort("s")
    assert_says(db, frame, "select distinct shop as s, upper(shop) as upper from sales order by s")


def test_when_then_otherwise(db: Any) -> None:
    size = when(col("price") > 5).then("big").when(col("price") > 1).then("mid").otherwise("small")
    frame = db.table("sales").select("id", size=size).sort("id")
    query = """select id, case when price > 5 then 'big' when price > 1 then 'mid' else 'small' end
               as size from sales order by id"""
    assert_says(db, frame, query)


def test_cast_in_list_and_literals(db: Any) -> None:
    frame = db.table("sales").filter(col("id").is_in([1, 2, 7]))
    frame = frame.select(text=col("id").cast("VARCHAR"), one=lit(1)).sort("text")
    assert_says(
        db,
        frame,
        "select id::varchar as text, 1 as one from sales where id in (1, 2, 7) order by text",
    )


def test_results_in_other_libraries(db: Any) -> None:
    frame = db.table("shops").sort("id")
    assert frame.to_pandas()["city"].tolist() == ["Aix", "Bonn", "Cork"]
    assert pa.table(frame).column("city").to_pylist() == ["Aix", "Bonn", "Cork"]
    assert frame.fetchall()[0] == ("a", "Aix", 10)
    assert "<td>Bonn</td>" in frame._repr_html_()


def test_results_in_polars(db: Any) -> None:
    pytest.importorskip("polars", reason="Polars is not installed")
    assert db.table("shops").sort("id").to_polars()["city"].to_list() == ["Aix", "Bonn", "Cork"]


def test_distinct_on_and_head(db: Any) -> None:
    frame = db.table("sales").sort("shop", "id").distinct("shop").select("shop", "id").head(2)
    query = "select distinct on (shop) shop, id from sales order by shop, id limit 2"
    assert_says(db, frame.sort("shop"), query)


def test_drop_nulls_and_fill_null(db: Any) -> None:
    frame = db.table("sales").drop_nulls("id", "price").with_columns(col("weight").fill_null(0))
    query = """select id, shop, price, coalesce(weight, 0) as weight from sales
               where id is not null and price is not null order by id"""
    assert_says(db, frame.sort("id"), query)
    assert db.table("sales").drop_nulls().count() == 3


def test_functions_by_their_sql_names(db: Any) -> None:
    frame = db.table("sales").agg(
        a=fn.median("price"),
        b=fn.string_agg("shop", "-").filter(col("id") < 3),
        c=fn.count("shop", distinct=True),
        d=fn.quantile_disc(col("id"), 0.5),
        e=fn.count(),
    )
    query = """select median(price) as a, string_agg(shop, '-') filter (where id < 3) as b,
               count(distinct shop) as c, quantile_disc(id, 0.5) as d, count(*) as e from sales"""
    assert_says(db, frame, query)


def test_functions_that_are_made_of_others(db: Any) -> None:
    frame = db.table("sales").select(
        a=fn.concat(col("shop"), "!"), b=fn.nullif(col("id"), 2), c=fn.ifnull(col("shop"), "-")
    )
    query = "select concat(shop, '!') as a, nullif(id, 2) as b, ifnull(shop, '-') as c from sales"
    assert_says(db, frame.sort("b", "a"), f"from ({query}) order by b, a")


def test_operators_with_a_constant_on_the_left(db: Any) -> None:
    x = col("id")
    frame = db.table("sales").select(a=7 // x, b=7 % x, c=2**x, d=x**2, e=abs(-x)).sort("c")
    query = """select 7 // id as a, 7 % id as b, 2 ** id as c, id ** 2 as d, abs(-id) as e
               from sales order by c"""
    assert_says(db, frame, query)


def test_lists_are_as_good_as_several_arguments(db: Any) -> None:
    frame = db.table("sales").select(["shop", "id"]).group_by(["shop"]).agg([max_("id")])
    query = "select shop, max(id) from sales group by shop order by shop"
    assert_says(db, frame.sort(["shop"]), query)
    assert db.table("sales").drop(["id", "weight"]).columns == ["shop", "price"]


def test_names_are_those_of_sql(db: Any) -> None:
    frame = db.table("sales").select(
        (col("id") + 1) * 2, -col("id"), fn.upper("shop"), col("id").is_null(), lit("x")
    )
    query = "select (id + 1) * 2, -id, upper(shop), id is null, 'x' from sales"
    assert frame.columns == db.sql(query).columns
    assert repr(col("id") > 1) == "<Expression (id > 1)>"


def test_a_string_as_a_condition_names_a_column(db: Any) -> None:
    flagged = db.table("sales").with_columns(cheap=col("price") < 2)
    assert flagged.filter("cheap").count() == 2
    assert flagged.agg(n=count().filter("cheap"), m=sum_(when("cheap").then(1))).fetchall() == [
        (2, 2)
    ]


def test_count_length_and_rows(db: Any) -> None:
    frame = db.table("shops").sort("id")
    assert frame.count() == len(frame) == 3
    assert db.table("shops").filter(col("id") > 99).count() == 0
    assert [city for _, city, _ in frame] == ["Aix", "Bonn", "Cork"]
    with pytest.raises(InvalidQuery, match="no truth value"):
        assert frame


@pytest.mark.parametrize(
    ("name", "remedy"),
    [("where", "filter"), ("city", r'frame\["city"\]'), ("colums", '"columns"'), ("zz", "no 'zz'")],
)
def test_what_others_call_it(db: Any, name: str, remedy: str) -> None:
    with pytest.raises(AttributeError, match=remedy):
        getattr(db.table("shops"), name)
    with pytest.raises(AttributeError, match="after agg"):
        _ = db.table("shops").group_by("city").having


def test_show_says_that_there_are_more(db: Any) -> None:
    with redirect_stdout(io.StringIO()) as out:
        db.table("shops").show(rows=2)
    printed = out.getvalue()
    assert "Bonn" in printed
    assert "Cork" not in printed
    assert "there are more" in printed


def test_compiling_leaves_a_redirected_stdout_alone(backend: str, tmp_path: Path) -> None:
    """Numba's coloured messages would exchange `sys.stdout` while any thread compiles, where colorama is installed."""
    (tmp_path / "colorama.py").write_text("__version__ = '1.0'")  # Numba would ask it for more
    code = f"import fuseline; fuseline.connect(device={backend!r}); import numba"
    paths = os.pathsep.join([str(tmp_path), *sys.path])
    environment = {k: v for k, v in os.environ.items() if not k.startswith("NUMBA_")}
    subprocess.run(
        [sys.executable, "-c", code], check=True, env=environment | {"PYTHONPATH": paths}
    )


def test_profile_is_of_the_latest_run(db: Any, backend: str) -> None:
    frame = db.table("shops").sort("id")
    with pytest.raises(ExecutionError, match="has not run yet"):
        _ = frame.profile
    frame.to_arrow()
    assert {node.device for node in frame.profile.nodes} == {backend}


def test_explain_shows_each_stage(db: Any) -> None:
    frame = db.sql("select shop, sum(price) from sales where id > 1 group by shop")
    assert "Aggregate" in frame.explain("logical")
    assert "HashAggregate" in frame.explain("physical")
    assert "ms" in frame.explain("analyze")
    with pytest.raises(UnknownName, match="physical"):
        frame.explain("fysical")


@pytest.mark.parametrize(("build", "error", "message"), [
    (lambda t: t.select("prise"), UnknownName, '"price"'),
    (lambda t: t.filter(col("price") > 1 and col("id") > 1), InvalidQuery, "&"),
    (lambda t: t.select(sum_("price")), InvalidQuery, "agg"),
    (lambda t: t.group_by("shop").agg(x=col("price")), InvalidQuery, "group_by"),
    (lambda t: t.join(t, how="inner"), InvalidQuery, "on"),
    (lambda t: t.join(t, on="id", how="outside"), InvalidQuery, "outside"),
    (lambda t: t.filter(col("shop") + 1 > 0), TypeMismatch, "VARCHAR"),
    (lambda t: t.join(t, on=col("id") == 1), AmbiguousName, "Both sides"),
    (lambda t: t.union(t.select("id")), InvalidQuery, "4 and 1"),
    (lambda t: t.limit(-1), InvalidQuery, "negative"),
    (lambda t: t.limit("2"), InvalidQuery, "whole numbers"),
    (lambda t: t["id", "shop"], InvalidQuery, "select"),
    (lambda t: t.select(), InvalidQuery, "at least one"),
    (lambda t: t.agg(), InvalidQuery, "at least one"),
    (lambda t: t.drop(t.columns), InvalidQuery, "at least one"),
    (lambda t: t.agg("id"), InvalidQuery, "group_by"),
    (lambda t: t.agg(sum_(sum_("id"))), InvalidQuery, "takes no aggregate"),
    (lambda t: t.filter(sum_("id") > 1), InvalidQuery, "belongs in agg"),
    (lambda t: t.sort(sum_("id")), InvalidQuery, "belongs in agg"),
    (lambda t: t.filter(t.rename({"id": "i"}).distinct().with_columns(i=1)["i"] > 1), InvalidQuery, "another frame"),
    (lambda t: t.filter(col("shop").is_in("ab")), InvalidQuery, "list of values"),
    (lambda t: t.filter(col("id").is_in(t)), InvalidQuery, "one column"),
    (lambda t: t.select(col("id").cast(int)), InvalidQuery, "SQL name of a type"),
    (lambda t: t.select(col(1)), InvalidQuery, "named by a string"),
    (lambda t: t.limit(1).join(t.limit(2), on=t.limit(1)["id"] == t.limit(2)["id"]), AmbiguousName, "come from one frame"),
    (lambda t: t.join(SHOPS, on="id"), InvalidQuery, "register"),
    (lambda t: t.union(SHOPS), InvalidQuery, "register"),
    (lambda t: t.join(t, on=[]), InvalidQuery, "empty"),
    (lambda t: t.join(t, on=True), InvalidQuery, "`on`"),
    (lambda t: t.join(t, on="id", suffix=""), InvalidQuery, "suffix"),
    (lambda t: t.select("zz"), UnknownName, 'There are "id", "shop"'),
    (lambda t: t.filter("idd > 2"), UnknownName, r'no column "idd" here. Did you mean "id"'),
    (lambda t: t.sum(), WrongArguments, r"sum\(\) missing 1 required positional argument: 'column'"),
])  # fmt: skip
def test_bad_calls(db: Any, build: Any, error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        build(db.table("sales"))
    assert len(db.table("sales")) == SALES.num_rows  # the connection goes on working
