"""String functions count characters, as DuckDB does."""

from __future__ import annotations

from itertools import product

import pyarrow as pa
import pytest

from fuseline.errors import ConversionError, ExecutionError
from fuseline.operators.cpu.table import FEW_TEXTS, MIN_REPEATS
from tests.compare import assert_same_as_duckdb
from tests.operators.evaluated import assert_expressions, error_of, evaluated

WORDS = [None, "", "a", "hello", "Hello World", "  pad ", "\ttab\n", "héllo", "日本語", "a,b,,c", "xyxaxy", "ß", "Ǆ",
         "x" * 40, "e\u0301", "%_\\"]  # fmt: skip
FORMS = ["plain", "large", "dictionary", "sliced"]


def words(form: str) -> pa.Table:
    match form:
        case "plain":
            array = pa.array(WORDS)
        case "large":
            array = pa.array(WORDS, pa.large_string())
        case "dictionary":
            array = pa.array(WORDS).dictionary_encode()
        case _:
            array = pa.array(["before", None, *WORDS, "after"])[2:-1]
    return pa.table({"s": array})


@pytest.mark.parametrize("form", FORMS)
def test_functions_of_one_string(form: str) -> None:
    assert_expressions(
        ["lower(s)", "upper(s)", "length(s)", "strlen(s)", "trim(s)", "ltrim(s)", "rtrim(s)", "trim(s, 'xy')",
         "ltrim(s, 'x ')", "rtrim(s, '')", "ascii(s)", "s || '!'", "s || s", "length(trim(s))", "s = 'a'", "s < 'b'",
         "lower(upper(s)) = 'hello'"],
        words(form),
    )  # fmt: skip


@pytest.mark.parametrize("form", FORMS)
def test_strings_of_bytes_alone(form: str) -> None:
    """Which are taken by bytes: a table of others does not show that."""
    given = words(form)["s"]
    plain = given.filter(pa.compute.string_is_ascii(given.cast(pa.string())).fill_null(True))
    calls = ["lower(s)", "upper(s)", "length(s)", "reverse(s)", "position('o' in s)"]
    taken = [f"right(s, {n})" for n in (-3, 0, 1, 3, 50)]
    cut = [
        f"substring(s, {at}, {n})"
        for at, n in ((-3, 2), (-50, 48), (-1, 9), (-2, -1), (2, 1), (1, 2**32 - 1))
    ]
    rests = [f"substring(s, {at})" for at in (-4, 0, 1, 2, 50, 2**31)]
    assert_expressions([*calls, *taken, *cut, *rests, "s[-3:-2]"], pa.table({"s": plain}))


def test_cases_of_digits() -> None:
    """sqlglot makes a node of its own of the first."""
    calls = "lower(hex(n)) as a, upper(hex(s)) as b, lcase(hex(s)) as c, hex(lower(s)) as d, lower(upper(s)) as e"
    assert_same_as_duckdb(
        f"select {calls} from t", {"t": {"n": [0, 171, None], "s": ["jK", None, "é"]}}
    )


def test_reverse() -> None:
    assert_expressions(["reverse(s)"], pa.table({"s": ["", "abc", "héllo", None, "日本"]}))


@pytest.mark.parametrize("start", [-9, -3, -1, 0, 1, 3, 9])
def test_substring_from_any_start(start: int) -> None:
    lengths = [-9, -2, -1, 0, 1, 2, 9]
    assert_expressions(
        [f"substring(s, {start})", *(f"substring(s, {start}, {n})" for n in lengths)],
        words("plain"),
    )


@pytest.mark.parametrize("n", [-9, -2, -1, 0, 1, 2, 9])
def test_left_right_and_padding(n: int) -> None:
    assert_expressions(
        [f"left(s, {n})", f"right(s, {n})", f"lpad(s, {n}, 'xy')", f"rpad(s, {n}, '日x')", f"repeat(s, {n})",
         f"split_part(s, ',', {n})", f"split_part(s, '', {n})", f"split_part(s, 'xy', {n})"],
        words("plain"),
    )  # fmt: skip


def test_parameters_from_columns() -> None:
    texts, numbers = zip(*product(["hello", "héllo", "", None], [-2, 0, 1, 3, None]), strict=True)
    table = pa.table(
        {"s": texts, "n": pa.array(numbers, pa.int64()), "p": ["l", "", None, "h%", "o"] * 4}
    )
    assert_expressions(
        ["left(s, n)", "right(s, n)", "substring(s, n)", "substring(s, n, 2)", "substring(s, 2, n)",
         "substring('constant', n, 3)", "repeat(s, n)", "lpad(s, n::int, '*')", "replace(s, p, '<' || p || '>')",
         "contains(s, p)", "starts_with(s, p)", "ends_with(s, p)", "position(p in s)", "position(p in 'hello')",
         "s like p", "s like '%' || p || '%'", "split_part(s, p, n)", "trim(s, p)", "translate(s, p, 'x')"],
        table,
    )  # fmt: skip


