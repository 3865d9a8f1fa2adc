"""The first row of each group, and groups without rows left out, by the first chunks of the rows and by all of them."""

from __future__ import annotations

import numpy as np
import pytest

from fuseline.operators.cpu.aggregate import groups as grouping
from fuseline.operators.cpu.aggregate.groups import Groups

ROWS = 500
CODES = {
    "few": np.arange(ROWS) * 7 % 5,
    "a group that comes last": np.where(np.arange(ROWS) == ROWS - 1, 9, 3),
    "groups without rows": np.arange(ROWS) * 13 % 17 * 3 + 2,
    "each of its own": np.arange(ROWS)[::-1].copy(),
    "one row": np.array([4]),
    "no row": np.zeros(0, np.int64),
}


@pytest.fixture(autouse=True, params=[1 << 12, 0])
def few_codes(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(grouping, "FEW_CODES", request.param)
    monkeypatch.setattr(grouping, "FIRST_CHUNK", 16)


def first_of(codes: np.ndarray, group: int) -> int:
    return next((row for row, code in enumerate(codes.tolist()) if code == group), -1)


@pytest.mark.parametrize("name", CODES)
def test_the_first_row_of_each_group(name: str) -> None:
    codes = CODES[name]
    made = Groups(codes, 600, len(codes))
    assert made.first_rows().tolist() == [first_of(codes, group) for group in range(600)]


@pytest.mark.parametrize("name", CODES)
def test_groups_without_rows_are_left_out(name: str) -> None:
    codes = CODES[name]
    made, first = Groups(codes, 600, len(codes)).compact()
    there = sorted(set(codes.tolist()))
    assert made.count == len(there)
    assert first.tolist() == [first_of(codes, group) for group in there]
    assert made.all_codes.tolist() == [there.index(code) for code in codes.tolist()]
    assert made.sizes.tolist() == [codes.tolist().count(group) for group in there]


def test_all_rows_are_one_group() -> None:
    assert Groups(None, 1, 3).first_rows().tolist() == [0]
    assert Groups(None, 1, 0).first_rows().tolist() == [-1]
