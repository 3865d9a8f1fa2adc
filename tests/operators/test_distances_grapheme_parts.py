"""What readers take for one character."""

from __future__ import annotations

import random

import pyarrow as pa

from tests.compare import assert_same_as_duckdb


def test_what_readers_take_for_a_character() -> None:
    """2,000 texts of letters, accents, emoji, joiners, flags and line ends, drawn at random."""
    draw = random.Random(7)
    letters = [*"ab1 \r\n", *"\u00e9\u0301\u200d\ufe0f\u4e2d\u2764\u0903\u00a9"]
    letters += ["\U0001f600", "\U0001f468", "\U0001f3fb", "\U0001f1e6", "\U0001f1e9"]
    texts = ["".join(draw.choices(letters, k=draw.randint(1, 6))) for _ in range(2000)]
    tables = {"t": pa.table({"s": texts})}
    assert_same_as_duckdb("select s, length_grapheme(s), reverse(s) from t", tables)
    # DuckDB cuts a line end in two where all before it is ASCII
    parts = (
        "select s, left_grapheme(s, 1), right_grapheme(s, 2) from t where not contains(s, chr(13))"
    )
    assert_same_as_duckdb(parts, tables)
