"""Random tables: no rows, one or some; everyday values and extremes, NULLs, columns of NULL alone or of one value."""

from __future__ import annotations

import random
from collections.abc import Mapping
from decimal import Decimal
from typing import Any

import pyarrow as pa

from tests.random_queries.extremes import POOL

ROWS, MORE_ROWS = (0, 1, 3, 8, 8, 20), (0, 1, 3, 8, 8, 20, 20, 60)
TABLES = ("t1", "t2", "t3")
Columns = Mapping[str, tuple[str, str, tuple[Any, ...]]]
# Column -> kind of expression, type in the pool, everyday values.
COLUMNS: Columns = {
    "k": ("key", "integer", (0, 1, 2, 3, 4, 5)),
    "y": ("small", "tinyint", (-3, 0, 1, 2, 7)),
    "i": ("int", "integer", (-7, -1, 0, 1, 2, 10, 100, 1000)),
    "l": ("int", "bigint", (-1000, -1, 0, 1, 5, 10**6, 10**10)),
    "u": ("int", "uinteger", (0, 1, 2, 50)),
    "d": ("dec", "decimal(9,2)", tuple(map(Decimal, ("-1.50", "0.00", "0.25", "1.00", "99.99")))),
    "w": ("dec", "decimal(38,10)", tuple(map(Decimal, ("-2.5", "0", "0.0000000001", "12.25")))),
    "f": ("dbl", "double", (-2.25, -0.0, 0.0, 0.5, 1.0, 3.75, 1024.0)),
    "g": ("exact", "double", (-2.25, 0.0, 0.5, 1.0, 3.75, 1024.0)),  # whose sums are the same in any order
    "s": ("text", "varchar", ("", "a", "b", "ab", "Abc", "xyz", "é", "a%b")),
    "r": ("text", "varchar", ("x", "y", "xy")),
    "t": ("day", "date", (0, 1, 58, 11016, 18320, 18321, 19000)),
    "m": ("moment", "timestamp", (0, 1, 951_827_696_789_012, 1_582_934_400_000_000)),
    "b": ("bool", "boolean", (True, False)),
}  # fmt: skip
EVERYDAY_ONLY = ("k", "g", "r")
# What the tables of `deep` queries have as well: unique keys, and types that no function of `shapes` is for
KEYED: Columns = {
    **COLUMNS,
    "id": ("id", "bigint", ()),
    "h": ("single", "float", (0.5, -0.0, 1.5, -2.25, 3.25)),
    "v": ("int", "smallint", (-4, 0, 1, 2, 3, 7, 50)),
    "c": ("dec", "decimal(18,3)", tuple(map(Decimal, ("0", "1", "2", "-1.5", "99999999999999.999")))),
}  # fmt: skip
# Moments that DuckDB's own arithmetic leaves its range with, which the sweep over functions covers.
SEPARATE = (-5000000, 5000000, -(2**62), 2**62)


def tables(
    draw: random.Random, extreme: float, described: Columns = COLUMNS
) -> dict[str, pa.Table]:
    """The three tables: no rows, one or some; a share of the columns holds extremes, some are NULL alone or never.

    Those of `KEYED` have keys that are unique, dense or far apart, in order or not, and columns of one value.
    """
    made = {}
    for name in TABLES:
        rows = draw.choice(ROWS if described is COLUMNS else MORE_ROWS)
        columns = {}
        for column, (_, kind, everyday) in described.items():
            if column == "id":
                ids = draw.sample(range(rows * draw.choice((1, 1, 3))), rows)
                columns[column] = pa.array(draw.choice((ids, sorted(ids))), pa.int64())
                continue
            odd = column not in EVERYDAY_ONLY and draw.random() < extreme
            pool = tuple(v for v in POOL[kind].values if v not in SEPARATE) if odd else everyday
            if described is KEYED and draw.random() < 0.1:
                pool = pool[:1]
            nulls = draw.choice((0.0, 0.1, 0.1, 0.5, 1.0 if draw.random() < 0.2 else 0.1))
            values = [None if draw.random() < nulls else draw.choice(pool) for _ in range(rows)]
            array = POOL[kind].array(values)
            columns[column] = array.dictionary_encode() if column == "r" else array
        made[name] = pa.table(columns)
    return made
