"""Random tables and aggregating queries over them, for Hypothesis."""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

import pyarrow as pa
from hypothesis import strategies as st

from tests.extremes import INF, NAN, POOL

DAY = dt.date(1970, 1, 1)


def extremes(data_type: str) -> list[Any]:
    """The shared pool of a type; texts without the long one, which a kernel's constants would hold."""
    return [v for v in POOL[data_type].values if not isinstance(v, str) or len(v) < 100]


# Values of each column: everyday ones, and the ends of their types.  Sums of the floats are exact in any order
POOLS: dict[str, tuple[pa.DataType, list[Any]]] = {
    "tiny": (pa.int8(), [-1, 0, 1, 2, *extremes("tinyint")]),
    "num": (pa.int32(), [-5, 0, 1, 2, 100_000, *extremes("integer")]),
    "big": (pa.int64(), [0, 1, 2**31, 10**12, *extremes("bigint")]),
    "uns": (pa.uint32(), [0, 1, 2**31, *extremes("uinteger")]),
    "cents": (pa.decimal128(9, 2), [Decimal(x) for x in ("0", "0.01", "-1.50", "9999999.99")]),
    "price": (pa.decimal128(18, 4), [Decimal(x) for x in ("0", "1.2345", "99999999999999.9999")]),
    "wide": (pa.decimal128(38, 6), [Decimal(x) for x in ("0", "-1.5", "9" * 32 + ".5", "123456")]),
    "mid": (pa.decimal128(38, 2), [Decimal(x) for x in ("0", "-1.5", "123456.78")]),
    "word": (pa.string(), ["a", "ab", "b%", "é", *extremes("varchar")]),
    "day": (pa.date32(), [DAY, dt.date(1992, 2, 29), dt.date(2024, 12, 31), dt.date(1, 1, 1)]),
    "time": (pa.timestamp("us"), [dt.datetime(1970, 1, 1), dt.datetime(2024, 5, 6, 7, 8, 9, 10)]),
    "flag": (pa.bool_(), [True, False]),
    "real": (pa.float64(), [0.0, -0.0, 1.5, -2.25, NAN, INF, 1024.0]),
    "half": (pa.float32(), [0.5, -0.0, NAN, -INF, 3.25]),
}
INTEGERS = ("tiny", "num", "big", "uns")
DECIMALS = ("cents", "price", "mid", "wide")
FLOATS = ("real", "half")
COMPARED = ("=", "<>", "<", "<=", ">", ">=", "is distinct from", "is not distinct from")


@st.composite
def tables(draw: st.DrawFn) -> pa.Table:
    """A table of all kinds of columns: no rows, one or some; NULLs, all NULL, all equal, ends of the types."""
    rows = draw(st.sampled_from([0, 1, 2, 9, 17, 64]))
    random = draw(st.randoms(use_true_random=False))
    columns = {}
    for name, (data_type, pool) in POOLS.items():
        shape = random.choice(["mixed", "mixed", "full", "everyday", "null", "equal"])
        some = random.sample(pool, random.randint(1, len(pool)))
        values = {"equal": some[:1], "null": [None], "everyday": pool[:4]}.get(shape, some)
        nulls = [None] if shape in ("mixed", "everyday") else []
        columns[name] = pa.array([random.choice(values + nulls) for _ in range(rows)], data_type)
    return pa.table(columns)


