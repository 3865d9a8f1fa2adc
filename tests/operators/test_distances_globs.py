"""GLOB has DuckDB's answers, which are of bytes."""

from __future__ import annotations

import itertools

from tests.compare import assert_same_as_duckdb

TEXTS = ["", "a", "ab", "a-", "]", "*", "é", "éa", "\\", "[", "!", "a\nb", "aXbXc", "b]", "-", None]
PATTERNS = ["", "*", "?", "??", "a*", "*b*", "**c", "a*b*c", "[!b]", "[^b]", "[a-c]*", "[]]", "\\*", "[é]", "[!a]", "[", "a[-]", "[a-]",
            "\\", "[c-a]", "[\\a]", "[!]", "[]", "[!", "a\\b", "[e-ü]?", "?[!-~]", "*[X]*[X]*", "[]-a]", None]  # fmt: skip


def test_glob_matches_as_in_duckdb() -> None:
    pairs = list(itertools.product(TEXTS, PATTERNS))
    table = {"s": [s for s, _ in pairs], "p": [p for _, p in pairs]}
    assert_same_as_duckdb(
        "select s, p, s glob p, s not glob p, s glob '[a-é]*' from t", {"t": table}, backend="cpu"
    )


def test_glob_stops_at_the_first_way_to_match() -> None:
    pattern = "*a" * 40 + "b"
    assert_same_as_duckdb(
        f"select s glob '{pattern}', name glob 'x' from t", {"t": {"s": ["a" * 60], "name": ["x"]}}
    )
