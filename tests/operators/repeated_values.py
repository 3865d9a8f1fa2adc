"""Calls of all functions over a few values in thousands of rows: text that Arrow keeps as a dictionary, as columns and as results.

`python -m tests.operators.repeated_values --rows 5000` asks both engines for all of them, and prints what differs.
"""

from __future__ import annotations

import argparse
import itertools
import random
import sys
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

import pyarrow as pa

from tests.duckdb_functions import GIVEN, PLAIN, Comparison, Signature, is_named, signatures

VALUES = {
    "BOOLEAN": "true false", "TINYINT": "0 1 -3 127", "SMALLINT": "0 2 -300 300", "INTEGER": "0 3 -7 70000", "BIGINT": "0 3 -1 12 5000000000",
    "UTINYINT": "0 3 200", "USMALLINT": "0 3 60000", "UINTEGER": "0 3 4000000000", "UBIGINT": "0 3 9000000000", "HUGEINT": "0 3 -9",
    "UHUGEINT": "0 3 9", "FLOAT": "0 0.5 -1.5 nan", "DOUBLE": "0 0.5 -2.25 nan", "DECIMAL": "0 2.5 -1.25 99.999",
    "DATE": "2024-02-29 1969-12-31 2000-01-03", "TIME": "13:14:15 00:00:00 23:59:59.999999",
    "TIMESTAMP": "2024-02-29T13:14:15.123456 1969-12-31T23:59:59 2000-01-03", "TIMESTAMP_NS": "2024-02-29T13:14:15.123456789 2000-01-03",
    "TIMESTAMP WITH TIME ZONE": "2024-02-29T13:14:15+00 2000-01-03T00:00:00+05", "BLOB": r"a1 abc \xFF",
    "UUID": "00000000-0000-4000-8000-000000000001 00000000-0000-7000-8000-00000000000a", "JSON": '[1] {"a":1} "q" null 12 [{"a":[2]}]',
    "ANY": "0 3 -7 70000",
}  # fmt: skip
SPACED = {
    "INTERVAL": ["1 month 2 days", "0 days", "-3 hours"],
    "VARCHAR": ["", "a1", "abc", "é日本", " x ", "2024-02-29", "12", "[1]", '{"a": 1}', '"q"', "%a_", "A1B2,c", "1.5", "x" * 300, "true"],
}  # fmt: skip
# Where a text comes from: a column, and what makes texts of few values
TEXTS = {
    "a column": "s", "a dictionary": "e", "a cast of numbers": "n::varchar", "a document's value": "(d ->> '$.a')", "a cast to JSON": "(to_json(s)::json)",
    "CASE": "(case when n % 2 = 0 then s else p end)", "a function": "lower(s)", "a concatenation": "(s || p)", "LIKE": "(s like '%a%')::varchar",
    "coalesce": "coalesce(s, p)", "a cast of moments": "(date '2024-01-01' + n::integer)::varchar", "a window": "lag(s) over (order by i)",
    "a macro of lists": "[s, p][2]", "a field": "{'a': s}.a", "a cast to ENUM": "p::enum('a1', 'b2', 'c')::varchar", "a subquery": "(select max(p) from few where few.n = base.n)",
}  # fmt: skip


def table(rows: int) -> pa.Table:
    """The numbers of rows, a number of few values, and a text for each type of which values repeat; every ninth is NULL."""
    draw = random.Random(rows)

    def repeated(values: list[str]) -> list[str | None]:
        return [None if draw.random() < 0.11 else draw.choice(values) for _ in range(rows)]

    columns: dict[str, object] = {
        "i": pa.array(range(rows), pa.int64()),
        "n": pa.array([draw.randrange(12) for _ in range(rows)], pa.int64()),
        "s": repeated(SPACED["VARCHAR"]), "p": repeated(["a1", "b2", "c"]),
        "d": repeated(['{"a": "xy"}', '{"a": 1}', '{"a": null}', '{"b": 1}', '{"a": [1, "z"]}']),
        "e": pa.array(repeated(SPACED["VARCHAR"])).dictionary_encode(),
    }  # fmt: skip
    for name, values in VALUES.items():
        columns[f"x_{name.replace(' ', '_')}"] = repeated(values.split())
    columns["x_INTERVAL"] = repeated(SPACED["INTERVAL"])
    for name in PLAIN:  # for what takes no other
        value = PLAIN[name].strip("'")
        columns[f"y_{name.replace(' ', '_')}"] = repeated([value])
    return pa.table(columns)


