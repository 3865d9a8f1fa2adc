"""Joins whose sides do not fit into memory: in parts, from files, with DuckDB's answer."""

from __future__ import annotations

import re
from datetime import date
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings, strategies as st

import fuseline
from fuseline.errors import ExecutionError, MemoryLimitError
from fuseline.operators import cpu, spilling
from fuseline.operators.cpu.join.join_parts import part_numbers, parted, unparted
from fuseline.operators.cpu.table import Table
from fuseline.operators.spill_area import SpillArea
from fuseline.plan import physical as p
from fuseline.plan.expr import new_column
from fuseline.plan.types import BIGINT, VARCHAR
from tests.compare import assert_same_as_duckdb
from tests.limits import SetLimits
from tests.operators.relations import decimals, dictionary

ROWS = 20_000


def side(value: str, rows: int, domain: int, seed: int, nulls: float = 0.05) -> pa.Table:
    random = np.random.default_rng(seed)
    keys = random.integers(0, domain, rows)
    return pa.table(
        {
            "k": pa.array(keys, mask=random.random(rows) < nulls),
            "g": pa.array(random.integers(0, 3, rows), mask=random.random(rows) < nulls),
            "s": pa.array([f"key {k}" for k in keys], mask=random.random(rows) < nulls),
            value: random.integers(0, 100, rows),
        }
    )


def constant(table: pa.Table, share: float) -> pa.Table:
    """One key holds that share of the rows."""
    random = np.random.default_rng(9)
    keys = np.where(random.random(len(table)) < share, 7, table["k"].fill_null(0))
    return table.set_column(0, "k", pa.array(keys))


T, U = side("v", ROWS, 30_000, 1), side("w", ROWS, 30_000, 2)
SHAPES: dict[str, tuple[pa.Table, pa.Table]] = {
    "few duplicates": (T, U),
    "many duplicates": (T.slice(0, 8000), side("w", ROWS, 4000, 3)),
    "no nulls": (side("v", ROWS, 30_000, 4, 0), side("w", ROWS, 30_000, 5, 0)),
    "nulls on the left": (T, side("w", ROWS, 30_000, 5, 0)),
    "skew": (constant(T, 0.5), side("w", ROWS, 30_000, 6).slice(0, 15_000)),
    "all keys null": (side("v", ROWS, 9, 7, 1), side("w", ROWS, 9, 8, 1)),
    "empty right": (T, U.slice(0, 0)),
    "empty left": (T.slice(0, 0), U),
    "one row": (T, U.slice(3, 1)),
}
QUERIES = {
    "inner": "select t.k, v, w from t join u on t.k = u.k",
    "left": "select t.k, v, w from t left join u on t.k = u.k",
    "right": "select u.k, v, w from t right join u on t.k = u.k",
    "full": "select t.k as a, u.k as b, v, w from t full join u on t.k = u.k",
    "semi": "select k, v from t where exists (select * from u where u.k = t.k)",
    "anti": "select k, v from t where not exists (select * from u where u.k = t.k)",
    "in": "select k, v from t where k in (select k from u)",
    "not in": "select k, v from t where k not in (select k from u)",
    "mark": "select k, v, k in (select k from u) as m from t",
    "not mark": "select k, v, k not in (select k from u) as m from t",
    "single": "select k, (select sum(w) from u where u.k = t.k) as x from t",
    "nulls match": "select t.k, v from t left join u on t.k is not distinct from u.k and t.s = u.s",
    "residual": "select t.k, v, w from t join u on t.k = u.k and v < w",
    "left residual": "select t.k, v, w from t left join u on t.k = u.k and v < w",
    "semi residual": "select k, v from t where exists (select * from u where u.k = t.k and w > v)",
    "text": "select t.s, v, w from t join u on t.s = u.s",
    "text and number": "select t.s, t.g, v from t left join u on t.s = u.s and t.g = u.g",
    "three": "select a.k, a.v, b.w, c.w as x from t a join u b on a.k = b.k left join u c on b.k = c.k",
}


