"""Random SELECTs over the types and clauses that `shapes` does not draw: nested and zoned values, ASOF and LATERAL, PIVOT, windows, WITH RECURSIVE.

Their tables are written in SQL, since Arrow has no HUGEINT and no enum: a column of constants each, from which `statements` makes them.
"""

from __future__ import annotations

import random
import re
from typing import Any

import pyarrow as pa

from tests.random_queries.shapes import SETS, SIGNS, Shape
from tests.random_queries.wide_values import MAKERS, NUMBERS, WIDE

TABLES = ("w1", "w2")
KINDS = tuple(WIDE)
ROWS = (0, 1, 5, 9, 9, 16)
ZONES = ("UTC", "Europe/Berlin", "America/New_York", "Asia/Kolkata")
FEW = ("0", "1", "2", "3", "-1")
ASOF = ("day", "moment", "clock", "int", "dec", "big", "zoned", "huge", "dbl", "wide")
JOINS = ("join", "left join", "full join", "right join", "semi join", "anti join", "positional join", "cross join")  # fmt: skip
FRAMES = (
    "", "", "", " rows between 1 preceding and current row", " rows between unbounded preceding and unbounded following",
    " rows between current row and 1 following exclude current row", " rows between 2 preceding and 1 preceding",
    " groups between 1 preceding and 1 following", " rows between unbounded preceding and current row exclude ties",
)  # fmt: skip
UNFRAMED = re.compile(r"row_number|rank|dense_rank|ntile|percent_rank|cume_dist|lag|lead")
STEPS = {"int": "x + 1", "text": "x || 'z'", "day": "x + 1", "huge": "x + 1000000000000", "ints": "list_append(x, n)", "moment": "x + interval '1 day'",
         "texts": "x || ['q']", "rec": "{'a': n, 'b': x.b || 'w'}", "dec": "x + 0.125", "wide": "-x", "tree": "x || x[:1]", "zoned": "x + interval '1 month'"}  # fmt: skip
CASTS = re.compile(r"::[\w\[\], ()]+$")  # behind which no subscript stands
PLACE = re.compile(r"\{(\w+)\}")


def constant(kind: str, text: str) -> str:
    """A constant of exactly a kind's type."""
    nested = text.startswith(("[", "{", "map"))
    return f"({text if nested else repr_sql(text)}::{WIDE[kind][0]})"


def repr_sql(text: str) -> str:
    return "'" + text.replace("'", "''") + "'"


HOLES = {
    kind: tuple(tuple(constant(kind, text) for text in texts) for texts in (everyday, (*extreme, *everyday[:1]))) for kind, (_, everyday, extreme) in WIDE.items()
} | {"few": (FEW, ("null", "100", "-2147483648")), "limit": (("0", "1", "3"), ("100",))}  # fmt: skip