@dataclass(frozen=True)
class Call:
    """A function over such columns, the texts among them from one source."""

    signature: Signature
    source: str
    plain: bool = False  # of one value and NULL
    grouped: bool = False

    @property
    def query(self) -> str:
        made = ["i", "n as c"]
        texts = 0
        for place, name in enumerate(self.signature.types):
            column = f"{'y' if self.plain else 'x'}_{name.replace(' ', '_')}"
            kind = "INTEGER" if name == "ANY" else name
            if name == "VARCHAR" and (texts == 0 or not self.plain):
                made.append(f"{TEXTS[self.source] if texts == 0 else 'p'} as c{place}")
                texts += 1
            else:
                made.append(f"{column}::{kind} as c{place}")
        text = self.signature.call
        if self.signature.kind == "window":
            text = text.replace("(order by c)", "(order by c, i)")
        keys = "c % 3 as k, " if self.grouped else ""
        behind = " group by k" if self.grouped else ""
        return f"select {keys}{text} as v from (select {', '.join(made)} from base) as t{behind}"

    def __str__(self) -> str:
        return f"{self.signature} of {self.source}"


def calls() -> Iterator[Call]:
    """Each signature; a text in it comes from each source, and in further signatures of an aggregate from one of them."""
    turns, met = itertools.cycle(TEXTS), set[str]()
    for signature in signatures()[0]:
        free = {t for i, t in enumerate(signature.types) if (signature.name, i) not in GIVEN}
        if not free or not is_named(signature) or not all(t in PLAIN for t in signature.types):
            continue
        is_aggregate = signature.kind == "aggregate"
        sources: Iterable[str] = TEXTS
        if "VARCHAR" not in free:
            sources = ("a column",)
        elif is_aggregate and signature.name in met:
            sources = (next(turns),)
        if "VARCHAR" in free:
            met.add(signature.name)
        for source in sources:
            yield Call(signature, source, grouped=is_aggregate and len(met) % 2 == 0)
            if is_aggregate and len(list(sources)) > 1:
                yield Call(signature, source, grouped=len(met) % 2 == 1)


class Repeated(Comparison):
    """Both engines with the table; DuckDB on one thread, which takes rows in order."""

    def __init__(self, rows: int, fuse: str = "never") -> None:
        super().__init__()
        self.duck.execute("set threads = 1")
        self.ours.execute(f"set fuse = '{fuse}'")
        base = table(rows)
        for engine in (self.duck, self.ours):
            engine.register("base", base)
            engine.execute("create table few as select n, min(p) as p from base group by n")

    def found(self, call: Call) -> str | None:
        """Return what differs; what DuckDB does not answer is asked with plainer values."""
        if not self.answers(call.query):
            call = Call(call.signature, call.source, plain=True, grouped=call.grouped)
        found = None if self.missing_types(call.signature) else self.problem(call.query)
        if found is not None and found.endswith("is a constant."):  # as docs/sql.md says
            return None
        return None if found is None else f"{call.query}\n    {found}"

    def answers(self, query: str) -> bool:
        try:
            self.duck.execute(query).fetchone()
        except Exception:
            return False
        return True


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=5000)
    parser.add_argument("--fuse", default="never")
    parser.add_argument("--part", default="0/1", help="i/n: every n-th call from the i-th on")
    options = parser.parse_args()
    first, step = map(int, options.part.split("/"))
    engines, tried, wrong = Repeated(options.rows, options.fuse), 0, 0
    for call in list(calls())[first::step]:
        found = engines.found(call)
        tried += 1
        if found is not None:
            wrong += 1
            sys.stdout.write(f"{call}: {found}\n")
            sys.stdout.flush()
    sys.stdout.write(f"{tried} calls, {wrong} differ\n")
    engines.close()


if __name__ == "__main__":
    main()
