"""Random shapes of queries with many draws of constants and data: a fixed sample in CI, new seeds by night."""

from __future__ import annotations

import time
from collections.abc import Iterator

import pytest

from tests.random_queries.cases import MAKERS, Engines, assert_sound, run_shape
from tests.random_queries.changes import run_sequence
from tests.random_queries.shapes import HOLE

SECONDS_BY_NIGHT = 600


@pytest.fixture(scope="module")
def engines(backend: str) -> Iterator[Engines]:
    made = Engines(backend, None, ("never", "always"))
    with made.stack:
        yield made


@pytest.mark.parametrize("maker", MAKERS)
def test_shapes_are_many(maker: str) -> None:
    shapes = {MAKERS[maker](seed) for seed in range(300)}
    assert len(shapes) > 295
    assert sum(bool(HOLE.search(text)) for text in shapes) > 150


@pytest.mark.parametrize(
    ("maker", "mode", "shapes", "draws"),
    [("shape", "never", 12, 8), ("shape", "always", 3, 4), ("wide", "never", 40, 1)],
)
def test_a_sample(maker: str, mode: str, shapes: int, draws: int, backend: str) -> None:
    engines = Engines(backend, None, (mode,))
    with engines.stack:
        lines = [run_shape(engines, seed, draws, maker=MAKERS[maker]) for seed in range(shapes)]
        assert_sound(lines)


@pytest.mark.nightly
@pytest.mark.timeout(SECONDS_BY_NIGHT * 3)
@pytest.mark.parametrize("maker", MAKERS)
def test_new_seeds(engines: Engines, maker: str) -> None:
    end = time.monotonic() + SECONDS_BY_NIGHT / len(MAKERS)
    seed, lines = time.time_ns() // 1_000_000, []
    while time.monotonic() < end:
        lines.append(run_shape(engines, seed, draws=25, maker=MAKERS[maker]))
        seed += 1
    assert_sound(lines)


def test_a_sample_of_changes(backend: str) -> None:
    engines = Engines(backend, None, ("never",))
    with engines.stack:
        assert_sound([run_sequence(engines, seed) for seed in range(8)], least=0.75)


@pytest.mark.nightly
@pytest.mark.timeout(SECONDS_BY_NIGHT * 3)
def test_changes_of_new_seeds(engines: Engines) -> None:
    end = time.monotonic() + SECONDS_BY_NIGHT / len(MAKERS)
    seed, lines = time.time_ns() // 1_000_000, []
    while time.monotonic() < end:
        lines.append(run_sequence(engines, seed))
        seed += 1
    assert_sound(lines, least=0.75)
