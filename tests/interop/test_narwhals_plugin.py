"""The Narwhals backend: expressions answer as on Narwhals' DuckDB backend, and libraries that stand on Narwhals take Frames."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from datetime import date, datetime, timedelta
from decimal import Decimal
from pathlib import Path
from types import ModuleType
from typing import Any

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import fuseline
from fuseline.interop.narwhals_plugin import plugin
from tests.compare import Ordering, difference
from tests.test_layout import ROOT

nw = pytest.importorskip("narwhals")
import narwhals.selectors as ncs  # noqa: E402
import narwhals.stable.v1 as nw_v1  # noqa: E402
from narwhals.exceptions import ColumnNotFoundError, NarwhalsError  # noqa: E402

col = nw.col
TRIPS = pa.table(
    {
        "id": pa.array([1, 2, 3, 4, 5, 6, 7, 8], pa.int64()),
        "small": pa.array([1, -2, 3, None, 120, -120, 7, 0], pa.int8()),
        "fare": pa.array([10.5, 3.25, None, 8.0, 100.0, -1.5, 0.0, 7.75]),
        "price": pa.array([Decimal(x) / 100 for x in (1050, 325, 7, 800, 9999, 150, 0)] + [None], pa.decimal128(9, 2)),
        "driver": pa.array(["Ann", "Bob", "Ann", None, "Çem", "bob", "", " o'Eve "]),
        "day": pa.array([date(2026, 1, d) for d in (1, 2, 3, 4, 5, 31, 1)] + [None]),
        "at": pa.array([datetime(2026, 1, d, d, 2 * d, 3 * d, 4567 * d) for d in range(1, 8)] + [None]),
        "paid": pa.array([True, False, None, True, True, False, True, False]),
        "tags": pa.array([[1, 2], [], None, [3, None, 3], [7], [5, 4], [0], [None]], pa.list_(pa.int32())),
        "place": pa.array([{"x": i, "y": f"p{i}"} for i in range(7)] + [None], pa.struct({"x": pa.int32(), "y": pa.string()})),
    }
)  # fmt: skip
DRIVERS = pa.table({"driver": ["Ann", "Bob", "Dan", None], "age": [31, 45, 28, 60], "id": [1, 9, 3, 4]})  # fmt: skip
MOMENTS = pa.table({"id": [0, 3, 6], "rate": [0.5, 1.5, 2.5], "paid": [True, True, False]})

# Of the lazy frames of trips, drivers and moments
Made = Callable[[Any, Any, Any], Any]

EXPRESSIONS: dict[str, Made] = {
    # columns
    "all": lambda t, d, m: t,
    "select": lambda t, d, m: t.select("id", twice=col("id") * 2),
    "several": lambda t, d, m: t.with_columns((col("id", "fare") + 1).name.suffix("_more")),
    "replace": lambda t, d, m: t.with_columns(col("id") + 1, total=col("fare") + col("id")),
    "drop rename": lambda t, d, m: t.drop("fare", "at").rename({"id": "number"}),
    "constants": lambda t, d, m: t.select("id", a=nw.lit("x"), b=nw.lit(1.5), c=nw.lit(2, nw.Int16)),
    "moments": lambda t, d, m: t.select("id", a=nw.lit(date(2026, 1, 2)), b=nw.lit(datetime(2026, 1, 2, 3)), c=nw.lit(Decimal("1.50"))),
    "selectors": lambda t, d, m: t.select(ncs.numeric() - ncs.by_dtype(nw.Int64), ncs.string(), ncs.boolean()),
    "nth": lambda t, d, m: t.select(nw.nth(0, 2), nw.exclude("id", "fare", "at", "tags", "place")),
    "casts": lambda t, d, m: t.select(col("id").cast(nw.Float32), col("fare").cast(nw.String), col("small").cast(nw.Int32)),
    # rows
    "filter": lambda t, d, m: t.filter(col("fare") > 3, ~col("driver").is_null()),
    "filter by window": lambda t, d, m: t.filter(col("fare") == col("fare").max().over("paid")),
    "head": lambda t, d, m: t.sort("id").head(3),
    "sort": lambda t, d, m: t.sort("driver", "id", descending=[True, False], nulls_last=True).head(4),
    "sort nulls": lambda t, d, m: t.sort("fare").head(3).select("fare"),
    "top": lambda t, d, m: t.top_k(3, by="fare").select("id"),
    "unique": lambda t, d, m: t.select("driver", "paid").unique(),
    "unique of": lambda t, d, m: t.unique("paid", keep="first", order_by=["id"]).select("paid", "id"),
    "unique last": lambda t, d, m: t.unique("paid", keep="last", order_by=["id"]).select("paid", "id"),
    "unique none": lambda t, d, m: t.unique("driver", keep="none").select("driver", "id"),
    "drop nulls": lambda t, d, m: t.drop_nulls(["fare", "driver"]).select("id"),
    "row index": lambda t, d, m: t.select("id", "fare").with_row_index("n", order_by="fare"),
    # operators
    "arithmetic": lambda t, d, m: t.select(a=col("id") / 2, b=col("id") ** 2, c=-col("small"), d=5 - col("id"), e=2 / col("id")),
    "floored": lambda t, d, m: t.select(a=col("small") // 3, b=col("small") % 7, c=col("small") // -3, d=10 % col("id"), e=col("fare") // 2),
    "by zero": lambda t, d, m: t.select(a=col("id") // (col("id") - 3), b=7 // col("small")),
    "compare": lambda t, d, m: t.select(a=col("id") >= 3, b=col("driver") == "Ann", c=col("id").is_between(2, 5, closed="left")),
    "truth": lambda t, d, m: t.select(a=col("paid") & (col("fare") > 5), b=col("paid") | (col("id") > 3), c=~col("paid")),
    "in": lambda t, d, m: t.select(a=col("driver").is_in(["Ann", "Eve", None]), b=col("id").is_in([2, 3]), c=col("id").is_in([])),
    "numbers": lambda t, d, m: t.select(a=col("fare").round(1), b=col("fare").abs(), c=col("fare").exp(), d=col("fare").sqrt(), e=col("fare").log(2), f=col("fare").floor(), g=col("fare").ceil()),
    "clip": lambda t, d, m: t.select(a=col("fare").clip(1, 10), b=col("fare").clip(lower_bound=5), c=col("id").clip(upper_bound=4)),
    "nulls": lambda t, d, m: t.select(a=col("fare").is_null(), b=col("fare").fill_null(0), c=col("driver").fill_null("nobody"), d=col("fare").is_finite()),
    "fill": lambda t, d, m: t.select("id", a=col("fare").fill_null(strategy="forward").over(order_by="id"), b=col("fare").fill_null(strategy="backward", limit=1).over(order_by="id")),
    "when": lambda t, d, m: t.select(a=nw.when(col("fare") > 8).then(nw.lit("dear")).otherwise(nw.lit("cheap")), b=nw.when(col("paid")).then("id")),
    "replace strict": lambda t, d, m: t.select(a=col("driver").replace_strict(["Ann", "Bob"], [1, 2], default=0, return_dtype=nw.Int64)),
    "horizontal": lambda t, d, m: t.select(a=nw.sum_horizontal("id", "fare"), b=nw.mean_horizontal("id", "fare"), c=nw.max_horizontal("id", "small"), d=nw.min_horizontal("id", "small")),
    "horizontal truth": lambda t, d, m: t.select(a=nw.any_horizontal(col("paid"), col("id") > 6, ignore_nulls=False), b=nw.all_horizontal(col("paid"), col("id") < 6, ignore_nulls=True)),
    "coalesce": lambda t, d, m: t.select(a=nw.coalesce("fare", "id")),
    "concat str": lambda t, d, m: t.select(a=nw.concat_str("driver", "id", separator="-"), b=nw.concat_str("driver", "id", separator="-", ignore_nulls=True)),
    # texts
    "case": lambda t, d, m: t.select(a=col("driver").str.to_uppercase(), b=col("driver").str.to_lowercase(), c=col("driver").str.to_titlecase(), d=col("driver").str.len_chars()),
    "contains": lambda t, d, m: t.select(a=col("driver").str.contains("^[Aa]"), b=col("driver").str.contains("n", literal=True), c=col("driver").str.starts_with("B"), d=col("driver").str.ends_with("b")),
    "slices": lambda t, d, m: t.select(a=col("driver").str.slice(1, 2), b=col("driver").str.head(2), c=col("driver").str.tail(2), d=col("driver").str.slice(-2)),
    "strip": lambda t, d, m: t.select(a=col("driver").str.strip_chars(), b=col("driver").str.strip_chars("Ab "), c=col("driver").str.replace_all("[nb]", "x"), d=col("driver").str.replace_all("n", "y", literal=True)),
    "pad": lambda t, d, m: t.select(a=col("id").cast(nw.String).str.zfill(3), b=col("driver").str.pad_start(5, "."), c=col("driver").str.pad_end(5, ".")),
    "split": lambda t, d, m: t.select(a=col("driver").str.split("n")),
    "parse": lambda t, d, m: t.select("id", a=nw.lit("2026-02-03").str.to_datetime("%Y-%m-%d"), b=nw.lit("03.02.2026").str.to_date("%d.%m.%Y")),
    # dates
    "parts": lambda t, d, m: t.select(a=col("at").dt.year(), b=col("at").dt.month(), c=col("at").dt.day(), d=col("at").dt.hour(), e=col("at").dt.minute(), f=col("at").dt.second(), g=col("day").dt.weekday(), h=col("day").dt.ordinal_day()),
    "below seconds": lambda t, d, m: t.select(a=col("at").dt.millisecond(), b=col("at").dt.microsecond()),
    "truncate": lambda t, d, m: t.select(a=col("at").dt.truncate("1h"), b=col("at").dt.truncate("1mo"), c=col("at").dt.date(), d=col("at").dt.to_string("%Y/%m/%d %H")),
    "offsets": lambda t, d, m: t.select(a=col("at").dt.offset_by("1mo"), b=col("at").dt.offset_by("-3d"), c=col("at") + timedelta(hours=2)),
    "durations": lambda t, d, m: t.select(a=(col("at") - datetime(2026, 1, 1)).dt.total_minutes(), b=(col("at") - datetime(2026, 1, 1)).dt.total_seconds()),
    # lists and structs
    "lists": lambda t, d, m: t.select(a=col("tags").list.len(), b=col("tags").list.get(0), c=col("tags").list.contains(3), d=col("tags").list.sum(), e=col("tags").list.max(), f=col("tags").list.mean()),
    "sorted lists": lambda t, d, m: t.select(a=col("tags").list.sort(descending=True, nulls_last=True), b=col("tags").list.median()),
    "explode": lambda t, d, m: t.select("id", "tags").explode("tags"),
    "structs": lambda t, d, m: t.select(col("place").struct.field("y"), s=nw.struct("id", "driver")),
    # aggregates
    "aggregates": lambda t, d, m: t.select(nw.len(), a=col("fare").sum(), b=col("fare").mean(), c=col("id").max(), d=col("driver").count(), e=col("driver").n_unique(), f=col("fare").median()),
    "spread": lambda t, d, m: t.select(a=col("fare").std(), b=col("fare").var(ddof=0), c=col("fare").skew(), d=col("fare").quantile(0.25, "linear"), e=col("fare").kurtosis(), f=col("fare").std(ddof=2)),
    "nulls counted": lambda t, d, m: t.select(a=col("fare").null_count().cast(nw.Int64), b=col("paid").any(), c=col("paid").all()),
    "pairs": lambda t, d, m: t.select(a=nw.corr("id", "fare"), b=nw.cov("id", "fare")),
    "broadcast": lambda t, d, m: t.select("id", share=col("fare") / col("fare").sum()),
    "group": lambda t, d, m: t.group_by("paid").agg(nw.len(), total=col("fare").sum(), most=col("id").max(), kinds=col("driver").n_unique()),
    "group by two": lambda t, d, m: t.group_by("paid", "driver", drop_null_keys=True).agg(col("id", "fare").mean()),
    "group by value": lambda t, d, m: t.group_by((col("id") % 3).alias("rest")).agg(n=nw.len(), d=col("price").sum()),
    "group of all": lambda t, d, m: t.select("paid", "id", "fare").group_by("paid").agg(nw.all().min()),
    "first": lambda t, d, m: t.group_by("paid").agg(a=col("driver").first(order_by="id"), b=col("driver").last(order_by="id"), c=col("fare").std()),
    # windows
    "over": lambda t, d, m: t.select("id", a=col("fare").sum().over("paid"), b=nw.len().over("paid"), c=col("id").n_unique().over("paid")),
    "running": lambda t, d, m: t.select("id", a=col("fare").cum_sum().over(order_by="id"), b=col("id").cum_max(reverse=True).over("paid", order_by="id"), c=col("fare").cum_count().over(order_by="id")),
    "shift": lambda t, d, m: t.select("id", a=col("fare").shift(1).over(order_by="id"), b=col("id").shift(-2).over("paid", order_by="id"), c=col("fare").diff().over(order_by="id")),
    "rolling": lambda t, d, m: t.select("id", a=col("fare").rolling_mean(3, min_samples=1).over(order_by="id"), b=col("id").rolling_sum(3, min_samples=2, center=True).over(order_by="id"), c=col("fare").rolling_std(3).over(order_by="id")),
    "rank": lambda t, d, m: t.select("id", a=col("fare").rank("min"), b=col("fare").rank("dense", descending=True), c=col("paid").rank("average"), d=col("fare").rank("max").over("paid")),
    "distinct": lambda t, d, m: t.select("id", a=col("paid").is_first_distinct().over(order_by="id"), b=col("paid").is_last_distinct().over(order_by="id"), c=col("driver").is_unique()),
    # frames together
    "inner": lambda t, d, m: t.join(d, on="driver"),
    "left": lambda t, d, m: t.select("id", "driver").join(d, left_on="id", right_on="id", how="left"),
    "left other names": lambda t, d, m: t.select("id", "driver").join(d.rename({"driver": "name"}), left_on="driver", right_on="name", how="left"),
    "full": lambda t, d, m: t.select("id", "driver").join(d.select("id", "age"), on="id", how="full", suffix="_of_d"),
    "semi": lambda t, d, m: t.join(d, on="driver", how="semi").select("id"),
    "anti": lambda t, d, m: t.join(d, left_on=["driver", "id"], right_on=["driver", "id"], how="anti").select("id"),
    "cross": lambda t, d, m: t.select("id").join(d.select("age"), how="cross"),
    "asof": lambda t, d, m: t.select("id", "paid").join_asof(m.drop("paid"), on="id"),
    "asof by": lambda t, d, m: t.select("id", "paid").join_asof(m, on="id", by="paid", strategy="forward"),
    "unpivot": lambda t, d, m: t.drop_nulls().unpivot(["fare", "small"], index="id"),
    "concat": lambda t, d, m: nw.concat([t.select("id"), d.select("id")]),
    "diagonal": lambda t, d, m: nw.concat([t.select("id", "fare"), d.select("age", "id")], how="diagonal"),
}  # fmt: skip


@pytest.fixture(scope="module")
def frames() -> Iterator[tuple[list[Any], list[Any]]]:
    tables = (TRIPS, DRIVERS, MOMENTS)
    with fuseline.connect(device="cpu") as connection:
        ours = [nw.from_native(connection.from_arrow(table)) for table in tables]
        # Of DuckDB's default connection, in which Narwhals runs SQL of its own
        theirs = [nw.from_native(duckdb.from_arrow(table)) for table in tables]
        yield ours, theirs


@pytest.mark.parametrize("name", EXPRESSIONS)
def test_an_expression_answers_as_on_duckdb(frames: tuple[list[Any], list[Any]], name: str) -> None:
    ours, theirs = (EXPRESSIONS[name](*side) for side in frames)
    assert isinstance(ours, nw.LazyFrame)
    assert isinstance(ours.to_native(), fuseline.Frame)
    assert ours.collect_schema() == theirs.collect_schema()
    found, expected = (side.collect("pyarrow").to_native() for side in (ours, theirs))
    ordered = Ordering(name in ("head", "sort", "sort nulls"))
    assert difference(expected, found, ordered) is None


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    pq.write_table(TRIPS.drop_columns(["tags", "place"]), "trips.parquet")
    pq.write_table(DRIVERS.drop_columns(["id"]), "drivers.parquet")
    return tmp_path


def _blocks() -> list[str]:
    return re.findall(r"```python\n(.*?)```", (ROOT / "docs/narwhals.md").read_text(), re.DOTALL)


@pytest.mark.usefixtures("folder")
def test_a_script_answers_as_on_duckdb_with_one_line_changed() -> None:
    script = _blocks()[1]
    assert len(script.splitlines()) >= 30
    answers = []
    for engine in ("fuseline", "duckdb"):
        names: dict[str, Any] = {}
        exec(script.replace("import fuseline as engine", f"import {engine} as engine"), names)
        answers.append(names["by_class"].collect("pyarrow").to_native())
    assert answers[0].num_rows == 2
    assert difference(answers[1], answers[0], Ordering(True)) is None


def test_the_page_runs_word_for_word(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("altair")
    monkeypatch.chdir(tmp_path)
    names: dict[str, Any] = {}
    exec("\n".join(_blocks()), names)
    assert names["by_class"].collect("pyarrow").to_native()["rides"].to_pylist() == [1, 1]


@pytest.mark.usefixtures("folder")
def test_altair_draws_a_frame() -> None:
    pytest.importorskip("altair")
    names: dict[str, Any] = {}
    exec(_blocks()[2], names)
    found = names["chart"].to_dict()
    (rows,) = found["datasets"].values()
    assert {"driver": "Ann", "total": 10.5} in rows
    assert found["encoding"]["y"] == {"field": "total", "type": "quantitative"}
    counts = fuseline.query(
        "SELECT d, sum(n) AS n, sum(1.25) AS m FROM (VALUES ('x', 1), ('x', 2)) t(d, n) GROUP BY d"
    )
    chart = names["alt"].Chart(counts).mark_bar().encode(x="d", y="n", color="m")
    assert '"n": 3' in chart.to_json()
    assert '"m": 2.5' in chart.to_json()
    assert chart.to_dict()["encoding"]["color"]["type"] == "quantitative"


@pytest.fixture
def trips() -> Iterator[fuseline.Frame]:
    with fuseline.connect(device="cpu") as connection:
        yield connection.from_arrow(TRIPS)


def test_the_first_api_has_rows_which_are_made_when_they_are_asked_for(
    trips: fuseline.Frame, monkeypatch: pytest.MonkeyPatch
) -> None:
    ran: list[fuseline.Frame] = []
    run = fuseline.Frame.to_arrow
    monkeypatch.setattr(fuseline.Frame, "to_arrow", lambda f: (ran.append(f), run(f))[1])
    rows = nw_v1.from_native(trips.select("id", "fare"), eager_or_interchange_only=True)
    assert isinstance(rows, nw_v1.DataFrame)
    assert rows.columns == ["id", "fare"]
    assert rows.schema == {"id": nw.Int64(), "fare": nw.Float64()}
    lazy = rows.lazy().filter(col("id") > 6)
    assert isinstance(lazy.to_native(), fuseline.Frame)
    assert ran == []
    assert rows.rows()[:2] == [(1, 10.5), (2, 3.25)]
    assert rows.select(nw_v1.col("id").max()).item() == 8
    assert len(ran) == 1


def test_answers_come_as_arrow_pandas_polars_and_files(
    trips: fuseline.Frame, tmp_path: Path
) -> None:
    lazy = nw.from_native(trips).select("id", "price")
    for backend in ("pyarrow", "pandas", "polars"):
        assert lazy.collect(backend).to_dict(as_series=False)["id"] == [*range(1, 9)]
    lazy.sink_parquet(tmp_path / "t.parquet")
    backends: tuple[str | ModuleType, ...] = ("fuseline", fuseline)
    for backend in backends:
        read = nw.scan_parquet(tmp_path / "t.parquet", backend=backend)
        assert isinstance(read.to_native(), fuseline.Frame)
        assert read.select(col("price").count()).collect().item() == 7
    (tmp_path / "t.csv").write_text("a;b\n1;x\n2;y\n")
    read = nw.scan_csv(tmp_path / "t.csv", separator=";", backend="fuseline")
    assert read.collect().rows() == [(1, "x"), (2, "y")]


def test_types_go_there_and_back(trips: fuseline.Frame) -> None:
    kinds = ["tinyint", "uinteger", "hugeint", "float", "decimal(5,2)", "time", "blob", "timestamp_ns", "timestamptz", "interval"]  # fmt: skip
    kinds += [
        "enum('a', 'b')",
        "integer[]",
        "integer[3][2]",
        "map(varchar, bigint)",
        "struct(a date, b double[])",
    ]
    nulls = ", ".join(f"NULL::{kind} AS c{i}" for i, kind in enumerate(kinds))
    frame = trips.sql(f"SELECT {nulls}")
    schema = nw.from_native(frame).collect_schema()
    assert nw.Unknown() not in schema.values()
    again = nw.from_native(trips).select(
        nw.lit(None, dtype).alias(name) for name, dtype in schema.items()
    )
    assert again.to_native().schema == frame.schema
    assert nw.from_native(trips.select(u=fuseline.lit(None).cast("uuid"))).collect_schema() == {
        "u": nw.Unknown()
    }


def test_names_are_no_patterns_and_unique_takes_one_name(trips: fuseline.Frame) -> None:
    frame = nw.from_native(trips.select(fuseline.col("id").alias("^i.*$"), "paid"))
    assert frame.select(col("^i.*$").sum()).collect().item() == 36
    once = frame.unique("paid", keep="last", order_by="^i.*$").sort("^i.*$", nulls_last=True)
    assert once.collect().rows() == [(3, None), (7, True), (8, False)]


REFUSED: dict[str, tuple[Made, type[Exception], str]] = {
    "no column": (lambda t, d, m: t.select("nothing"), ColumnNotFoundError, "nothing"),
    "no column inside": (lambda t, d, m: t.filter(col("far") > 1), ColumnNotFoundError, "'far'"),
    "twice": (lambda t, d, m: t.rename({"id": "fare"}), NarwhalsError, "fare"),
    "categorical": (lambda t, d, m: t.select(col("id").cast(nw.Categorical)), NotImplementedError, "Categorical"),
    "half": (lambda t, d, m: t.select(col("id").cast(nw.Float16)), NotImplementedError, "Float16"),
    "zone": (lambda t, d, m: t.select(col("at").dt.convert_time_zone("Asia/Tokyo")), NotImplementedError, "SET TimeZone"),
    "cast to zone": (lambda t, d, m: t.select(col("at").cast(nw.Datetime("us", "Asia/Tokyo"))), ValueError, "SET TimeZone"),
    "unit with zone": (lambda t, d, m: t.select(col("at").cast(nw.Datetime("ms", "UTC"))), ValueError, "microseconds"),
    "truncate": (lambda t, d, m: t.select(col("at").dt.truncate("2d")), ValueError, "multiple 1"),
    "nanoseconds": (lambda t, d, m: t.select(col("at").dt.offset_by("2ns")), NotImplementedError, "nanoseconds"),
    "nearest": (lambda t, d, m: t.join_asof(m, on="id", strategy="nearest"), NotImplementedError, "nearest|backward"),
    "quantile": (lambda t, d, m: t.select(col("id").quantile(0.5, "lower")), NotImplementedError, "linear"),
    "correlation": (lambda t, d, m: t.select(nw.corr("id", "fare", method="spearman")), NotImplementedError, "pearson"),
    "no order": (lambda t, d, m: t.with_row_index(), TypeError, "order_by"),
    "schemas": (lambda t, d, m: nw.concat([t, d]), TypeError, "schema"),
    "types": (lambda t, d, m: t.select(col("driver") - col("id")), fuseline.Error, "VARCHAR|driver"),
    "some matches": (lambda t, d, m: t.select(col("driver").str.replace("a", "b", n=2)), NotImplementedError, "n is 2"),
}  # fmt: skip


@pytest.mark.parametrize("name", REFUSED)
def test_what_is_not_there_is_refused_as_it_is_written(
    frames: tuple[list[Any], list[Any]], name: str
) -> None:
    make, error, text = REFUSED[name]
    with pytest.raises(error, match=text):
        make(*frames[0])


def test_texts_with_a_zone_are_no_timestamps_without_one(trips: fuseline.Frame) -> None:
    frame = nw.from_native(trips)
    known = frame.select(a=nw.lit("2026-01-02 03:04:05").str.to_datetime())
    assert known.collect().item() == datetime(2026, 1, 2, 3, 4, 5)
    lost = frame.select(a=nw.lit("2026-01-02T03:04:05+0100").str.to_datetime())
    with pytest.raises(fuseline.Error, match="time zone"):
        lost.collect()


def test_another_version_of_narwhals_is_refused(
    trips: fuseline.Frame, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(nw, "__version__", "2.30.1")
    with pytest.raises(fuseline.NotSupportedError, match=r"Narwhals 2\.29, and 2\.30\.1"):
        plugin.__narwhals_namespace__(trips)
    assert "narwhals>=2.29,<2.30" in (ROOT / "pyproject.toml").read_text()
