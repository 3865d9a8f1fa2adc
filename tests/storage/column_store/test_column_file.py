"""The file of one column: what was written comes back, and nothing else does."""

from __future__ import annotations

import random
import struct
import zlib
from decimal import Decimal
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pytest

from fuseline.operators.cpu.table import to_physical
from fuseline.plan.arrow.arrow_types import from_arrow
from fuseline.plan.types import VARCHAR
from fuseline.storage.column_store.column_file import (
    BLOCK_BYTES,
    MAGIC,
    Damaged,
    StoredColumn,
    read_column,
    write_column,
)
from fuseline.storage.columns.encode import encode, with_order
from fuseline.storage.columns.encodings import EncodedColumn

if TYPE_CHECKING:
    from pathlib import Path

RANDOM = np.random.default_rng(7)
ARRAYS = {
    "bytes": pa.array([3, 1, None, 200], pa.int64()),
    "whole": pa.array([2**63 - 1, -(2**63), 0]),
    "ascending": pa.array(range(0, 3000, 3)),
    "stepped": pa.array([10**9, None, 3 * 10**9, 7 * 10**9]),
    "decimals": pa.array([Decimal("1.50"), None, Decimal("-9.25")], pa.decimal128(30, 2)),
    "dates": pa.array([1, 20_000, None], pa.date32()),
    "floats": pa.array([1.5, None, float("nan"), -0.0]),
    "small floats": pa.array([1.5, 2.5], pa.float32()),
    "truths": pa.array([True, None, False]),
    "texts": pa.array(["b", "a", None, "", "\N{SNOWMAN}"] * 3),
    "nothing": pa.array([], pa.int64()),
    "no texts": pa.array([None, None], pa.string()),
    "empty texts": pa.array([], pa.string()),
    "one": pa.array([5]),
    "many": pa.array(RANDOM.integers(0, 2**40, BLOCK_BYTES // 4)),
}


def stored(array: pa.Array) -> StoredColumn:
    encoded = encode(to_physical(array, from_arrow(array.type)), from_arrow(array.type))
    assert encoded is not None
    return StoredColumn(with_order(encoded))


def assert_same(found: StoredColumn, written: StoredColumn) -> None:
    one, other = found.value, written.value
    assert isinstance(one, EncodedColumn)
    assert isinstance(other, EncodedColumn)
    names = ("type", "encoding", "rows", "nulls", "low", "high", "ascending", "clustered")
    assert [getattr(one, n) for n in names] == [getattr(other, n) for n in names]
    assert np.array_equal(one.codes, other.codes, equal_nan=one.encoding.is_float)
    assert one.codes.dtype == other.codes.dtype
    assert (one.validity is None) == (not other.nulls)
    if one.validity is not None:
        assert np.array_equal(one.validity, other.validity)


@pytest.mark.parametrize("name", ARRAYS)
def test_what_was_written_comes_back(tmp_path: Path, name: str) -> None:
    column = stored(ARRAYS[name])
    path = tmp_path / "a"
    size = write_column(path, "key", column, lambda: None)
    assert (path.stat().st_size, path.stat().st_mode & 0o777) == (size, 0o600)
    assert_same(read_column(path, "key", from_arrow(ARRAYS[name].type), 2), column)
    assert [p.name for p in tmp_path.iterdir()] == ["a"]


@pytest.mark.parametrize("array", [
    pa.array([[1, None], None, []]), pa.array([{"a": "x"}, None]), pa.array(["x" * 1000, None]),
    pa.array(["a", None, "a"]).dictionary_encode(), pa.array([b"\0", None]), pa.array([], pa.large_string()),
])  # fmt: skip
@pytest.mark.parametrize("refused", [True, False])
def test_arrays_come_back_as_they_are(tmp_path: Path, array: pa.Array, refused: bool) -> None:
    write_column(tmp_path / "a", "key", StoredColumn(array, refused), lambda: None)
    found = read_column(tmp_path / "a", "key", from_arrow(array.type), 1)
    assert found.value.equals(array)
    assert found.refused == refused


def test_two_hundred_flipped_bits(tmp_path: Path) -> None:
    """Wherever a bit is another one, the file is not what was written."""
    path, array = tmp_path / "a", ARRAYS["texts"]
    write_column(path, "key", stored(array), lambda: None)
    content, drawn = path.read_bytes(), random.Random(11)
    for _ in range(200):
        flipped = bytearray(content)
        at = drawn.randrange(len(content))
        flipped[at] ^= 1 << drawn.randrange(8)
        path.write_bytes(flipped)
        with pytest.raises(Damaged):
            read_column(path, "key", from_arrow(array.type), 1)


def test_a_flip_in_each_of_many_blocks(tmp_path: Path) -> None:
    path, array = tmp_path / "a", ARRAYS["many"]
    write_column(path, "key", stored(array), lambda: None)
    content = path.read_bytes()
    for at in range(0, len(content), BLOCK_BYTES // 2):
        path.write_bytes(content[:at] + bytes([content[at] ^ 4]) + content[at + 1 :])
        for threads in (1, 2):
            with pytest.raises(Damaged):
                read_column(path, "key", from_arrow(array.type), threads)


def test_every_shorter_file_and_a_longer_one(tmp_path: Path) -> None:
    path, array = tmp_path / "a", ARRAYS["bytes"]
    write_column(path, "key", stored(array), lambda: None)
    content = path.read_bytes()
    for shorter in [content[:length] for length in range(len(content))] + [content + b"x"]:
        path.write_bytes(shorter)
        with pytest.raises(Damaged):
            read_column(path, "key", from_arrow(array.type), 1)


@pytest.mark.parametrize("text", [b"{}", b"[]", b"{", b'{"key": 1, "more": 2}'])
def test_a_description_of_another_form_with_its_checksum(tmp_path: Path, text: bytes) -> None:
    path = tmp_path / "a"
    path.write_bytes(text + struct.pack("<II16s", zlib.crc32(text), len(text), MAGIC))
    with pytest.raises(Damaged, match="cannot be read"):
        read_column(path, "key", VARCHAR, 1)


def test_another_version_says_so(tmp_path: Path) -> None:
    path, array = tmp_path / "a", ARRAYS["bytes"]
    write_column(path, "key", stored(array), lambda: None)
    path.write_bytes(path.read_bytes()[: -len(MAGIC)] + MAGIC[:-1] + b"2")
    with pytest.raises(Damaged, match="another version"):
        read_column(path, "key", from_arrow(array.type), 1)


def test_the_file_of_another_column(tmp_path: Path) -> None:
    write_column(tmp_path / "a", "key", stored(ARRAYS["bytes"]), lambda: None)
    with pytest.raises(Damaged, match="another column"):
        read_column(tmp_path / "a", "other key", from_arrow(pa.int64()), 1)


def test_what_stops_a_write_leaves_nothing(tmp_path: Path) -> None:
    def stop() -> None:
        raise KeyError

    with pytest.raises(KeyError):
        write_column(tmp_path / "a", "key", stored(ARRAYS["bytes"]), stop)
    assert list(tmp_path.iterdir()) == []


def test_a_mapped_column_outlives_its_file(tmp_path: Path) -> None:
    column = stored(ARRAYS["many"])
    write_column(tmp_path / "a", "key", column, lambda: None)
    found = read_column(tmp_path / "a", "key", column.value.type, 1)
    (tmp_path / "a").unlink()
    assert_same(found, column)


def test_a_link_is_not_followed(tmp_path: Path) -> None:
    write_column(tmp_path / "a", "key", stored(ARRAYS["bytes"]), lambda: None)
    (tmp_path / "b").symlink_to(tmp_path / "a")
    with pytest.raises(OSError, match="symbolic links"):
        read_column(tmp_path / "b", "key", from_arrow(pa.int64()), 1)
