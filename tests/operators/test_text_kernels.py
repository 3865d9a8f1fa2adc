"""Functions of many texts by kernels: DuckDB's answers, and the errors of few."""

from __future__ import annotations

import random

import pyarrow as pa
import pytest

from fuseline.errors import ExecutionError
from fuseline.operators.cpu.functions.values import text_kernels
from tests.compare import assert_same_as_duckdb, connected
from tests.limits import SetLimits

DIGESTS = ", ".join(f"{name}(a) as {name}, {name}(encode(a)) as {name}_b" for name in ("md5", "sha1", "sha256"))  # fmt: skip
DISTANCES = """levenshtein(a, b) as l, damerau_levenshtein(a, b) as d, jaro_similarity(a, b) as j, levenshtein('kitten', b) as k,
    jaro_winkler_similarity(a, b) as w, jaro_similarity(b, a, 0.6) as c"""
OF_ALIKE = "hamming(c, d) as h, jaccard(c, d) as j, jaccard(d, 'abc') as k"


def texts(letters: str, rows: int = 3000) -> dict[str, list[str | None]]:
    """Return texts of all lengths around those of a block, of which some differ by a few characters, some are NULL."""
    draw = random.Random(5)
    a = ["".join(draw.choices(letters, k=n % 131)) for n in range(rows)]
    b = ["".join(draw.sample(x[:20], len(x[:20]))) + draw.choice(["", "x", letters]) for x in a]
    c = ["".join(draw.choices(letters, k=n % 70 + 1)) for n in range(rows)]
    d = ["".join(draw.sample(x, len(x))) for x in c]
    return {
        name: [None if draw.random() < 0.03 else x for x in column]
        for name, column in zip("abcd", (a, b, c, d), strict=True)
    }


@pytest.fixture(autouse=True)
def _by_kernels(limits: SetLimits) -> None:
    limits(MANY_TEXTS=0, SPAN_ROWS=700, PAIRS_AT_ONCE=1 << 18)


@pytest.mark.parametrize("letters", ["abcdefg ", "aé日🦆b"])
@pytest.mark.parametrize("calls", [DIGESTS, DISTANCES, OF_ALIKE])
def test_many_texts(letters: str, calls: str) -> None:
    tables = {"t": pa.table(texts(letters))}
    assert_same_as_duckdb(f"select {calls} from t", tables, backend="cpu", fuse=("always", "never"))


def test_texts_without_characters_and_without_values() -> None:
    count = 2 * text_kernels.FEW_TEXTS
    numbers = [str(n) for n in range(count)]
    columns = {"a": pa.nulls(count, pa.string()), "b": [""] * count, "c": numbers}
    tables = {"t": pa.table(columns)}
    query = """select md5(a) as m, sha1(b) as s, levenshtein(a, c) as x, levenshtein(b, c) as y, damerau_levenshtein(c, '') as z,
        jaro_similarity(b, c) as j, jaro_winkler_similarity(b, b) as k, hamming(a, c) as h, md5(c) as d from t"""
    assert_same_as_duckdb(query, tables, backend="cpu", fuse=("always", "never"))


@pytest.mark.parametrize("call", ["hamming(a, b)", "jaccard(a, b)", "hamming(b, b)"])
def test_errors_of_one_text_among_many(call: str) -> None:
    many = [f"{n:05}" for n in range(3000)]
    tables = {"t": pa.table({"a": many, "b": [*many[:2000], "", *many[2001:]]})}
    with connected(tables, "cpu") as connection, pytest.raises(ExecutionError, match="compares"):
        connection.sql(f"select {call} from t").fetchall()


def test_texts_too_long_for_a_matrix(limits: SetLimits) -> None:
    limits(MOST_SCRATCH=100)
    tables = {"t": pa.table(texts("ab", 1100))}
    query = "select levenshtein(a, b) as x, damerau_levenshtein(left(a, 9), b) as y from t"
    assert_same_as_duckdb(query, tables, backend="cpu", fuse=("never",))


SEARCHES = """contains(a, c) as x, position(c in a) as y, starts_with(a, c) as s, ends_with(a, c) as e, a like p as l, a not like p as n,
    a ilike upper(p) as i, a like p escape '!' as f, 'abcab' like p as k, contains('aabcab', c) as m, a ^@ c as o"""


@pytest.mark.parametrize("letters", ["aab_%", "aé日_%"])
@pytest.mark.parametrize("rows", [500, 3000])
def test_searches_for_what_each_row_has(letters: str, rows: int) -> None:
    draw = random.Random(7)
    columns = texts(letters, rows)
    columns["c"] = ["".join(draw.choices(letters, k=n % 4)) for n in range(rows)]
    columns["p"] = [
        None if n % 50 == 0 else "".join(draw.choices([*letters, "%", "!%", "!_"], k=n % 6)) + "%"
        for n in range(rows)
    ]
    tables = {"t": pa.table(columns)}
    query = f"select {SEARCHES} from t"
    assert_same_as_duckdb(query, tables, backend="cpu", fuse=("always", "never"))


def test_a_pattern_among_many_that_ends_with_what_escapes() -> None:
    patterns = [f"%{n}%" for n in range(3000)]
    tables = {"t": pa.table({"a": patterns, "p": [*patterns[:2000], "%!", *patterns[2001:]]})}
    with connected(tables, "cpu") as connection, pytest.raises(ExecutionError, match="escape"):
        connection.sql("select a like p escape '!' from t").fetchall()
    with connected(tables, "cpu") as connection:
        found = connection.sql("select count(*) from t where a like p escape '🦆'")
        assert found.fetchall() == [(2999,)]


@pytest.mark.parametrize("rows", [0, 1, 900])
def test_other_functions_of_what_each_row_has(rows: int) -> None:
    columns = {
        "a": [f"{n}-{n % 7}-x" for n in range(rows)],
        "b": [f"{n % 90}" for n in range(rows)],
    }
    columns["b"] = [None if n % 11 == 3 else b for n, b in enumerate(columns["b"])]
    query = """select replace(a, b, 'é') as r, split_part(a, b, 2) as s, trim(a, b) as t, lpad(a, b::int, '-') as l,
        regexp_extract(a, b || '.') as e, regexp_replace(a, b, b) as p, substring(a, b::int, 3) as u, translate(a, b, 'z') as w,
        trim('12 a', b) as c, regexp_matches(a, b) as m from t"""
    assert_same_as_duckdb(query, {"t": pa.table(columns, pa.schema([("a", pa.string()), ("b", pa.string())]))}, backend="cpu", fuse=("never",))  # fmt: skip