@pytest.fixture
def small(limits: SetLimits) -> None:
    """Pieces of few rows."""
    limits(join_parts__PIECE_BYTES=100_000)


def connect(folder: Path, tables: dict[str, pa.Table], limit: Any, fuse: str) -> Any:
    connection = fuseline.connect("cpu", fuse=fuse, memory_limit=limit, spill_dir=folder)
    for name, table in tables.items():
        connection.register(name, table)
    return connection


def remarks(frame: Any) -> list[str]:
    return [n.remark for n in frame.profile.nodes if n.remark is not None]


@pytest.mark.usefixtures("small")
@pytest.mark.by_day(4)
@pytest.mark.parametrize(("kind", "shape"), list(product(QUERIES, SHAPES)))
def test_every_kind_of_join_in_parts(
    kind: str, shape: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, limits: SetLimits
) -> None:
    """Without memory for any join as a whole, all run in parts."""
    tables = {name: rows.slice(0, 4000) for name, rows in zip("tu", SHAPES[shape], strict=True)}
    limits(SHARE_OF_SIDES=5)
    fail_whole_joins(monkeypatch)
    with connect(tmp_path, tables, None, "never") as connection:
        assert_same_as_duckdb(QUERIES[kind], tables, connection=connection)
        frame = connection.sql(QUERIES[kind])
        frame.to_arrow()
        joins = [n for n in frame.profile.nodes if isinstance(n.node, p.HashJoin)]
        assert joins
        assert all(" to disk" in str(n.remark) for n in joins)
        assert frame.profile.spilled["disk"] > 0
    assert not list(tmp_path.iterdir())


def fail_whole_joins(monkeypatch: pytest.MonkeyPatch, backend: Any = cpu) -> None:
    """Joins fail as an allocation does, but for those of parts."""
    join, joined, within = backend.OPERATORS[p.HashJoin], spilling._worked, []

    def failing(*given: Any) -> Any:
        if not within:
            raise MemoryError("no room for an index")
        return join(*given)

    def of_parts(*given: Any) -> Any:
        within.append(True)
        try:
            yield from list(joined(*given))
        finally:
            within.pop()

    monkeypatch.setitem(backend.OPERATORS, p.HashJoin, failing)
    monkeypatch.setattr(spilling, "_worked", of_parts)


LIMITED = {
    "text": "select min(t.s), max(u.s), count(*) from t join u on t.k = u.k",
    "rows": "select s, v from t where exists (select * from u where u.k = t.k and u.s = t.s)",
    "not in": "select s, v from t where k not in (select k from u where s is not null)",
    "full": "select count(v), count(w) from t full join u on t.k = u.k and t.s = u.s and t.g = u.g",
}


@pytest.mark.parametrize("kind", LIMITED)
def test_a_small_limit_makes_parts(kind: str, tmp_path: Path) -> None:
    """Each side fits alone, both do not."""
    tables = {"t": T, "u": U}
    with connect(tmp_path, tables, 700_000, "never") as connection:
        assert_same_as_duckdb(LIMITED[kind], tables, connection=connection)
        frame = connection.sql(LIMITED[kind])
        frame.to_arrow()
        spilled = r"parts, spilled \d+\.\d .iB to disk"
        assert any(re.search(spilled, r) for r in remarks(frame)), remarks(frame)
        assert re.search(spilled, str(connection.sql(LIMITED[kind]).explain("analyze")))
    assert not list(tmp_path.iterdir())


def test_a_limit_that_suffices_makes_none(tmp_path: Path) -> None:
    with connect(tmp_path, {"t": T, "u": U}, "100MB", "never") as connection:
        frame = connection.sql(QUERIES["inner"])
        frame.to_arrow()
        assert remarks(frame) == []


