"""`auto`: what is small runs unfused, and so does the first run while its kernel compiles."""

from __future__ import annotations

import time
from pathlib import Path

import numpy as np
import pyarrow as pa

import fuseline
from fuseline.planner.pipelines.fuse import SMALL_INPUT
from tests.compare import assert_same_as_duckdb, connected

QUERY = "select sum(v), count(*) from t where v > 100"


def test_a_small_input_is_not_fused(tmp_path: Path) -> None:
    with fuseline.connect(device="cpu", fuse="auto", cache_dir=tmp_path) as connection:
        connection.register("t", pa.table({"v": np.arange(SMALL_INPUT - 1)}))
        frame = connection.sql(QUERY)
        frame.to_arrow()
        assert "Pipeline" not in [node.name for node in frame.profile.nodes]
    assert not list(tmp_path.iterdir())


def test_operators_answer_while_the_kernel_compiles(tmp_path: Path) -> None:
    table = pa.table({"v": np.arange(3 * SMALL_INPUT)})
    with connected({"t": table}, fuse="auto", cache_dir=tmp_path) as connection:
        answers, notes = [], []
        while not (notes and notes[-1].startswith("kernel ")):
            frame = connection.sql(QUERY)
            answers.append(frame.to_arrow())
            notes += [n.note for n in frame.profile.nodes if n.name == "Pipeline"]
            time.sleep(0.05)
    assert "being compiled" in notes[0]
    assert notes[-1].startswith("kernel ")
    assert all(answer.equals(answers[0]) for answer in answers)


def test_a_kernel_that_is_on_disk_is_used_at_once(tmp_path: Path) -> None:
    table = pa.table({"v": np.arange(3 * SMALL_INPUT)})
    for mode in ("always", "auto"):
        with connected({"t": table}, fuse=mode, cache_dir=tmp_path) as connection:
            frame = connection.sql(QUERY)
            frame.to_arrow()
            (note,) = [n.note for n in frame.profile.nodes if n.name == "Pipeline"]
            assert note.startswith("kernel ")


def test_groups_are_hashed_where_their_keys_repeat_or_are_dense(tmp_path: Path) -> None:
    rows = 3 * SMALL_INPUT
    far, dense = np.arange(rows) ** 2 * 1000003, np.arange(rows)[::-1] * 3
    columns = {"v": np.arange(rows), "few": far[np.arange(rows) % 97], "many": far, "near": dense}
    few, many, near = (
        f"select {k}, sum(v) as total from t group by {k}" for k in ("few", "many", "near")
    )
    tables = {"t": pa.table(columns)}
    with connected(tables, fuse="auto", cache_dir=tmp_path) as connection:
        assert settled_note(few, connection).startswith("kernel ")
        assert "a domain of more than" in settled_note(many, connection)
        assert settled_note(near, connection).startswith("kernel ")
        for query in (few, near):
            assert_same_as_duckdb(query, tables, connection=connection)


def settled_note(query: str, connection: fuseline.Connection) -> str:
    """What a pipeline says of its run, once no kernel is compiled for it any more."""
    deadline = time.monotonic() + 60
    while True:
        frame = connection.sql(query)
        frame.to_arrow()
        (note,) = [n.note for n in frame.profile.nodes if n.name == "Pipeline"]
        if "being compiled" not in note or time.monotonic() > deadline:
            return note
        time.sleep(0.05)
