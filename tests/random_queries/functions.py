"""Every scalar function with generated arguments of every type: ours as constants, over columns and in kernels, and DuckDB.

A batch is one function with types of arguments and some rows of values; a case is one row of it in one form.  Both raise, or both
give the same value of the same type.  What we refuse while planning and DuckDB answers is counted by its cause.
"""

from __future__ import annotations

import argparse
import collections
import random
import sys
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import duckdb
import pyarrow as pa

import fuseline
from fuseline import errors
from fuseline.plan import derived
from fuseline.plan.coercion import parse_type
from fuseline.plan.functions import SCALAR
from tests.compare import Ordering, difference, duckdb_answer, fuseline_answer, rows as rows_of
from tests.random_queries.extremes import POOL, SPELLINGS
from tests.random_queries.known import LIMITS, is_known

ROWS = 10
REFUSALS = (
    errors.Unsupported, errors.TypeMismatch, errors.InvalidQuery, errors.UnknownName, errors.ParseError,
)  # fmt: skip
OPERATORS = {
    "add": "({0} + {1})", "sub": "({0} - {1})", "mul": "({0} * {1})", "div": "({0} / {1})", "int_div": "({0} // {1})",
    "mod": "({0} % {1})", "neg": "(- {0})", "bit_and": "({0} & {1})", "bit_or": "({0} | {1})", "bit_xor": "xor({0}, {1})",
    "bit_not": "(~ {0})", "shift_left": "({0} << {1})", "shift_right": "({0} >> {1})", "concat": "({0} || {1})",
    "like": "({0} like {1})", "ilike": "({0} ilike {1})", "eq": "({0} = {1})", "ne": "({0} <> {1})", "lt": "({0} < {1})",
    "le": "({0} <= {1})", "gt": "({0} > {1})", "ge": "({0} >= {1})", "is_distinct": "({0} is distinct from {1})",
    "is_not_distinct": "({0} is not distinct from {1})", "and": "({0} and {1})", "or": "({0} or {1})", "not": "(not {0})",
    "is_null": "({0} is null)", "is_not_null": "({0} is not null)",
}  # fmt: skip
CASTS = {
    f"{cast} as {target}": f"{cast}({{0}} as {target})"
    for cast in ("cast", "try_cast")
    for target in POOL
}
OPERATORS |= CASTS
SPELLED = {"is_nan": "isnan", "is_inf": "isinf", "is_finite": "isfinite"}
# Named by plans alone: reached through operators and DERIVED.
INTERNAL = {
    name for name, row in SCALAR.items() if row.kind == "operator" and name not in OPERATORS
}
PARTS = ("year", "month", "day", "decade", "quarter", "week", "dow", "hour", "microsecond", "epoch")
FORMATS = ("%Y-%m-%d", "%H:%M:%S.%f", "%j %a %B", "%y%%")
PATTERNS = ("", "a", "a.", "(a)(b)?", "^.*$", "[^a]+", r"\d+", "é|b", "(", "a{2}", "%a_", r"\p{L}")
OPTIONS = ("", "i", "c", "g", "gi", "s", "l", "m", "n", "p", "x", "ic", " ")
COUNTS = (-(2**63), -(2**31) - 1, -(2**31), -1000, -40, -2, -1, 0, 1, 2, 3, 9, 10, 38, 39, 400, 5001)  # fmt: skip
# What an argument of these functions is: (function, place) -> texts of constants to choose from.
CONSTANTS: dict[tuple[str, int], Sequence[Any]] = {
    **{(f, 0): PARTS for f in ("date_part", "datepart", "date_trunc", "datetrunc", "date_diff", "datediff", "date_sub", "datesub")},
    **{(f, 1): FORMATS for f in ("strftime", "strptime", "try_strptime")},
    **{(f, 1): PATTERNS for f in ("regexp_matches", "regexp_full_match", "regexp_replace", "regexp_extract")},
    **{(f, 2): OPTIONS for f in ("regexp_matches", "regexp_full_match")},
    ("regexp_replace", 2): ("", "x", r"\1", r"\0\0", "é", "\\", r"\9"),
    ("regexp_replace", 3): OPTIONS,
    ("regexp_extract", 2): (*range(-1, 4), 9, 10, 2**31 - 1, None),
    ("regexp_extract", 3): OPTIONS,
}  # fmt: skip
# Functions whose text may be long, with the place of the count: larger ones make gigabytes in DuckDB, or take its minutes.
LENGTHS = {"repeat": 1, "lpad": 1, "rpad": 1}


