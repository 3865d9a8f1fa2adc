"""Random SELECTs whose joins, subqueries and derived tables nest, over functions that cannot raise for everyday values.

They are shapes, as those of `shapes`, of which no error has to be forgiven: what they answer is DuckDB's answer.
"""

from __future__ import annotations

import random
from dataclasses import dataclass, field

import pyarrow as pa

from tests.random_queries.data import KEYED, TABLES, tables
from tests.random_queries.shapes import HOLE, JOINS, SETS, SIGNS, Shape, filled

KINDS = (
    "num",
    "num",
    "num",
    "key",
    "int",
    "dec",
    "dbl",
    "dec",
    "single",
    "text",
    "day",
    "moment",
    "bool",
)
# Kinds whose values can be compared with =
ALIKE = (("id", "key", "small", "int"), *[("id", "id", "key")] * 2, ("text",), ("text",), ("dec", "key"), ("dbl", "single", "exact"), ("bool",), ("day", "moment"))  # fmt: skip
BY_KIND = {kind: [n for n, (k, *_) in KEYED.items() if k == kind] for kind in (*KINDS, "small", "id", "exact")}  # fmt: skip
HOLES_OF = {"num": "few", "id": "few", "single": "dbl"}
MAKERS: dict[str, tuple[str, ...]] = {
    "num": (*["({num} + {num})"] * 3, "({num} - {num})", "({num} * {key})", "(-{num})", "abs({num})", "length({text})", "year({day})",
            "({num} % 7)", "({num} // -3)", "hour({moment})", "dayofweek({moment})", "week({day})", "date_diff('month', date '1999-05-01', {day})",
            "coalesce({num}, {num})", "case when {bool} then {num} else {num} end", "case when {bool} then {num} when {bool} then {num} end"),
    "text": ("upper({text})", "coalesce({text}, <text>)"),
    "day": ("({day} + 1)", "coalesce({day}, {day})", "case when {bool} then {day} end", "{moment}::date"),
    "moment": ("date_trunc('month', {moment})", "date_trunc('hour', {moment})", "({moment} + interval '36 hours')", "coalesce({moment}, {moment})"),
    "bool": ("({num} {sign} <few>)", "({num} {sign} {num})", *["({int} {sign} <int>)"] * 2, "({single} {sign} <dbl>)", "({int} {sign} {int})", "(<int> {sign} {int})",
             "({dec} {sign} <dec>)", "({dec} {sign} {dec})", "({dbl} {sign} {dbl})", "({dbl} {sign} <dbl>)", "({single} {sign} {single})",
             "({text} {sign} <text>)", "({text} {sign} {text})", *["({text} like <pattern>)"] * 3, "({text} not like <pattern>)", "({day} {sign} <day>)",
             "({day} between <day> and <day>)", "({moment} {sign} <moment>)", "({int} between <int> and <int>)", "({key} in (<few>, <few>))",
             "({int} not in (<int>, <int>))", "({int} in (<int>, <int>, null))", "({dec} in (<dec>, <dec>))", "({dec} {sign} <dec>)", "({single} in (<dbl>, <dbl>))", "({text} not in (<text>, <text>))", "({day} in (<day>, <day>))", "({text} in (<text>, null))", "({key} in (<few>, <few>, null))", "({key} is null)", "({text} is not null)", *["({bool} and {bool})"] * 4, *["({bool} or {bool})"] * 4,
             *["(not {bool})"] * 5, "(year({day}) > 1990)", "({bool} is not null)", "({int} <> {int})", "({key} in (<few>, <few>))", "({int} is null)"),
}  # fmt: skip
ON_KEYS = (*["join"] * 5, "left join", "left join", "semi join", "anti join")


