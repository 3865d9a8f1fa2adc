"""Methods of expressions give what SQL's functions give in DuckDB; results in Python's libraries; pickles; repr."""

from __future__ import annotations

import pickle
import sys
from collections.abc import Iterator
from decimal import Decimal
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import fuseline
from fuseline import all_, col, exclude, lit, numeric, of_type, sum_
from fuseline.errors import (
    ExecutionError,
    FileError,
    InvalidQuery,
    TypeMismatch,
    Unsupported,
    WrongArguments,
)
from fuseline.frame import frame as frames
from tests.compare import connected
from tests.frame.answers import TABLES, assert_duckdb_says


@pytest.fixture(scope="module")
def db() -> Iterator[Any]:
    with connected(TABLES) as connection:
        yield connection


VALUES = [
    ("sales", lambda: col("sold").is_between(1, 4), "sold between 1 and 4"),
    ("sales", lambda: col("sold").is_between(1, 4, closed="left"), "sold >= 1 and sold < 4"),
    ("sales", lambda: col("sold").between(1, 4, closed="none"), "sold > 1 and sold < 4"),
    ("sales", lambda: col("shop").replace({"a": "A", None: "?"}), "case when shop = 'a' then 'A' when shop is null then '?' else shop end"),
    ("sales", lambda: col("sold").replace([3, 5], [30, 50], default=None), "case when sold = 3 then 30 when sold = 5 then 50 end"),
    ("sales", lambda: col("sold").replace([3, 5], 0), "case when sold in (3, 5) then 0 else sold end"),
    ("sales", lambda: col("sold").clip(1, 4), "case when sold is not null then least(greatest(sold, 1), 4) end"),
    ("sales", lambda: (col("sold") - 4).floor_div(2), "floor((sold - 4) / 2)::bigint"),
    ("sales", lambda: col("sold").floor_div(-2), "floor(sold / -2)::bigint"),
    ("sales", lambda: col("weight").floor_div(0.5), "floor(weight / 0.5)"),
    ("sales", lambda: col("sold").floor_div(col("sold") - 3), "case when sold <> 3 then floor(sold / (sold - 3))::bigint end"),
    ("sales", lambda: col("weight").floor_div(0), "null::double"),
    ("sales", lambda: col("price").round(1), "round(price, 1)"),
    ("sales", lambda: col("weight").round(), "round(weight)"),
    ("sales", lambda: col("weight").is_nan(), "isnan(weight)"),
    ("sales", lambda: col("weight").is_finite(), "isfinite(weight)"),
    ("sales", (col("sold") + 1).log, "ln(sold + 1)"),
    ("sales", lambda: col("id").log(2).round(9), "round(ln(id) / ln(2), 9)"),
    ("sales", lambda: col("price").abs().sqrt(), "sqrt(abs(price))"),
    ("sales", lambda: col("weight").floor() + col("weight").ceil(), "floor(weight) + ceil(weight)"),
    ("sales", lambda: col("price").sign(), "sign(price)"),
    ("sales", lambda: ~col("flag"), "not flag"),
    ("sales", lambda: col("shop").ilike("A"), "shop ilike 'A'"),
    ("sales", lambda: col("shop").eq_null(None), "shop is not distinct from null"),
    ("sales", lambda: lit([1, 2]), "[1, 2]"),
    ("sales", lambda: lit({"a": 1, "b": ["x"]}), "{'a': 1, 'b': ['x']}"),
    ("texts", col("t").str.upper, "upper(t)"),
    ("texts", col("t").str.lower, "lower(t)"),
    ("texts", col("t").str.len, "length(t)"),
    ("texts", col("t").str.len_bytes, "strlen(t)"),
    ("texts", lambda: col("t").str.contains("[0-9]+"), "regexp_matches(t, '[0-9]+')"),
    ("texts", lambda: col("t").str.contains(col("u"), literal=True), "contains(t, u)"),
    ("texts", lambda: col("t").str.starts_with("O"), "starts_with(t, 'O')"),
    ("texts", lambda: col("t").str.ends_with("o"), "ends_with(t, 'o')"),
    ("texts", lambda: col("t").str.replace("[a-z]", "_"), "regexp_replace(t, '[a-z]', '_')"),
    ("texts", lambda: col("t").str.replace_all("[a-z]", "_"), "regexp_replace(t, '[a-z]', '_', 'g')"),
    ("texts", lambda: col("t").str.replace_all(",", ";", literal=True), "replace(t, ',', ';')"),
    ("texts", lambda: col("t").str.extract("([0-9])y([0-9]+)", 2), "regexp_extract(t, '([0-9])y([0-9]+)', 2)"),
    ("texts", lambda: col("t").str.extract_all("[0-9]"), "regexp_extract_all(t, '[0-9]')"),
    ("texts", lambda: col("t").str.slice(1, 2), "substring(t, 2, 2)"),
    ("texts", lambda: col("t").str.slice(-2), "substring(t, -2)"),
    ("texts", lambda: col("t").str.head(2), "left(t, 2)"),
    ("texts", lambda: col("t").str.tail(2), "right(t, 2)"),
    ("texts", lambda: col("t").str.split(","), "string_split(t, ',')"),
    ("texts", col("t").str.strip, "trim(t)"),
    ("texts", lambda: col("t").str.strip_chars_start(" O"), "ltrim(t, ' O')"),
    ("texts", lambda: col("t").str.strip_end("o"), "rtrim(t, 'o')"),
    ("texts", lambda: col("t").str.pad_start(5, "*"), "lpad(t, greatest(length(t), 5)::int, '*')"),
    ("texts", lambda: col("t").str.pad_end(5), "rpad(t, greatest(length(t), 5)::int, ' ')"),
    ("texts", lambda: col("t").str.zfill(5), "lpad(t, greatest(length(t), 5)::int, '0')"),
    ("texts", col("t").str.reverse, "reverse(t)"),
    ("texts", lambda: col("t").str.concat("-", col("u")), "concat(t, '-', u)"),
    ("sales", col("id").cast("varchar").str.to_integer, "id::varchar::bigint"),
    ("sales", lambda: lit("03.02.2024").str.to_date("%d.%m.%Y"), "strptime('03.02.2024', '%d.%m.%Y')::date"),
    ("sales", lit("2024-02-03 04:05").str.to_datetime, "'2024-02-03 04:05'::timestamp"),
    *[("moments", lambda p=part: getattr(col("m").dt, p)(), f"{part}(m)") for part in ("year", "quarter", "month", "week", "day", "hour", "minute", "second", "epoch")],
    ("moments", col("m").dt.weekday, "isodow(m)"),
    ("moments", col("d").dt.ordinal_day, "dayofyear(d)"),
    ("moments", col("m").dt.millisecond, "millisecond(m) % 1000"),
    ("moments", col("m").dt.microsecond, "microsecond(m) % 1000000"),
    ("moments", col("m").dt.date, "m::date"),
    ("moments", col("m").dt.time, "m::time"),
    ("moments", lambda: col("m").dt.truncate("month"), "date_trunc('month', m)"),
    ("moments", lambda: col("d").dt.truncate("1q"), "date_trunc('quarter', d)"),
    ("moments", lambda: col("m").dt.strftime("%Y/%m"), "strftime(m, '%Y/%m')"),
    ("moments", col("d").dt.month_end, "last_day(d)"),
    ("moments", col("d").dt.month_name, "monthname(d)"),
    ("moments", col("d").dt.day_name, "dayname(d)"),
    ("lists", col("l").list.len, "len(l)"),
    ("lists", lambda: col("l").list.get(0), "l[1]"),
    ("lists", lambda: col("l").list.get(-1), "l[-1]"),
    ("lists", lambda: col("l").list.slice(1), "l[2:]"),
    ("lists", lambda: col("l").list.slice(1, 2), "l[2:3]"),
    ("lists", lambda: col("l").list.slice(-3, 2), "l[-3:-2]"),
    ("lists", lambda: col("l").list.contains(2), "list_contains(l, 2)"),
    ("lists", col("l").list.sum, "list_sum(l)"),
    ("lists", col("l").list.mean, "list_avg(l)"),
    ("lists", lambda: col("l").list.min() + col("l").list.max(), "list_min(l) + list_max(l)"),
    ("lists", col("l").list.median, "list_median(l)"),
    ("lists", col("l").list.n_unique, "list_unique(l)"),
    ("lists", col("l").list.sort, "list_sort(l, 'asc', 'nulls last')"),
    ("lists", lambda: col("l").list.sort(descending=True, nulls_last=False), "list_sort(l, 'desc', 'nulls first')"),
    ("lists", col("l").list.reverse, "list_reverse(l)"),
    ("lists", col("l").list.unique().list.sort, "list_sort(list_distinct(l))"),
    ("lists", lambda: col("w").list.join("-"), "array_to_string(w, '-')"),
    ("lists", lambda: col("l").list.concat(lit([9])), "list_concat(l, [9])"),
    ("lists", lambda: col("l").list.transform(lambda x: x * 2 + col("k")), "list_transform(l, lambda x: x * 2 + k)"),
    ("lists", lambda: col("l").list.filter(lambda x: x > 1), "list_filter(l, lambda x: x > 1)"),
    ("lists", lambda: col("w").list.transform(lambda x: x.str.upper()), "list_transform(w, lambda x: upper(x))"),
    ("lists", lambda: col("l").list.transform(lambda x: col("l").list.filter(lambda y: y > x).list.len()), "list_transform(l, lambda x: len(list_filter(l, lambda y: y > x)))"),
    ("lists", lambda: col("s").struct.field("x"), "s.x"),
    ("lists", lambda: col("s").struct["y"], "s.y"),
]  # fmt: skip