def names() -> list[str]:
    """Those that take arguments: the others would be of a table without columns, and some are of the moment."""
    scalar = [name for name in SCALAR if name not in INTERNAL]
    taking = {name for name, (_, _, most, _) in derived.DERIVED.items() if most}
    return sorted({*scalar, *taking} - {"ago"})


@dataclass
class Tally:
    """What came of the cases."""

    cases: int = 0
    same: int = 0
    both_raise: int = 0
    known: int = 0
    refused: Counter[str] = field(default_factory=Counter)
    accepted: Counter[str] = field(default_factory=Counter)
    mismatches: dict[str, list[str]] = field(default_factory=lambda: collections.defaultdict(list))

    def mismatch(self, kind: str, words: str) -> None:
        self.mismatches[kind].append(words)


@dataclass(frozen=True)
class Batch:
    """A function over columns c0, c1, ... with the rows of their values."""

    name: str
    types: tuple[str, ...]
    rows: tuple[tuple[Any, ...], ...]

    def text(self, args: Sequence[str]) -> str:
        if self.name in OPERATORS:
            return OPERATORS[self.name].format(*args)
        return f"{SPELLED.get(self.name, self.name)}({', '.join(args)})"

    def literals(self, row: Sequence[Any]) -> list[str]:
        return [POOL[t].literal(v) for t, v in zip(self.types, row, strict=True)]

    def table(self, rows: Sequence[Sequence[Any]]) -> pa.Table:
        columns = [POOL[t].array([r[i] for r in rows]) for i, t in enumerate(self.types)]
        if not columns:  # of a call without arguments, and a table has a column
            columns = [pa.nulls(len(rows))]
        return pa.table(columns, [f"c{i}" for i in range(len(columns))])


def arity(name: str, random: random.Random) -> int:
    if name in OPERATORS:
        return OPERATORS[name].count("{")
    if name in derived.DERIVED:
        _, least, most, _ = derived.DERIVED[name]
        return random.randint(least, min(most, 4))
    signature = SCALAR[name].signature
    inside = signature[signature.index("(") + 1 :]
    if not inside.strip(" )"):
        return 0
    most = inside.count(",") + 1
    least = inside.split("[")[0].count(",") + bool(inside.split("[")[0].strip())
    return random.randint(max(min(least, most), 1), max(most, least, 1))


def batch(seed: int, casts: bool = False) -> Batch:
    """The batch of a seed: mostly types that the function takes, sometimes any."""
    draw = random.Random(seed)
    name = draw.choice(list(CASTS) if casts else names())
    count = arity(name, draw)
    types: tuple[str, ...] = ()
    for _ in range(60):
        types = tuple(_type(name, i, draw) for i in range(count))
        if draw.random() < 0.05 or _accepts(name, types):
            break
    rows = tuple(tuple(_value(name, i, t, draw) for i, t in enumerate(types)) for _ in range(ROWS))
    return Batch(name, types, rows)


def _type(name: str, place: int, draw: random.Random) -> str:
    if (name, place) in CONSTANTS:
        return "integer" if (name, place) == ("regexp_extract", 2) else "varchar"
    if name in CASTS and draw.random() < 0.4:
        return "varchar"
    return draw.choice(list(POOL))


def _accepts(name: str, types: Sequence[str]) -> bool:
    """Whether our table takes the types; functions put together of others say so when they are bound."""
    if name in CASTS:
        return True
    if name not in SCALAR:
        return True
    return SCALAR[name].resolve([parse_type(t) for t in types]) is not None


