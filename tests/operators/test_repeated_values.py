"""Functions over texts and other values that come thousands of times are DuckDB's: a sample by day, all calls by night."""

from __future__ import annotations

import itertools

import pytest

from tests.compare import assert_same_as_duckdb
from tests.operators.repeated_values import TEXTS, Repeated, calls, table

PARTS = 60


def assert_part(part: int, rows: int, fuse: str) -> None:
    engines, tried = Repeated(rows, fuse), 0
    wrong = []
    for call in itertools.islice(calls(), part, None, PARTS):
        tried += 1
        found = engines.found(call)
        if found is not None:
            wrong.append(f"{call}: {found}")
    engines.close()
    assert wrong == []
    assert tried > 70


@pytest.mark.by_day(PARTS // 2)
@pytest.mark.parametrize("part", range(PARTS))
def test_all_functions(part: int) -> None:
    assert_part(part, 5_000, "never")


@pytest.mark.nightly
@pytest.mark.timeout(1200)
@pytest.mark.parametrize("part", range(PARTS))
def test_all_functions_over_more_rows(part: int) -> None:
    assert_part(part, 50_000, "auto")


def test_texts_are_of_few_values_and_from_each_source() -> None:
    assert {call.source for call in calls()} == set(TEXTS)
    columns = table(5_000)
    assert all(len(columns[name].unique()) < 20 for name in columns.column_names if name != "i")


def test_list_extract_of_json_is_a_character() -> None:
    """As of the text that it is; in brackets it is a document's value."""
    rows = "(values ('[7,8]'::json, 1), ('\"a1\"', 3), (null, 1), ('{}', null), ('[1]', -1), ('[2]', 0)) t(j, k)"
    items = "array_extract(j, k) as a, list_extract(j, 1) as b, list_element(j, k) as c, j[0] as d, typeof(list_extract(j, k)) as t"
    assert_same_as_duckdb(f"select {items} from {rows}", fuse=("always", "never"))
