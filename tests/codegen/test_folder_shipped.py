"""Kernels that an installation brings along are loaded where nobody but its owner can have written them."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from fuseline.codegen.stored import folder
from fuseline.codegen.stored.folder import CODE, sealed

if TYPE_CHECKING:
    from pathlib import Path

KEY, OTHER_KEY = b"k" * 32, b"o" * 32


@pytest.fixture
def ships(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An installation with one kernel, which no secret proves."""
    place = tmp_path / "installed" / "kernels"
    place.mkdir(parents=True)
    for path in (place.parent, place):
        path.chmod(0o755)
    (place / f"q_one{CODE}").write_bytes(sealed(b"one", KEY, None))
    folder.write_list(place)
    monkeypatch.setattr(folder, "INSTALLATION", place.parent)
    return place


def loaded(place: Path, name: str = "q_one", key: bytes = KEY) -> bytes | None:
    found = folder.shipped(place)
    return None if found is None else found.load(name + CODE, key)


def test_a_shipped_kernel_is_loaded(ships: Path) -> None:
    assert loaded(ships) == b"one"
    assert loaded(ships, key=OTHER_KEY) is None
    assert loaded(ships, name="q_two") is None


@pytest.mark.parametrize("path", [".", "..", folder.LIST, f"q_one{CODE}"])
def test_a_shipped_kernel_that_others_could_write_is_not(ships: Path, path: str) -> None:
    (ships / path).chmod(0o777)
    assert loaded(ships) is None


def test_a_shipped_kernel_that_is_not_as_listed_is_not(ships: Path) -> None:
    (ships / f"q_one{CODE}").write_bytes(sealed(b"two", KEY, None))
    assert loaded(ships) is None
