"""Random expressions over random rows have DuckDB's values, row by row, and fail where DuckDB fails."""

from __future__ import annotations

import random
from dataclasses import dataclass
from typing import Any

import duckdb
import pyarrow as pa

from tests.operators.evaluated import assert_rows
from tests.random_queries.extremes import POOL, TEXTS, decimals
from tests.random_queries.shapes import Shape

# Few everyday values beside the extremes of the shared pool.
INTEGERS = [0, 1, 2, 7, -13, 100, *POOL["bigint"].values]
DATES = [-1, 0, 18292, 18321, -25509, *POOL["date"].values]
MOMENTS = [-1, 1_582_979_400_000_000, 946_684_800_000_000, *POOL["timestamp"].values]
COLUMNS: dict[str, tuple[pa.DataType, list[Any]]] = {
    "i": (pa.int64(), INTEGERS),
    "j": (pa.int32(), list(POOL["integer"].values)),
    "f": (pa.float64(), [0.5, -1.5, *POOL["double"].values]),
    "d": (pa.decimal128(9, 2), list(POOL["decimal(9,2)"].values)),
    "w": (pa.decimal128(38, 4), list(decimals(38, 4))),
    "s": (pa.string(), ["2020-01-31", " x ", *TEXTS]), "r": (pa.string(), ["2020-01-31", " x ", *TEXTS]), "t": (pa.date32(), DATES), "m": (pa.timestamp("us"), MOMENTS),
    "b": (pa.bool_(), [True, False]),
}  # fmt: skip

# Conditions that cannot raise.  DuckDB computes both arguments of AND and OR outside of a filter; here an error counts only
# where it decides.
SAFE = [
    "b", "(s = r)", "(t < m)", "(f > 0)", "(d = 1.25)", "(s like '%a%')", "(i is null)", "(j in (0, 7))",
    "null::boolean",
]  # fmt: skip

# What makes an expression of a kind: {kind} stands for an expression of that kind.
LEAVES = {
    "int": ["i", "j", "3", "0", "-7"], "float": ["f", "2.5::double", "0.0::double"],
    "dec": ["d", "1.25", "d::decimal(18,4)"], "wide": ["w", "12.5::decimal(38,4)"], "text": ["s", "r", "'a'", "''"],
    "day": ["t", "date '2020-01-31'"],
    "moment": ["m", "timestamp '1999-12-31 23:00:00'"],
    "bool": ["b", "true", "null::boolean"],
}  # fmt: skip
MAKERS = {
    "int": ["({int} + {int})", "({int} - {int})", "({int} * {int})", "({int} // {int})", "({int} % {int})", "abs({int})",
            "length({text})", "year({day})", "({day} - {day})", "try_cast({text} as integer)", "cast({dec} as bigint)",
            "date_diff('month', {moment}, {day})", "position({text} in {text})"],
    "float": ["({float} + {float})", "({float} * {float})", "({float} / {float})", "(-{float})", "round({float}, 1)",
              "cast({dec} as double)", "try_cast({text} as double)", "cast({int} as double)", "abs({float})"],
    "dec": ["({dec} + {dec})", "({dec} - {dec})", "(-{dec})", "abs({dec})", "round({dec}, 1)", "(d * {dec})",
            "try_cast({int} as decimal(12,3))", "try_cast({text} as decimal(6,1))", "try_cast({float} as decimal(9,2))"],
    "wide": ["({wide} + {wide})", "({wide} - {wide})", "(-{wide})", "try_cast({dec} as decimal(38,4))"],
    "text": ["({text} || {text})", "upper({text})", "substring({text}, 2, 2)", "left({text}, -1)", "trim({text})",
             "cast({int} as varchar)", "cast({dec} as varchar)", "cast({wide} as varchar)", "cast({day} as varchar)",
             "cast({moment} as varchar)", "cast(f as varchar)", "cast({bool} as varchar)", "replace({text}, 'a', 'xy')",
             "concat_ws('-', {text}, {text})", "lpad({text}, 3, '*')"],
    "day": ["({day} + 30)", "cast({moment} as date)", "last_day({day})", "try_cast(s as date)"],
    "moment": ["({day} + interval '1 month')", "({moment} - interval '13 months 1 hour')", "date_trunc('quarter', {moment})",
               "date_trunc('week', {moment})", "cast({day} as timestamp)"],
    "bool": [*(f"({{{kind}}} {sign} {{{kind}}})" for kind in ("int", "float", "dec", "wide", "text", "day", "moment")
               for sign in ("=", "<", ">=", "is distinct from")), "({safe} and {safe})", "({safe} or {safe})", "(not {bool})",
             "({text} is null)", "({float} is not null)", "({text} like '%a%')", "({text} in ('a', '', '1'))",
             "({int} in (0, 7, 100))", "({int} between -10 and 10)", "contains({text}, 'a')"],
}  # fmt: skip
ANY_KIND = ["case when {bool} then {kind} else {kind} end", "coalesce({kind}, {kind})", "nullif({kind}, {kind})",
            "greatest({kind}, {kind})", "case when {bool} then {kind} end"]  # fmt: skip


def rows(draw: random.Random) -> pa.Table:
    """0 to 8 rows with NULLs; `r` is a dictionary column."""
    count = draw.choice((0, 1, 1, 3, 8))
    columns = {}
    for name, (arrow, values) in COLUMNS.items():
        array = pa.array(draw.choices([None, *values], k=count), arrow)
        columns[name] = array.dictionary_encode() if name == "r" else array
    return pa.table(columns)


@dataclass
class Expressions(Shape):
    """Draws expressions over the columns above."""

    def value(self, kind: str, depth: int) -> str:
        if kind == "safe":
            return str(self.one(*SAFE))
        if depth == 0 or self.chance(1 / 6):
            return str(self.one(*LEAVES[kind]))
        makers = [*MAKERS[kind], *(m.replace("kind", kind) for m in ANY_KIND)]
        return self.fill(self.one(*makers), depth - 1)


def test_random_expressions() -> None:
    refused = 0
    for seed in range(30):
        draw = random.Random(seed)
        drawn = Expressions(draw, scope=["t"])
        texts = [drawn.value(draw.choice(sorted(LEAVES)), 3) for _ in range(draw.randint(1, 3))]
        try:
            assert_rows(texts, rows(draw))
        except duckdb.Error:
            refused += 1  # DuckDB's TRY catches no error within IN
    assert refused < 3
