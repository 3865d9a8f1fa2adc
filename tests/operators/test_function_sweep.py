"""Functions and casts over extremes of every type, against DuckDB: a fixed sample in CI, new seeds by night."""

from __future__ import annotations

import time
from collections.abc import Iterator

import pytest

from tests.random_queries.functions import Sweep

SECONDS_BY_NIGHT = 300


@pytest.fixture
def sweep() -> Iterator[Sweep]:
    made = Sweep(fused_share=0.0)
    yield made
    made.close()


def assert_no_mismatch(sweep: Sweep, seeds: str) -> None:
    tally = sweep.tally
    shown = [f"{kind}: {found[0][:1000]}" for kind, found in tally.mismatches.items()]
    assert not shown, f"{seeds}: {tally.cases} cases\n" + "\n".join(shown)
    assert tally.same > tally.cases * 0.4, "many cases answer"


@pytest.mark.parametrize("casts", [False, True], ids=["functions", "casts"])
def test_a_sample(sweep: Sweep, casts: bool) -> None:
    for seed in range(60):
        sweep.run(seed, casts)
    assert_no_mismatch(sweep, "seeds 0 to 59")


@pytest.mark.nightly
@pytest.mark.timeout(SECONDS_BY_NIGHT * 3)
@pytest.mark.parametrize("casts", [False, True], ids=["functions", "casts"])
def test_new_seeds(sweep: Sweep, casts: bool) -> None:
    sweep.fused_share = 0.05
    first = seed = time.time_ns() // 1_000_000
    while time.time_ns() // 1_000_000 < first + SECONDS_BY_NIGHT * 1000:
        sweep.run(seed, casts)
        seed += 1
    assert_no_mismatch(sweep, f"seeds {first} to {seed}")
