"""What our functions take, DuckDB's take: every name with arguments of each type and number, constants and columns."""

from __future__ import annotations

import itertools
import random
import re
from collections.abc import Iterator

import duckdb
import pytest

import fuseline
from fuseline.errors import FuselineError
from fuseline.plan.functions import sql_names
from tests.compare import Ordering, difference

SETUP = (
    "create table t as select * from "
    "(values (1, 'x', 1.5::decimal(4, 2), 2.5::double, date '2024-01-31', true)) v(i, s, d, f, t, b)"
)
ARGUMENTS = ("i", "s", "d", "f", "t", "b", "null", "-1", "42", "'x'", "''", "'g'", "interval 1 day", "*")  # fmt: skip
MOST = 5
# Of the names one of so many, and tries for each number of arguments, beside all of at most one
BY_DAY, BY_NIGHT = (5, 1), (1, 8)
UNTYPED_KEYS = "map<int32, uint64> and should be map<null, uint64>"  # pyarrow has no map of keys without a type
# DuckDB asks for a cast of what has no type where several functions would take it.
AMBIGUOUS = r"Could not choose a best candidate function .*(NULL|STRING_LITERAL)"


def _calls(name: str, tries: int) -> Iterator[str]:
    draw = random.Random(name)
    for count in range(MOST + 1):
        rows = list(itertools.product(ARGUMENTS, repeat=count)) if count < 2 else []
        rows = rows or [tuple(draw.choices(ARGUMENTS, k=count)) for _ in range(tries)]
        for row in rows:
            yield f"select {name}({', '.join(row)}) as r from t"


@pytest.fixture(scope="module")
def engines() -> Iterator[tuple[duckdb.DuckDBPyConnection, fuseline.Connection]]:
    with duckdb.connect() as theirs, fuseline.connect(device="cpu", fuse="never") as ours:
        theirs.execute("set threads = 1")
        theirs.execute(SETUP)
        ours.execute(SETUP)
        yield theirs, ours


@pytest.mark.parametrize(
    ("every", "tries"), [BY_DAY, pytest.param(*BY_NIGHT, marks=pytest.mark.nightly)]
)
def test_what_is_taken_is_taken_by_duckdb_and_has_its_answer(
    engines, every: int, tries: int
) -> None:
    theirs, ours = engines
    wrong, answered = [], 0
    for query in itertools.chain.from_iterable(
        _calls(name, tries) for name in sorted(sql_names())[::every]
    ):
        try:
            answer = ours.sql(query).to_arrow()
        except FuselineError:
            continue
        try:
            expected = theirs.sql(query).to_arrow_table()
        except duckdb.Error as error:
            if not re.search(AMBIGUOUS, str(error)):
                wrong.append(f"{query}: {error}")
            continue
        answered += 1
        problem = difference(expected, answer, Ordering(ordered=False))
        if problem is not None and UNTYPED_KEYS not in problem:
            wrong.append(f"{query}: {problem}")
    assert wrong == []
    assert answered > 500 / every


@pytest.mark.parametrize("call", ["log10()", "log2()"])
def test_arguments_that_sqlglot_adds_are_none(engines, call: str) -> None:
    with pytest.raises(FuselineError, match="needs arguments"):
        engines[1].sql(f"select {call}")
