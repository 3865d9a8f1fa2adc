"""What footers say of columns with many row groups, and that looking at runs of them prunes what looking at each would."""

from __future__ import annotations

from datetime import date, timedelta
from decimal import Decimal
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, strategies as st

from fuseline.plan.arrow.arrow_types import from_arrow
from fuseline.plan.expr import Call, ColumnRef, Expr, InList, Literal, new_column
from fuseline.plan.types import BIGINT, BOOLEAN
from fuseline.storage.tables.column_chunks import TRUSTED_BYTES, decoded_bytes
from fuseline.storage.tables.column_statistics import Bounds, excluded
from fuseline.storage.tables.parquet import ParquetTable

VALUES: dict[str, tuple[pa.DataType, list[Any]]] = {
    "signed": (pa.int8(), [-128, 127, None, 0]),
    "unsigned": (pa.uint64(), [1, 2**64 - 1, None, 5]),
    "short": (pa.decimal128(9, 2), [Decimal("-1.50"), Decimal("9.25"), None, Decimal(0)]),
    "long": (pa.decimal128(38, 2), [Decimal("-1.50"), Decimal("9e30"), None, Decimal(0)]),
    "day": (pa.date32(), [date(1, 1, 1), date(9999, 12, 31), None, date(1970, 1, 1)]),
    "text": (pa.string(), ["b", "", None, "\U0001f600"]),
    "truth": (pa.bool_(), [False, True, None, True]),
}


@pytest.mark.parametrize("integers", [False, True])
@pytest.mark.parametrize("name", VALUES)
def test_extremes_are_values(tmp_path: Path, name: str, integers: bool) -> None:
    arrow, values = VALUES[name]
    path = str(tmp_path / "x.parquet")
    table = pa.table({"x": pa.array(values, arrow)})
    pq.write_table(table, path, row_group_size=2, store_decimal_as_integer=integers)
    valid = [v for v in values if v is not None]
    chunks = ParquetTable.open([path]).chunks("x")
    assert chunks.within(0, 2) == Bounds(4, 1, min(valid), max(valid))
    assert repr(chunks.within(0, 1).low) == repr(min(values[:2]))


def test_days_beyond_the_years_of_python_are_unknown(tmp_path: Path) -> None:
    path = str(tmp_path / "x.parquet")
    days = pa.array([-(10**9), 0, 10**8], pa.int32()).cast(pa.date32())
    pq.write_table(pa.table({"x": days}), path, row_group_size=1)
    chunks = ParquetTable.open([path]).chunks("x")
    assert chunks.within(0, 3) == Bounds(3, 0, None, None)
    assert chunks.within(1, 2) == Bounds(1, 0, date(1970, 1, 1), date(1970, 1, 1))


def test_files_of_different_writers_are_one_column(tmp_path: Path) -> None:
    for i, integers in enumerate((False, True)):
        table = pa.table({"x": pa.array([Decimal(i), Decimal(i + 5)], pa.decimal128(9, 1))})
        pq.write_table(table, tmp_path / f"{i}.parquet", store_decimal_as_integer=integers)
    found = ParquetTable.open([str(tmp_path)]).chunks("x").within(0, 2)
    assert found == Bounds(4, 0, Decimal("0.0"), Decimal("6.0"))


COLUMN = new_column("x", BIGINT)
comparison = st.builds(
    lambda f, v: Call(f, (ColumnRef(COLUMN), Literal(v, BIGINT)), BOOLEAN),
    st.sampled_from(["eq", "ne", "lt", "le", "gt", "ge", "is_not_distinct"]),
    st.none() | st.integers(-9, 9),
)
presence = st.sampled_from(["is_null", "is_not_null"]).map(
    lambda f: Call(f, (ColumnRef(COLUMN),), BOOLEAN)
)
listed = st.lists(st.integers(-9, 9), max_size=3).map(
    lambda vs: InList(ColumnRef(COLUMN), tuple(Literal(v, BIGINT) for v in vs))
)
predicates = st.recursive(
    comparison | presence | listed,
    lambda inner: st.builds(
        lambda f, a: Call(f, tuple(a), BOOLEAN),
        st.sampled_from(["and", "or"]),
        st.lists(inner, min_size=2, max_size=3),
    ),
    max_leaves=5,
)


@pytest.fixture(scope="module")
def path(tmp_path_factory: pytest.TempPathFactory) -> str:
    return str(tmp_path_factory.mktemp("chunks") / "x.parquet")


@given(
    values=st.lists(st.none() | st.integers(-9, 9), max_size=40),
    ordered=st.booleans(),
    statistics=st.booleans(),
    predicate=predicates,
)
def test_runs_of_row_groups_prune_as_each_of_them_does(
    path: str, values: list[int | None], ordered: bool, statistics: bool, predicate: Expr
) -> None:
    if ordered:
        values = sorted(values, key=lambda v: (v is None, v))
    table = pa.table({"x": pa.array(values, pa.int64())})
    pq.write_table(table, path, row_group_size=2, write_statistics=statistics)
    opened = ParquetTable.open([path])
    assert opened.types["x"] == from_arrow(pa.int64())
    chunks = opened.chunks("x")
    each = [
        group
        for group, rows in enumerate(chunks.rows)
        if rows and not excluded(predicate, lambda _, i=group: chunks.within(i, i + 1))
    ]
    selection, pruned = opened.select_row_groups(predicate, {COLUMN: "x"})
    assert [group for part in selection for group in part.groups] == each
    assert pruned == len(chunks.rows) - len(each)


def test_thousands_of_row_groups_are_looked_at_in_runs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = str(tmp_path / "x.parquet")
    days = [date(2000, 1, 1) + timedelta(n) for n in range(4000)]
    pq.write_table(pa.table({"x": days}), path, row_group_size=1)
    opened = ParquetTable.open([path])
    column = new_column("x", opened.types["x"])
    looks = []
    monkeypatch.setattr(
        "fuseline.storage.tables.parquet.excluded", lambda *args: looks.append(1) or excluded(*args)
    )
    after = Call("ge", (ColumnRef(column), Literal(days[3000], column.type)), BOOLEAN)
    selection, pruned = opened.select_row_groups(after, {column: "x"})
    assert selection[0].groups == tuple(range(3000, 4000))
    assert pruned == 3000
    assert len(looks) < 100


@pytest.mark.parametrize(("codec", "stored", "said", "believed"), [
    ("SNAPPY", 191, 512 << 30, 191 * 22),  # a flipped bit: nobody asks for 512 GiB
    ("UNCOMPRESSED", 8 << 20, 1 << 40, 8 << 20),
    ("GZIP", 1 << 20, 1 << 29, 1 << 29),
    ("SNAPPY", 1, TRUSTED_BYTES, TRUSTED_BYTES),
    ("BROTLI", 100, 50 << 20, 50 << 20),
    ("SNAPPY", 0, 2 << 20, 2 << 20),  # a writer that does not say how much it wrote
])  # fmt: skip
def test_no_chunk_is_larger_than_its_codec_can_make_it(
    codec: str, stored: int, said: int, believed: int
) -> None:
    chunk = SimpleNamespace(
        compression=codec, total_compressed_size=stored, total_uncompressed_size=said
    )
    assert decoded_bytes(chunk) == believed
