"""Many different kernels in one process."""

from __future__ import annotations

import os
from pathlib import Path

import pyarrow as pa
import pytest

import fuseline
from tests.limits import SetLimits


@pytest.mark.nightly
def test_500_kernels_in_one_process(tmp_path: Path, limits: SetLimits) -> None:
    """Memory, descriptors and the folder stay as they are once as many kernels, and plans, have come up as are kept."""
    limits(host_functions__KERNELS_KEPT=100, plan_cache__KEPT_PLANS=100)
    limit, columns, taken = 500_000, 9, []
    with fuseline.connect("cpu", fuse="always", cache_dir=tmp_path, kernel_cache_limit=limit) as c:
        c.register("t", pa.table({f"c{i}": [*range(i, 1000 + i)] for i in range(columns)}))
        for number in range(1, 501):
            sums = [f"sum(c{i})" for i in range(columns) if number >> i & 1]
            rows = c.execute(f"select {', '.join(sums)} from t where c0 > 10").fetchall()
            assert len(rows) == 1
            if number in (250, 500):
                pages = int(Path("/proc/self/statm").read_text().split()[1])
                taken.append(
                    (pages * os.sysconf("SC_PAGE_SIZE"), len([*Path("/proc/self/fd").iterdir()]))
                )
            assert sum(path.stat().st_size for path in tmp_path.iterdir()) <= 1.1 * limit
    (before, opened), (after, still) = taken
    assert after - before < 25_000_000
    assert still <= opened
