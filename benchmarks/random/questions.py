"""Draws one question: tables that join, filters, groups, and what is asked of them."""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from datetime import date, timedelta
from typing import TypeVar

from benchmarks.random.columns import CODES, DAYS, JOINS, KEYS, NUMBERS, REFERRED, TEXTS

STARTS = {"lineitem": 10, "orders": 5, "partsupp": 3, "customer": 2, "part": 1}
FIRST_DAY, DAY_COUNT = date(1992, 1, 2), 2_500
SHORT = 50  # rows of an answer whose groups may be many
T = TypeVar("T")


class Question:
    """One SELECT; `_tables` are those that are joined, in order."""

    def __init__(self, rng: random.Random) -> None:
        self._rng = rng
        self._tables: list[str] = []
        self._joined = ""

    def text(self) -> str:
        """The query.  Its order is of whole rows where it has a LIMIT, so that there is one right answer."""
        forms: dict[Callable[[], str], int] = {
            self._groups: 10,
            self._total: 3,
            self._rows: 3,
            self._different: 2,
            self._groups_of_groups: 3,
            self._first_of_each: 2,
            self._one_below_the_other: 1,
        }
        self._join()
        return self._weighted(forms)()

    # Forms

    def _groups(self) -> str:
        keys, many = self._keys()
        aggregates = self._aggregates(self._count(1, 4))
        having = f"\nhaving count(*) > {self._count(1, 20)}" if self._chance(0.15) else ""
        grouped = (
            f"{self._select([*keys, *aggregates])}\ngroup by {self._places(len(keys))}{having}"
        )
        return grouped + self._ordered(len(keys), aggregates, many or self._chance(0.3))

    def _total(self) -> str:
        return self._select(self._aggregates(self._count(1, 6)))

    def _rows(self) -> str:
        table = self._tables[0]
        keys = KEYS[table]
        columns = [*keys, self._number(), *(self._key() for _ in range(self._count(0, 2)))]
        by = f"{len(keys) + 1} desc, {self._places(len(columns))}"
        return f"{self._select(columns)}\norder by {by}\nlimit {self._count(1, 200)}"

    def _different(self) -> str:
        keys, many = self._keys()
        short = f"\nlimit {SHORT}" if many else ""
        return f"{self._select(keys, 'distinct ')}\norder by {self._places(len(keys))}{short}"

    def _groups_of_groups(self) -> str:
        outer, inner = self._key(), self._one(self._many_keys())
        aggregate = self._exact()
        grouped = f"{self._select([f'{outer} as of_all', f'{inner} as of_each', f'{aggregate} as amount'])}\ngroup by 1, 2"
        asked = ", ".join(
            self._some(["count(*)", "max(amount)", "avg(amount)", "sum(amount)", "min(of_each)"], 2)
        )
        return f"with parts as (\n{grouped}\n)\nselect of_all, {asked}\nfrom parts\ngroup by 1\norder by 1"

    def _first_of_each(self) -> str:
        within, (keys, _) = self._key(), self._keys()
        names = [f"k{n}" for n in range(len(keys))]
        grouped = self._select(
            [
                f"{within} as part",
                *map("{} as {}".format, keys, names),
                f"{self._exact()} as amount",
            ]
        )
        rank = f"{self._one(['row_number()', 'rank()'])} over (partition by part order by amount desc, {', '.join(names)})"
        return (
            f"select part, place, {', '.join(names)}, amount\nfrom (select *, {rank} as place from (\n{grouped}\ngroup by {self._places(len(keys) + 1)}\n))\n"
            f"where place <= {self._count(1, 5)}\norder by all"
        )

    def _one_below_the_other(self) -> str:
        keys, aggregates = [self._key()], self._aggregates(2)
        halves = [f"{self._select([*keys, *aggregates])}\ngroup by 1" for _ in range(2)]
        return "\nunion all\n".join(halves) + "\norder by all"

    # Clauses

    def _join(self) -> None:
        self._tables = [self._weighted(STARTS)]
        joined = self._tables[0]
        for _ in range(self._weighted({0: 4, 1: 4, 2: 3, 3: 2, 4: 1})):
            found = [
                (table, on)
                for of in self._tables
                for table, on in JOINS.get(of, {}).items()
                if table not in self._tables
            ]
            if not found:
                break
            table, on = self._one(found)
            self._tables.append(table)
            joined += f"\n{self._weighted({'join': 8, 'left join': 2})} {table} on {on}"
        self._joined = joined

    def _select(self, items: Sequence[str], distinct: str = "") -> str:
        filters = [self._filter() for _ in range(self._weighted({0: 2, 1: 4, 2: 4, 3: 2}))]
        where = "\nwhere " + "\n  and ".join(filters) if filters else ""
        return f"select {distinct}{', '.join(items)}\nfrom {self._joined}{where}"

    def _ordered(self, keys: int, aggregates: Sequence[str], short: bool) -> str:
        if not short:
            return f"\norder by {self._places(keys)}"
        exact = [
            keys + n for n, text in enumerate(aggregates, 1) if text.startswith(("sum(", "count("))
        ]
        first = f"{self._one(exact)} desc, " if exact else ""
        return f"\norder by {first}{self._places(keys)}\nlimit {self._count(1, SHORT)}"

    # What is asked of a group

    def _aggregates(self, count: int) -> list[str]:
        return [self._aggregate() for _ in range(count)]

    def _aggregate(self) -> str:
        more = [
            "avg({})",
            "min({})",
            "max({})",
            "stddev({})",
            "median({})",
            "sum({}) filter (where {})",
            "avg(case when {1} then {0} end)",
        ]
        if self._chance(0.6):
            return self._exact()
        made = self._one(more).format(self._number(), self._filter_of_a_column())
        return self._one([made, made, f"count(distinct {self._key()})", f"min({self._key()})"])

    def _exact(self) -> str:
        value, other = self._number(), self._number()
        return self._one([
            "count(*)", f"sum({value})", f"sum({value})", f"sum({value} * (1 - {other}))", f"sum({value} - {other})",
            f"sum(case when {self._filter_of_a_column()} then {value} else 0 end)", f"count(*) filter (where {self._filter_of_a_column()})",
        ])  # fmt: skip

    def _number(self) -> str:
        return self._one([n.name for table in self._tables for n in NUMBERS[table]])

    # Keys of groups

    def _keys(self) -> tuple[list[str], bool]:
        """Some keys, and whether their groups may be many."""
        keys = [self._key() for _ in range(self._weighted({1: 4, 2: 3, 3: 1}))]
        if many := self._chance(0.35):
            keys[0] = self._one(self._many_keys())
        return list(dict.fromkeys(keys)), many

    def _many_keys(self) -> list[str]:
        return [key for table in self._tables for key in KEYS.get(table, ())]

    def _key(self) -> str:
        """Of few values."""
        number = self._one([n for table in self._tables for n in NUMBERS[table]])
        width = max(10**-number.places, round((number.high - number.low) / 12, number.places))
        made = [code for table in self._tables for code in CODES.get(table, ())] * 3
        made += [
            f"floor({number.name} / {width})",
            f"case when {self._filter_of_a_column()} then 'yes' else 'no' end",
        ]
        for day in (d for table in self._tables for d in DAYS.get(table, ())):
            made += [f"year({day})", f"date_trunc('month', {day})", f"extract(dow from {day})"]
        for column in (t for table in self._tables for t in TEXTS.get(table, ())):
            made += [f"length({column}) % 7", f"left({column}, 2)"]
        return self._one(made)

    # Filters

    def _filter(self) -> str:
        kinds: dict[Callable[[], str], int] = {
            self._filter_of_a_column: 12,
            self._either: 2,
            self._of_others: 2,
            self._than_usual: 1,
        }
        return self._weighted(kinds)()

    def _either(self) -> str:
        return f"({self._filter_of_a_column()} or {self._filter_of_a_column()})"

    def _of_others(self) -> str:
        """Rows that some, or none, of another table refer to."""
        found = [
            (table, *REFERRED[table])
            for table in self._tables
            if table in REFERRED and REFERRED[table][0] not in self._tables
        ]
        if not found:
            return self._filter_of_a_column()
        _, other, on = self._one(found)
        inner = Question(self._rng)
        inner._tables = [other]
        return f"{self._one(['exists', 'not exists'])} (select * from {other} where {on} and {inner._filter_of_a_column()})"

    def _than_usual(self) -> str:
        table = self._one([t for t in self._tables if NUMBERS[t]])
        number = self._one(NUMBERS[table])
        return f"{number.name} > (select avg({number.name}) from {table})"

    def _filter_of_a_column(self) -> str:
        table = self._one(self._tables)
        made = [self._range_of_a_number(table)] if NUMBERS[table] else []
        if table in DAYS:
            made += [self._range_of_days(table)] * 2
        for column, values in CODES.get(table, {}).items():
            some = ", ".join(f"'{v}'" for v in self._some(values, self._count(1, 3)))
            made += [f"{column} in ({some})", f"{column} <> {some.split(', ')[0]}"]
        for column, patterns in TEXTS.get(table, {}).items():
            made.append(
                f"{column} {self._one(['like', 'like', 'not like'])} '{self._one(patterns)}'"
            )
        if len(DAYS.get(table, ())) > 1:
            made.append(" < ".join(self._some(DAYS[table], 2)))
        return self._one(made)

    def _range_of_a_number(self, table: str) -> str:
        number = self._one(NUMBERS[table])
        ends = sorted(
            round(self._rng.uniform(number.low, number.high), number.places) for _ in range(2)
        )
        low, high = (f"{end:.{number.places}f}" for end in ends)
        return self._one(
            [
                f"{number.name} between {low} and {high}",
                f"{number.name} < {high}",
                f"{number.name} >= {low}",
            ]
        )

    def _range_of_days(self, table: str) -> str:
        column = self._one(DAYS[table])
        start = FIRST_DAY + timedelta(self._rng.randrange(DAY_COUNT))
        until = f"date '{start}' + interval {self._count(1, 24)} month"
        return self._one(
            [
                f"{column} < date '{start}'",
                f"{column} >= date '{start}'",
                f"{column} >= date '{start}' and {column} < {until}",
            ]
        )

    # Draws

    def _one(self, values: Sequence[T]) -> T:
        return self._rng.choice(values)

    def _some(self, values: Sequence[T], count: int) -> list[T]:
        return self._rng.sample(values, min(count, len(values)))

    def _weighted(self, weights: dict[T, int]) -> T:
        return self._rng.choices(list(weights), list(weights.values()))[0]

    def _count(self, low: int, high: int) -> int:
        return self._rng.randint(low, high)

    def _chance(self, share: float) -> bool:
        return self._rng.random() < share

    def _places(self, count: int) -> str:
        return ", ".join(map(str, range(1, count + 1)))
