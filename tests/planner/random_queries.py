"""Random SELECTs over the tables of `subquery_tables`: joins of all kinds, subqueries everywhere, groups and set operations.

A query is a function of its seed, so that a failure can be repeated.
"""

from __future__ import annotations

import random
from dataclasses import dataclass, field

COLUMNS = {"t": ("a", "b"), "u": ("k", "x", "y"), "w": ("p", "q"), "e": ("k", "x")}
JOINS = (
    "join",
    "join",
    "left join",
    "right join",
    "full join",
    "cross join",
    "semi join",
    "anti join",
)
SET_OPERATIONS = ("union", "union all", "intersect", "intersect all", "except", "except all")

Columns = list[str]


def random_query(seed: int) -> str:
    return _Maker(random.Random(seed)).query(2)[0]


@dataclass
class _Maker:
    random: random.Random
    aliases: int = field(default=0)

    def chance(self, share: float) -> bool:
        return self.random.random() < share

    def alias(self) -> str:
        self.aliases += 1
        return f"r{self.aliases}"

    def relation(self, depth: int) -> tuple[str, Columns]:
        """A table or a derived table, and its columns."""
        alias = self.alias()
        if depth > 0 and self.chance(0.25):
            query, columns = self.query(depth - 1)
            return f"({query}) {alias}", [f"{alias}.{c}" for c in columns]
        table = self.random.choice("tuwtuwe")
        return f"{table} {alias}", [f"{alias}.{c}" for c in COLUMNS[table]]

    def value(self, columns: Columns, depth: int = 0) -> str:
        pick = self.random.choice(columns)
        kind = self.random.random()
        if kind < 0.12:
            return str(self.random.randint(0, 5))
        if kind < 0.2:
            return f"({pick} + {self.value(columns)})"
        if kind < 0.26:
            return f"coalesce({pick}, {self.random.randint(0, 5)})"
        if kind < 0.32:
            return f"case when {self.predicate(columns)} then {pick} else {self.value(columns)} end"
        if kind < 0.4 and depth > 0:
            return self.scalar(columns, depth)
        return pick

    def scalar(self, outer: Columns, depth: int) -> str:
        source, columns = self.relation(0)
        aggregate = self.random.choice(("max", "min", "count", "sum"))
        item = "count(*)" if self.chance(0.2) else f"{aggregate}({self.value(columns)})"
        if self.chance(0.2):
            item += f" + {self.random.choice(outer)}"
        having = f" having count(*) > {self.random.randint(0, 2)}" if self.chance(0.15) else ""
        where = self.predicate(columns + outer, depth - 1)
        return f"(select {item} from {source} where {where}{having})"

    def predicate(self, columns: Columns, depth: int = 0) -> str:
        kind = self.random.random()
        pick = self.random.choice(columns)
        if kind < 0.1:
            return f"{pick} in ({self.random.randint(0, 3)}, {self.random.randint(0, 6)})"
        if kind < 0.18:
            return f"{pick} is {self.random.choice(('', 'not '))}null"
        if kind < 0.24:
            return (
                f"{pick} is {self.random.choice(('', 'not '))}distinct from {self.value(columns)}"
            )
        if kind < 0.44:
            connective = self.random.choice(("and", "or"))
            parts = (self.predicate(columns, depth) for _ in range(2))
            return f"({f' {connective} '.join(parts)})"
        if kind < 0.5:
            return f"not ({self.predicate(columns, depth)})"
        if kind < 0.75 and depth > 0:
            return self.subquery(pick, columns, depth)
        sign = self.random.choice(("=", "=", "=", "<", ">", "<>", "<=", ">="))
        inner = depth if self.chance(0.3) else 0
        return f"{self.value(columns, inner)} {sign} {self.value(columns, inner)}"

    def subquery(self, operand: str, outer: Columns, depth: int) -> str:
        source, columns = self.relation(depth - 1 if self.chance(0.3) else 0)
        where = f" where {self.predicate(columns + outer, depth - 1)}" if self.chance(0.8) else ""
        selected = f"(select {self.random.choice(columns)} from {source}{where})"
        kind = self.random.random()
        if kind < 0.4:
            return f"{self.random.choice(('', 'not '))}exists {selected}"
        if kind < 0.75:
            return f"{operand} {self.random.choice(('', 'not '))}in {selected}"
        sign = self.random.choice(("=", "<", ">", "<>", ">="))
        return f"{operand} {sign} {self.random.choice(('any', 'all'))} {selected}"

    def sources(self, depth: int) -> tuple[str, Columns]:
        """A FROM clause and the columns that it makes visible."""
        text, columns = self.relation(depth)
        for _ in range(self.random.choice((0, 0, 1, 1, 2, 3))):
            if self.chance(0.15):
                lateral, column = self.lateral(columns)
                text += lateral
                columns = [*columns, column]
                continue
            source, added = self.relation(max(0, depth - 1))
            kind = self.random.choice(JOINS)
            text += f" {kind} {source}"
            if kind != "cross join":
                both = columns + added
                equality = f"{self.random.choice(columns)} = {self.random.choice(added)}"
                text += f" on {self.predicate(both) if self.chance(0.4) else equality}"
            if kind not in ("semi join", "anti join"):
                columns = columns + added
        return text, columns

    def lateral(self, outer: Columns) -> tuple[str, str]:
        source, columns = self.relation(0)
        alias = self.alias()
        pick = self.random.choice(columns)
        item = self.random.choice((pick, f"max({pick})", "count(*)", self.random.choice(outer)))
        query = f"lateral (select {item} as z from {source} where {self.predicate(columns + outer)}) {alias}"
        made = f"{alias}.z"
        if self.chance(0.5):
            return f" cross join {query}", made
        return f" left join {query} on {self.predicate([*outer, made])}", made

    def query(self, depth: int) -> tuple[str, Columns]:
        text, columns = self.grouped(depth) if self.chance(0.3) else self.plain(depth)
        if self.chance(0.12):
            other, others = self.query(max(0, depth - 1))
            columns = columns[: min(len(columns), len(others))]
            items = ", ".join(columns)
            operation = self.random.choice(SET_OPERATIONS)
            text = f"select {items} from ({text}) s1 {operation} select {items} from ({other}) s2"
        if self.chance(0.12):
            offset = f" offset {self.random.randint(0, 2)}" if self.chance(0.4) else ""
            order = f"order by {', '.join(columns)} limit {self.random.randint(0, 5)}{offset}"
            text = f"select * from ({text}) s3 {order}"
        return text, columns

    def plain(self, depth: int) -> tuple[str, Columns]:
        source, columns = self.sources(depth)
        names = [f"c{i}" for i in range(self.random.randint(1, 3))]
        inner = depth if self.chance(0.4) else 0
        items = ", ".join(f"{self.value(columns, inner)} as {n}" for n in names)
        distinct = "distinct " if self.chance(0.2) else ""
        return f"select {distinct}{items} from {source}{self.where(columns, depth)}", names

    def grouped(self, depth: int) -> tuple[str, Columns]:
        source, columns = self.sources(depth)
        keys = list(dict.fromkeys(self.random.choices(columns, k=self.random.choice((0, 1, 1, 2)))))
        names = [f"c{i}" for i in range(len(keys) + 1)]
        distinct = "distinct " if self.chance(0.15) else ""
        aggregate = self.random.choice(("sum", "count", "min", "max"))
        values = [*keys, f"{aggregate}({distinct}{self.value(columns)})"]
        items = ", ".join(f"{v} as {n}" for v, n in zip(values, names, strict=True))
        group = having = ""
        if keys:
            listed = ", ".join(keys)
            group = f" group by rollup ({listed})" if self.chance(0.15) else f" group by {listed}"
            having = f" having count(*) > {self.random.randint(0, 2)}" if self.chance(0.3) else ""
        return f"select {items} from {source}{self.where(columns, depth)}{group}{having}", names

    def where(self, columns: Columns, depth: int) -> str:
        return f" where {self.predicate(columns, depth)}" if self.chance(0.75) else ""