@pytest.mark.parametrize("needle", ["", "l", "lo", "é", "llo", "本", "zz", ",", "%", "."])
def test_searching(needle: str) -> None:
    assert_expressions(
        [f"contains(s, '{needle}')", f"starts_with(s, '{needle}')", f"ends_with(s, '{needle}')",
         f"position('{needle}' in s)", f"strpos(s, '{needle}')", f"replace(s, '{needle}', '→')",
         f"replace(s, '{needle}', '')"],
        words("plain"),
    )  # fmt: skip


def test_concatenation() -> None:
    table = pa.table(
        {"a": ["x", None, "", "y"], "b": [None, None, "z", "日"], "sep": [",", "-", None, ""]}
    )
    assert_expressions(
        ["a || b", "concat(a, b)", "concat(a, '-', b)", "concat_ws(',', a, b)", "concat_ws(sep, a, b)",
         "concat_ws(sep, a, null, 'k')", "concat_ws('-', 'x', 'y')", "a || 1", "concat(a, 1.5, true)"],
        table,
    )  # fmt: skip


def test_characters_and_translation() -> None:
    table = pa.table(
        {
            "s": ["12345", "abcabc", "", None, "日本x"],
            "c": pa.array([97, 233, None, 0x1F600, 26085], pa.int32()),
        }
    )
    assert_expressions(
        [
            "chr(c)",
            "translate(s, '143', 'ax')",
            "translate(s, 'aab', 'xyz')",
            "translate(s, '日', 'n')",
            "ascii(s)",
        ],
        table,
    )
    assert isinstance(error_of("chr(c - 98)", table), ExecutionError)


def test_empty_padding() -> None:
    assert isinstance(error_of("lpad('hi', 5, '')"), ExecutionError)


def test_one_string_among_strings() -> None:
    """A constant beside a column, in both places."""
    table = pa.table({"s": ["a", None, "c"]})
    assert_expressions(
        ["'x' || s", "s || 'x'", "'b' < s", "greatest(s, 'b')", "coalesce(s, 'none')", "'b' = s"],
        table,
    )


def test_a_function_of_a_dictionary_column_stays_one_with_different_entries() -> None:
    from fuseline.operators.cpu.functions.expressions import evaluate
    from tests.operators.evaluated import items_of, physical, plan_of

    table = pa.table({"s": pa.array(["aa", "ab", "b", None, "ab"]).dictionary_encode()})
    plan = plan_of("select substring(s, 1, 1) from t", table)
    result = evaluate(items_of(plan)[0][1], physical(plan, table))
    assert result.dictionary.to_pylist() == ["a", "b"]
    assert result.to_pylist() == ["a", "a", "b", None, "a"]


def test_functions_of_a_dictionary_column_and_null() -> None:
    table = pa.table({"s": pa.array(["aa", "ab", "b", None, "ab"]).dictionary_encode()})
    assert_expressions(
        ["upper(s)", "nullif(s, 'ab')", "coalesce(s, 'aa')", "substring(s, 1, 1)", "s is null", "length(s)",
         "case when s is null then 'q' when s <> 'ab' then s end", "s like 'a%'", "s in ('aa', 'b')"],
        table,
    )  # fmt: skip


def test_an_entry_that_no_row_uses_does_not_raise() -> None:
    entries = pa.array(["1", "x", "3"])
    table = pa.table(
        {"s": pa.DictionaryArray.from_arrays(pa.array([0, 2, None, 0], pa.int32()), entries)}
    )
    assert evaluated(["s::int + 1"], table)["c0"].to_pylist() == [2, 4, None, 2]


def test_functions_of_two_strings_that_come_many_times() -> None:
    """Whose columns are codes of few values, which they have to be decoded from: functions of one are computed for each value."""
    rows = MIN_REPEATS * FEW_TEXTS
    table = pa.table(
        {
            "s": pa.array([f"t{row % 37}" for row in range(rows)]).dictionary_encode(),
            "n": pa.array([str(row % 31) for row in range(rows)]).dictionary_encode(),
            "k": pa.array([row % 13 for row in range(rows)]),
        }
    )
    assert_expressions(
        ["replace(s, n, 'x')", "strpos(s, n)", "regexp_extract(s, n)", "regexp_matches(s, n)", "substring(s, k, 2)",
         "repeat(s, k % 3)", "split_part(s, n, 1)", "starts_with(s, n)", "contains(s, n)", "s ilike n", "trim(s, n)",
         "try_cast(case when k > 5 then n else s end as integer)", "s || n", "s = n", "greatest(s, n)"],
        table,
    )  # fmt: skip
    error = error_of("cast(s as integer)", table)
    assert isinstance(error, ConversionError)
