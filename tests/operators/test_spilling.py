"""Where the parts of joins lie: in the host's memory up to a limit, then in files, and nowhere once they are joined."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from fuseline.errors import ExecutionError
from fuseline.operators import spilling
from fuseline.operators.spill_area import SpillArea, SpilledPiece
from tests.operators.test_join_parts import QUERIES, T, U, connect, fail_whole_joins


def test_host_memory_is_used_up_to_its_limit(tmp_path: Path) -> None:
    rows = pa.record_batch({"k": pa.array(range(100))})
    piece = SpilledPiece(rows, [0] + [100] * spilling.PARTS)
    with SpillArea(tmp_path, 1000) as area:
        assert area.keep(piece, "gpu") is piece
        assert area.keep(piece, "gpu").parts(0, 64)[0].equals(rows)
        (file,) = tmp_path.rglob("*.arrow")
        assert area.keep(SpilledPiece(rows, piece.bounds, 1), "cpu").size > 0
        area.drop(piece)
        assert area.keep(piece, "gpu") is piece
        assert file.exists()
    assert not list(tmp_path.iterdir())


def test_a_piece_counts_as_the_memory_that_it_occupies(tmp_path: Path) -> None:
    rows = pa.record_batch({"k": pa.array(range(100))})
    piece = SpilledPiece(rows, [0] + [100] * spilling.PARTS, 4096)
    assert (piece.size, piece.place) == (4096, "pinned host memory")
    with SpillArea(tmp_path, 4000) as area:
        kept = area.keep(piece, "gpu")
        assert kept.place == "disk"
        area.drop(kept)
        assert not list(tmp_path.rglob("*.arrow"))


def test_where_neither_memory_nor_disk_has_room(tmp_path: Path) -> None:
    """The error says how much there is of both, and how to have more."""
    place = tmp_path / "file"
    place.write_text("")
    rows = pa.record_batch({"k": pa.array(range(1000))})
    piece = SpilledPiece(rows, [0] + [1000] * spilling.PARTS)
    with SpillArea(place, 10_000) as area:
        area.keep(piece, "gpu")
        message = (
            r"7\.8 KiB were to be written.*Host memory holds 7\.8 KiB of spill_memory = 9\.8 KiB\. "
            r"Name a directory with more room by connect\(spill_dir=\.\.\.\), or raise spill_memory or memory_limit\."
        )
        with pytest.raises(ExecutionError, match=message):
            area.keep(piece, "gpu")


def test_what_an_earlier_join_spilled_leaves_before_the_next(
    tmp_path: Path, monkeypatch: Any
) -> None:
    """Files of a join are gone when the next one runs."""
    joined, seen = spilling._worked, []

    def counted(*given: Any) -> Any:
        seen.append(len(list(tmp_path.rglob("*.arrow"))))
        return joined(*given)

    monkeypatch.setattr(spilling, "_worked", counted)
    fail_whole_joins(monkeypatch)
    with connect(tmp_path, {"t": T, "u": U}, None, "never") as connection:
        connection.sql(QUERIES["three"]).to_arrow()
    assert len(seen) >= 2
    assert max(seen) == 2
