"""Rows that an expression is worked on at a time."""

from __future__ import annotations

import pytest

from fuseline.operators.cpu.functions import expressions


@pytest.mark.parametrize("threads", [1, 2, 3, 16])
@pytest.mark.parametrize("rows", [0, 1, 65_537, 131_072, 150_000, 262_145, 1_000_001])
def test_threads_have_as_many_rows_each(rows: int, threads: int) -> None:
    seen: list[tuple[int, int]] = []
    expressions._each_chunk(lambda start, stop: seen.append((start, stop)), rows, threads)
    seen.sort()
    assert [stop for _, stop in seen] == [*(start for start, _ in seen[1:]), rows]
    sizes = [stop - start for start, stop in seen]
    assert max(sizes) <= expressions.CHUNK_ROWS
    if threads > 1 and rows > expressions.CHUNK_ROWS // 2:
        assert max(sizes) - min(sizes) <= 8 * len(sizes)