@dataclass
class Query:
    """Draws SQL text; `depth` bounds how far expressions nest."""

    draw: Callable[[Any], Any]

    def one(self, *options: Any) -> Any:
        return self.draw(st.sampled_from(options))

    def literal(self, column: str) -> str:
        value = self.one(*POOLS[column][1])
        match value:
            case bool():
                return str(value).lower()
            case float():
                return f"'{value}'::double"
            case str():
                return "'" + value.replace("'", "''") + "'"
            case dt.datetime():
                return f"timestamp '{value}'"
            case dt.date():
                return f"date '{value:%Y-%m-%d}'" if value.year > 999 else "date '0001-01-01'"
        return f"({value})" if value < 0 else str(value)

    def number(self, depth: int) -> str:
        """An integer or decimal expression that is small enough not to overflow."""
        small = ("tiny", "num", "cents", "mid")
        if depth == 0:
            return self.one(*small, self.literal("tiny"), "year(day)", "length(word)")
        a, b = self.number(depth - 1), self.number(depth - 1)
        return self.one(
            f"{a}::bigint + {b}",
            f"{a} - {b}::bigint",
            f"{self.one(*small)}::bigint * {self.one('tiny', '3', 'cents')}",
            f"-({a})",
            f"abs({a})",
            f"coalesce({a}, {b})",
            f"case when {self.condition(0)} then {a} when {self.condition(0)} then {b} end",
            f"case when {self.condition(0)} then {a} else {b} end",
        )

    def value(self, depth: int) -> str:
        """An expression of any type."""
        plain = self.one(*POOLS)
        return str(self.one(plain, plain, self.number(depth), "upper(word)", "day + 1", "not flag"))

    def condition(self, depth: int) -> str:
        column = self.one(*POOLS)
        if depth > 0:
            a, b = self.condition(depth - 1), self.condition(depth - 1)
            return str(self.one(f"({a} and {b})", f"({a} or {b})", f"not ({a})", a))
        tests = (
            f"{column} {self.one(*COMPARED)} {self.literal(column)}",
            f"{self.literal(column)} {self.one(*COMPARED)} {column}",
            f"{column} is {self.one('', 'not ')}null",
            f"{column} {self.one('', 'not ')}in ({self.literal(column)}, {self.literal(column)})",
            f"{column} in ({self.literal(column)}, null)",
            f"{column} between {self.literal(column)} and {self.literal(column)}",
            f"word {self.one('', 'not ')}like '{self.one('a%', '%b%', '_', '%')}'",
            f"{self.one('tiny', 'num')} {self.one(*COMPARED)} {self.one('tiny', 'num', 'big')}",
            f"{self.one(*DECIMALS)} > {self.one(*DECIMALS)}",
            f"{self.one(*FLOATS)} {self.one(*COMPARED)} {self.one(*FLOATS)}",
            self.one(
                "flag", "not flag", "flag is not null", "year(day) > 1990", "upper(word) = 'A'"
            ),
        )
        return str(self.one(*tests))

    def aggregate(self) -> str:
        exact = self.one(*INTEGERS, *DECIMALS, *FLOATS, self.number(1), self.number(2))
        call = self.one(
            "count(*)",
            f"count({self.value(1)})",
            f"sum({exact})",
            f"avg({exact})",
            f"{self.one('min', 'max')}({self.value(1)})",
            f"{self.one('bool_and', 'bool_or')}({self.condition(0)})",
            f"{self.one('bit_and', 'bit_or', 'bit_xor')}({self.one(*INTEGERS)})",
            f"count_if({self.condition(0)})",
            f"{self.one('var_samp', 'stddev_pop')}({self.one('tiny', 'num', 'cents')})",
            f"count(distinct {self.one('tiny', 'word', 'flag', 'day', 'num')})",
        )
        return f"{call} filter (where {self.condition(0)})" if self.one(True, False) else call

    def text(self) -> str:
        calls = [self.aggregate() for _ in range(self.one(1, 2, 3))]
        keys = [
            self.one("tiny", "num", "word", "flag", "day", "year(day)", "cents", "tiny + 1", "big")
            for _ in range(self.one(0, 0, 1, 2))
        ]
        items = [f"{e} as x{i}" for i, e in enumerate(keys + calls)]
        where = self.one("", f" where {self.condition(1)}", f" where {self.condition(2)}")
        group = f" group by {', '.join(str(i + 1) for i in range(len(keys)))}" if keys else ""
        return f"select {', '.join(items)} from t{where}{group}"


@st.composite
def queries(draw: st.DrawFn) -> str:
    """An aggregating query over one of `tables`, named t."""
    return Query(draw).text()


@st.composite
def selections(draw: st.DrawFn) -> str:
    """A query for rows of one of `tables`, named t."""
    query = Query(draw)
    columns = ", ".join(dict.fromkeys(query.one(*POOLS) for _ in range(query.one(1, 2, 4))))
    return f"select {columns}, {query.value(1)} as x from t where {query.condition(2)}"
