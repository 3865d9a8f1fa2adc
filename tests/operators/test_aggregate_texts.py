"""min, max, arg_min and arg_max of many strings, of which few are ranked: those whose first bytes are the extreme ones of their group."""

from __future__ import annotations

import random
from collections.abc import Callable

import pyarrow as pa
import pytest

from fuseline.operators.cpu.aggregate import aggregate_values
from fuseline.operators.cpu.sort import text_words
from tests.compare import assert_same_as_duckdb

ROWS = 9_000  # more than are ranked without a look at their first bytes
draw = random.Random(5)
WORDS = [
    "", "a", "ab", "abc", "abcdefgh", "abcdefghi", "\x00", "a\x00", "é", "日本", "\U0001f600", "zz",
]  # fmt: skip
STRINGS: dict[str, Callable[[int], str | None]] = {
    "words": lambda n: draw.choice(WORDS),
    "numbers": lambda n: str(draw.randrange(10**9)),
    "a long beginning": lambda n: "customer#" * 9 + str(draw.randrange(10**6)),
    "one beginning a group": lambda n: f"group {n % 7} " * 12 + str(draw.randrange(10**6)),
    "blocks": lambda n: "x" * 8 * (n % 40) + draw.choice("xy"),
    "all equal": lambda n: "the same text of more than eight bytes",
    "all but one equal": lambda n: "the same text" if n != 4321 else "the same tex",
    "NULLs": lambda n: draw.choice([None, None, *WORDS]),
    "NULL groups": lambda n: None if n % 7 < 3 else str(n),
    "nothing but NULLs": lambda n: None,
}


@pytest.fixture(autouse=True)
def without_kernels(monkeypatch: pytest.MonkeyPatch) -> None:
    """As long as those of `text_words` are not compiled."""
    monkeypatch.setattr(text_words, "FEW_TEXTS", 1 << 62)


@pytest.mark.parametrize("strings", STRINGS)
def test_they_are_duckdbs(strings: str) -> None:
    made = [STRINGS[strings](n) for n in range(ROWS)]
    table = pa.table(
        {"g": [n % 7 for n in range(ROWS)], "s": pa.array(made, pa.string()), "n": range(ROWS)}
    )
    query = "select g, min(s), max(s), arg_min(n, s), arg_max(n, s), count(s) from t group by g"
    assert_same_as_duckdb(query, {"t": table}, fuse=("always", "never"))
    assert_same_as_duckdb("select min(s), max(s) from t", {"t": table}, fuse=("always", "never"))


def test_few_strings_are_ranked(monkeypatch: pytest.MonkeyPatch) -> None:
    ranked: list[int] = []
    rank = aggregate_values.ordered_images

    def counted(array: pa.Array) -> object:
        ranked.append(len(array))
        return rank(array)

    monkeypatch.setattr(aggregate_values, "ordered_images", counted)
    made = pa.table({"s": [str(n * 7919 % ROWS) for n in range(ROWS)]})
    assert_same_as_duckdb("select min(s), max(s) from t", {"t": made}, fuse=("never",))
    assert ranked
    assert max(ranked) <= aggregate_values.FEW_STRINGS