def test_a_pipeline_that_does_not_fit_runs_in_parts(tmp_path: Path) -> None:
    """Kernels fail, operators too, then joins in parts; the profile says why there is no kernel."""
    tables = {"t": T, "u": U}
    query = "select sum(v), count(w) from t left join u on t.k = u.k and t.s = u.s"
    with pytest.MonkeyPatch.context() as patch:
        fail_pipelines(patch)
        with connect(tmp_path, tables, 3_000_000, "always") as connection:
            assert_same_as_duckdb(query, tables, connection=connection)
            frame = connection.sql(query)
            frame.to_arrow()
            assert not frame.profile.pipelines
            reasons = {n.node.not_fused for n in frame.profile.nodes}
            assert "the joins of its pipeline did not fit into memory" in reasons


def fail_pipelines(monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_: Any) -> Any:
        raise MemoryError

    monkeypatch.setitem(cpu.OPERATORS, p.Pipeline, full)


# What goes wrong


def test_a_part_that_does_not_fit(tmp_path: Path) -> None:
    """All rows have one key, so that one part holds them; the error names the node, the bytes and the setting."""
    text = pa.array([f"{i:0100}" for i in range(ROWS)])
    tables = {
        "t": pa.table({"k": pa.array([1] * ROWS), "v": text}),
        "u": pa.table({"k": pa.array([1, 2] * 10_000), "w": text}),
    }
    query = "select min(v), max(w) from (select * from t join u on t.k = u.k and v < w)"
    with connect(tmp_path, tables, 3_000_000, "never") as connection:
        message = r"(made|asked for) \d+\.\d .iB.* memory_limit (=|is) 2\.9 MiB.* memory_limit"
        with pytest.raises(MemoryLimitError, match=message):
            connection.sql(query).to_arrow()
        assert not list(tmp_path.iterdir())
        assert connection.execute("select count(*) from t").fetchone() == (ROWS,)


def test_a_result_that_does_not_fit(tmp_path: Path) -> None:
    tables = {"t": T, "u": U}
    with (
        connect(tmp_path, tables, 2_500_000, "never") as connection,
        pytest.raises(MemoryLimitError, match=r"memory_limit (=|is) 2\.4 MiB.*memory_limit"),
    ):
        connection.sql("select t.s, u.s as z from t join u on t.g = u.g and v < 2").to_arrow()
    assert not list(tmp_path.iterdir())


def test_two_rows_of_a_scalar_subquery_raise(tmp_path: Path, monkeypatch: Any) -> None:
    fail_whole_joins(monkeypatch)
    query = "select (select w from u where u.k = t.k) from t"
    with (
        connect(tmp_path, {"t": T, "u": U}, None, "never") as connection,
        pytest.raises(ExecutionError, match="More than one row"),
    ):
        connection.sql(query).to_arrow()
    assert not list(tmp_path.iterdir())


def test_files_are_gone_after_an_interrupt(tmp_path: Path, monkeypatch: Any) -> None:
    seen: list[Path] = []

    def stop(*_: Any) -> Any:
        seen.extend(tmp_path.rglob("*.arrow"))
        raise KeyboardInterrupt

    fail_whole_joins(monkeypatch)
    monkeypatch.setattr(spilling, "_worked", stop)
    with (
        connect(tmp_path, {"t": T, "u": U}, None, "never") as connection,
        pytest.raises(KeyboardInterrupt),
    ):
        connection.sql(QUERIES["inner"]).to_arrow()
    assert seen
    assert not list(tmp_path.iterdir())


def test_a_directory_that_takes_no_files(tmp_path: Path, monkeypatch: Any) -> None:
    fail_whole_joins(monkeypatch)
    place = tmp_path / "file"
    place.write_text("")
    with (
        connect(place, {"t": T, "u": U}, None, "never") as connection,
        pytest.raises(ExecutionError, match=r"could not write.*KiB were to be.*spill_dir"),
    ):
        connection.sql(QUERIES["inner"]).to_arrow()


def test_memory_for_fewer_parts_than_tried(tmp_path: Path, monkeypatch: Any) -> None:
    """A join of several parts that fails is tried again with fewer."""
    original = cpu.OPERATORS[p.HashJoin]

    def join(node: Any, inputs: Any, context: Any) -> Any:
        if inputs[0].num_rows > 2000:
            raise MemoryError
        return original(node, inputs, context)

    monkeypatch.setitem(cpu.OPERATORS, p.HashJoin, join)
    tables = {"t": T, "u": U}
    with connect(tmp_path, tables, None, "never") as connection:
        assert_same_as_duckdb(QUERIES["left"], tables, connection=connection)