def _value(name: str, place: int, kind: str, draw: random.Random) -> Any:
    if (name, place) in CONSTANTS:
        return draw.choice(CONSTANTS[name, place])
    pool = POOL[kind]
    if name in CASTS and kind == "varchar":
        return draw.choice(SPELLINGS)
    if name in LENGTHS and place == LENGTHS[name] and pa.types.is_integer(pool.arrow):
        return draw.choice([v for v in COUNTS if pool.values[0] <= v <= pool.values[-1]])
    if draw.random() < 0.3 and kind in ("integer", "bigint", "smallint", "double"):
        return draw.choice((-3, -2, -1, 0, 1, 2, 3, 40, 300))
    return pool.draw(draw)


class Sweep:
    """One run: a DuckDB, ours without and with kernels."""

    def __init__(self, fused_share: float = 0.05) -> None:
        self.duck = duckdb.connect()
        self.duck.execute("pragma disable_optimizer")
        self.duck.execute("set memory_limit = '2GB'")
        self.plain = fuseline.connect(device="cpu", fuse="never")
        self.fused = fuseline.connect(device="cpu", fuse="always")
        self.fused_share = fused_share
        self.tally = Tally()

    def close(self) -> None:
        for opened in (self.duck, self.plain, self.fused):
            opened.close()

    def run(self, seed: int, casts: bool = False) -> None:
        made = batch(seed, casts)
        draw = random.Random(-seed - 1)
        columns = [POOL[t].column(f"c{i}") for i, t in enumerate(made.types)]
        # Arguments that have to be constants, and sometimes all but the first, are those of the first row.
        fixed = {i for i in range(len(columns)) if (made.name, i) in CONSTANTS}
        if draw.random() < 0.4:
            fixed |= set(range(1, len(columns)))
        first = made.literals(made.rows[0]) if columns else []
        for i in fixed:
            columns[i] = first[i]
        rows = [
            tuple(made.rows[0][i] if i in fixed else v for i, v in enumerate(r)) for r in made.rows
        ]
        over = made.text(columns)
        wanted = [self.duckdb(made, over, row) for row in rows]
        self.over_columns(made, over, rows, wanted, draw)
        for row in draw.sample(rows, 3):
            text = made.text(made.literals(row))
            # Raised by a constant alone where an error belongs to no row, so a row is read beside it.
            self.compare(
                made,
                f"select {text} as v",
                None,
                self.answer(self.duck, f"select {text} as v", None),
                row,
            )

    def duckdb(self, made: Batch, over: str, row: Sequence[Any]) -> Any:
        return self.answer(self.duck, f"select {over} as v from t", made.table([row]))

    def answer(self, engine: Any, query: str, table: pa.Table | None) -> pa.Table | Exception:
        try:
            if table is not None:
                engine.register("t", table)
            ask = duckdb_answer if engine is self.duck else fuseline_answer
            return ask(engine, query)
        except Exception as error:
            return error

    def over_columns(
        self,
        made: Batch,
        over: str,
        rows: Sequence[Any],
        wanted: Sequence[Any],
        draw: random.Random,
    ) -> None:
        query = f"select {over} as v from t"
        good = [(r, w) for r, w in zip(rows, wanted, strict=True) if not isinstance(w, Exception)]
        bad = [(r, w) for r, w in zip(rows, wanted, strict=True) if isinstance(w, Exception)]
        if good:
            expected = pa.concat_tables([w for _, w in good], promote_options="permissive")
            table = made.table([r for r, _ in good])
            self.compare(made, query, table, expected, cases=len(good))
            if draw.random() < self.fused_share:
                self.kernels(made, over, table)
        for row, error in bad[:3]:
            self.compare(made, query, made.table([row]), error, row)

    def kernels(self, made: Batch, over: str, table: pa.Table) -> None:
        query = f"select count(*) as n, count({over}) as v, min({over}) as low, max({over}) as high from t where {over} is not null"
        expected = self.answer(self.duck, query, table)
        self.compare(made, query, table, expected, engine=self.fused)

    def compare(
        self,
        made: Batch,
        query: str,
        table: pa.Table | None,
        expected: Any,
        given: Sequence[Any] = (),
        cases: int = 1,
        engine: Any = None,
    ) -> None:
        tally = self.tally
        tally.cases += cases
        actual = self.answer(engine or self.plain, query, table)
        label = f"{made.name}({', '.join(made.types)})"
        form = "constant" if table is None else "kernel" if engine else "column"
        shown = f"{query}   {'' if table is None else rows_of(table) if table.num_rows < 2 else ''}"
        known = is_known(made.name, made.types, expected, actual, given)
        if isinstance(actual, Exception):
            foreign = isinstance(actual, errors.InternalError) or not isinstance(
                actual, errors.FuselineError
            )
            if foreign:
                cause = getattr(actual, "__cause__", None) or actual
                tally.mismatch(f"foreign {made.name}", f"{type(cause).__name__}: {cause} | {shown}")
            elif isinstance(expected, Exception):
                tally.both_raise += cases
            elif known:
                tally.known += cases
            elif isinstance(actual, REFUSALS) or any(words in actual.message for words in LIMITS):
                tally.refused[f"{label}: {type(actual).__name__}: {actual.message}"] += cases
            else:
                tally.mismatch(
                    f"raises {made.name} {form}",
                    f"{actual.message} | DuckDB {self.values(expected)} | {shown}",
                )
        elif isinstance(expected, Exception):
            if isinstance(
                expected, duckdb.BinderException | duckdb.CatalogException | duckdb.ParserException
            ):
                tally.accepted[label] += cases
            elif known:
                tally.known += cases
            elif isinstance(expected, OverflowError | duckdb.OutOfMemoryException):
                tally.both_raise += cases  # what Python or the limit of this run cannot show
            else:
                tally.mismatch(
                    f"answers {made.name} {form}",
                    f"{self.values(actual)} | DuckDB {str(expected)[:120]} | {shown}",
                )
        elif problem := difference(expected, actual, Ordering(True)):
            if known:
                tally.known += cases
                return
            tally.mismatch(f"differs {made.name} {form}", f"{problem} | {shown}")
        else:
            tally.same += cases

    @staticmethod
    def values(table: pa.Table) -> str:
        return f"{rows_of(table)[:3]} {table.schema.field(0).type}"[:200]


