"""LIKE and regular expressions."""

from __future__ import annotations

import pyarrow as pa
import pytest

from fuseline.errors import ExecutionError
from fuseline.operators.cpu.functions import expressions
from fuseline.operators.cpu.table import Table
from fuseline.plan.expr import Call, Column, ColumnRef, Literal
from fuseline.plan.types import VARCHAR
from tests.compare import assert_same_as_duckdb
from tests.limits import SetLimits
from tests.operators.evaluated import assert_expressions, error_of, evaluated

LINES = [None, "", "a", "ab", "abc", "aXbXc", "ABC", "a%c", "a_c", "a\\c", "a\nb", "é", "aé", "Éa", "special requests",
         "xspecialy requestsz", "requests special", "x.y", "a" * 300, "(b)", "日本語", "K\u212a", "[a]"]  # fmt: skip
TABLE = pa.table({"s": LINES})
PATTERNS = ["", "%", "%%", "_", "__", "a%", "%c", "%b%", "a%c", "a_c", "_b%", "%special%requests%", "%é", "_é", "%.%",
            "a%b%c", "%_", "_%", "%_%", "(b)", "[a]", "日_語", "%\\%", "a\\c", "%a", "%a%b", "a%%c"]  # fmt: skip


@pytest.mark.parametrize("pattern", PATTERNS)
def test_like(pattern: str) -> None:
    assert_expressions(
        [
            f"s like '{pattern}'",
            f"s not like '{pattern}'",
            f"s ilike '{pattern}'",
            f"s not ilike '{pattern}'",
        ],
        TABLE,
    )


@pytest.mark.parametrize("pattern", ["a\\%c", "a\\_c", "\\%%", "a\\\\c", "%\\_%", "\\a%"])
def test_like_with_escape(pattern: str) -> None:
    assert_expressions(
        [f"s like '{pattern}' escape '\\'", f"s ilike '{pattern}' escape '\\'"], TABLE
    )


def test_like_with_escapes_that_are_not_allowed() -> None:
    for expression in ("s like 'a$' escape '$'", "s like 'a%' escape 'ab'"):
        error = error_of(expression, TABLE)
        assert "scape" in str(error)


def test_like_over_few_and_many_matches() -> None:
    table = pa.table({"s": ["special x requests", *["nothing"] * 50, None, *["special"] * 5]})
    assert_expressions(
        ["s like '%special%requests%'", "s not like '%special%requests%'", "s like '%n_thing%'"],
        table,
    )


EXPRESSIONS = [
    "a", "^a", "c$", "a.c", "^$", "[0-9]+", "(a|b)c", "a.b", "\\.", "X+", "(?i)abc", "é", "^.$", "[[]a",
]  # fmt: skip


@pytest.mark.parametrize("pattern", EXPRESSIONS)
def test_regular_expressions(pattern: str) -> None:
    assert_expressions(
        [f"regexp_matches(s, '{pattern}')", f"regexp_full_match(s, '{pattern}')", f"regexp_matches(s, '{pattern}', 'i')",
         f"regexp_replace(s, '{pattern}', '<>')", f"regexp_replace(s, '{pattern}', '<\\0>', 'g')",
         f"regexp_extract(s, '{pattern}')", f"regexp_full_match(s, '{pattern}', 's')",
         f"regexp_replace(s, '{pattern}', 'x', 'gi')"],
        TABLE,
    )  # fmt: skip


def test_groups() -> None:
    table = pa.table({"s": ["ab12", "x9", "", None, "zz", "2020-01-05", "a[1]"]})
    assert_expressions(
        ["regexp_extract(s, '([a-z]+)([0-9]+)', 2)", "regexp_extract(s, '([a-z]+)([0-9]+)', 1)",
         "regexp_extract(s, '([a-z]+)([0-9]+)', 0)", "regexp_extract(s, '(?:x|a)(b)?', 1)",
         "regexp_extract(s, '([(]|[])a])(.)', 2)", "regexp_extract(s, '(\\()?([0-9])', 2)",
         "regexp_extract(s, '(a)', 3)", "regexp_replace(s, '([0-9]+)-([0-9]+)', '\\2/\\1')",
         "regexp_extract(s, 'A(B)', 1, 'i')", "regexp_replace(s, '^(b)|(1)', '<\\1\\2>')",
         "regexp_replace(s, '2$|(2|b)', '[\\1\\\\0]')", "regexp_replace(s, '\\b9', '\\0\\0')"],
        table,
    )  # fmt: skip


def test_literal_option() -> None:
    assert_expressions(["regexp_matches(s, '.', 'l')", "regexp_replace(s, '(', 'x', 'l')"], TABLE)


def test_what_is_no_regular_expression() -> None:
    for expression in (
        "regexp_matches(s, '(')",
        "regexp_extract(s, '[')",
        "regexp_replace(s, '*', '')",
    ):
        error = error_of(expression, TABLE)
        assert isinstance(error, ExecutionError)
        assert "regular expression" in str(error)
    assert "option" in str(error_of("regexp_matches(s, 'a', 'q')", TABLE))


def test_patterns_over_a_dictionary() -> None:
    table = pa.table({"s": pa.array(LINES * 3).dictionary_encode()})
    assert evaluated(["s like '%b%'"], table)["c0"].to_pylist() == [
        None if line is None else "b" in line for line in LINES * 3
    ]


OFTEN = [LINES[i * i % len(LINES)] for i in range(700)]
SEARCHES = [
    "regexp_replace(s, '([a-z])', '<\\1>')", "regexp_extract(s, 'b(.)', 1)", "length(regexp_replace(s, 'b', 'xx', 'g'))",
    "regexp_matches(s, 'b.') and n > 3", "regexp_extract_all(s, '[a-z]')", "string_split_regex(s, 'b')",
    "case when n % 2 = 0 then regexp_replace(s, 'b', '') else s end", "regexp_replace(s || n, 'b', '')",
    "length(s)", "s",
]  # fmt: skip


@pytest.mark.parametrize("chunk", [7, 1 << 17])
def test_a_value_of_several_rows_is_searched_once(
    chunk: int, limits: SetLimits, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of more values than a chunk has rows, threads search some each."""
    limits(LEAST_NUMBERED=0)
    monkeypatch.setattr(expressions, "CHUNK_ROWS", chunk)
    table = pa.table({"s": OFTEN, "n": range(len(OFTEN))})
    exprs = [f"{text} as x{i}" for i, text in enumerate(SEARCHES)]
    assert_same_as_duckdb(f"select {', '.join(exprs)} from t", {"t": table}, fuse=("never",))


def test_texts_of_which_each_row_has_its_own_stay_as_they_are(limits: SetLimits) -> None:
    limits(LEAST_NUMBERED=0)
    column = Column(1, "s", VARCHAR)
    search = Call(
        "regexp_replace",
        (ColumnRef(column), Literal("a", VARCHAR), Literal("", VARCHAR)),
        VARCHAR,
    )
    for values, numbered in ((map(str, range(5000)), False), (["a", "b"] * 2500, True)):
        made = expressions.with_texts_numbered(
            [search], Table({column.id: pa.array(values, pa.string())}, 5000)
        )
        assert pa.types.is_dictionary(made[column].type) is numbered