@pytest.mark.parametrize(
    ("table", "build", "text"), VALUES, ids=[f"{text}" for _, _, text in VALUES]
)
def test_methods_are_functions_of_sql(table: str, build: Any, text: str, db: Any) -> None:
    assert_duckdb_says(db.table(table).select(x=build()), f"select {text} as x from {table}")


def test_choices_by_type_and_pattern(db: Any) -> None:
    sales = db.table("sales")
    assert sales.select(numeric()).columns == ["id", "sold", "price", "weight"]
    assert sales.select(of_type("varchar", "date", "decimal")).columns == ["shop", "day", "price"]
    assert sales.select(exclude("^.*i.*$")).columns == ["shop", "day", "sold", "flag"]
    assert sales.select(all_()).columns == sales.columns
    with pytest.raises(InvalidQuery, match="none was chosen"):
        sales.select(of_type("blob"))


def test_sums_of_integers_are_integers_of_pandas(db: Any) -> None:
    frame = db.table("sales").agg(
        a=sum_("id"), b=sum_("price"), c=sum_(col("id").cast("hugeint") * 10**30)
    )
    found = frame.to_pandas()
    assert [str(t) for t in found.dtypes] == ["int64", "object", "float64"]
    assert found["a"].tolist() == [28]
    assert found["b"].tolist() == [Decimal("14.65")]
    empty = db.table("sales").filter(lit(False)).agg(a=sum_("id")).to_pandas()
    assert str(empty["a"].dtype) == "Int64"
    assert db.execute("select sum(id) as a from sales").df()["a"].dtype == np.int64


