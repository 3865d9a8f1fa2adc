"""Queries with one token changed, asked of DuckDB and of Fuseline: what DuckDB refuses is to be refused here too.

python -m tests.sql.mutations --count 20000 --seed 7
"""

from __future__ import annotations

import argparse
import itertools
import random
import re
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import duckdb

import fuseline
from fuseline.errors import FuselineError
from fuseline.sql.parsing.parse import parse
from fuseline.sql.parsing.pieces import split
from tests.random_queries import data, shapes

ROOT = Path(__file__).parent.parent.parent
TREE_TEXTS = Path(__file__).parent / "tree_texts.sql"
TABLES = {
    "customer": "c_custkey:i c_name:s c_address:s c_nationkey:n c_phone:s c_acctbal:d c_mktsegment:s c_comment:s",
    "lineitem": "l_orderkey:i l_partkey:i l_suppkey:i l_linenumber:n l_quantity:d l_extendedprice:d l_discount:d l_tax:d "
    "l_returnflag:s l_linestatus:s l_shipdate:t l_commitdate:t l_receiptdate:t l_shipinstruct:s l_shipmode:s l_comment:s",
    "nation": "n_nationkey:n n_name:s n_regionkey:n n_comment:s",
    "orders": "o_orderkey:i o_custkey:i o_orderstatus:s o_totalprice:d o_orderdate:t o_orderpriority:s o_clerk:s "
    "o_shippriority:n o_comment:s",
    "part": "p_partkey:i p_name:s p_mfgr:s p_brand:s p_type:s p_size:n p_container:s p_retailprice:d p_comment:s",
    "partsupp": "ps_partkey:i ps_suppkey:i ps_availqty:i ps_supplycost:d ps_comment:s",
    "region": "r_regionkey:n r_name:s r_comment:s",
    "supplier": "s_suppkey:i s_name:s s_address:s s_nationkey:n s_phone:s s_acctbal:d s_comment:s",
    "t": "i:n s:s d:d",
    "u": "i:n n:n",
    "q1": "a:i b:i",
    "q2": "a:i c:i",
    "q3": "c:i d:s",
}
TYPES = {"i": "bigint", "n": "integer", "s": "varchar", "d": "decimal(15, 2)", "t": "date"}
TOKEN = re.compile(
    r"[eE]'(?:[^'\\]|\\.|'')*'|'(?:[^']|'')*'|\"(?:[^\"]|\"\")*\"|\$\$.*?\$\$|\d[\w.]*|\w+|::|<=|>=|<>|!=|\|\||->|//|\*\*|\S",
    re.DOTALL,
)
SIGNS = ('(', ')', ',', '.', '*', '+', '-', '/', '=', '<', '>=', '<>', '||', '::', '?', '!', '~', '@', '$', ':', '[', ']', '{', '}', '%', '^', '&', '|', '#', '1', "'x'", '"q"', 'i', '->', ':=', '<<', '>>', 'not')  # fmt: skip
RANDOM_SHAPES = 300
# What DuckDB refuses for reasons of its own, by its message; the answer here can be no other.
REASONS = {
    r"Could not choose a best candidate function": "text in quotes has no type in DuckDB until one function is left; "
    "here it is what the first of them takes",
    r"Cannot combine types|Cannot mix values of type": "DuckDB refuses text in quotes beside a value of the type that it is read as here",
    r"Conversion Error: Could not convert": "DuckDB converts constants while it plans, also where no row asks for them",
    r"Not implemented Error": "DuckDB says of syntax that it reads that it lacks what is asked for",
}


@dataclass(frozen=True)
class Verdict:
    """What both say of a text; an error, or None where it is accepted."""

    text: str
    duckdb: str | None
    ours: str | None
    misread: str | None  # what our grammar says of it

    @property
    def wrong(self) -> str | None:
        """Why the text is a failure, or None."""
        if self.duckdb is None:
            alone = self.misread is not None and self.ours is not None and self.misread in self.ours
            return f"our grammar alone refuses it: {self.misread}" if alone else None
        if self.ours is None and not any(re.search(reason, self.duckdb) for reason in REASONS):
            return f"it is taken, and DuckDB says: {self.duckdb.splitlines()[0]}"
        return None


