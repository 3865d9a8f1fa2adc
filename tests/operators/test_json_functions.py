"""Functions and operators of JSON, against DuckDB, and what both refuse."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from fuseline.errors import FuselineError, InvalidQuery
from tests.duckdb_functions import Comparison
from tests.operators import json_queries as cases

QUERIES = [
    query
    for name, group in vars(cases).items()
    if name.isupper() and name != "REFUSED"
    for query in group
]


def whole(text: str) -> str:
    begins = ("select", "from", "describe")
    return text if text.lower().startswith(begins) else f"select {text}"


@pytest.fixture(scope="module")
def comparison() -> Iterator[Comparison]:
    made = Comparison()
    yield made
    made.close()


@pytest.mark.parametrize("text", QUERIES)
def test_answers_are_duckdbs(text: str, comparison: Comparison) -> None:
    comparison.duck.sql(whole(text)).fetchall()  # which it answers
    assert comparison.problem(whole(text)) is None


@pytest.mark.parametrize("text", cases.REFUSED)
def test_what_duckdb_refuses_is_refused(text: str, comparison: Comparison) -> None:
    with pytest.raises(Exception, match="Error"):
        comparison.duck.sql(whole(text)).fetchall()
    with pytest.raises(FuselineError):
        comparison.ours.sql(whole(text)).fetchall()


@pytest.mark.parametrize("depth", [100, 1000, 5000])
@pytest.mark.parametrize(
    "call",
    ["j::json", "json_valid(j)", "json_type(j)", "length(j -> '$')", "json_extract(j, '$[0][0]')"],
)
def test_values_of_any_depth(call: str, depth: int, comparison: Comparison) -> None:
    text = "[" * depth + "]" * depth
    assert comparison.problem(f"select {call} as v from (select '{text}' as j)") is None


def test_a_place_of_bad_json_is_told(comparison: Comparison) -> None:
    with pytest.raises(FuselineError, match="at byte 7: unexpected end") as found:
        comparison.ours.sql("select '{\"a\": 1'::json").fetchall()
    assert found.value.span is not None
    with pytest.raises(FuselineError, match="at byte 1: unexpected character"):
        comparison.ours.sql("select j ->> 'a' from (values ('[}')) t(j)").fetchall()


def test_bad_paths_are_refused_where_they_stand(comparison: Comparison) -> None:
    query = "select j -> '$.a[' from (values ('{}')) t(j)"
    with pytest.raises(InvalidQuery, match=r"The JSON path '\$.a\[' is none from '\['") as found:
        comparison.ours.sql(query)
    assert found.value.span is not None
    assert query[found.value.span.start :].startswith("'$.a['")


def test_a_path_that_counts_values_twice_is_refused(comparison: Comparison) -> None:
    with pytest.raises(InvalidQuery, match="leave one of them out"):
        comparison.ours.sql("select '[]' -> '$..*..*'")


def test_minus_zero_becomes_each_number(comparison: Comparison) -> None:
    types = ("BIGINT", "DOUBLE", "DECIMAL(9,2)", "BOOLEAN", "VARCHAR", "HUGEINT")
    calls = ", ".join(f"json_transform('-0', '\"{kind}\"') as v{i}" for i, kind in enumerate(types))
    assert comparison.problem(f"select {calls}") is None