class Wide(Shape):
    """Draws one SELECT."""

    def column(self, kind: str) -> str:
        name = "k" if kind == "few" else f"c_{kind}"
        return f"{self.one(*self.scope)}.{name}"

    def value(self, kind: str, depth: int) -> str:
        if kind == "number":
            kind = self.one(*NUMBERS)
        if kind == "few" or depth <= 0 or self.chance(0.25):
            return self.column(kind) if self.chance(0.8) else f"<{kind}>"
        return self.fill(self.one(*MAKERS[kind]), depth - 1)

    def fill(self, text: str, depth: int) -> str:
        some = self.one(*KINDS)
        known = {*WIDE, "few", "number"}

        def place(found: re.Match[str]) -> str:
            name = some if found[1] == "any" else found[1]
            if name == "sign":
                return str(self.one(*SIGNS))
            made = self.value(name, depth) if name in known else found[0]
            return f"({made})" if CASTS.search(made) else made

        return PLACE.sub(place, text)

    def within(self, scope: list[str], kind: str, depth: int) -> str:
        outer, self.scope = self.scope, scope
        made = self.value(kind, depth)
        self.scope = outer
        return made

    def order(self) -> str:
        """Unique, so that what depends on an order is the same."""
        return ", ".join(f"{alias}.id" for alias in self.scope)

    # FROM and WHERE

    def sources(self) -> str:
        first = self.alias()
        self.scope = [first]
        text = f"{self.one(*TABLES)} {first}"
        if self.chance(0.65):
            return text
        form = self.random.random()
        other = self.alias()
        if form < 0.15:
            listed = self.value(self.one("ints", "texts", "recs", "nest", "tree"), 1)
            return f"{text}, unnest({listed}) {other}(u)"
        if form < 0.3:
            return f"{text} {self.lateral(other)}"
        if form < 0.45:
            kind = self.one(*ASOF)
            near = f"{first}.c_{kind} {self.one('>=', '>', '<', '<=')} {other}.c_{kind}"
            keys = self.one(f"{first}.k = {other}.k and ", "")
            text += f" asof {self.one('', 'left ')}join {self.one(*TABLES)} {other} on {keys}{near}"
            self.scope = [first, other]
            return text
        join = self.one(*JOINS)
        text += f" {join} {self.one(*TABLES)} {other}"
        both = [first, other]
        if join not in ("positional join", "cross join"):
            kind = self.one(*KINDS)
            sides = [self.within([side], kind, self.one(0, 0, 1)) for side in both]
            signs = ("=", "=", "=", "is not distinct from", "<", "<>") if join in ("join", "left join") else ("=", "is not distinct from")  # fmt: skip
            text += f" on {sides[0]} {self.one(*signs)} {sides[1]}"
            text += f" and {self.within(both, 'bool', 1)}" if self.chance(0.3) else ""
        self.scope = both if join not in ("semi join", "anti join") else [first]
        return text

    def lateral(self, alias: str) -> str:
        inner = self.alias()
        kind = self.one(*KINDS)
        both = [*self.scope, inner]
        item = self.one(f"max({self.within(both, kind, 1)})", f"list({self.within([inner], kind, 0)} order by {inner}.id)", "count(*)")  # fmt: skip
        where = f"{inner}.k = {self.scope[0]}.k" if self.chance(0.7) else self.within(both, "bool", 1)  # fmt: skip
        return f"left join lateral (select {item} as z from {self.one(*TABLES)} {inner} where {where}) {alias} on true"

    def where(self) -> str:
        if self.chance(0.15):
            return f" where {self.subquery()}"
        return f" where {self.value('bool', self.one(1, 2))}" if self.chance(0.5) else ""

    def subquery(self) -> str:
        alias, kind = self.alias(), self.one(*KINDS)
        left, inner = self.value(kind, 0), self.within([alias], kind, 1)
        source, link = f"{self.one(*TABLES)} {alias}", f"{alias}.k = {self.one(*self.scope)}.k"
        return str(
            self.one(
                f"{left} in (select {inner} from {source})",
                f"{left} not in (select {inner} from {source} where {link})",
                f"{left} = (select max({inner}) from {source} where {link})",
                f"exists (select 1 from {source} where {link} and {inner} = {left})",
                f"{left} = any(array(select {inner} from {source} order by {alias}.id))",
                f"{left} {self.one(*SIGNS[:6])} all (select {inner} from {source} where {link})",
            )
        )

    def scalar(self) -> str:
        """A correlated subquery as a value."""
        alias, kind = self.alias(), self.one(*KINDS)
        item = self.one("max({})", "count({})", f"list({{}} order by {alias}.id)", f"arg_min({{}}, {alias}.id)")  # fmt: skip
        inner = self.within([alias, *self.scope], kind, 1)
        link = f"{alias}.k = {self.one(*self.scope)}.k"
        return f"(select {item.replace('{}', inner)} from {self.one(*TABLES)} {alias} where {link})"

    # Results

    def aggregate(self, depth: int = 1) -> str:
        some = self.value(self.one(*KINDS), depth)
        number = self.value(self.one("tiny", "int", "dec", "huge", "ubig", "big"), depth)
        place = " + ".join(f"coalesce({a}.id, -1) * {1000**n}" for n, a in enumerate(self.scope))
        by = f" order by {place}"

        def column(*kinds: str) -> str:
            return self.column(self.one(*kinds))

        call = self.one(
            "count(*)", f"count({some})", f"count(distinct {some})", f"min({some})", f"max({some})", f"list({some}{by})", f"array_agg({some}{by})",
            f"first({some}{by})", f"last({some}{by})", f"any_value({some}{by})", f"arg_min({some}, {place})", f"arg_max({some}, {place})",
            f"sum({self.value(self.one('int', 'huge', 'big'), depth)} // 100)", f"avg({number})", f"list_sort(list(distinct {some}))", f"string_agg({self.value('text', 1)}, ','{by})",
            f"bool_and({self.value('bool', 1)})", f"median({column('int', 'dec', 'day', 'moment', 'dbl', 'zoned')})", f"max({some}, 2)",
            f"quantile_disc({column('int', 'dec', 'day', 'text', 'clock', 'big', 'huge', 'wide')}, 0.5)", f"min({some}, 2)",
            f"histogram({column('text', 'int', 'day', 'enum', 'bool')})", f"arg_max({some}, {place}, 2)", f"sum(distinct {column('int')})",
            f"product({self.column('few')})", f"bit_xor({column('int', 'ubig')})", f"sum({column('tiny', 'dbl')})", f"entropy({some})",
        )  # fmt: skip
        filtered = self.chance(0.15) and not call.startswith("list_sort")
        return f"{call} filter (where {self.value('bool', 1)})" if filtered else str(call)

    def window(self) -> str:
        kind = self.one(*KINDS)
        some = self.value(kind, 1)

        def column(*kinds: str) -> str:
            return self.column(self.one(*kinds))

        call = self.one(
            f"lag({some})", f"lead({some}, 2)", f"first_value({some})", f"last_value({some})", f"nth_value({some}, 2)", f"list({some})",
            f"count({some})", f"min({some})", f"max({some})", "row_number()", "rank()", "dense_rank()", "ntile(2)", "percent_rank()", "cume_dist()",
            f"sum({column('tiny', 'int', 'dec')})", f"avg({column('int')})", f"string_agg({column('text')}, '-')", f"count(distinct {some})",
            f"any_value({some})", f"arg_max({some}, {self.scope[0]}.id)", f"lag({some}, 1, {self.value(kind, 0)})", f"first_value({some} ignore nulls)",
            f"bool_or({self.value('bool', 0)})", f"median({column('int')})", f"quantile_disc({column('int', 'day', 'text')}, 0.5)", f"sum({column('huge')} // 1000)",
        )  # fmt: skip
        part = f"partition by {self.value(self.one(*KINDS), self.one(0, 0, 1))} " if self.chance(0.6) else ""  # fmt: skip
        key = f"{self.value(self.one(*KINDS), 0)}{self.one('', ' desc', ' nulls first')}, " if self.chance(0.5) else ""  # fmt: skip
        frame = "" if UNFRAMED.match(call) else self.one(*FRAMES)
        return f"{call} over ({part}order by {key}{self.order()}{frame})"

    def plain(self, kinds: tuple[str, ...] | None = None) -> str:
        text = f"{self.sources()}{self.where()}"
        drawn = kinds or tuple(self.one(*KINDS) for _ in range(self.one(1, 2, 3)))
        items = [self.value(kind, self.one(0, 1, 2, 2)) for kind in drawn]
        distinct = "distinct " if self.chance(0.2) else ""
        if kinds is None:
            items += [self.window()] if self.chance(0.25) else []
            items += [self.scalar()] if self.chance(0.15) else []
            if not distinct and self.chance(0.08):
                items.append(f"unnest({self.value(self.one('ints', 'texts', 'recs'), 1)})")
        listed = ", ".join(f"{e} as x{n}" for n, e in enumerate(items))
        return f"select {distinct}{listed} from {text}"

    def grouped(self) -> str:
        text = f"{self.sources()}{self.where()}"
        keys = [self.value(self.one(*KINDS), self.one(0, 0, 1)) for _ in range(self.one(0, 1, 1, 2))]  # fmt: skip
        keys = [key for key in keys if not key.startswith("<")]
        if keys and self.chance(0.08):
            keys[0] = self.scalar()
        calls = [self.aggregate() for _ in range(self.one(1, 2, 3))]
        if keys and self.chance(0.15):  # windows over groups
            calls.append(self.one(f"sum(count(*)) over (order by {keys[0]})", f"rank() over (order by {self.aggregate(0)})", f"lag(count(*)) over (order by {', '.join(keys)})"))  # fmt: skip
        items = ", ".join(f"{e} as x{n}" for n, e in enumerate([*keys, *calls]))
        text = f"select {items} from {text}"
        if keys:
            listed = ", ".join(str(n + 1) for n in range(len(keys)))
            named = ", ".join(keys)
            text += self.one(*[f" group by {listed}"] * 4, *[" group by all"] * 2, f" group by {self.one('rollup', 'cube')} ({named})")  # fmt: skip
            if text.endswith(
                f"({named})"
            ):  # keys of several groupings tie, and the row before is any of them
                text = text.replace("lag(count(*))", "max(count(*))")
            text += f" having {self.aggregate(0)} is not null" if self.chance(0.2) else ""
        return text

    def pivot(self) -> str:
        table, key = self.one(*TABLES), f"c_{self.one(*KINDS)}"
        if self.chance(0.3):
            names = self.one(("c_int", "c_tiny"), ("c_int", "c_big", "k"), ("c_int", "c_dec"))
            items = ", ".join(f"{name}::decimal(38,3) as {name}" for name in names)
            nulls = self.one("", "include nulls ")
            return f"select * from (select id, {items} from {table}) unpivot {nulls}(v for n in ({', '.join(names)}))"
        on = self.one("c_enum", "c_bool", "k", "c_day", "c_text", "c_int")
        call = self.one("sum(k)", "count(*)", "max(ci)", "list(id order by id)", "min(cd)", "first(k order by id)")  # fmt: skip
        picked = f"select id, k, {key}, {on} as p_on, c_int as ci, c_day as cd from {table}"
        return f"pivot ({picked}) on p_on using {call} group by {key}"

    def recursive(self) -> str:
        kind = self.one(*STEPS)
        self.scope = ["w1"]
        first = f"select 1, c_{kind} from w1 where {self.value('bool', 1)}"
        step = (
            f"select n + 1, ({STEPS[kind]})::{WIDE[kind][0]} from r where n < {self.one(2, 3, 5)}"
        )
        union = self.one("union all", "union", "union all")
        return f"with recursive r(n, x) as ({first} {union} {step}) select n, x, count(*) as c from r group by all"

    def query(self) -> str:
        form = self.random.random()
        if form < 0.3:
            text = self.grouped()
        elif form < 0.4:
            kinds = tuple(self.one(*KINDS) for _ in range(self.one(1, 2)))
            mixed = tuple(self.one(*NUMBERS) if k in NUMBERS and self.chance(0.5) else k for k in kinds)  # fmt: skip
            text = f"{self.plain(kinds)} {self.one(*SETS)} {self.plain(mixed)}"
        elif form < 0.45:
            return self.pivot()
        elif form < 0.5:
            text = self.recursive()
        elif form < 0.57:
            source = f"{self.sources()}{self.where()}"
            items = ", ".join(f"{self.window()} as w{n}" for n in range(2))
            text = f"select {self.order()}, {items} from {source}"
            if len(self.scope) == 1 and self.chance(0.3):
                text += f" qualify {self.window()} is not null"
        elif form < 0.6:
            inner = self.plain((self.one(*KINDS), self.one(*KINDS)))
            text = f"with c as ({inner}) select p.x0 as x0, count(*) as n from c p join c q on p.x1 = q.x1 group by 1"
        else:
            text = self.plain()
        if self.chance(0.15):
            text = f"select * from ({text}) o order by all{self.one('', ' desc', ' nulls first')}{self.one('', ' limit <limit>', ' limit 2 offset 1')}"
        return text