@dataclass
class Deep(Shape):
    """Draws one SELECT: `counts` are numbers of joins, `joins` their kinds, of which a share is `on_keys` and not on any condition."""

    depth: int = 2
    counts: tuple[int, ...] = (0, 0, 1, 1, 2, 3)
    joins: tuple[str, ...] = JOINS
    on_keys: float = 0.6
    forms: tuple[str, ...] = ("plain", "plain", "plain", "sub", "sub", "not", "either")
    size: int = 2  # how deep expressions nest
    rare: float = 0.15  # aggregates that are
    filters: float = 0.3  # aggregates that have one
    derived: dict[str, dict[str, list[str]]] = field(default_factory=dict)

    def columns(self, scope: list[str], kind: str) -> list[str]:
        """All columns of a kind of some relations."""
        kinds = ("small", "key") if kind == "num" else (kind,)
        return [
            f"{alias}.{name}"
            for alias in scope
            for k in kinds
            for name in (self.derived[alias].get(k, []) if alias in self.derived else BY_KIND[k])
        ]

    def column(self, kind: str) -> str:
        fitting = self.columns(self.scope, kind)
        return self.one(*fitting) if fitting else f"<{HOLES_OF.get(kind, kind)}>"

    def value(self, kind: str, depth: int) -> str:
        makers = MAKERS.get(kind, ())
        if depth <= 0 or not makers or self.chance(0.2):
            return self.column(kind) if self.chance(0.9) else f"<{HOLES_OF.get(kind, kind)}>"
        return self.fill(self.one(*makers), depth - 1)

    def inside(self, scope: list[str], kind: str, depth: int = 0) -> str:
        """A value of columns of some relations alone."""
        outer, self.scope = self.scope, scope
        made = self.value(kind, depth) if depth else self.column(kind)
        self.scope = outer
        return made

    # FROM

    def relation(self, depth: int) -> tuple[str, str]:
        """A table, a share of one, a join of which one side's columns are left, or a query; and its alias."""
        alias, table = self.alias(), self.one(*TABLES)
        forms = ("table", "table", "table", "share", "semi", "join", "query")
        form = self.one(*forms) if depth > 0 else "table"
        if form == "table":
            return f"{table} {alias}", alias
        outer, self.scope = self.scope, []
        if form == "query":
            text, self.derived[alias] = self.nested(depth - 1)
        else:
            inner = f"{alias}x"
            self.scope = [inner]
            text = f"select * from {table} {inner} where "
            if form == "share":
                text += self.value("bool", self.size)
            elif form == "semi":
                text += self.subquery(depth - 1)
            else:
                other, name = self.relation(depth - 1)
                picked = f"{inner}.* replace ({self.inside([name], 'key')} as k)"
                on = f"{self.one('join', 'left join')} {other} on {self.keys([inner], name)}"
                text = f"select {picked} from {table} {inner} {on}{self.residual([inner, name])}"
        self.scope = outer
        return f"({text}) {alias}", alias

    def keys(self, before: list[str], alias: str) -> str:
        """Equal keys of a relation and of those before it."""
        pairs = [
            (kinds, others)
            for group in ALIKE
            if (kinds := [c for kind in group for c in self.columns(before, kind)])
            and (others := [c for kind in group for c in self.columns([alias], kind)])
        ]
        if not pairs:
            return self.inside([*before, alias], "bool", self.size)
        drawn = [self.one(*pairs) for _ in range(self.one(1, 1, 1, 2, 3))]
        equals = ("=", "=", "=", "=", "=", "is not distinct from")
        return " and ".join(f"{self.one(*a)} {self.one(*equals)} {self.one(*b)}" for a, b in drawn)

    def residual(self, scope: list[str]) -> str:
        return f" and {self.inside(scope, 'bool', self.size)}" if self.chance(0.3) else ""

    def sources(self) -> str:
        text, first = self.relation(self.one(0, self.depth))
        self.scope = [first]
        for _ in range(self.one(*self.counts)):
            if self.on_keys < 1 and self.chance(0.12):
                text += self.lateral()
                continue
            source, alias = self.relation(self.one(0, 0, 0, self.depth - 1, self.depth))
            kind, before = self.one(*self.joins), self.scope
            text += f" {kind} {source}"
            if kind != "cross join":
                both = [*before, alias]
                keyed = self.chance(self.on_keys)
                text += f" on {self.keys(before, alias) + self.residual(both) if keyed else self.inside(both, 'bool', self.size)}"
            if kind not in ("semi join", "anti join"):
                self.scope = [*before, alias]
        return text

    def lateral(self) -> str:
        outer, (source, inner), alias = self.scope, self.relation(0), self.alias()
        pick = self.inside([inner], "key")
        item = self.one(pick, f"max({pick})", "count(*)", self.inside(outer, "key"))
        where = self.inside([inner, *outer], "bool", self.size)
        self.derived[alias] = {"int": ["z"]}
        text = f"lateral (select {item} as z from {source} where {where}) {alias}"
        self.scope = [*outer, alias]
        if self.chance(0.5):
            return f" cross join {text}"
        return f" left join {text} on {self.value('bool', self.size)}"

    # Subqueries

    def subquery(self, depth: int = 1) -> str:
        """A semi, anti, mark or single join as a condition."""
        outer, (source, alias) = self.scope, self.relation(depth if self.chance(0.3) else 0)
        kind = self.one("key", "int", "text", "day", "dec")
        operand, inner = self.inside(outer, kind), self.inside([alias], kind)
        link = self.keys(outer, alias)
        any_rows = self.inside([alias, *outer], "bool", self.size)
        where = self.one(
            f" where {link}", f" where {link} and {any_rows}", f" where {any_rows}", ""
        )
        negation = self.one("", "not ")
        return str(
            self.one(
                *[f"{negation}exists (select * from {source}{where})"] * 3,
                *[f"{operand} {negation}in (select {inner} from {source}{where})"] * 3,
                f"{operand} {self.one('=', '<', '>', '<>', '>=')} {self.one('any', 'all')} (select {inner} from {source}{where})",
                f"{operand} {self.one(*SIGNS)} (select {self.one('max', 'min')}({inner}) from {source}{where})",
                f"<few> {self.one(*SIGNS)} {self.scalar()}",
            )
        )

    def scalar(self) -> str:
        """A subquery as a number."""
        outer, (source, alias) = self.scope, self.relation(0)
        call = self.one("max", "min", "count", "sum")
        item = self.one("count(*)", *[f"{call}({self.inside([alias], 'num', 1)})"] * 3)
        more = f" + {self.inside(outer, 'key')}" if self.chance(0.2) else ""
        having = " having count(*) > <few>" if self.chance(0.15) else ""
        where = self.one(self.keys(outer, alias), self.inside([alias, *outer], "bool", self.size))
        return f"(select {item}{more} from {source} where {where}{having})"

    def condition(self, depth: int) -> str:
        form = self.one(*self.forms) if self.depth else "plain"
        if form == "plain":
            return self.value("bool", depth)
        text = self.subquery(self.depth - 1)
        if form == "not":
            return f"not ({text})"
        either = f"({self.value('bool', 1)} {self.one('and', 'or', 'or')} {text})"
        return either if form == "either" else text

    def where(self) -> str:
        parts = [
            self.condition(self.one(1, self.size, self.size)) for _ in range(self.one(0, 1, 1, 2))
        ]
        return f" where {' and '.join(parts)}" if parts else ""

    # Results

    def item(self, kind: str) -> str:
        if self.depth and kind == "num" and self.chance(0.2):
            return self.scalar()
        if kind == "mark":
            return f"({self.subquery(0)})"
        return self.value(kind, self.one(0, 1, self.size))

    def plain(self, kinds: tuple[str, ...] | None = None) -> str:
        source = self.sources()
        where = self.where()
        if kinds is None:
            kinds = tuple(self.one(*KINDS) for _ in range(self.one(1, 2, 4)))
            kinds += ("mark",) if self.depth and self.chance(0.6) else ()
        items = ", ".join(f"{self.item(k)} as x{n}" for n, k in enumerate(kinds))
        distinct = "distinct " if self.chance(0.15) else ""
        return f"select {distinct}{items} from {source}{where}"

    def aggregate(self) -> str:
        numeric = self.one("num", "num", "small", "key", "exact")
        some = self.one(*dict.fromkeys(KINDS), "dec", "single", "single", "dbl", "id", "exact")
        distinct = self.one("", "", "", "distinct ")
        sums = (
            f"sum({distinct}{self.value(numeric, self.size)})",
            f"sum({self.column('small')} * {self.column('key')})",
            f"sum({self.column(self.one('int', 'int', 'dec'))})",
            f"sum(case when {self.value('bool', 1)} then {self.value('num', 1)} else {self.column('small')} end)",
        )
        rare = (
            f"count({distinct}{self.value(some, 1)})",
            f"count(distinct {self.column(self.one('small', 'text', 'bool', 'day', 'int', 'key'))})",
            f"{self.one('bool_and', 'bool_or', 'count_if')}({self.value('bool', 1)})",
            f"{self.one('bit_and', 'bit_or', 'bit_xor')}({self.column(self.one('int', 'small'))})",
            f"{self.one('var_samp', 'stddev_pop')}({self.value('num', 1)})",
        )
        common = (
            "count(*)",
            "count(*)",
            f"count({distinct}{self.value(some, 1)})",
            *(self.one(*sums) for _ in range(4)),
            f"avg({self.one(self.value(numeric, 1), self.column('int'))})",
            *[f"{self.one('min', 'max', 'min')}({self.value(some, 1)})"] * 2,
        )
        call = self.one(*(rare if self.chance(self.rare) else common))
        return f"{call} filter (where {self.value('bool', 1)})" if self.chance(self.filters) else call  # fmt: skip

    def grouped(self) -> str:
        source = self.sources()
        where = self.where()
        kinds = [self.one(*KINDS, "id", "key") for _ in range(self.one(0, 0, 1, 1, 2, 3))]
        keys = dict.fromkeys(self.value(kind, self.one(0, 0, 1)) for kind in kinds)
        keys = dict.fromkeys(key for key in keys if not HOLE.fullmatch(key))
        calls = [self.aggregate() for _ in range(self.one(1, 2, 3))]
        items = ", ".join(f"{e} as x{n}" for n, e in enumerate([*keys, *calls]))
        text = f"select {items} from {source}{where}"
        if keys:
            listed = ", ".join(str(n + 1) for n in range(len(keys)))
            rolled = self.chance(0.15) and not HOLE.search("".join(keys))
            text += f" group by rollup ({', '.join(keys)})" if rolled else f" group by {listed}"
            text += " having count(*) > <few>" if self.chance(0.2) else ""
        return text

    def nested(self, depth: int) -> tuple[str, dict[str, list[str]]]:
        """A query in FROM, and its columns by their kinds."""
        outer, self.depth = self.depth, depth
        kinds = tuple(
            self.one("key", "num", "text", "int", "dec") for _ in range(self.one(1, 2, 3))
        )
        if self.chance(0.3):
            keys = ", ".join(f"x{n}" for n in range(len(kinds)))
            text = f"select {keys}, count(*) as n from ({self.plain(kinds)}) q group by {keys}"
        else:
            text = self.plain(kinds)
            if self.chance(0.2):
                text = f"{text} {self.one(*SETS)} {self.plain(kinds)}"
        self.depth = outer
        columns: dict[str, list[str]] = {}
        for number, kind in enumerate(kinds):
            columns.setdefault("small" if kind == "num" else kind, []).append(f"x{number}")
        return text, columns

    def query(self) -> str:
        form = self.random.random()
        if form < 0.6:
            text = self.grouped()
        elif form < 0.66 and self.on_keys < 1:
            kinds = tuple(self.one("text", "day", "bool", "key") for _ in range(self.one(1, 2)))
            text = f"{self.plain(kinds)} {self.one(*SETS)} {self.plain(kinds)}"
        else:
            text = self.plain()
        if self.on_keys < 1 and self.chance(0.12):
            offset = self.one("", "", " offset <limit>")
            text = f"select * from ({text}) o order by all limit <limit>{offset}"
        return text


