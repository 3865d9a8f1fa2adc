"""Where arrays of GPU kernels lie in their buffers."""

from __future__ import annotations

import numpy as np
import pytest

from fuseline.codegen.groups.accumulate import FOLDS, Accumulator
from fuseline.codegen.loop import Machine, Number
from fuseline.operators.gpu.pipeline.regions import ALIGNMENT, BYTES, Region, Regions


def test_neighbours_that_begin_alike_are_filled_at_once() -> None:
    regions = Regions()
    first = regions.accumulators([0, 0], 5)
    second = regions.accumulators([0], 3)
    ((filled, word),) = regions.fills
    assert word == 0
    assert filled.start == first.start
    assert filled.start + filled.size == second.start + second.size


def test_what_begins_otherwise_or_is_not_filled_stays_as_it_is() -> None:
    regions = Regions()
    zeros = regions.accumulators([0], 3)
    keys = regions.keys(4)
    kept = regions.working(1, 4)
    more = regions.keys(4)
    assert regions.fills == [(zeros, 0), (keys, -1), (more, -1)]
    assert keys.start + keys.size <= kept.start < more.start


def test_buffers_apart_are_filled_apart() -> None:
    regions = Regions()
    regions._fill(regions._add(Region.WORKING, 8, 8), 0)
    regions._fill(regions._add(Region.RESULTS, 8, 8), 0)
    assert [span.region for span, _ in regions.fills] == [Region.WORKING, Region.RESULTS]


def test_fills_cover_each_array_and_no_other() -> None:
    """Whatever arrays are added: after all fills each word that was to be filled holds its word, and no other has changed."""
    made = np.random.default_rng(3)
    for _ in range(50):
        regions, wanted, free = Regions(), [], []
        for _ in range(made.integers(1, 8)):
            length, word = int(made.integers(0, 70)), int(made.integers(-1, 2))
            if word == 1:
                free.append(regions.working(length, 8))
            else:
                span = regions.accumulators([word], length)
                wanted.append((span, word))
        memory = np.full(regions.sizes[Region.WORKING] // 8 + 1, 7, np.int64)
        for span, word in regions.fills:
            assert span.start % ALIGNMENT == 0
            memory[span.start // 8 :][: span.length] = word
        for span, word in wanted:
            assert (memory[span.start // 8 :][: span.length] == word).all()
        for span in free:
            assert (memory[span.start // 8 :][: span.length] == 7).all()


@pytest.mark.parametrize("fold", ["min", "max"])
def test_extremes_begin_with_bytes_that_are_alike_where_no_value_is_beyond(fold: str) -> None:
    near, far = (
        Accumulator(fold, Machine.I64, Number(0, Machine.I64), None, m) for m in (2**62, 2**63 - 1)
    )
    (word,) = np.array([near.initial], np.int64)
    assert np.array([BYTES[near.initial]] * 8, np.uint8).view(np.int64)[0] == word
    assert FOLDS[fold](word, [2**62, -(2**62)]).tolist() == [2**62, -(2**62)]
    assert far.initial == far.identity