def wide(seed: int) -> str:
    """A query over every type, nested ones among them."""
    return Wide(random.Random(f"wide {seed}")).query()


def tables(draw: random.Random, extreme: float, text: str) -> dict[str, pa.Table]:
    """Tables of the columns that a text names, whose cells are constants of SQL; a third is NULL in some columns."""
    kinds = [kind for kind in KINDS if re.search(rf"\bc_{kind}\b", text)]
    zone = draw.choice(ZONES)
    made = {}
    for name in TABLES:
        rows = draw.choice(ROWS)
        ids = list(range(rows)) if name == "w1" else draw.sample(range(max(rows * 2, 1)), rows)
        columns: dict[str, list[str]] = {"id": [str(i) for i in ids], "k": [draw.choice(FEW) for _ in ids]}  # fmt: skip
        for kind in kinds:
            everyday, odd = HOLES[kind]
            nulls = draw.choice((0.0, 0.2, 0.2, 0.35))
            columns[f"c_{kind}"] = [
                "null" if draw.random() < nulls else draw.choice(odd if draw.random() < extreme + 0.1 else everyday)
                for _ in ids
            ]  # fmt: skip
        written = {n: pa.array(values, pa.string()) for n, values in columns.items()}
        made[name] = pa.table(written).replace_schema_metadata({"zone": zone})
    return made


def statements(name: str, table: pa.Table) -> list[str]:
    """What makes a table that `tables` has drawn, or none for one of values."""
    zone = (table.schema.metadata or {}).get(b"zone")
    if zone is None:
        return []
    types = [f", {name} {WIDE[name[2:]][0]}" for name in table.column_names[2:]]
    made = [
        f"set timezone = '{zone.decode()}'",
        "create type if not exists mood as enum ('sad', 'ok', 'happy')",
        f"create or replace table {name} (id integer primary key, k integer{''.join(types)})",
    ]
    rows: list[dict[str, Any]] = table.to_pylist()
    values = ", ".join(f"({', '.join(row.values())})" for row in rows)
    return [*made, f"insert into {name} values {values}"] if rows else made
