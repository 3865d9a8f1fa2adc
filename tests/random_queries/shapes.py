"""Random SELECTs as shapes: text with holes for constants, over the tables of `data`.

A shape is a function of its seed.  Its holes are filled and its tables are drawn many times over, from everyday values and from the
pool of extremes; kernels are shared between the draws, since constants are their arguments.
"""

from __future__ import annotations

import random
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from tests.random_queries.data import COLUMNS, TABLES

HOLES: dict[str, tuple[tuple[str, ...], tuple[str, ...]]] = {  # kind -> everyday constants, extreme ones
    "int": (("0", "1", "2", "3", "-1", "10", "100"), (
        "127", "-128", "32768", "2147483647", "(-2147483648)", "2147483648", "9223372036854775807", "(-9223372036854775808)", "null")),
    "few": (("0", "1", "2", "3"), ("5", "7", "100")),
    "dec": (("0.25", "1.5", "-2.50", "10.0"), ("9999999.99", "-9999999.99", "0.005", "0.0000000001", "99999999999999.9995", "null")),
    "dbl": (("0.5::double", "1e0", "-2.25::double"), (
        "'nan'::double", "'-0.0'::double", "'inf'::double", "'-inf'::double", "1e300", "1e-300", "5e-324::double", "null::double")),
    "text": (("'a'", "'b'", "'x'", "'xy'", "''"), ("'é'", "'日本語'", "'😀x'", "'%'", "'_'", "'\\'", "'a''b'", "' '", "'" + "ab" * 40 + "'", "null")),
    "pattern": (("'a%'", "'%b%'", "'x_'", "'%'"), ("''", "'_'", "'%é%'", "'a\\%'", "'%a%b%'", "'____'")),
    "regexp": (("'a'", "'^x'", "'b$'"), ("''", "'.'", "'[^a]+'", "'(a|b)+'", "'é'", "'\\d'")),
    "count": (("0", "1", "2", "3"), ("-1", "-2", "7", "100", "-2147483648", "2147483647")),
    "day": (("date '2020-02-29'", "date '1970-01-01'", "date '2000-02-28'"), (
        "date '0001-01-01'", "date '9999-12-31'", "date '1969-12-31'", "date '12345-01-01'", "null::date")),
    "moment": (("timestamp '2020-02-29 12:30:00'", "timestamp '1970-01-01'"), (
        "timestamp '9999-12-31 23:59:59.999999'", "timestamp '0001-01-01'", "timestamp '1969-12-31 23:59:59.999999'", "null::timestamp")),
    "bool": (("true", "false"), ("null::boolean",)),
    "limit": (("0", "1", "2", "5"), ("100",)),
}  # fmt: skip
HOLES |= {"key": HOLES["few"], "small": HOLES["few"], "exact": HOLES["few"]}
SIGNS = ("=", "<>", "<", "<=", ">", ">=", "is distinct from", "is not distinct from")
# Expressions by kind; {kind} is one of that kind, <kind> a hole.
MAKERS: dict[str, tuple[str, ...]] = {
    "int": ("({int}::hugeint + {int}::hugeint)", "({small} + <few>)", "({key} * <few>)", "(try_cast({text} as integer))", "({key} % 3)", "abs({key})",
            "length({text})", "year({day})", "month({moment})", "({day} - {day})", "position({text} in {text})", "try_cast({dec} as bigint)",
            "try_cast({dbl} as integer)", "date_diff('day', {day}, {day})", "({int} // nullif({key}, 0))", "sign({dec})", "ascii({text})",
            "(case {key} when <few> then {int} when <few> then <int> end)", "try_cast({int} as tinyint)", "({small} & <few>)", "strlen({text})"),
    "dec": ("({dec} + <dec>)", "(d * <few>)", "(-{dec})", "abs({dec})", "round({dec}, 1)", "try_cast({text} as decimal(9,2))", "try_cast({int} as decimal(12,3))",
            "floor({dec})", "try_cast({dbl} as decimal(18,4))", "(d + y)", "trunc(d)", "(d * d)"),
    "dbl": ("({dbl} + {dbl})", "({exact} * {dbl})", "({dec} / <dec>)", "({key} / <few>)", "cast({dec} as double)", "cast({int} as double)", "abs({dbl})",
            "round({dbl}, 2)", "try_cast({text} as double)", "sqrt(abs({exact}))", "floor({dbl})", "(-{dbl})"),
    "exact": ("({exact} + <few>)", "(-{exact})", "abs({exact})"),
    "text": ("({text} || {text})", "upper({text})", "lower({text})", "substring({text}, <count>, <few>)", "left({text}, <count>)", "right({text}, <count>)",
             "trim({text})", "replace({text}, <text>, <text>)", "cast({int} as varchar)", "cast({dec} as varchar)", "cast({day} as varchar)",
             "cast({moment} as varchar)", "cast({bool} as varchar)", "concat_ws('-', {text}, {text})", "lpad({text}, <few>, '*')", "reverse({text})",
             "repeat(cast({text} as varchar), <few>)", "split_part({text}, 'b', <few>)", "regexp_extract({text}, <regexp>)", "regexp_replace({text}, <regexp>, 'z', 'g')",
             "strftime({moment}, '%Y-%m')", "monthname({day})", "translate({text}, 'ab', 'b')", "concat({text}, {key})"),
    "day": ("({day} + <few>)", "cast({moment} as date)", "try_cast({text} as date)", "last_day({day})", "date_trunc('month', {day})::date"),
    "moment": ("date_trunc('month', {moment})", "cast({day} as timestamp)", "date_trunc('hour', {moment})", "({moment} + interval '1 day')"),
    "bool": ("({key} = <key>)", "({int} {sign} <int>)", "({int} {sign} {int})", "({dec} {sign} <dec>)", "({dec} {sign} {dec})", "({dbl} {sign} <dbl>)",
             "({dbl} {sign} {dbl})", "({text} {sign} <text>)", "({text} {sign} {text})", "({day} {sign} <day>)", "({day} {sign} {day})",
             "({moment} {sign} <moment>)", "({text} like <pattern>)", "({text} not like <pattern>)", "({text} ilike <pattern>)",
             "regexp_matches({text}, <regexp>)", "({int} in (<int>, <int>, <int>))", "({text} not in (<text>, <text>))", "({day} between <day> and <day>)",
             "({int} between <int> and <int>)", "({bool} and {bool})", "({bool} or {bool})", "(not {bool})", "({text} is null)", "({dbl} is not null)",
             "contains({text}, <text>)", "starts_with({text}, <text>)", "isnan({dbl})", "({dec} in (<dec>, <dec>))", "(year({day}) > 1999)"),
}  # fmt: skip
ANY = ("coalesce({kind}, {kind})", "case when {bool} then {kind} else {kind} end", "nullif({kind}, {kind})", "greatest({kind}, {kind})",
       "case when {bool} then {kind} end", "least({kind}, <kind>)")  # fmt: skip
