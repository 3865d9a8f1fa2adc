"""CSV, JSON and Arrow files with faults: rows or a clear error, in bounded memory, and the process lives on."""

from __future__ import annotations

import time

import pytest

from tests.file_tables.mutated_texts import EXPECTED, bases, mutant
from tests.storage.test_mutated_files import read_all

PROGRAM = "tests.file_tables.mutated_texts"


def check(seed: int, count: int) -> None:
    """Assert that nothing foreign came out of some files, and that a good part of them was read."""
    found = read_all(seed, 0, count, program=PROGRAM)
    assert found.crashed == [], f"seed {seed}"
    foreign = {
        number: given
        for number, given in found.given.items()
        if not all(each.startswith("rows") or each in EXPECTED for each in given)
    }
    assert foreign == {}, f"seed {seed}: {found.notes[:5]}"
    assert sum(given[0].startswith("rows") for given in found.given.values()) > count * 0.2
    assert found.peak < 600  # megabytes


def test_mutants_differ_from_whole_files() -> None:
    assert len({mutant(1, number) for number in range(54)} - set(bases())) > 50


def test_damaged_texts() -> None:
    check(seed=1, count=54)


@pytest.mark.nightly
def test_damaged_texts_of_new_seeds() -> None:
    check(seed=int(time.time()), count=3600)