def deep(seed: int) -> str:
    """A query of any joins and subqueries."""
    return Deep(random.Random(seed)).query()


def keyed(seed: int) -> str:
    """A query of the joins that kernels hold, most of them."""
    forms = ("plain", "sub", "sub", "sub", "sub", "either", "either", "either")
    made = Deep(random.Random(f"keyed {seed}"), depth=1, joins=ON_KEYS, on_keys=1, forms=forms, size=1, rare=0.1)  # fmt: skip
    made.counts = (0, 1, 1, 2, 2, 3)
    return made.query()


def single(seed: int) -> str:
    """An aggregate, or now and then rows, of one table."""
    made = Deep(random.Random(f"single {seed}"), depth=0, counts=(0,), on_keys=1, rare=0.45, filters=0.55)  # fmt: skip
    return made.plain() if seed % 5 == 4 else made.grouped()


def everyday(seed: int) -> str:
    """A deep query with its constants, over tables of `everyday_tables`."""
    return filled(deep(seed), random.Random(seed), 0.0)


def numbers(seed: int) -> str:
    """As `everyday`, whose first column x0 holds numbers."""
    text = Deep(random.Random(seed)).plain(("num", "key"))
    if seed % 3 == 0:
        text = f"select sum(x0) as x0, x1 from ({text}) q group by x1"
    return filled(text, random.Random(seed), 0.0)


def everyday_tables(seed: int) -> dict[str, pa.Table]:
    return tables(random.Random(seed), 0.0, KEYED)
