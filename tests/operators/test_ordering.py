"""Orders of many integers, by buckets: the same as of few, whatever the values."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pytest

from fuseline.operators.cpu.memory import chunks
from fuseline.operators.cpu.sort import ordering
from tests.limits import SetLimits

ROWS = 5000
RANDOM = np.random.default_rng(3)
ENDS = np.iinfo(np.int64)
VALUES = {
    "random": RANDOM.integers(ENDS.min, ENDS.max, ROWS, endpoint=True),
    "few": RANDOM.integers(0, 3, ROWS),
    "one": np.full(ROWS, 7),
    "ascending": np.arange(ROWS),
    "descending": np.arange(ROWS)[::-1].copy(),
    "mostly one": np.where(RANDOM.random(ROWS) < 0.9, ENDS.max, RANDOM.integers(-9, 9, ROWS)),
    "ends": RANDOM.choice([ENDS.min, ENDS.max, 0, -1], ROWS),
    "few and others": np.where(
        RANDOM.random(ROWS) < 0.95,
        RANDOM.integers(-3, 3, ROWS),
        RANDOM.integers(ENDS.min, ENDS.max, ROWS),
    ),
}


@pytest.fixture(autouse=True)
def small(monkeypatch: pytest.MonkeyPatch, limits: SetLimits) -> Iterator[None]:
    """What is done for millions of rows is done for hundreds."""
    limits(MOST_AT_ONCE=100, BUCKET_ROWS=60)
    for module in (ordering, chunks):
        monkeypatch.setattr(module, "CHUNK_ROWS", 256)
    return


@pytest.mark.parametrize("name", VALUES)
def test_one_key(name: str) -> None:
    values = VALUES[name]
    np.testing.assert_array_equal(
        ordering.stable_order(values, 1 << 40), np.argsort(values, kind="stable")
    )


@pytest.mark.parametrize("first", VALUES)
@pytest.mark.parametrize("second", ["random", "few"])
def test_several_keys(first: str, second: str) -> None:
    parts = [VALUES[first], VALUES[second], VALUES["few"][::-1]]
    np.testing.assert_array_equal(ordering.lexicographic(parts), np.lexsort(parts[::-1]))


WIDE = {
    "far apart": RANDOM.integers(ENDS.min, ENDS.max, ROWS, endpoint=True),
    "in few bits at the end": (1 << 61) + RANDOM.integers(0, 50, ROWS),
    "in few bits at the start": RANDOM.integers(0, 50, ROWS) << 57,
    "of two places": RANDOM.integers(0, 40, ROWS) + (RANDOM.integers(0, 40, ROWS) << 55),
    "doubles": RANDOM.random(ROWS).view(np.int64),
    "one": np.full(ROWS, ENDS.min),
}


@pytest.mark.parametrize("first", WIDE)
@pytest.mark.parametrize("second", WIDE)
def test_words_of_more_bits_than_fit_one_integer_are_sorted_by_some_bits_at_a_time(
    first: str, second: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(ordering, "_better_merged", lambda codes: False)
    words = [WIDE[first], WIDE[second], VALUES["few"]]
    np.testing.assert_array_equal(ordering.order_by_words(words), np.lexsort(words[::-1]))


def test_rows_that_seem_sorted_or_tie_are_merged() -> None:
    assert ordering._better_merged(np.arange(ROWS))
    assert ordering._better_merged(VALUES["few"])
    assert not ordering._better_merged(VALUES["random"])