# Parts

KEYS: dict[str, tuple[Any, Any]] = {
    "integers": (st.integers(-(2**63), 2**63 - 1), lambda v: pa.array(v, pa.int64())),
    "unsigned": (st.integers(0, 2**64 - 1), lambda v: pa.array(v, pa.uint64())),
    "floats": (st.floats(), lambda v: pa.array(v, pa.float64())),
    "text": (st.text(), lambda v: pa.array(v, pa.string())),
    "long text": (st.text(), lambda v: pa.array(v, pa.large_string())),
    "codes": (st.sampled_from(["", "a", "b"]), dictionary),
    "dates": (st.dates(date(1, 1, 1)), lambda v: pa.array(v, pa.date32())),
    "wide": (
        st.integers(-(10**35), 10**35).map(lambda i: f"{i}.00"),
        lambda v: decimals(v, 38, 2),
    ),
}


@settings(max_examples=40, deadline=None)
@given(st.data())
@pytest.mark.parametrize("name", KEYS)
def test_equal_keys_are_in_one_part(name: str, data: Any) -> None:
    """Wherever they stand, whatever stands beside them; NULL is in the first."""
    values, made = KEYS[name]
    keys = data.draw(st.lists(st.none() | values, max_size=30))
    numbers = part_numbers([made(keys)])
    assert part_numbers([made(keys[::-1])]).tolist() == numbers.tolist()[::-1]
    if len(keys) > 3:
        assert part_numbers([made(keys).slice(2)]).tolist() == numbers.tolist()[2:]
    assert all(number < spilling.PARTS for number in numbers)
    assert all(number == 0 for key, number in zip(keys, numbers, strict=True) if key is None)


def test_values_that_compare_equal_are_in_one_part() -> None:
    nan = np.array([np.nan, -np.nan, 0.0, -0.0])
    a, b, c, d = part_numbers([pa.array(nan)]).tolist()
    assert (a, c) == (b, d)
    texts = ["a", None, "", "é" * 50]
    plain, coded = pa.array(texts), pa.array(texts).dictionary_encode()
    assert part_numbers([plain]).tolist() == part_numbers([coded]).tolist()
    narrow, wide = pa.array([1, -1], pa.int8()), pa.array([1, -1], pa.int64())
    assert part_numbers([narrow]).tolist() == part_numbers([wide]).tolist()


def test_keys_spread_over_the_parts() -> None:
    for keys in (range(64_000), range(0, 64_000 << 20, 1 << 20), [f"c{i}" for i in range(64_000)]):
        counts = np.bincount(part_numbers([pa.array(keys)]), minlength=spilling.PARTS)
        assert counts.min() > 700
        assert counts.max() < 1300


@pytest.mark.parametrize("rows", [0, 1, 1000])
def test_a_table_comes_back_from_its_parts(rows: int, tmp_path: Path) -> None:
    key, text = new_column("k", BIGINT), new_column("s", VARCHAR)
    numbers = np.arange(rows)
    few = dictionary([None if i % 3 == 0 else f"text {i % 2}" for i in range(rows)])
    table = Table({key.id: pa.array(numbers), text.id: few}, rows)
    (piece,) = parted(table, [key], [key, text])
    with SpillArea(tmp_path, 0) as area:
        kept = area.keep(piece, "cpu")
        back = [unparted(kept.parts(i, i + 1), [key, text]) for i in range(spilling.PARTS)]
    assert sum(part.num_rows for part in back) == rows
    found = [
        row
        for part in back
        for row in zip(part[key].to_pylist(), part[text].to_pylist(), strict=True)
    ]
    assert sorted(found) == sorted(zip(numbers.tolist(), few.to_pylist(), strict=True))
