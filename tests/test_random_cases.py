"""Random shapes of queries with many draws of constants and data: a fixed sample in CI, new seeds by night."""

from __future__ import annotations

import time
from collections.abc import Iterator
from typing import Any

import pytest

from tests.random_cases import Engines, run_shape
from tests.random_shapes import HOLE, shape

SECONDS_BY_NIGHT = 600


@pytest.fixture(scope="module")
def engines(backend: str) -> Iterator[Engines]:
    made = Engines(backend, None, ("never", "always"))
    with made.stack:
        yield made


def assert_sound(lines: list[dict[str, Any]]) -> None:
    found = [
        f"seed {line['seed']}: {f['words']}\n{f['repro']}" for line in lines for f in line["found"]
    ]
    assert not found, "\n\n".join(found[:3])
    cases = sum(sum(line["counts"].values()) for line in lines)
    same = sum(n for line in lines for kind, n in line["counts"].items() if kind.endswith("same"))
    assert same > 0.9 * cases


def test_shapes_are_many() -> None:
    shapes = {shape(seed) for seed in range(300)}
    assert len(shapes) > 295
    assert sum(bool(HOLE.search(text)) for text in shapes) > 150


@pytest.mark.parametrize(("mode", "shapes", "draws"), [("never", 12, 8), ("always", 3, 4)])
def test_a_sample(mode: str, shapes: int, draws: int, backend: str) -> None:
    engines = Engines(backend, None, (mode,))
    with engines.stack:
        assert_sound([run_shape(engines, seed, draws) for seed in range(shapes)])


@pytest.mark.nightly
@pytest.mark.timeout(SECONDS_BY_NIGHT * 3)
def test_new_seeds(engines: Engines) -> None:
    end = time.monotonic() + SECONDS_BY_NIGHT
    seed, lines = time.time_ns() // 1_000_000, []
    while time.monotonic() < end:
        lines.append(run_shape(engines, seed, draws=25))
        seed += 1
    assert_sound(lines)
