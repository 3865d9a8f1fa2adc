"""Operators have DuckDB's ranks: every one beside every other one, prefixes before each operand, with blanks and without."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence

import duckdb
import pytest

import fuseline
from fuseline.errors import FuselineError, ParseError
from fuseline.sql.grammar.recognize import unrecognized
from fuseline.sql.names import result_name
from fuseline.sql.parsing.pieces import split
from fuseline.sql.parsing.tokens import tokenize
from tests.compare import assert_same_as_duckdb
from tests.marks import assert_marks

ARITHMETIC = ("+", "-", "*", "/", "//", "%", "**", "^", "&", "|", "<<", ">>")
SIGNS = (*ARITHMETIC, "||", "^@", "=", "<", "<>", "~", "!~", "~~")
OPERATORS = (*SIGNS, "like", "not like", "ilike", "similar to", "is distinct from", "and")
PREFIXES = ("", "~ ", "- ", "~ ~ ", "~ - ", "- ~ ", "@ ", "- @ ", "not ")
ROWS = "from (values (7, 2, 3), (1, 4, 2), (13, 1, 6)) t(a, b, c)"


def triples() -> Iterator[str]:
    for one, two in itertools.product(OPERATORS, repeat=2):
        for first, second, third in (
            ("", "", ""),
            ("", "~ ", ""),
            ("", "", "~ "),
            ("- ~ ", "~ ", "- "),
        ):
            yield f"{first}a {one} {second}b {two} {third}c"
    for prefix, one in itertools.product(PREFIXES, OPERATORS):
        yield f"{prefix}a {one} b"
        yield f"a {one} {prefix}b"
        yield f"a + b {one} {prefix}c::int * 2"
        yield f"a & b {one} {prefix}c in (1, 2)"
    for one, prefix in itertools.product(SIGNS, ("~", "-", "+", "@", "-~", "~-", "+-", "-+")):
        yield f"a{one}{prefix}b"
        yield f"a {one}{prefix} b"


@pytest.fixture(scope="module")
def theirs():
    with duckdb.connect() as connection:
        yield connection


@pytest.fixture(scope="module")
def ours():
    with fuseline.connect(device="cpu", fuse="never") as connection:
        yield connection


def answers(connection, texts: Sequence[str]) -> list[tuple[str, list[object]]]:
    found = connection.sql(f"select {', '.join(texts)} {ROWS}")
    columns = zip(*found.fetchall(), strict=True)
    return [
        (name, [float(f"{v:.9g}") if isinstance(v, float) else v for v in column])
        for name, column in zip(found.columns, columns, strict=True)
    ]


def compare(theirs, ours, texts: Sequence[str]) -> int:
    """Compare names and values of what DuckDB answers, and names of what it only reads; the rest is refused.  Returns how many it answers."""
    expected = {}
    for text in texts:
        try:
            expected[text] = answers(theirs, [text])[0]
        except (duckdb.ParserException, duckdb.CatalogException, duckdb.BinderException):
            with pytest.raises(FuselineError):
                ours.sql(f"select {text} {ROWS}")
        except duckdb.Error:
            assert [result_name(text)] == theirs.sql(f"select {text} {ROWS}").columns
    for start in range(0, len(expected), 100):
        part = list(expected)[start : start + 100]
        assert answers(ours, part) == [expected[text] for text in part]
    return len(expected)


def test_operators_beside_each_other_are_read_as_in_duckdb(theirs, ours) -> None:
    assert compare(theirs, ours, list(triples())[::5]) > 250


@pytest.mark.nightly
def test_all_operators_beside_each_other_are_read_as_in_duckdb(theirs, ours) -> None:
    assert compare(theirs, ours, list(triples())) > 1400


@pytest.mark.parametrize(
    "marked", ["select 6 ^*~^2", "select 5^%-^3", "select 'a' ^!=-^ 'b'", "select 1 + 6*(2)^||-^3"]
)
def test_signs_without_blanks_between_them_are_one_operator(ours, marked: str) -> None:
    with pytest.raises(ParseError) as error:
        ours.sql(marked.replace("^", ""))
    assert_marks(error.value, marked, "signs without a blank between them are one operator")


@pytest.mark.parametrize("predicate", [
    "a is null in (1)", "a notnull like 'x'", "a is null between 1 and 2", "a like 'x' like 'y'", "a in (1) + 2",
    "a is not null is null", "a isnull = true", "a in (1)::int in (2)", "a in (1) like 'x'", "a between 1 and 2 in (3)",
    "a like 'x' in ('y')", "a is null is distinct from true", "a = b in (1)", "a in (1) = true", "a notnull::int = 1",
    "a between 1 and 2 between 3 and 4", "a like 'x' = true", "a = not b is null", "a is not distinct from b is null",
])  # fmt: skip
def test_predicates_behind_each_other_are_taken_as_in_duckdb(theirs, ours, predicate: str) -> None:
    """Our grammar takes what DuckDB's takes; sqlglot and the binder may refuse more."""
    text = f"select {predicate} {ROWS}"
    error = None
    try:
        theirs.sql(text)
    except duckdb.ParserException as caught:
        error = caught
    except duckdb.Error:
        pass
    assert (unrecognized(tokenize(next(split(text)))) is None) == (error is None)


TYPED = (
    "timestamp with time zone '2020-01-01'::date", "decimal(10,2) '1.26'::int", "timestamp(3) '2020-01-01'::date", "double precision '1.5'::int",
    "json '1'::varchar", "timestamp without time zone '2020-01-01'::date", "timestamptz '2020-01-01'.year()", "date '2020-01-01'::varchar::date + 1",
)  # fmt: skip


def test_casts_behind_a_typed_constant_are_casts_of_the_constant() -> None:
    columns = ", ".join(f"typeof({t}) as t{i}, {t} as c{i}" for i, t in enumerate(TYPED))
    assert_same_as_duckdb(f"select {columns}")
