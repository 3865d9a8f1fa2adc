"""Files of ours with faults: spilled rows, stored columns, kernels, databases, histories: right answers or a clear error, and nothing ends or hangs."""

from __future__ import annotations

import time

import pytest

from tests.storage.mutated_own_files import KINDS
from tests.storage.test_mutated_files import read_all

PROGRAM = "tests.storage.mutated_own_files"


def check(seed: int, count: int) -> None:
    """Assert that so many faults of each kind were foreseen."""
    found = read_all(seed, 0, count * len(KINDS), program=PROGRAM)
    assert found.crashed == [], f"seed {seed}"
    assert len(found.given) == count * len(KINDS)
    assert [(n, g) for n, (g,) in found.given.items() if not foreseen(g)] == [], f"seed {seed}"
    assert found.peak < 600  # megabytes


def foreseen(given: str) -> bool:
    return given == "right" or given.startswith("refused: ")


def test_damaged_files_of_ours() -> None:
    check(seed=1, count=15)


@pytest.mark.nightly
def test_damaged_files_of_ours_of_new_seeds() -> None:
    check(seed=int(time.time()), count=500)
