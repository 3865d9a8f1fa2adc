"""Values as shells, notebooks and terminals show them: nested ones as DuckDB's casts to text do."""

from __future__ import annotations

from typing import Any

import duckdb
import pytest

VALUES = [
    "['a', null, 'it''s', 'x y', 'a,b', '', 'Null', ' pad', '[x]', 'a=b', 'a:b', 'back\\slash', '(c)']",
    "{'a': null, 'b c': 'x', 'd': [date '2020-01-01', null], 'e': {'q''s': true}}",
    "[{'a': 1}, null, {'a': -2}]",
    "[timestamp '2020-01-01 01:02:03.5', '2020-01-01 00:00:00', null]",
    "[time '10:00:00', null]",
    "[interval '1 month 2 days', null]",
    "[1.50::decimal(5, 2), null]",
    "['\\x00\\xAAz'::blob, null]",
    "'\\x00\\xAA\\x27\\x5Cz ~'::blob",
    "[[]::integer[], [null, 1]]",
    "row(1, 'x', null)",
    "uuid '00000000-0000-0000-0000-000000000001'",
    "date '2020-02-29'",
    "true",
    "null::integer",
]


@pytest.mark.parametrize("value", VALUES)
def test_a_value_is_the_text_that_duckdb_casts_to(
    value: str, connection: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "200")  # a narrow terminal would cut it short
    shown = connection.sql(f"select {value} as v")
    cast = duckdb.sql(f"select coalesce(({value})::varchar, 'NULL')").fetchall()[0][0]
    lines = [
        line.split("│")[1].strip() for line in repr(shown).splitlines() if line.count("│") == 2
    ]
    assert lines[2:] == [cast]


def test_a_map_is_shown_as_a_struct(connection: Any) -> None:
    shown = repr(connection.sql("select map {'k': null, 'l m': 1.5} as a, map {1: [true]} as b"))
    assert "{'k': NULL, 'l m': 1.5}" in shown
    assert "{1: [true]}" in shown
