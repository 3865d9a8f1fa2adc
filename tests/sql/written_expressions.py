"""Random expressions as people write them: odd blanks and capitals, parentheses or none, every operator beside every other one."""

from __future__ import annotations

import random

COLUMNS = {
    "bool": ("g", "t.g", "G", '"g"'),
    "num": ("a", "t.a", "A", "d", "e", '"distance"', 't."My Col"', '"distance"'),
    "text": ("b", "t.b", '"b"', "B"),
    "time": ("m", "dt", "T.m"),
}
CONSTANTS = {
    "bool": ("true", "FALSE", "null", "(true)"),
    "num": ("1", "5", "2.5", ".5", "1e2", "1_000", "- 3", "NULL", "null::int", "+4", "(7)", "0.0"),
    "text": ("'x'", "'it''s'", "''", "'%a_'", "e'a\\'b\\n'", "$$q'r$$", "null", "'é'"),
    "time": (
        "date '2024-01-31'",
        "TIMESTAMP '2024-01-31 01:02:03'",
        "'2024-01-31'::date",
        "cast('2024-02-29' as Timestamp)",
        "DATE '2024-01-31'",
    ),
    "span": (
        "interval '1 day 2 hours'",
        "interval 3 days",
        "INTERVAL '2' month",
        "interval '1.5' hour",
        "interval (a) second",
        "interval (a+1) weeks",
        "interval 1 quarter",
        "interval '01:02:03'",
        "interval 1 decade",
        "interval 2 centuries",
        "interval 5 milliseconds",
        "interval (2) years",
        "interval '1' microsecond",
    ),
}
INFIX = {
    "bool": (
        ("bool", "and", "bool"),
        ("bool", "OR", "bool"),
        ("num", "=", "num"),
        ("num", "<>", "num"),
        ("num", "!=", "num"),
        ("num", "<=", "num"),
        ("text", ">", "text"),
        ("text", "==", "text"),
        ("time", "<", "time"),
        ("num", "is distinct from", "num"),
        ("text", "IS NOT DISTINCT FROM", "text"),
        ("text", "like", "text"),
        ("text", "not like", "text"),
        ("text", "ILIKE", "text"),
        ("text", "not ilike", "text"),
        ("text", "~~", "text"),
        ("text", "!~~", "text"),
        ("text", "~~*", "text"),
        ("text", "~", "text"),
        ("text", "!~", "text"),
        ("text", "~*", "text"),
        ("text", "!~*", "text"),
        ("text", "similar to", "text"),
        ("text", "not similar to", "text"),
        ("text", "glob", "text"),
        ("text", "^@", "text"),
    ),
    "num": tuple(
        ("num", sign, "num")
        for sign in ("+", "-", "*", "/", "//", "%", "**", "^", "&", "|", "<<", ">>")
    ),
    "text": (("text", "||", "text"), ("text", "||", "num")),
    "time": (("time", "+", "span"), ("time", "-", "span"), ("span", "+", "time")),
    "span": (("span", "+", "span"), ("span", "*", "num"), ("time", "-", "time")),
}
AROUND = {
    "bool": (
        "not {bool}",
        "{num} is null",
        "{text} is not null",
        "{num} isnull",
        "{text} NOTNULL",
        "{bool} is true",
        "{bool} is not false",
        "{bool} is unknown",
        "{num} between {num} and {num}",
        "{num} not between {num} and {num}",
        "{text} in ({text}, {text})",
        "{num} not in ({num})",
        "{text} like {text} escape '!'",
        "{text} not ilike {text} escape '!'",
        "exists (select 1 from t where {bool})",
        "not exists (select 1)",
        "{num} in (select a from t)",
        "{num} not in (select max(a) from t)",
        "{num} > all (select a from t)",
        "{num} = any (select a from t where {bool})",
        "case when {bool} then {bool} end",
    ),
    "num": (
        "-{num}",
        "- {num}",
        "~{num}",
        "+{num}",
        "{num}::int",
        "{num} :: DECIMAL(10,2)",
        "cast({num} as bigint)",
        "CAST({text} AS Double)",
        "try_cast({text} as double precision)",
        "case when {bool} then {num} else {num} end",
        "case {num} when {num} then {num} when 1 then {num} end",
        "extract(year from {time})",
        "EXTRACT(epoch FROM {time})",
        "extract('minute' from {time})",
        "extract(dow from {time})",
        "date_part('month', {time})",
        "position({text} in {text})",
        "coalesce({num}, {num})",
        "Nullif({num}, {num})",
        "ifnull({num}, {num})",
        "if({bool}, {num}, {num})",
        "(select max(a) from t where {bool})",
        "(select {num} limit 1)",
        "length({text})",
        "year({time})",
        "Round({num}, 1)",
        "mod({num}, {num})",
        "pow({num}, 2)",
        "greatest({num}, {num})",
        "date_diff('day', {time}, {time})",
        "epoch({time})",
        "date '2024-01-31' - dt",
    ),
    "text": (
        "{num}::varchar",
        "{time}::text",
        "upper({text})",
        "LOWER( {text} )",
        "substring({text} from 2 for 3)",
        "substring({text} from {num})",
        "substring({text}, 1, 2)",
        "trim({text})",
        "trim(both 'x' from {text})",
        "trim(leading from {text})",
        "trim(TRAILING 'y' FROM {text})",
        "left({text}, 2)",
        "replace({text}, {text}, {text})",
        "concat({text}, {num})",
        "concat_ws(',', {text}, {text})",
        "strftime({time}, '%Y-%m')",
        "case when {bool} then {text} else {text} end",
        "coalesce({text}, 'z')",
        "dayname({time})",
        "regexp_replace({text}, 'a', 'b', 'g')",
    ),
    "time": (
        "date_trunc('month', {time})",
        "{text}::timestamp",
        "{time}::date",
        "last_day({time})",
        "make_date(2024, 1, 1)",
        "strptime({text}, '%Y')",
        "date_add({time}, {span})",
    ),
    "span": ("to_days({num}::int)", "-{span}", "to_seconds({num})"),
}
AGGREGATES = (
    "sum({num})", "SUM(distinct {num})", "avg(all {num})", "count(*)", "count()", "Count(distinct {text})",
    "min({text}) filter (where {bool})", "max({num}) FILTER ({bool})",
    "string_agg({text}, '|' order by {text} desc, {num} nulls first)",
    "string_agg(distinct {text}, ',')", "first({num} order by {num})", "last({text})", "any_value({text})",
    "bool_and({bool})", "median({num})", "quantile_cont({num}, 0.5)",
    "percentile_cont(0.5) within group (order by {num} desc)",
    "stddev({num})", "arg_max({num}, {num})", "count_if({bool})",
)  # fmt: skip


