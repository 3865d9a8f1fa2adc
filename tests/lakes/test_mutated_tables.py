"""Delta and Iceberg tables and databases with faults in their metadata: a clear error or rows, never a crash or a file outside."""

from __future__ import annotations

import time
from pathlib import Path

import pytest

from tests.lakes.mutated_tables import check

pytest.importorskip("deltalake", reason="the extra delta is not installed")
pytest.importorskip("pyiceberg.catalog.sql", reason="the extra iceberg is not installed")


def test_damaged_metadata(tmp_path: Path) -> None:
    counts = check(seed=1, count=20, room=tmp_path)
    assert sum(n for name, n in counts.items() if name.endswith("rows")) > 5


@pytest.mark.nightly
@pytest.mark.timeout(1800)
def test_damaged_metadata_of_new_seeds(tmp_path: Path) -> None:
    seed = int(time.time())
    print(f"seed {seed}:", check(seed, 500, tmp_path))
