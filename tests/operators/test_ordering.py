"""Orders and numbers of many integers, by buckets: the same as of few, whatever the values."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pytest

from fuseline import stopping
from fuseline.errors import Interrupted
from fuseline.operators.cpu.memory import chunks
from fuseline.operators.cpu.sort import ordering
from fuseline.stopping import Stop
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


@pytest.mark.parametrize("name", VALUES)
def test_numbers_differ_where_values_do(name: str) -> None:
    values = VALUES[name]
    numbers, size = ordering.renumber(values)
    distinct = np.unique(values)
    assert size == len(distinct)
    pairs = {(int(v), int(n)) for v, n in zip(values, numbers, strict=True)}
    assert len(pairs) == size
    assert {n for _, n in pairs} == set(range(size))


@pytest.mark.parametrize("build", VALUES)
@pytest.mark.parametrize("probe", ["random", "few", "ends", "ascending"])
@pytest.mark.parametrize("nulls", [False, True])
def test_numbers_of_two_sides(build: str, probe: str, nulls: bool) -> None:
    ours, theirs = VALUES[build], VALUES[probe][:3000]
    valid = RANDOM.random(ROWS) < 0.5 if nulls else np.ones(ROWS, bool)
    mine, others, size = ordering.number_distinct(ours, valid if nulls else None, theirs)
    known = {int(v): int(n) for v, n, ok in zip(ours, mine, valid, strict=True) if ok}
    assert len(set(known.values())) == len(known)
    assert all(0 <= n < size for n in known.values())
    assert [known.get(int(v), -1) for v in theirs] == others.tolist()
    assert all(known[int(v)] == n for v, n, ok in zip(ours, mine, valid, strict=True) if ok)


def test_a_stop_between_buckets(monkeypatch: pytest.MonkeyPatch) -> None:
    stop, calls = Stop(), []
    encoded = ordering._encoded

    def ask(codes: ordering.Ints) -> tuple[ordering.Ints, int]:
        calls.append(1)
        if len(calls) == 3:
            stop.ask()
        return encoded(codes)

    monkeypatch.setattr(ordering, "_encoded", ask)
    with pytest.raises(Interrupted), stopping.Stoppable(stop):
        ordering.renumber(VALUES["random"])
    assert len(calls) < 8
