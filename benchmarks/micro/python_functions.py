"""What a compiled Python function costs beside the same expression in SQL: `python -m benchmarks.micro.python_functions [ROWS]`.

Both run in turn on one connection, columns and kernels in memory, and their answers are compared with numpy's first.  Prints the median of each, and of
the ratio of the two runs of a turn.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable
from dataclasses import dataclass
from statistics import median

import numpy as np
import pyarrow as pa

import fuseline
from fuseline.connection import Connection
from fuseline.frame.functions import UserAggregate, UserFunction

ROWS = 10_000_000
TURNS = 41


@dataclass(frozen=True)
class Pair:
    """A function or an aggregate, and the expression that it is in SQL and in numpy."""

    name: str
    function: UserFunction | UserAggregate
    call: str
    sql: str
    numpy: Callable[..., np.ndarray]


@fuseline.udf("DOUBLE", "DOUBLE", returns="DOUBLE")
def net(price: float, discount: float) -> float:
    return price * (1.0 - discount) * 1.19


@fuseline.udf("DOUBLE", returns="DOUBLE")
def tariff(price: float) -> float:
    if price > 900.0:
        return price * 0.9
    if price > 100.0:
        return price * 0.95
    return price


@fuseline.udf("INTEGER", "INTEGER", returns="INTEGER")
def weighed(pieces: int, day: int) -> int:
    return pieces * 7 - day * pieces


@fuseline.udf("DOUBLE", returns="DOUBLE")
def damped(price: float) -> float:
    return price / (1.0 + price * price)


rms = fuseline.udaf(
    "DOUBLE",
    returns="DOUBLE",
    initial=(0.0, 0),
    step=lambda s, x: (s[0] + x * x, s[1] + 1),
    merge=lambda a, b: (a[0] + b[0], a[1] + b[1]),
    finish=lambda s: (s[0] / s[1]) ** 0.5 if s[1] else 0.0,
    name="rms",
)
PAIRS = (
    Pair(
        "arithmetic of doubles",
        net,
        "net(price, discount)",
        "price * (1.0::double - discount) * 1.19::double",
        lambda t: t["price"] * (1.0 - t["discount"]) * 1.19,
    ),
    Pair(
        "branches",
        tariff,
        "tariff(price)",
        "case when price > 900 then price * 0.9::double when price > 100 then price * 0.95::double else price end",
        lambda t: np.where(
            t["price"] > 900,
            t["price"] * 0.9,
            np.where(t["price"] > 100, t["price"] * 0.95, t["price"]),
        ),
    ),
    Pair(
        "whole numbers",
        weighed,
        "weighed(pieces, day)",
        "pieces * 7 - day * pieces",
        lambda t: t["pieces"].astype(np.int64) * 7 - t["day"].astype(np.int64) * t["pieces"],
    ),
    Pair(
        "a quotient",
        damped,
        "damped(price)",
        "price / (1.0::double + price * price)",
        lambda t: t["price"] / (1.0 + t["price"] * t["price"]),
    ),
)
QUERIES = (
    ("aggregate", "select sum({0}) from sales"),
    ("filter", "select count(*), sum(price) from sales where {0} > 50"),
    ("groups", "select day, sum({0}) from sales group by day order by day"),
)
AGGREGATES = (
    Pair(
        "an aggregate",
        rms,
        "rms(price)",
        "sqrt(sum(price * price) / count(price))",
        lambda t: t["price"] * t["price"],
    ),
)
AGGREGATE_QUERIES = (
    ("all rows", "select {0} from sales"),
    ("by day", "select day, {0} from sales group by day order by day"),
)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("rows", nargs="?", type=int, default=ROWS)
    parser.add_argument("--turns", type=int, default=TURNS)
    parser.add_argument("--device", default="cpu", choices=["cpu", "gpu"])
    given = parser.parse_args()
    rng = np.random.default_rng(7)
    table = pa.table(
        {
            "price": rng.random(given.rows) * 1000,
            "discount": rng.random(given.rows) / 10,
            "pieces": rng.integers(1, 50, given.rows, np.int32),
            "day": rng.integers(0, 365, given.rows, np.int32),
        }
    )
    with fuseline.connect(device=given.device, fuse="always") as connection:
        connection.register("sales", table)
        columns = {name: table[name].to_numpy() for name in table.column_names}
        print(f"{given.rows:,} rows, {given.turns} turns, {given.device}; milliseconds")
        print(f"{'':34}{'SQL':>9}{'function':>10}{'ratio':>8}")
        for pairs, queries in ((PAIRS, QUERIES), (AGGREGATES, AGGREGATE_QUERIES)):
            for pair in pairs:
                connection.create_function(pair.call.partition("(")[0], pair.function)
                for what, query in queries:
                    compare(connection, pair, what, query, columns, given.turns)


def compare(
    connection: Connection,
    pair: Pair,
    what: str,
    query: str,
    columns: dict[str, np.ndarray],
    turns: int,
) -> None:
    """Measure a query with the function and with the expression, in turn."""
    frames = [connection.sql(query.format(text)) for text in (pair.sql, pair.call)]
    check(frames, what, pair, columns)
    assert "inside the kernel" in frames[1].explain()
    assert frames[1].explain().count("Pipeline") == 1
    seconds: list[list[float]] = [[], []]
    for turn in range(turns):
        for place in (0, 1) if turn % 2 else (1, 0):
            start = time.perf_counter()
            frames[place].to_arrow()
            seconds[place].append(time.perf_counter() - start)
    plain, called = (median(s) * 1e3 for s in seconds)
    ratio = median(b / a for a, b in zip(*seconds, strict=True))
    print(f"{pair.name + ', ' + what:34}{plain:9.2f}{called:10.2f}{ratio:8.2f}", flush=True)


def check(
    frames: list[fuseline.Frame], what: str, pair: Pair, columns: dict[str, np.ndarray]
) -> None:
    """Raise `AssertionError` where the two answers are not numpy's."""
    values = pair.numpy(columns)
    for frame in frames:
        rows = frame.fetchall()
        if what == "aggregate":
            assert np.isclose(float(rows[0][0]), values.sum(), rtol=1e-9), (pair.name, rows)
        elif what == "all rows":
            assert np.isclose(rows[0][0], np.sqrt(values.mean()), rtol=1e-9), (pair.name, rows)
        elif what == "by day":
            days = columns["day"]
            means = np.bincount(days, values, 365) / np.bincount(days, minlength=365)
            assert np.allclose([r for _, r in rows], np.sqrt(means), rtol=1e-9), pair.name
        elif what == "filter":
            assert rows[0][0] == np.count_nonzero(values > 50), (pair.name, rows)
        else:
            sums = np.bincount(columns["day"], values, 365)
            assert np.allclose([float(total) for _, total in rows], sums, rtol=1e-9), pair.name


if __name__ == "__main__":
    main()
