"""How many functions of Python a query calls that has run before: host time that each run pays, whatever the device."""

from __future__ import annotations

import json
import subprocess
import sys
import time
from operator import sub
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from benchmarks import tpch
from tests.compare import connected
from tests.work import calls_of

SCALE = 0.01
MOST_IN_Q06 = 140
MOST_IN_ALL = 11_100  # 28,800 when each column was looked up in the cache by itself, 20,000 when types were asked by functions of Python
# On a GPU, functions of C counted, those that stand for the device's among them: 1 of q06 is some 0.3 us
MOST_ON_A_GPU = {"q06": 151, "q12": 196, "q14": 188, "q19": 158}
MOST_IN_ALL_ON_A_GPU = 7_850  # 8,670 when an operator of few rows was a closure, 11,600 when what a turn and a column need was asked by a call each, 13,200 when each run looked its columns up one by one, 15,700 when few rows were filtered by arrays, 17,700 when each fetch of rows was laid out anew
MOST_OF_NEW_CONSTANTS = 100_000  # 176,000 when each text had its launches laid out anew


def test_hot_queries_stay_short(tpch_tables: dict[str, Path]) -> None:
    counts: dict[str, int] = {}
    with connected(tpch_tables, "cpu", fuse="always") as opened:
        for name, text in tpch.queries(SCALE).items():
            for _ in range(4):  # kernels, what runs find out, and footers whose files are settled
                opened.sql(text).to_arrow()
            counts[name] = calls_of(lambda text=text: opened.sql(text).to_arrow())
    assert counts["q06"] <= MOST_IN_Q06, counts
    assert sum(counts.values()) <= MOST_IN_ALL, counts


# Through a cursor, to Python's values; the second time with other constants.  An INSERT took 2,100 when each was planned anew, a row by its
# number ran over all rows on threads of a pool
MOST_BY_CURSOR = {
    "select 42": (195, 195),
    "select * from t where k = ?": (310, 540),
    "insert into kept values (?, ?)": (356, 356),
    "select s, sum(k), count(*) from few where k < ? group by s": (455, 610),
}


def test_hot_texts_of_a_cursor_stay_short() -> None:
    numbers = range(1 << 18)
    tables = {"t": pa.table({"k": numbers, "s": [f"n{n % 99}" for n in numbers]})}
    tables["few"] = tables["t"].slice(0, 1000)
    found = {}
    with connected(tables, "cpu") as opened:
        opened.execute("create table kept (a bigint, b varchar)")
        for text in MOST_BY_CURSOR:

            def run(number: int, text: str = text) -> list[Any]:
                values = [number, "x"][: text.count("?")]
                cursor = opened.execute(text, values)
                return [] if text.startswith("insert") else cursor.fetchall()

            for number in range(20, 30):
                run(number)
            time.sleep(0.5)
            run(30)
            run(31)
            found[text] = calls_of(lambda run=run: run(31)), calls_of(lambda run=run: run(32))
    over = [text for text, most in MOST_BY_CURSOR.items() if max(map(sub, found[text], most)) > 0]
    assert not over, found


def test_columns_that_were_loaded_anew_are_found_at_once_again(
    tpch_tables: dict[str, Path],
) -> None:
    text = tpch.queries(SCALE)["q06"]
    with connected(tpch_tables, "cpu", fuse="always") as opened:
        for _ in range(4):
            expected = opened.sql(text).to_arrow()
        hot = calls_of(lambda: opened.sql(text).to_arrow())
        opened.forget(opened.catalog.table("lineitem"))
        assert calls_of(lambda: opened.sql(text).to_arrow()) > hot
        assert opened.sql(text).to_arrow() == expected
        assert calls_of(lambda: opened.sql(text).to_arrow()) == hot


def test_a_table_named_by_a_relative_path_is_looked_at_as_quickly(
    tpch_tables: dict[str, Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    text = tpch.queries(SCALE)["q06"]
    monkeypatch.chdir(tpch_tables["lineitem"].parent)
    counts = []
    for path in (tpch_tables["lineitem"], Path(tpch_tables["lineitem"].name)):
        with connected({"lineitem": path}, "cpu", fuse="always") as opened:
            for _ in range(4):
                opened.sql(text).to_arrow()
            counts.append(calls_of(lambda: opened.sql(text).to_arrow()))
    assert counts[0] == counts[1]


def test_a_table_named_by_a_glob_is_looked_at_nearly_as_quickly(
    tpch_tables: dict[str, Path],
) -> None:
    text, file = tpch.queries(SCALE)["q06"], tpch_tables["lineitem"]
    counts = []
    for path in (file, file.with_name(f"[{file.name[0]}]{file.name[1:]}")):
        with connected({"lineitem": path}, "cpu", fuse="always") as opened:
            for _ in range(4):
                opened.sql(text).to_arrow()
            counts.append(calls_of(lambda: opened.sql(text).to_arrow()))
    assert counts[1] <= counts[0] + 40


def test_hot_queries_stay_short_on_a_gpu(tpch_tables: dict[str, Path]) -> None:
    folder = next(iter(tpch_tables.values())).parent
    names = tpch.queries(SCALE)
    arguments = [sys.executable, "-m", "tests.idle_gpu", str(folder), str(SCALE), *names]
    done = subprocess.run(arguments, capture_output=True, text=True, check=True)
    counts, new = json.loads(done.stdout)
    most = MOST_ON_A_GPU.items()
    assert {name: counts[name] for name, n in most if counts[name] > n} == {}, counts
    assert sum(counts.values()) <= MOST_IN_ALL_ON_A_GPU, counts
    assert sum(new.values()) <= MOST_OF_NEW_CONSTANTS, new
