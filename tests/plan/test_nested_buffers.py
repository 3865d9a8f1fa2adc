"""Children that do not fit their array are an error; pyarrow ends the process for most of them."""

from __future__ import annotations

import pyarrow as pa
import pytest

from fuseline.plan.arrow.nested_buffers import nested_array

OFFSETS = [None, pa.py_buffer(b"\0\0\0\0\1\0\0\0")]
MAP = pa.map_(pa.string(), pa.int64())
ENTRY = MAP.field(0).type


def entries(keys: pa.Array) -> pa.Array:
    return pa.StructArray.from_arrays([keys, pa.array([1])], fields=list(ENTRY))


@pytest.mark.parametrize(
    ("arrow", "child", "reason"),
    [
        (pa.list_(pa.int8()), pa.array(["a"]), r"has .*int8"),
        (pa.list_(pa.decimal128(5, 1)), pa.array([1], pa.decimal128(38, 0)), r"has .*\(5, 1\)"),
        (pa.list_(pa.uuid()), pa.array([b"a" * 16], pa.binary(16)), r"arrow\.uuid"),
        (pa.list_(pa.dictionary(pa.int8(), pa.string())), pa.array(["a"]), "dictionary"),
        (pa.list_(pa.int8(), 1), pa.array(["a"]), r"has .*int8"),
        (MAP, pa.array([1]), r"has .*struct"),
        (MAP, pa.array([{"key": "a"}]), r"has .*struct"),
        (MAP, entries(pa.array([None], pa.string())), r"key of .* is NULL"),
        (pa.struct([("a", pa.int8())]), pa.array(["a"]), r"has .*int8"),
    ],
)
def test_what_does_not_fit_is_an_error(arrow: pa.DataType, child: pa.Array, reason: str) -> None:
    with pytest.raises(TypeError, match=reason):
        nested_array(arrow, 1, OFFSETS[: arrow.num_buffers], [child])


def test_too_few_children_are_an_error() -> None:
    with pytest.raises(TypeError, match=r"has .*int8"):
        nested_array(pa.list_(pa.int8()), 1, OFFSETS, [])


def test_keys_may_have_nulls_that_nobody_has_counted() -> None:
    uncounted = pa.array(["a", None]).slice(0, 1)
    made = nested_array(MAP, 1, OFFSETS, [entries(uncounted)])
    made.validate(full=True)
    assert made.to_pylist() == [[("a", 1)]]