ANY_OF = ("int", "dec", "dbl", "text", "day", "moment", "bool")
JOINS = ("join", "join", "join", "left join", "right join", "full join", "semi join", "anti join", "cross join")  # fmt: skip
SETS = ("union", "union all", "intersect", "except", "except all", "intersect all")
HOLE = re.compile(r"<(\w+)>")


@dataclass
class Shape:
    """Draws one SELECT with holes."""

    random: random.Random
    names: int = 0
    scope: list[str] = field(default_factory=list)

    def one(self, *options: Any) -> Any:
        return self.random.choice(options)

    def chance(self, share: float) -> bool:
        return self.random.random() < share

    def alias(self) -> str:
        self.names += 1
        return f"a{self.names}"

    def column(self, kind: str) -> str:
        """A column of a kind of some table in sight."""
        fitting = [c for c, (k, *_) in COLUMNS.items() if k == kind] or [
            "i" if kind == "int" else "k"
        ]
        return f"{self.one(*self.scope)}.{self.one(*fitting)}"

    def value(self, kind: str, depth: int) -> str:
        if depth <= 0 or kind not in MAKERS or self.chance(0.2):
            return self.column(kind) if self.chance(0.9) or kind not in HOLES else f"<{kind}>"
        makers = MAKERS[kind]
        if kind != "exact" and self.chance(0.2):
            makers = tuple(m.replace("kind", kind) for m in ANY)
        return self.fill(self.one(*makers), depth - 1)

    def fill(self, text: str, depth: int) -> str:
        while found := re.search(r"\{(\w+)\}", text):
            kind = found[1]
            made = self.one(*SIGNS) if kind == "sign" else self.value(kind, depth)
            text = text[: found.start()] + made + text[found.end() :]
        # Columns of MAKERS that are named as such.
        return re.sub(r"(?<![\w.'%<])([dy])(?![\w'(%>])", lambda m: f"{self.scope[0]}.{m[1]}", text)

    def condition(self, depth: int) -> str:
        return self.value("bool", depth) if self.chance(0.85) else self.subquery()

    def subquery(self) -> str:
        outer = self.scope
        alias = self.alias()
        kind = self.one("int", "text", "day")
        operand = self.column(kind)
        self.scope = [alias]
        inner = self.column(kind)
        where = self.value("bool", 1)
        link = f"{alias}.k = {self.one(*outer)}.k"
        self.scope = outer
        table = self.one(*TABLES)
        return str(
            self.one(
                f"exists (select 1 from {table} {alias} where {link} and {where})",
                f"not exists (select 1 from {table} {alias} where {link})",
                f"{operand} in (select {inner} from {table} {alias} where {where})",
                f"{operand} not in (select {inner} from {table} {alias} where {where} and {inner} is not null)",
                f"{operand} {self.one('=', '<', '>=')} (select {self.one('max', 'min')}({inner}) from {table} {alias} where {link})",
                f"(select count(*) from {table} {alias} where {link} and {where}) > <few>",
                f"({operand}, <few>) {self.one(*SIGNS)} {self.one('any', 'all')} (select {inner}, length({alias}.s) from {table} {alias})",
            )
        )

    def sources(self) -> str:
        first = self.alias()
        self.scope = [first]
        text = f"{self.one(*TABLES)} {first}"
        for _ in range(self.one(0, 0, 0, 1, 1, 2)):
            alias, kind = self.alias(), self.one(*JOINS)
            text += f" {kind} {self.one(*TABLES)} {alias}"
            before = self.scope
            self.scope = [*before, alias]
            if kind != "cross join":
                left = self.one(*before)
                keys = self.one(f"{left}.k = {alias}.k", f"{left}.k = {alias}.y", f"{left}.r = {alias}.s", f"{left}.k = {alias}.k and {left}.r = {alias}.r")  # fmt: skip
                text += f" on {keys}" + (
                    f" and {self.value('bool', 1)}" if self.chance(0.25) else ""
                )
            if kind in ("semi join", "anti join"):
                self.scope = before
        return text

    def where(self) -> str:
        return f" where {self.condition(self.one(1, 2, 3))}" if self.chance(0.7) else ""

    def aggregate(self) -> str:
        some = self.one(*ANY_OF)
        call = self.one(
            "count(*)",
            f"count({self.value(some, 1)})",
            f"sum({self.value(self.one('small', 'key', 'dec', 'exact'), 1)})",
            f"avg({self.value(self.one('small', 'key', 'exact'), 1)})",
            f"{self.one('min', 'max')}({self.value(some, 2)})",
            f"{self.one('min', 'max')}({self.column(self.one('int', 'dec', 'dbl', 'text', 'day', 'moment'))})",
            f"count(distinct {self.value(self.one('key', 'text', 'int', 'day', 'dec'), 1)})",
            f"{self.one('bool_and', 'bool_or')}({self.value('bool', 1)})",
            f"count_if({self.value('bool', 1)})",
            f"{self.one('bit_and', 'bit_or', 'bit_xor')}({self.column('small')})",
        )
        return f"{call} filter (where {self.value('bool', 1)})" if self.chance(0.15) else call

    def grouped(self) -> str:
        source = self.sources()
        keys = [
            self.value(self.one(*ANY_OF, "key", "key"), self.one(0, 0, 1))
            for _ in range(self.one(0, 1, 1, 2))
        ]
        keys = [k for k in dict.fromkeys(keys) if not HOLE.fullmatch(k)]
        calls = [self.aggregate() for _ in range(self.one(1, 2, 3))]
        items = ", ".join(f"{e} as x{n}" for n, e in enumerate([*keys, *calls]))
        text = f"select {items} from {source}{self.where()}"
        if keys:
            listed = ", ".join(map(str, range(1, len(keys) + 1)))
            text += f" group by {', '.join(keys)}" if self.chance(0.2) else f" group by {listed}"
            text += " having count(*) > <few>" if self.chance(0.2) else ""
        return text

    def plain(self, kinds: tuple[str, ...] | None = None) -> str:
        source = self.sources()
        kinds = kinds or tuple(self.one(*ANY_OF) for _ in range(self.one(1, 2, 3)))
        items = ", ".join(
            f"{self.value(k, self.one(0, 1, 2))} as x{n}" for n, k in enumerate(kinds)
        )
        distinct = "distinct " if self.chance(0.15) else ""
        return f"select {distinct}{items} from {source}{self.where()}"

    def query(self) -> str:
        kind = self.random.random()
        if kind < 0.4:
            text = self.grouped()
        elif kind < 0.52:
            kinds = tuple(self.one("text", "day", "bool", "moment") for _ in range(self.one(1, 2)))
            text = f"{self.plain(kinds)} {self.one(*SETS)} {self.plain(kinds)}"
        elif kind < 0.6:
            inner = self.plain(("key", "text"))
            text = f"with c as ({inner}) select p.x1 as x0, count(*) as x1 from c p join c q on p.x0 = q.x0 group by 1"
        elif kind < 0.66:
            text = f"select max(x0) as x0, count(*) as x1 from ({self.grouped()}) q"
        else:
            text = self.plain()
        if self.chance(0.2):
            text = f"select * from ({text}) o order by all limit <limit>"
        return text


# Lists and chains that no kernel holds as they are, and some that it does
SHORT_LIST, LENGTHS = "(<int>, <int>, <int>)", (20, 80, 300)
CHAIN = re.compile(r"\(\w+\.\w+ (?:=|<|>|<=|>=|<>) <(?:int|dec|dbl|day)>\)")


def shape(seed: int) -> str:
    """The text of a seed, with holes; one in ten has long lists and chains of conditions where it has short ones."""
    text = Shape(random.Random(seed)).query()
    if seed % 10 != 9:
        return text
    count = LENGTHS[seed // 10 % len(LENGTHS)]
    longer = text.replace(SHORT_LIST, f"({', '.join(['<int>'] * count)})")
    return CHAIN.sub(lambda found: f"({' or '.join([found[0]] * (count // 4))})", longer, count=1)


def filled(
    text: str,
    draw: random.Random,
    extreme: float,
    holes: Mapping[str, tuple[Sequence[str], Sequence[str]]] = HOLES,
) -> str:
    """Fill the holes with constants, of which a share is extreme."""

    def constant(hole: re.Match[str]) -> str:
        everyday, extremes = holes[hole[1]]
        return draw.choice(extremes if draw.random() < extreme else everyday)

    return HOLE.sub(constant, text)
