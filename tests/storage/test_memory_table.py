from datetime import datetime

import pyarrow as pa

from fuseline.plan.text.quoted_name import distinct_names
from fuseline.plan.types import BIGINT, TIMESTAMP_NS, VARCHAR
from fuseline.storage.tables.memory_table import MOST_CHUNKS, MemoryTable


def test_fields_and_columns_without_a_sql_type():
    table = MemoryTable(
        "t",
        pa.table(
            {"a": [1], "l": pa.array([1], pa.time64("ns")), "s": pa.array(["x"], pa.large_string())}
        ),
    )
    assert table.fields == (("a", BIGINT), ("s", VARCHAR))
    assert set(table.unsupported) == {"l"}


def test_statistics_are_worked_out_when_asked_for():
    data = pa.table({
        "i": [3, None, 1], "f": [1.0, float("nan"), None],
        "s": pa.array(["b", None, "a"]).dictionary_encode(),
        "none": pa.nulls(3, pa.int64()), "ns": pa.array([1, 2, 3], pa.timestamp("ns")),
    })  # fmt: skip
    found = MemoryTable("t", data).statistics()
    bounds = {n: (s.low, s.high, s.nulls) for n, s in found.columns.items()}
    assert found.rows == 3
    assert bounds == {
        "i": (1, 3, 1),
        "f": (1.0, None, 1),
        "s": ("a", "b", 1),
        "none": (None, None, 3),
        "ns": (None, None, 0),
    }


def test_statistics_of_no_rows():
    found = MemoryTable("t", pa.table({"i": pa.array([], pa.int64())})).statistics()
    assert (found.rows, found.columns["i"].low, found.columns["i"].nulls) == (0, None, 0)


def test_appending_makes_another_version_and_leaves_this_one():
    first = MemoryTable("t", pa.table({"a": [1]}))
    second = first.appended(pa.table({"a": [2]}))
    assert (first.num_rows, second.num_rows) == (1, 2)
    assert first.identity != second.identity
    assert second.column("a").to_pylist() == [1, 2]


def test_appending_to_other_representations_of_a_type():
    data = pa.table(
        {
            "s": pa.array(["x", None]).dictionary_encode(),
            "l": pa.array(["y", "z"], pa.large_string()),
            "t": pa.array([1_000, None], pa.timestamp("ns")),
        }
    )
    rows = pa.table(
        {"s": ["b"], "l": ["c"], "t": pa.array([datetime(2024, 1, 1)], pa.timestamp("ns"))}
    )
    table = MemoryTable("t", data).appended(rows)
    assert table.fields == (("s", VARCHAR), ("l", VARCHAR), ("t", TIMESTAMP_NS))
    assert table.column("s").to_pylist() == ["x", None, "b"]
    assert table.column("t").cast(pa.int64()).to_pylist() == [1_000, None, 1_704_067_200 * 10**9]


def test_many_small_inserts_do_not_make_many_chunks():
    table = MemoryTable("t", pa.table({"a": pa.array([], pa.int64())}))
    for n in range(200):
        table = table.appended(pa.table({"a": [n]}))
    assert table.column("a").num_chunks <= MOST_CHUNKS
    assert table.column("a").to_pylist() == list(range(200))


def test_repeated_names_get_numbers():
    assert distinct_names(["a", "A", "a", "b", "a_1"]) == ["a", "A_1", "a_2", "b", "a_1_1"]
