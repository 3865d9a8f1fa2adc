"""Random pairs of texts that share a shape have the answers and the names of columns that DuckDB gives them: some each day, all by night."""

from __future__ import annotations

import time

import pytest

from tests.random_queries.cases import Engines
from tests.shapes.pairs import check_pairs

MOST_FUSED = 400  # whose kernels have to be compiled


@pytest.mark.parametrize(("mode", "pairs"), [("never", 200)])
def test_a_sample(mode: str, pairs: int) -> None:
    engines = Engines("cpu", None, (mode,))
    with engines.stack:
        origins = check_pairs(engines, range(pairs))
    assert origins["shape"] > pairs / 4
    assert origins["guards"] > pairs / 20
    assert not origins["alone"]


@pytest.mark.nightly
@pytest.mark.timeout(3600)
@pytest.mark.parametrize("seeds", ["fixed", "new"])
@pytest.mark.parametrize(("mode", "pairs"), [("never", 10_000), ("always", MOST_FUSED)])
def test_all(mode: str, pairs: int, seeds: str, backend: str) -> None:
    start = 0 if seeds == "fixed" else time.time_ns() // 1_000_000
    print(f"seeds from {start} on")
    engines = Engines(backend, None, (mode,))
    with engines.stack:
        origins = check_pairs(engines, range(start, start + pairs))
    assert origins["shape"] > pairs / 4
    assert origins["alone"] < pairs / 500
