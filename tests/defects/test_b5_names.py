"""Texts and names that no encoding or file system takes: lone surrogates, thousands of characters or digits, paths of megabytes."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import fuseline
from fuseline import col, lit
from fuseline.errors import FileError, FuselineError, InvalidQuery, OutOfRange, UnknownName
from tests.compare import assert_same_as_duckdb
from tests.marks import assert_marks

LONE = "\ud800"


TABLES = {"t": {"a": [1, 2], "s": ["x", "y"]}}


@pytest.mark.parametrize("call", [
    lambda c: c.sql(f"select '{LONE}'"),
    lambda c: c.sql(f'select a as "{LONE}" from t'),
    lambda c: c.sql(f"select 1 -- {LONE}"),
    lambda c: c.execute(f"create table x{LONE} as select 1"),
    lambda c: c.execute(f"set threads = {LONE}"), lambda c: c.sql("select ?", [LONE]),
    lambda c: c.sql("select $x", {"x": f"a{LONE}"}),
    lambda c: c.sql("select $x", {LONE: 1}), lambda c: c.register(LONE, {"a": [1]}),
    lambda c: c.register("x", {LONE: [1]}), lambda c: c.register("x", {"a": [LONE]}), lambda c: c.table(LONE),
    lambda c: c.unregister(LONE), lambda c: c.read_parquet(f"/tmp/{LONE}"), lambda c: c.read_parquet("/tmp/x", LONE),
    lambda c: c.table("t").select(col(LONE)),
    lambda c: c.table("t").filter(col("s") == LONE),
    lambda c: c.table("t").select(**{LONE: lit(1)}),
    lambda c: c.table("t").select(lit(LONE)), lambda c: c.table("t").rename({"a": LONE}),
    lambda c: c.table("t").group_by("a").agg(**{LONE: fuseline.count()}),
    lambda c: c.table("t").join(c.table("t"), on="a", suffix=LONE),
    lambda c: c.table("t")[LONE], lambda c: getattr(c.table("t"), LONE), lambda c: c.set_option(LONE, 1),
    lambda c: c.set_option("cache_dir", LONE), lambda c: fuseline.connect(device=LONE),
])  # fmt: skip
def test_a_lone_surrogate_is_a_clear_error(call: Callable[[Any], Any], connection: Any) -> None:
    with pytest.raises(FuselineError) as caught:
        call(connection)
    str(caught.value).encode()  # a terminal can show it
    assert connection.sql("select count(*) from t").fetchall() == [(2,)]


def test_its_place_is_shown() -> None:
    with pytest.raises(InvalidQuery, match=r"U\+D800, which is no character") as caught:
        fuseline.connect(device="cpu").sql(f"select 'é{LONE}'")
    assert_marks(caught.value, "select 'é^\ufffd^'")


LONG = "t" * 5000


@pytest.mark.parametrize("fuse", ["never", "always"])
def test_names_of_thousands_of_characters(fuse: str) -> None:
    tables = {
        LONG: {"a": [1, 2, 3], f"{LONG}1": ["x", "y", "z"], f"{LONG}2": [1, 5, 7]},
        f"{LONG}u": {"a": [1, 2], f"{LONG}1": [5, 6], f"{LONG}3": [1, 1]},
    }
    query = f"""select sum(l.{LONG}2 + r.{LONG}1) as {LONG}x, count(*) as {LONG}y
        from {LONG} l join {LONG}u r on l.a = r.a and l.{LONG}2 > r.{LONG}3 where l.{LONG}1 like '%y%' group by r.{LONG}3"""
    assert_same_as_duckdb(query, tables, fuse=[fuse])


def test_a_path_of_megabytes_is_not_quoted_in_full() -> None:
    path = "x" * 1_000_000
    connection = fuseline.connect(device="cpu")
    for call in (
        connection.read_parquet,
        connection.table,
        lambda p: connection.sql(f"from '{p}'"),
    ):
        with pytest.raises(FuselineError) as caught:
            call(path)
        assert 0 < len(str(caught.value)) < 8000
    with pytest.raises(UnknownName) as caught:
        connection.sql(f"select 1, {path}, 2")
    assert 0 < len(str(caught.value)) < 8000


@pytest.mark.parametrize(
    "query",
    [
        *("select {}", "select -{}", "select ${}", "select 1 limit {}", "select 1 order by {}"),
        *(
            "set threads = {}",
            "from range({})",
            "select 1::decimal({}, 0)",
            "select round(1.5, {})",
        ),
    ],
)
def test_integers_of_thousands_of_digits(query: str) -> None:
    with pytest.raises(OutOfRange, match="5,000 digits: 38 are the most"):
        fuseline.connect(device="cpu").execute(query.format("9" * 5000))


def test_a_parameter_of_thousands_of_digits() -> None:
    with pytest.raises(OutOfRange, match="more than 38 digits"):
        fuseline.connect(device="cpu").sql("select ?", [10**5000])


def test_names_that_are_no_text(connection: Any) -> None:
    for name in (None, 3, b"t", ["t"], object()):
        for call in (connection.table, connection.unregister):
            with pytest.raises(FuselineError, match="is named by a str"):
                call(name)


def test_a_file_whose_name_is_no_utf8(tmp_path: Path, connection: Any) -> None:
    pq.write_table(pa.table({"a": [1]}), tmp_path / "x.parquet")
    path = Path(f"{tmp_path}/x\udcff.parquet")
    (tmp_path / "x.parquet").rename(path)
    assert connection.read_parquet(path).fetchall() == [(1,)]
    query = f"select a from '{tmp_path}/*.parquet'"
    assert connection.sql(query).fetchall() == [(1,)]
    assert "\ufffd.parquet" in str(connection.sql(f"explain analyze {query}").fetchall())
    assert "\ufffd.parquet" in str(connection.sql("from fuseline_columns()").fetchall())
    with pytest.raises(FileError, match="is not UTF-8"):
        connection.read_parquet(path, filename=True)
    hive = tmp_path / "h" / "k=\udcfe"
    hive.mkdir(parents=True)
    path.rename(hive / "z.parquet")
    with pytest.raises(FileError, match=r'not UTF-8.*column "k"'):
        connection.read_parquet(tmp_path / "h", hive_partitioning=True)


def test_bytes_that_are_no_utf8_do_not_end_the_shell() -> None:
    command = [sys.executable, "-c", "from fuseline.cli.commands import main; main()"]
    lines = b"select '\xff';\n.tables\xfe\nselect 41 + 1;\n"
    done = subprocess.run(
        [*command, "shell", "--device", "cpu"], input=lines, capture_output=True, check=False
    )
    assert b"42" in done.stdout
    assert done.stderr.count(b"InvalidQuery") == 2
    assert b"Traceback" not in done.stderr
    assert done.returncode == 1
    failed = subprocess.run(
        [*command, "sql", "-", "--device", "cpu"],
        input=b"select '\xff'",
        capture_output=True,
        check=False,
    )
    assert failed.returncode == 1
    assert b"Traceback" not in failed.stderr
