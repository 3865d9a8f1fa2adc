"""The first steps of DuckDB's users with the import changed: functions of the module on a connection of the process."""

from __future__ import annotations

import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import fuseline
from fuseline.errors import CatalogError


@pytest.fixture(autouse=True)
def _new_connection() -> Iterator[None]:
    yield
    fuseline.default_connection().close()


def steps(module: ModuleType, path: Path) -> list[Any]:
    """What the first pages of DuckDB's guide to Python do."""
    found: list[Any] = [module.sql("SELECT 42").fetchall()]
    module.execute("CREATE TABLE items (item VARCHAR, value DECIMAL(10, 2), count INTEGER)")
    module.execute("INSERT INTO items VALUES ('jeans', 20.0, 1), ('hammer', 42.2, 2)")
    module.execute("INSERT INTO items VALUES (?, ?, ?)", ["laptop", 2000, 1])
    module.executemany(
        "INSERT INTO items VALUES (?, ?, ?)", [["chainsaw", 500, 10], ["iphone", 300, 2]]
    )
    found.append(
        module.execute("SELECT item FROM items WHERE value > ? ORDER BY 1", [400]).fetchall()
    )
    found.append(module.execute("SELECT $max AS most", {"max": 7}).fetchall())
    found.append(module.query("SELECT sum(count)::INTEGER FROM items").fetchall())
    found.append(module.table("items").count("*").fetchall())
    module.read_parquet(str(path))
    found.append(module.sql(f"SELECT * FROM '{path}' ORDER BY x").fetchall())
    module.register("arrow_table", pa.table({"y": [1, 2]}))
    found.append(module.sql("SELECT sum(y)::INTEGER FROM arrow_table").fetchall())
    module.unregister("arrow_table")
    module.begin()
    module.execute("DELETE FROM items")
    module.rollback()
    module.execute("SELECT count(*)::INTEGER AS n FROM items")
    found += [module.fetchone(), module.fetchone(), module.cursor().execute("SELECT 1").fetchall()]
    with module.connect(":memory:", False, {"threads": 1}) as other:
        found.append(other.execute("SELECT current_setting('threads')").fetchall())
    return found


def test_the_same_script_gives_the_same_rows(tmp_path: Path) -> None:
    path = tmp_path / "x.parquet"
    pq.write_table(pa.table({"x": [3, 1, 2]}), path)
    assert steps(fuseline, path) == steps(duckdb, path)


@pytest.mark.parametrize(
    "before", ["", "import fuseline.sql", "from fuseline.sql import plan_sql", "fuseline.connect()"]
)
def test_the_package_of_sql_can_be_called(before: str) -> None:
    code = f"import fuseline\n{before}\nprint(fuseline.sql('select ? + 1', [41]).fetchall())"
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert run.stdout == "[(42,)]\n"


def test_a_closed_connection_gives_way_to_another() -> None:
    fuseline.execute("create table t as select 1 as a")
    with pytest.raises(CatalogError):
        fuseline.execute("create table t as select 1 as a")
    fuseline.default_connection().close()
    fuseline.execute("create table t as select 1 as a")


def test_threads_have_one_connection() -> None:
    found: list[Any] = []
    threads = [
        threading.Thread(target=lambda: found.append(fuseline.default_connection()))
        for _ in range(8)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(set(map(id, found))) == 1
