from __future__ import annotations

import pytest

from fuseline.plan.derived import DERIVED
from fuseline.plan.functions import (
    AGGREGATE,
    SCALAR,
    aggregate_name,
    scalar_name,
    sql_names,
)
from fuseline.plan.functions.dates import PARTS, UNITS
from fuseline.plan.types import BOOLEAN, DATE, DOUBLE, INTEGER, NULL, TIMESTAMP, VARCHAR, decimal
from tests.plan.columns import connection

SCALAR_ROWS = list(SCALAR.values())


def test_no_spelling_stands_for_two_functions():
    spellings = [s for row in SCALAR_ROWS for s in (row.name, *row.aliases)]
    assert len(spellings) == len(set(spellings))


def test_rows_are_of_their_tables_kind():
    assert {row.kind for row in AGGREGATE.values()} == {"aggregate"}
    assert {row.kind for row in SCALAR_ROWS} == {"scalar", "operator"}


# What is called otherwise in SQL
_SQL_NAMES = {
    "interval_trunc": "date_trunc",
    "list_element": "list_extract",
    "list_cut": "list_slice",
    "list_of_range": "range",
    "list_of_generate_series": "generate_series",
    "map_of_lists": "map",
    "struct_field": "struct_extract",
    "json_member": "json_group_array",
    "json_pair": "json_group_object",
    "json_enclosed": "json_group_array",
    "json_entries": "json_each",
    "json_entries_within": "json_tree",
    "cross_product": "array_cross_product",
    "histogram_of_list": "histogram",
    "histogram_of_bins": "histogram",
    "counts_of_bins": "histogram_exact",
    "most_frequent": "approx_top_k",
    "quantile_of_list": "reservoir_quantile",
    "decimal_mean": "decimal_average",
}


@pytest.mark.parametrize("table", [SCALAR, AGGREGATE], ids=["scalar", "aggregate"])
def test_signatures_are_written_as_sql(table):
    for row in table.values():
        spelled = {row.name, row.name.removesuffix("_of_each"), *row.aliases}
        written = row.signature.split("(")[0]
        assert row.kind == "operator" or written in spelled | {_SQL_NAMES.get(row.name, "count")}, (
            row.name
        )


@pytest.mark.parametrize("row", SCALAR_ROWS, ids=lambda row: row.name)
def test_no_function_takes_what_it_does_not_know(row):
    assert row.name in _OF_NOTHING or row.resolve([]) is None
    assert row.name in ("and", "or", *_NARY) or row.resolve([VARCHAR] * 9) is None


_OF_NOTHING = ("list_value", "map_of_lists", "json_array", "json_object")  # an empty list, map ...
_NARY = (
    "list_value", "greatest", "least", "coalesce", "concat", "concat_ws", "format", "printf", "json_array", "json_merge_patch", "json_deep_merge",
    "path_join", "hash",
)  # fmt: skip


def test_every_spelling_is_one_of_duckdbs():
    known = connection().execute("SELECT DISTINCT lower(function_name) FROM duckdb_functions()")
    theirs = {name for (name,) in known.fetchall()}
    theirs |= {"coalesce", "nullif", "if", "ifnull", "count_star", "date", "position"}  # syntax
    assert {n for n in (*sql_names(), *DERIVED) if n not in theirs} == set()


def test_names_are_found_without_regard_to_case():
    assert scalar_name("SUBSTR") == "substring"
    assert aggregate_name("Group_Concat") == "string_agg"
    assert scalar_name("add") is None  # an operator has no name in SQL, only `derived` gives it one


def test_each_part_and_unit_is_a_function_or_a_unit():
    assert set(PARTS.values()) <= set(SCALAR)
    assert set(UNITS) <= set(PARTS)


@pytest.mark.parametrize(
    ("name", "given", "expected"),
    [
        ("hour", [DATE], ((TIMESTAMP,), "BIGINT")),
        ("year", [DATE], ((DATE,), "BIGINT")),
        ("year", [NULL], ((TIMESTAMP,), "BIGINT")),
        ("sqrt", [INTEGER], ((DOUBLE,), "DOUBLE")),
        ("ceil", [INTEGER], ((DOUBLE,), "DOUBLE")),
        ("ceil", [decimal(9, 2)], ((decimal(9, 2),), "DECIMAL(9,0)")),
        ("eq", [VARCHAR, INTEGER], ((INTEGER, INTEGER), "BOOLEAN")),
        ("eq", [VARCHAR, NULL], ((VARCHAR, VARCHAR), "BOOLEAN")),
        ("abs", [NULL], (("BIGINT",), "BIGINT")),
        ("is_null", [NULL], ((NULL,), "BOOLEAN")),
        ("and", [BOOLEAN, NULL, BOOLEAN], ((BOOLEAN,) * 3, "BOOLEAN")),
    ],
    ids=str,
)
def test_resolving_gives_arguments_and_result(name, given, expected):
    found = SCALAR[name].resolve(given)
    assert found is not None
    assert [str(t) for t in found[0]] == [str(t) for t in expected[0]]
    assert str(found[1]) == expected[1]
