"""Make the data that Ibis's own tests read, which its sdist lacks: their tables by name and type, with rows of ours."""

from __future__ import annotations

import importlib
import shutil
import sys
from datetime import datetime, timedelta
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from pyarrow import csv

from benchmarks.data import tpcds_tables, tpch_tables

TPC_SCALES = {"h": 0.17, "ds": 0.45}  # which their tests name


def make_ibis_data(checkout: Path) -> None:
    """Write `ci/ibis-testing-data` and `ci/schema/duckdb.sql`, unless the checkout has them; the SQL to expect is that for DuckDB."""
    for expected in [*(checkout / "ibis/backends/tests").glob("**/snapshots/**/duckdb*")]:
        name = expected.name.replace("duckdb", "fuseline")
        shutil.copytree(expected, expected.with_name(name), dirs_exist_ok=True)
    folder, script = checkout / "ci/ibis-testing-data", checkout / "ci/schema/duckdb.sql"
    link_tpc_tables(folder)
    if script.exists():
        return
    for kind in ("parquet", "csv"):
        (folder / kind).mkdir(parents=True, exist_ok=True)
    named = {
        "functional_alltypes": functional_alltypes(),
        "diamonds": diamonds(),
        "batting": batting(),
        "awards_players": awards_players(),
        "astronauts": astronauts(checkout),
    }
    for name, table in named.items():
        pq.write_table(table, folder / f"parquet/{name}.parquet")
        csv.write_csv(table, folder / f"csv/{name}.csv")
    statements = []
    for name, table in nested(checkout).items():
        path = folder / f"parquet/{name}.parquet"
        pq.write_table(table, path)
        statements.append(f"CREATE OR REPLACE TABLE {name} AS FROM read_parquet('{path}')")
    script.parent.mkdir(exist_ok=True)
    script.write_text(";\n".join(statements) + ";\n")


def link_tpc_tables(folder: Path) -> None:
    """Link the benchmarks' tables anew, which may have been removed since a former run."""
    for suite, tables in {"h": tpch_tables, "ds": tpcds_tables}.items():
        scale = TPC_SCALES[suite]
        target = folder / f"tpc{suite}/sf={scale}/parquet"
        target.mkdir(parents=True, exist_ok=True)
        for name, path in tables(scale).items():
            link = target / f"{name}.parquet"
            link.unlink(missing_ok=True)
            link.symlink_to(path)