class Writer:
    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)

    def expression(self) -> str:
        kind = self.random.choice(("bool", "num", "text", "time", "bool", "num"))
        depth = self.random.choice((1, 2, 2, 3))
        if self.random.random() < 0.15:
            text = self._filled(self.random.choice(AGGREGATES), 1)
            if self.random.random() < 0.3:
                text += " + count(*)"
        else:
            text = self.of(kind, depth)
        return self._spaced(text)

    def of(self, kind: str, depth: int) -> str:
        if depth == 0:
            known = (*COLUMNS.get(kind, ()), *CONSTANTS[kind])
            return self.random.choice(known)
        if self.random.random() < 0.45 and kind in INFIX:
            left, sign, right = self.random.choice(INFIX[kind])
            text = f"{self.of(left, depth - 1)} {sign} {self.of(right, depth - 1)}"
        else:
            text = self._filled(self.random.choice(AROUND[kind]), depth - 1)
        # Half of them without: then the grammar decides what belongs together.
        return f"({text})" if self.random.random() < 0.5 else text

    def _filled(self, template: str, depth: int) -> str:
        for kind in ("bool", "num", "text", "time", "span"):
            while f"{{{kind}}}" in template:
                depth_here = self.random.randint(0, depth)
                template = template.replace(f"{{{kind}}}", self.of(kind, depth_here), 1)
        return template

    def _spaced(self, text: str) -> str:
        chance = self.random.random()
        if chance < 0.1:
            return text.replace(", ", ",").replace(" + ", "+").replace(" * ", "*")
        if chance < 0.2:
            return text.replace(", ", " ,\n ").replace(" + ", "/* sum */+ ")
        return text