def test_other_libraries_get_names_and_values(db: Any) -> None:
    frame = db.table("sales").sort("id").select("id", "shop", "sold")
    assert pd.DataFrame(frame).equals(pd.DataFrame(frame.fetchall(), columns=frame.columns))
    assert frame.to_dicts()[0] == {"id": 1, "shop": "a", "sold": 3}
    assert frame.sql("select 1 as a, 2 as a").to_dicts() == [{"a": 1, "a_1": 2}]
    assert frame.to_dict()["shop"] == ["a", "b", "a", None, "b", "a", "c"]
    assert frame.select("id").to_numpy().tolist() == [[i] for i in range(1, 8)]
    arrays = frame.fetchnumpy()
    assert arrays["id"].tolist() == [1, 2, 3, 4, 5, 6, 7]
    assert np.ma.getmaskarray(arrays["sold"]).tolist() == [
        False,
        False,
        True,
        False,
        False,
        False,
        False,
    ]
    assert arrays["shop"].tolist()[3] is None
    assert frame.df().equals(frame.to_pandas())
    assert frame.pl().equals(frame.to_polars())
    assert frame.arrow().equals(frame.to_arrow())
    assert frame.to_arrow_reader(2).read_all().equals(frame.to_arrow())


def test_rows_are_fetched_one_after_the_other(db: Any) -> None:
    frame = db.table("sales").sort("id").select("id")
    assert [frame.fetchone(), frame.fetchone()] == [(1,), (2,)]
    assert frame.fetchmany(2) == [(3,), (4,)]
    assert frame.fetchall() == [(5,), (6,), (7,)]
    assert frame.fetchall()[0] == (1,)
    small = frame.limit(1)
    assert [small.fetchone(), small.fetchone(), small.fetchone()] == [(1,), None, (1,)]