class Judges:
    """DuckDB and Fuseline with the same tables, all but the random shapes' empty."""

    def __init__(self) -> None:
        self.duckdb, self.ours = duckdb.connect(), fuseline.connect(device="cpu")
        self.duckdb.execute("set threads = 1")
        for name, columns in TABLES.items():
            pairs = (column.split(":") for column in columns.split())
            written = ", ".join(f"{column} {TYPES[kind]}" for column, kind in pairs)
            for connection in (self.duckdb, self.ours):
                connection.execute(f"create table {name} ({written})")
        for name, table in data.tables(random.Random(1), 0.0).items():
            self.duckdb.register(name, table)
            self.ours.register(name, table)

    def close(self) -> None:
        self.duckdb.close()
        self.ours.close()

    def judge(self, text: str) -> Verdict:
        params = _params(text)
        return Verdict(text, self._asked(text, params), self._ours(text, params), _misread(text))

    def _asked(self, text: str, params: Any) -> str | None:
        try:
            self.duckdb.execute(f"explain {text}", params)
        except duckdb.Error as error:
            return str(error)
        return None

    def _ours(self, text: str, params: Any) -> str | None:
        try:
            self.ours.sql(text, params)
        except FuselineError as error:
            return f"{type(error).__name__}: {error}"
        return None


def _params(text: str) -> Any:
    tokens = TOKEN.findall(text)
    marked = [name for sign, name in itertools.pairwise(tokens) if sign == "$"]
    if "?" in tokens:
        return [1] * tokens.count("?")
    return {name: 1 for name in marked if name.isidentifier()} or [1] * len(marked) or None


def _misread(text: str) -> str | None:
    try:
        found = [parse(piece).misread for piece in split(text)]
    except FuselineError:  # sqlglot has refused it before
        return None
    return next((wrong.error.args[0] for wrong in found if wrong is not None), None)


@cache
def corpus() -> tuple[str, ...]:
    """Queries over the tables of the judges, of every test of syntax and of the benchmarks."""
    from tests.defects import (
        test_a1_from_first as from_first,
        test_a2_accepted_and_ignored as ignored,
    )

    texts = [
        text
        for text in TREE_TEXTS.read_text().splitlines()
        if text.startswith(("select", "from", "with", "values", "("))
    ]
    texts += ignored.ANSWERED
    texts += [
        shape.replace("{}", source)
        for number, source in enumerate(from_first.SOURCES)
        for shape in from_first.SHAPES[number % 3 :: 3]
    ]
    for folder in ("tpch", "adhoc"):
        for path in sorted((ROOT / "benchmarks" / folder).rglob("*.sql")):
            texts += filter(str.strip, re.sub("--[^\n]*", "", path.read_text()).split(";"))
    draw = random.Random(0)
    texts += [shapes.filled(shapes.shape(seed), draw, 0.0) for seed in range(RANDOM_SHAPES)]
    return tuple(texts)


@cache
def words() -> tuple[str, ...]:
    with duckdb.connect() as connection:
        found = connection.execute("select keyword_name from duckdb_keywords()").fetchall()
    return tuple(sorted(word for (word,) in found))


def mutate(text: str, draw: random.Random) -> str:
    """Delete a token, write it twice, exchange it with the next, put another before the next or in its place."""
    places = [match.span() for match in TOKEN.finditer(text)]
    i = draw.randrange(len(places))
    start, end = places[i]
    new = f" {draw.choice(SIGNS if draw.random() < 0.4 else words())} "
    match draw.choice(("delete", "twice", "exchange", "insert", "insert", "replace")):
        case "delete":
            return text[:start] + text[end:]
        case "twice":
            return f"{text[:end]} {text[start:]}"
        case "exchange" if i + 1 < len(places):
            first, last = places[i + 1]
            return f"{text[:start]}{text[first:last]} {text[start:end]} {text[last:]}"
        case "replace":
            return text[:start] + new + text[end:]
    return text[:end] + new + text[end:]


def mutants(seed: int, count: int) -> Iterator[str]:
    draw = random.Random(seed)
    for _ in range(count):
        yield mutate(draw.choice(corpus()), draw)


def failures(judges: Judges, texts: Iterable[str], counts: Counter[str]) -> list[str]:
    """Return what is wrong with the texts; `counts` adds up what both said."""
    found = []
    for text in texts:
        verdict = judges.judge(text)
        said = ["refused" if error else "taken" for error in (verdict.duckdb, verdict.ours)]
        counts[f"DuckDB {said[0]}, Fuseline {said[1]}"] += 1
        if verdict.wrong:
            found.append(f"{text.strip()}\n    {verdict.wrong}")
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--count", type=int, default=5000)
    parser.add_argument("--seed", type=int, default=1)
    arguments = parser.parse_args()
    judges, counts = Judges(), Counter[str]()
    found = failures(judges, (*corpus(), *mutants(arguments.seed, arguments.count)), counts)
    judges.close()
    print("\n".join(found))
    print(f"{len(found)} wrong of {dict(counts)}")


if __name__ == "__main__":
    main()
