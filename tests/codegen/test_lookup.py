"""Expressions over one column of few codes are evaluated on its values once."""

from __future__ import annotations

import pyarrow as pa
import pytest

from tests.codegen.fused import assert_fused, assert_not_fused

WORDS = {"t": pa.table({"s": ["b", None, "a", "", "é"] * 3, "k": [1, 2, 3, None, 5] * 3})}


@pytest.mark.parametrize(
    "predicate",
    [
        "s like '%b%'",
        "s not like 'a'",
        "upper(s) in ('A', 'É')",
        "s || 'x' = 'bx'",
        "coalesce(s, 'none') = 'none'",
        "regexp_matches(s, '[ab]')",
        "s > 'a'",
        "k % 2 = 1",
        "s is not distinct from 'a'",
    ],
)
def test_a_predicate_of_one_column(predicate: str) -> None:
    assert_fused(f"select count(*), sum(k) from t where {predicate}", WORDS)


@pytest.mark.parametrize(
    "key", ["upper(s)", "length(s)", "substring(s, 1, 1)", "sqrt(k) > 1", "k % 3"]
)
def test_a_group_key_of_one_column(key: str) -> None:
    assert_fused(f"select {key} as x, count(*) from t group by 1", WORDS)


def test_a_column_of_too_many_values_says_so() -> None:
    table = pa.table({"k": pa.array(range(70_000))})
    assert_not_fused("select count(*) from t where sqrt(k) > 3", {"t": table}, "more than 65536")


def test_an_error_on_a_value_is_left_to_the_operators() -> None:
    table = {"t": pa.table({"s": ["1", "x"], "k": [1, 2]})}
    assert_not_fused(
        "select sum(s::int) from t where k = 1 and s <> 'x'", table, "fails on a value"
    )