def test_torch_is_asked_for_by_name(db: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "torch", None)
    with pytest.raises(ExecutionError, match="PyTorch is not installed"):
        db.table("sales").select("id").to_torch()
    monkeypatch.setitem(
        sys.modules, "torch", SimpleNamespace(from_numpy=lambda array: ("tensor", array.tolist()))
    )
    assert db.table("sales").sort("id").select("id").limit(2).to_torch() == {
        "id": ("tensor", [1, 2])
    }
    with pytest.raises(TypeMismatch, match="NULLs"):
        db.table("sales").select("sold").to_torch()
    with pytest.raises(TypeMismatch, match="VARCHAR"):
        db.table("sales").select("shop").to_torch()


def test_repr_shows_the_first_rows(db: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    frame = db.sql("select i, repeat('x', 100) as long from range(30) t(i)")
    text = repr(frame)
    assert "bigint" in text
    assert "there are more" in text
    assert max(map(len, text.splitlines())) <= 120
    failing = db.table("sales").select(x=col("shop").cast("integer"))
    assert "<Frame: x INTEGER; ConversionError: " in repr(failing)
    monkeypatch.setattr(frames, "MOST_READ", 6)
    assert (
        repr(db.table("sales").select("id")) == "<Frame: id BIGINT; show() or to_arrow() runs it>"
    )


def test_frames_pickle_as_plan_and_files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "sales.parquet"
    pq.write_table(TABLES["sales"], path)
    (tmp_path / "few.csv").write_text("id;x\n1;a\n2;b\n")
    monkeypatch.chdir(tmp_path)
    with connected() as db:
        few = db.read_csv("few.csv", delim=";")
        few.count()
        frame = (
            db.read_parquet("sales.parquet")
            .join(few, on="id")
            .filter(col("sold") > 3)
            .select("id", "x")
        )
        sent = pickle.dumps(frame)
        expected = frame.fetchall()
        with pytest.raises(Unsupported, match="lies in memory"):
            pickle.dumps(db.register("t", {"a": [1]}))
    monkeypatch.chdir("/")
    found = pickle.loads(sent)
    assert found.fetchall() == expected == [(2, "b")]
    assert found.columns == ["id", "x"]
    pq.write_table(pa.table({"id": ["1"], "sold": [1]}), path)
    with pytest.raises(FileError, match='no column "id"'):
        pickle.loads(sent)
    path.unlink()
    with pytest.raises(FileError, match="sales"):
        pickle.loads(sent)


def test_a_received_frame_keeps_to_the_rules_of_its_process(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "sales.parquet"
    pq.write_table(TABLES["sales"], path)
    with connected() as db:
        sent = pickle.dumps(db.read_parquet(path))
    strict = fuseline.connect("cpu", external_access=False)
    monkeypatch.setattr("fuseline.module_functions._opened", [strict])
    with pytest.raises(fuseline.errors.AccessDenied):
        pickle.loads(sent)
    strict.close()


@pytest.mark.parametrize(("build", "error", "message"), [
    (lambda t: t.select(col("id").between(1, 2, closed="up")), InvalidQuery, "closed"),
    (lambda t: t.select(col("id").replace([1], [2, 3])), WrongArguments, "1 old values and 2 new"),
    (lambda t: t.select(col("id").replace({})), InvalidQuery, "at least one"),
    (lambda t: t.select(col("id").replace({1: 2}, 3)), WrongArguments, "dictionary"),
    (lambda t: t.select(col("shop").list.get("a")), WrongArguments, "whole number"),
    (lambda t: t.select(col("id").list.transform(3)), WrongArguments, "function of an element"),
    (lambda t: t.select(col("id").list.transform(lambda x: x)), TypeMismatch, "list"),
    (lambda t: t.select(col("id").struct.field("a")), TypeMismatch, "STRUCT"),
    (lambda t: t.select(col("id").struct.field(1)), WrongArguments, "string"),
    (lambda t: t.select(col("id").suffix(1)), WrongArguments, "text"),
    (lambda t: t.select(col("id").filter(col("flag"))), InvalidQuery, "no filter"),
    (lambda t: t.agg(col("id").order_by("day")), InvalidQuery, "no order_by"),
    (lambda t: t.select(of_type()), InvalidQuery, "names of types"),
    (lambda t: t.select(exclude(1)), InvalidQuery, "names of columns"),
])  # fmt: skip
def test_bad_calls_of_expressions(
    build: Any, error: type[Exception], message: str, db: Any
) -> None:
    with pytest.raises(error, match=message):
        build(db.table("sales"))
