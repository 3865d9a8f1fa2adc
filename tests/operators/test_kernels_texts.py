"""Functions of texts whose other arguments differ in most rows: DuckDB's answers, row by row and by groups."""

from __future__ import annotations

import random

import pyarrow as pa
import pytest

from fuseline.errors import ExecutionError, FuselineError
from tests.compare import assert_same, assert_same_as_duckdb, connected, fuseline_answer
from tests.limits import SetLimits

PARTS = ["", "a", "ab", "é", "日本", ".", ",", " ", "a+", "x\\y", "\n", "🦆", "A", "(b)"]
CALLS = [
    "replace(a, b, c)", "replace('abaé日本', b, c)", "split_part(a, b, n)", "split_part(a, b, -1)", "translate(a, b, c)", "translate(a, 'aé', c)",
    "trim(a, b)", "ltrim(a, b)", "rtrim(a, c)", "lpad(a, n + 5, b || '-')", "rpad(a, n + 5, c || 'é')", "lpad(a, 2, b || a || '.')",
    "regexp_matches(a, regexp_escape(b))", "regexp_matches(a, d)", "regexp_matches(a, d, 'i')", "regexp_full_match(a, d)", "regexp_replace(a, d, replace(c, chr(92), '|') || 'x')",
    "regexp_replace(a, d, 'x' || n, 'g')", "regexp_extract(a, d)", "regexp_extract(a, d, 0)", "regexp_extract(b || a, '(' || d || ')', 1)",
    "regexp_replace(a, '[ab]', d)", "regexp_replace(a, '[ab]+|é', d, 'g')", "regexp_replace(a, '(a)(b)', '\\2' || n)", "regexp_replace(a, '^a|b$', d)", "string_split(a, b)",
    "regexp_split_to_array(a, d || 'b')", "regexp_extract_all(a, d || 'a')",
]  # fmt: skip
ITEMS = ", ".join(f"{call} as x{place}" for place, call in enumerate(CALLS))


def columns(rows: int) -> pa.Table:
    draw = random.Random(3)

    def some(parts: list[str], most: int) -> list[str | None]:
        made = ["".join(draw.choices(parts, k=draw.randrange(most))) for _ in range(rows)]
        return [None if draw.random() < 0.05 else text for text in made]

    letters = [part for part in PARTS if part.isalpha() or part == " "]
    return pa.table(
        {
            "a": some([*PARTS, "ab"], 9),
            "b": some(PARTS, 4),
            "c": some(PARTS, 5),
            "d": [None if text is None else text + "a" for text in some(letters, 4)],
            "n": pa.array([None if n % 11 == 5 else n % 9 - 3 for n in range(rows)], pa.int32()),
        }
    )


@pytest.mark.parametrize("rows", [1, 2000])
def test_arguments_that_differ_from_row_to_row(rows: int) -> None:
    query = f"select {ITEMS} from t"
    assert_same_as_duckdb(query, {"t": columns(rows)}, backend="cpu", fuse=("always", "never"))


def test_rows_are_what_groups_are(limits: SetLimits) -> None:
    answers = []
    for rows in (0, 1 << 30):
        limits(ROWS_ALIKE=rows, ROWS_AT_ONCE=100)
        with connected({"t": columns(1000)}, "cpu") as connection:
            answers.append(fuseline_answer(connection, f"select {ITEMS} from t"))
    assert_same(*answers, ordered=True)


def test_replacements_in_texts_with_signs_of_control() -> None:
    texts = ["a" + "\x01\x02\x03\x04\x05\x06\ufdd0\ufdd1\ufdd2\ufdd3"[:n] for n in range(11)] * 3
    tables = {"t": pa.table({"a": texts, "r": [f"\x01{n}" for n in range(33)]})}
    query = "select regexp_replace(a, 'a', r) as x, regexp_replace(a, '', r, 'g') as y from t"
    assert_same_as_duckdb(query, tables, backend="cpu", fuse=("always", "never"))


@pytest.mark.parametrize(("call", "error"), [("lpad(a, 99, '')", ExecutionError), ("rpad(a, 9 + n, b)", ExecutionError), ("regexp_matches(a, b)", FuselineError)])  # fmt: skip
def test_errors_of_one_row_among_many(call: str, error: type[Exception]) -> None:
    many = [f"{n:05}" for n in range(500)]
    table = {"a": many, "b": [*many[:300], "" if "pad" in call else "(", *many[301:]], "n": pa.array(range(500), pa.int32())}  # fmt: skip
    with connected({"t": pa.table(table)}, "cpu") as connection, pytest.raises(error):
        connection.sql(f"select {call} from t").fetchall()