def slices(start: int, count: int, part: str) -> Iterator[int]:
    number, of = map(int, part.split("/"))
    return (seed for seed in range(start, start + count) if seed % of == number % of)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seed", type=int, default=int(time.time()))
    parser.add_argument("--batches", type=int, default=1000)
    parser.add_argument("--slice", default="0/1", help="i/n: every n-th batch from the i-th on")
    parser.add_argument("--shown", type=int, default=2, help="examples of each kind of mismatch")
    parser.add_argument("--only", default="")
    parser.add_argument(
        "--casts", action="store_true", help="CAST and TRY_CAST over all pairs of types"
    )
    parser.add_argument("--fused", type=float, default=0.02)
    options = parser.parse_args()
    sweep = Sweep(options.fused)
    for seed in slices(options.seed, options.batches, options.slice):
        if not options.only or batch(seed, options.casts).name in options.only.split(","):
            sweep.run(seed, options.casts)
    report(sweep.tally, options)


def report(tally: Tally, options: argparse.Namespace) -> None:
    out = sys.stdout.write
    out(
        f"seed {options.seed}: {tally.cases} cases, {tally.same} same, {tally.both_raise} raise in both, "
    )
    out(
        f"{sum(tally.refused.values())} refused here alone, {sum(tally.accepted.values())} by DuckDB alone, "
    )
    out(f"{sum(map(len, tally.mismatches.values()))} mismatches\n")
    for kind, found in sorted(tally.mismatches.items(), key=lambda item: -len(item[1])):
        out(f"{len(found):6} {kind}\n")
        for words in found[: options.shown]:
            out(f"         {words[:700]}\n")
    for title, counts in (("refused here", tally.refused), ("refused by DuckDB", tally.accepted)):
        out(f"{title}:\n")
        for label, count in counts.most_common(40):
            out(f"{count:6} {label[:200]}\n")


if __name__ == "__main__":
    main()
