"""Random shapes of queries with many draws of constants and data: a fixed sample in CI, new seeds by night."""

from __future__ import annotations

import random
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.random_queries.cases import MAKERS, Engines, assert_sound, run_shape
from tests.random_queries.changes import run_sequence
from tests.random_queries.deep import keyed, single
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


@pytest.mark.timeout(SECONDS_BY_NIGHT * 3)
@pytest.mark.parametrize(
    ("first", "connections"),
    [(0, 4), pytest.param(None, 250, marks=pytest.mark.nightly)],  # None: new seeds
)
def test_random_tiers_and_limits(
    first: int | None, connections: int, backend: str, tmp_path: Path
) -> None:
    """Chunks of a few rows, from files, a store or memory of the host, answer as all rows do; four queries a connection.

    Few have kernels, since each chunk that is read from a file may have its own.
    """
    lines, chunks = [], 0
    first = time.time_ns() // 1_000_000 if first is None else first
    for seed in range(first, first + connections):
        draw = random.Random(seed)
        settings: dict[str, Any] = {
            "column_cache_limit": draw.choice((0, 10, 100)),
            "host_cache_limit": draw.choice((0, 1000, None)),
            "memory_limit": draw.choice((None, "200MB", "1GB")),
            "column_store": draw.choice((None, tmp_path / str(seed))),
        }
        mode, maker = "always" if seed % 12 == 5 else "never", draw.choice((keyed, single))
        engines = Engines(backend, None, (mode,), files=tmp_path, **settings)
        with engines.stack:
            lines += [run_shape(engines, 4 * seed + i, 1, maker=maker) for i in range(4)]
        chunks += engines.chunks
    assert_sound(lines)
    assert chunks > connections


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
