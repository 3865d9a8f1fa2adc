"""Random tables and joins over them, for Hypothesis: stars, chains and snowflakes of every kind of join."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from decimal import Decimal
from typing import Any

import pyarrow as pa
from hypothesis import strategies as st

from tests.extremes import POOL


def ends(data_type: str) -> tuple[Any, ...]:
    """The first, the last and the last but one of the shared pool of a type: its ends, and NaN of floats."""
    values = POOL[data_type].values
    return values[0], values[-2], values[-1]


# Columns that are joined, with values of which many are equal
KEYS: dict[str, tuple[pa.DataType, list[Any]]] = {
    "k": (pa.int64(), [0, 1, 2, 3, 5, 8]),
    "n": (pa.int32(), [-3, 0, 1, 2, 3, 100_000, *ends("integer")]),
    "big": (pa.int64(), [0, 1, 2**62, 10**12, *ends("bigint")]),
    "s": (pa.string(), ["", "a", "b", "ab", "é", "日本語", "😀x"]),
    "c": (pa.decimal128(9, 2), [*map(Decimal, ("0", "1", "2", "-1.50")), *ends("decimal(9,2)")]),
    "f": (pa.float64(), [0.0, -0.0, 1.0, 2.0, -2.25, *ends("double")]),
    "b": (pa.bool_(), [True, False]),
}
# Columns that are added and compared: small, so that no sum overflows
VALUES: dict[str, tuple[pa.DataType, list[Any]]] = {
    "v": (pa.int64(), [0, 1, 2, 3, 7, 50, -4]),
    "w": (pa.int32(), [0, 1, 2, 10, -10]),
    "m": (pa.decimal128(12, 2), [Decimal(x) for x in ("0", "0.25", "-1.50", "99.99")]),
    "t": (pa.string(), ["x", "y", "xy", ""]),
}
# Types whose columns can be compared with =
ALIKE = [("k", "n", "big", "v", "w"), ("s", "t"), ("c", "m", "k"), ("f",), ("b",)]
NAMES = ("t1", "t2", "t3")
COMPARED = ("=", "<>", "<", "<=", ">", ">=")


@st.composite
def table_sets(draw: st.DrawFn) -> dict[str, pa.Table]:
    """Some tables: no rows, one or some; keys that are unique, repeat, are NULL, all NULL, all equal or far apart."""
    random = draw(st.randoms(use_true_random=False))
    tables = {}
    for name in NAMES:
        rows = random.choice([0, 1, 3, 7, 7, 20, 20, 60])
        ids = random.sample(range(random.choice([1, 1, 3]) * rows), rows)
        ids = random.choice([ids, sorted(ids)])
        columns: dict[str, pa.Array] = {"id": pa.array(ids, pa.int64())}
        for column, (data_type, pool) in {**KEYS, **VALUES}.items():
            shape = random.choice(["mixed", "mixed", "full", "full", "null", "equal"])
            values = {"equal": pool[:1], "null": [None]}.get(shape, pool)
            nulls = [None] if shape == "mixed" else []
            columns[column] = pa.array(
                [random.choice(values + nulls) for _ in range(rows)], data_type
            )
        tables[name] = pa.table(columns)
    return tables


@dataclass
class Joins:
    """Draws SQL text; `seen` are the aliases whose columns can be read so far."""

    draw: Callable[[Any], Any]
    seen: list[str] = field(default_factory=list)
    names: int = 0

    def one(self, *options: Any) -> Any:
        return self.draw(st.sampled_from(options))

    def alias(self) -> str:
        self.names += 1
        return f"a{self.names}"

    def equal(self, alias: str) -> str:
        """A comparison of a key of `alias` with one of those that came before."""
        other = self.one(*self.seen)
        if self.one(True, False, False):
            return f"{other}.{self.one('k', 'n', 'v')} = {alias}.id"
        group = self.one(*ALIKE)
        left, right = self.one(*group), self.one(*group)
        comparison = self.one("=", "=", "=", "=", "=", "is not distinct from")
        return f"{other}.{left} {comparison} {alias}.{right}"

    def keys(self, alias: str) -> str:
        return " and ".join(self.equal(alias) for _ in range(self.one(1, 1, 1, 2, 3)))

    def condition(self, *aliases: str) -> str:
        """A condition over any columns of some aliases."""
        one, other = self.one(*aliases), self.one(*aliases)
        return str(
            self.one(
                f"{one}.v {self.one(*COMPARED)} {self.one('2', '0', '5')}",
                f"{one}.w {self.one(*COMPARED)} {other}.v",
                f"{one}.m {self.one(*COMPARED)} 0.25",
                f"{one}.t {self.one('=', '<>', '<')} '{self.one('x', 'y', '')}'",
                f"{one}.t like '{self.one('x%', '%y', '_')}'",
                f"{one}.s {self.one('is', 'is not')} null",
                f"({one}.b or {other}.v > 2)",
                f"{one}.k in (1, 3, {self.one('5', 'null', '8')})",
                f"{one}.v + {other}.w {self.one(*COMPARED)} {self.one('3', '1')}",
            )
        )

    def residual(self, alias: str) -> str:
        if not self.one(True, False, False):
            return ""
        return f" and {self.condition(alias, *self.seen)}"

    def source(self, alias: str, depth: int) -> str:
        """A table, a share of it, or a join, whose columns are those of a table."""
        table = self.one(*NAMES)
        kind = self.one("table", "table", "share", "join", "semi") if depth else "table"
        if kind == "table":
            return f"{table} {alias}"
        inner = Joins(self.draw, [f"{alias}x"])
        if kind == "share":
            where = inner.condition(f"{alias}x")
        elif kind == "semi":
            where = inner.subquery(f"{alias}y", depth - 1)
        else:
            other = inner.source(f"{alias}y", depth - 1)
            more = self.one("", f" and {inner.condition(f'{alias}x', f'{alias}y')}")
            join = self.one("join", "left join")
            picked = f"{alias}x.* replace ({alias}y.{self.one('v', 'w')}::bigint as v)"
            on = inner.keys(f"{alias}y")
            return f"(select {picked} from {table} {alias}x {join} {other} on {on}{more}) {alias}"
        return f"(select * from {table} {alias}x where {where}) {alias}"

    def subquery(self, alias: str, depth: int) -> str:
        """A semi, anti or mark join as a condition."""
        source = self.source(alias, depth)
        negation = self.one("", "not ")
        if self.one(True, False):
            where = f"{self.keys(alias)}{self.residual(alias)}"
            return f"{negation}exists (select * from {source} where {where})"
        group = self.one(*ALIKE)
        left, right = self.one(*group), self.one(*group)
        where = self.one("", f" where {self.condition(alias)}")
        outer = self.one(*self.seen)
        return f"{outer}.{left} {negation}in (select {alias}.{right} from {source}{where})"

    def predicate(self) -> str:
        kind = self.one("semi", "semi", "or", "plain", "scalar")
        if kind == "plain":
            return self.condition(*self.seen)
        if kind == "or":
            return f"({self.condition(*self.seen)} or {self.subquery(self.alias(), 0)})"
        if kind == "scalar":
            alias, call = self.alias(), self.one("max", "min", "sum")
            inner = f"select {call}({alias}.v) from {self.one(*NAMES)} {alias} where {self.equal(alias)}"
            return f"{self.one(*self.seen)}.v <= ({inner})"
        return self.subquery(self.alias(), self.one(0, 1))

    def text(self) -> str:
        first = self.alias()
        parts = [self.source(first, 1)]
        self.seen.append(first)
        for _ in range(self.one(0, 1, 1, 2, 2, 3)):
            alias = self.alias()
            join = self.one("join", "join", "left join")
            source = self.source(alias, self.one(0, 0, 1, 2))
            parts.append(f"{join} {source} on {self.keys(alias)}{self.residual(alias)}")
            self.seen.append(alias)
        count = self.one(0, 1, 2) if len(parts) > 1 else self.one(1, 2)
        where = " and ".join(self.predicate() for _ in range(count))
        body = f" from {' '.join(parts)}" + (f" where {where}" if where else "")
        return self.one(self.groups, self.groups, self.rows)() + body + self.grouping

    grouping: str = ""

    def groups(self) -> str:
        keys = []
        for _ in range(self.one(0, 0, 1, 2, 3)):
            column = self.one("id", "id", *KEYS, "v", "t")
            keys.append(f"{self.one(*self.seen)}.{column}")
        calls = [self.aggregate() for _ in range(self.one(1, 2, 3))]
        items = [f"{e} as x{i}" for i, e in enumerate(keys + calls)]
        if keys:
            self.grouping = f" group by {', '.join(str(i + 1) for i in range(len(keys)))}"
        return f"select {', '.join(items)}"

    def aggregate(self) -> str:
        one, other = self.one(*self.seen), self.one(*self.seen)
        return str(
            self.one(
                "count(*)",
                f"count({one}.{self.one('id', *KEYS)})",
                f"sum({one}.v)",
                f"sum({one}.v * {other}.w)",
                f"sum({one}.m)",
                f"{self.one('min', 'max')}({one}.{self.one(*KEYS, *VALUES)})",
                f"avg({one}.v - {other}.w)",
                f"count(*) filter (where {self.condition(*self.seen)})",
                f"sum(case when {self.condition(*self.seen)} then {one}.v else {other}.w end)",
            )
        )

    def rows(self) -> str:
        columns = [
            f"{self.one(*self.seen)}.{self.one('id', *KEYS, *VALUES)}"
            for _ in range(self.one(1, 2, 4))
        ]
        if self.one(True, False, False, False):
            columns.append(f"({self.subquery(self.alias(), 0)})")
        items = [f"{e} as x{i}" for i, e in enumerate(columns)]
        one, other = self.one(*self.seen), self.one(*self.seen)
        return f"select {', '.join(items)}, {one}.v + {other}.w as x"


@st.composite
def joins(draw: st.DrawFn) -> str:
    """A query that joins some of `table_sets`."""
    return Joins(draw).text()
