"""Buckets of hashed indexes: for the rows that are expected, and on the GPU for those that a run put in."""

from __future__ import annotations

from dataclasses import replace

import pytest

from fuseline.codegen.indexes.choose import CACHED_SLOTS
from fuseline.codegen.indexes.layers import Buckets, Direct, Index, Layer
from fuseline.operators.gpu.pipeline.regions import far_off, with_buckets
from tests.codegen.bodies import Tables, grouped, join, made, where

LARGE = 4 * CACHED_SLOTS


def index(slots: int, form: type[Layer] = Buckets) -> Index:
    return Index(3, "u", form, slots, 10**8)


@pytest.mark.parametrize(
    ("few", "buckets"),
    [
        (None, 1 << 17),
        (100_000, 1 << 17),
        (40_000, 1 << 16),
        (100, 1 << 15),  # should none of the 100,000 be left out, a bucket has three
        (10**9, 1 << 17),
    ],
)
def test_buckets_for_the_rows_that_are_expected(few: float | None, buckets: int) -> None:
    tables = Tables()
    left = tables.scan("left_side", 100, a=(0, 2**40))
    right = tables.scan("right_side", 100_000, c=(0, 2**40), d=(0, 9))
    kept = replace(where(right, "eq", "d", 3), estimate=few)
    (made_index,) = made(grouped(join(left, kept, "a = c"), "d"), tables).indexes
    assert (made_index.form, made_index.slots) == (Buckets, buckets)


def test_only_what_is_far_off_is_laid_out_anew() -> None:
    assert far_off([index(LARGE)], [LARGE // 3], {}) == {}
    assert far_off([index(LARGE)], [LARGE // 4], {}) == {3: LARGE // 4}
    assert far_off([index(LARGE)], [2 * LARGE], {}) == {}
    assert far_off([index(LARGE)], [3 * LARGE], {}) == {3: 3 * LARGE}
    assert far_off([index(LARGE)], [0], {}) == {3: 0}


def test_small_indexes_and_those_without_buckets_stay() -> None:
    assert far_off([index(CACHED_SLOTS)], [1], {}) == {}
    assert far_off([index(CACHED_SLOTS)], [4 * CACHED_SLOTS], {}) == {3: 4 * CACHED_SLOTS}
    assert far_off([index(LARGE, Direct)], [1], {}) == {}


def test_runs_of_two_kinds_come_to_rest() -> None:
    """Parameters that leave few rows and parameters that leave many take turns."""
    built: dict[int, int] = {}
    changes = 0
    for run in range(6):
        (now,) = with_buckets([index(LARGE)], built)
        better = far_off([now], [10 if run % 2 == 0 else 10**8], built)
        changes += bool(better)
        built |= better
    assert changes == 2
    assert with_buckets([index(LARGE)], built)[0].slots == 1 << 27


def test_only_buckets_change() -> None:
    small, direct = index(LARGE), index(LARGE, Direct)
    assert with_buckets([small, direct], {3: 1000}) == (index(1024), direct)