def functional_alltypes() -> pa.Table:
    """Two years of ten rows a day, which count to nine in each type."""
    number = np.arange(7300)
    digit = number % 10
    days = [datetime(2009, 1, 1) + timedelta(days=int(n) // 10) for n in number]
    moments = [
        day + timedelta(minutes=int(n % 1440), milliseconds=int(n * 10 % 60_000))
        for day, n in zip(days, number, strict=True)
    ]
    return pa.table(
        {
            "id": pa.array(number, pa.int32()),
            "bool_col": pa.array(number % 2 == 0),
            "tinyint_col": pa.array(digit, pa.int8()),
            "smallint_col": pa.array(digit, pa.int16()),
            "int_col": pa.array(digit, pa.int32()),
            "bigint_col": pa.array(digit * 10, pa.int64()),
            "float_col": pa.array(digit * 1.1, pa.float32()),
            "double_col": pa.array(digit * 10.1),
            "date_string_col": [day.strftime("%m/%d/%y") for day in days],
            "string_col": [str(n) for n in digit],
            "timestamp_col": pa.array(moments, pa.timestamp("us")),
            "year": pa.array([day.year for day in days], pa.int32()),
            "month": pa.array([day.month for day in days], pa.int32()),
        }
    )


def diamonds(rows: int = 5000) -> pa.Table:
    rng = np.random.default_rng(1)
    carat = np.round(rng.gamma(2, 0.4, rows) + 0.2, 2)
    x = np.round(6.5 * np.cbrt(carat) + rng.normal(0, 0.05, rows), 2)
    return pa.table(
        {
            "carat": carat,
            "cut": rng.choice(["Fair", "Good", "Very Good", "Premium", "Ideal"], rows),
            "color": rng.choice(list("DEFGHIJ"), rows),
            "clarity": rng.choice(["I1", "SI2", "SI1", "VS2", "VS1", "VVS2", "VVS1", "IF"], rows),
            "depth": np.round(rng.normal(61.7, 1.4, rows), 1),
            "table": np.round(rng.normal(57.5, 2.2, rows), 1),
            "price": np.round(4000 * carat**1.7).astype("int64") + rng.integers(0, 900, rows),
            "x": x,
            "y": np.round(x + rng.normal(0, 0.03, rows), 2),
            "z": np.round(x * 0.62, 2),
        }
    )


def batting(rows: int = 10_000) -> pa.Table:
    """Seasons of players from 1871 to 2015; the early ones lack what nobody counted."""
    rng = np.random.default_rng(2)
    player, year = np.divmod(rng.choice(2000 * 145, rows, replace=False), 145)
    games = rng.integers(1, 163, rows)
    counted = {
        name: pa.array(rng.integers(0, 1 + games * share // 100), mask=missing)
        for name, share, missing in [
            *((name, 300, None) for name in ("AB",)),
            *((name, 60, None) for name in ("R", "H", "X2B", "X3B", "HR", "RBI", "BB")),
            *((name, 30, year < 80) for name in ("SB", "CS", "SO", "IBB", "HBP", "SH", "SF", "GIDP")),
        ]
    }  # fmt: skip
    order = [
        "AB",
        "R",
        "H",
        "X2B",
        "X3B",
        "HR",
        "RBI",
        "SB",
        "CS",
        "BB",
        "SO",
        "IBB",
        "HBP",
        "SH",
        "SF",
        "GIDP",
    ]
    return pa.table(
        {
            "playerID": [f"player{n:04}" for n in player],
            "yearID": year + 1871,
            "stint": np.ones(rows, "int64"),
            "teamID": rng.choice(["PH1", "BOS", "NYA", "CHN", "SLN", "LAN"], rows),
            "lgID": pa.array(rng.choice(["NL", "AL"], rows), mask=rng.random(rows) < 0.01),
            "G": games,
            **{name: counted[name] for name in order},
        }
    )


def awards_players(rows: int = 3000) -> pa.Table:
    """Prizes of the same players; those before 1900 are of seven years."""
    rng = np.random.default_rng(3)
    early = np.array([1877, 1878, 1887, 1888, 1889, 1890, 1894])
    year = np.where(
        rng.random(rows) < 0.02, rng.choice(early, rows), rng.integers(1900, 2016, rows)
    )
    return pa.table(
        {
            "playerID": [f"player{n:04}" for n in rng.integers(0, 2000, rows)],
            "awardID": rng.choice(["Gold Glove", "MVP", "Cy Young", "Rookie", "All-Star"], rows),
            "yearID": year,
            "lgID": rng.choice(["NL", "AL", "ML"], rows),
            "tie": pa.array(["Y"] * rows, mask=rng.random(rows) < 0.97),
            "notes": pa.array(
                rng.choice(["P", "C", "SS", "OF", "1B"], rows), mask=rng.random(rows) < 0.3
            ),
        }
    )


def astronauts(checkout: Path, rows: int = 500) -> pa.Table:
    """Columns as the checkout's own schema has them, with numbers, and texts of numbers."""
    sys.path.insert(0, str(checkout))
    schema = (
        importlib.import_module("ibis.backends.conftest").TEST_TABLES["astronauts"].to_pyarrow()
    )
    rng = np.random.default_rng(4)
    columns = {}
    for field in schema:
        numbers = rng.integers(0, 300, rows)
        columns[field.name] = (
            pa.array([f"{field.name} {n}" for n in numbers])
            if pa.types.is_string(field.type)
            else pa.array(numbers, field.type)
        )
    return pa.table(columns)


def nested(checkout: Path) -> dict[str, pa.Table]:
    """The small tables that Ibis's tests have as pandas frames, and one of mappings."""
    sys.path.insert(0, str(checkout))
    data = importlib.import_module("ibis.backends.tests.data")
    whole = pa.int64()
    lists = pa.schema(
        {
            "x": pa.list_(whole),
            "y": pa.list_(pa.string()),
            "z": pa.list_(pa.float64()),
            "grouper": pa.string(),
            "scalar_column": pa.float64(),
            "multi_dim": pa.list_(pa.list_(whole)),
        }
    )
    of_struct = pa.struct({"a": pa.float64(), "b": pa.string(), "c": whole})
    pairs = [[("a", 1), ("b", 2), ("c", 3)], [("d", 4), ("e", 5), ("f", 6)]]
    frames = {
        "array_types": (data.array_types, lists),
        "struct": (data.struct_types, pa.schema({"abc": of_struct})),
        "json_t": (data.json_types, pa.schema({"js": pa.string()})),
        "win": (data.win, pa.schema({"g": pa.string(), "x": whole, "y": whole})),
    }
    tables = {
        name: pa.Table.from_pandas(frame, schema, preserve_index=False)
        for name, (frame, schema) in frames.items()
    }
    kind = pa.map_(pa.string(), whole)
    return {
        **tables,
        "topk": data.topk,
        "map": pa.table({"idx": [1, 2], "kv": pa.array(pairs, kind)}),
    }
