"""Columns encoded on the device are those encoded on the host."""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from fuseline.operators.context import Context
from fuseline.plan.arrow.arrow_types import from_arrow
from fuseline.plan.expr import Column, new_column
from fuseline.plan.types import VARCHAR, to_arrow
from fuseline.settings import Settings
from fuseline.storage.columns.cache import ColumnCache
from fuseline.storage.columns.encodings import Dictionary, EncodedColumn

from .plans import TYPES, value

pytestmark = pytest.mark.gpu


def both(array: pa.Array) -> tuple[EncodedColumn | None, dict[str, EncodedColumn | None]]:
    """Encode an array on the host, and on the device by libcudf's functions and by kernels."""
    from fuseline.operators.cpu.table import to_physical
    from fuseline.operators.gpu.table import to_device
    from fuseline.storage.columns.device_encode import encode_on_device
    from fuseline.storage.columns.encode import encode

    data_type = from_arrow(array.type)
    column = to_device(array, data_type)
    by_kernels = encoded_by_kernels({"x": column}, {"x": new_column("x", data_type)})["x"]
    return encode(to_physical(array, data_type), data_type), {
        "libcudf": encode_on_device(column, data_type),
        "kernels": by_kernels if isinstance(by_kernels, EncodedColumn) else None,
    }


def encoded_by_kernels(
    columns: dict[str, Any], types: dict[str, Column], compact: bool = True
) -> dict[str, Any]:
    """Encode columns on a stream of their own."""
    from rmm.pylibrmm.stream import CudaStreamFlags, Stream

    from fuseline.operators.gpu.scan.encode_columns import encode_together

    stream = Stream(flags=CudaStreamFlags.NON_BLOCKING)
    context = Context(ColumnCache(0), lambda: None, 2, kernel_directory=kernels())
    return dict(encode_together(dict(columns), types, stream, context, compact))


@cache
def kernels() -> Path:
    return Settings.from_environment().cache_dir / "kernels"


def assert_alike(array: pa.Array) -> EncodedColumn:
    """The encoding of an array is the same everywhere; return the one that libcudf made."""
    host, found = both(array)
    assert host is not None
    for device in found.values():
        assert device is not None
        for name in ("type", "rows", "nulls", "low", "high"):
            assert getattr(device, name) == getattr(host, name), name
        _same_encoding(host, device)
        assert (device.validity is None) == (array.null_count == 0)
        valid = np.asarray(array.is_valid())
        if len(array):
            codes = np.asarray(device.codes.to_arrow().fill_null(0)).astype(host.codes.dtype)
            np.testing.assert_array_equal(codes[valid], np.asarray(host.codes)[valid])
    assert found["libcudf"] is not None
    return found["libcudf"]


def _same_encoding(host: EncodedColumn, device: EncodedColumn) -> None:
    if isinstance(host.encoding, Dictionary):
        assert isinstance(device.encoding, Dictionary)
        assert device.encoding.width == host.encoding.width
        assert device.encoding.values.to_pylist() == host.encoding.values.to_pylist()
    else:
        assert device.encoding == host.encoding


@pytest.mark.parametrize("rows", [0, 1, 7, 1000])
@pytest.mark.parametrize("nulls", [0.0, 0.3, 1.0])
@pytest.mark.parametrize(
    "kind", [k for k in TYPES if k not in ("hugeint", "wide", "ubigint", "boolean")]
)
def test_each_type(kind: str, nulls: float, rows: int) -> None:
    random = np.random.default_rng(rows)
    pool = [value(random, TYPES[kind]) for _ in range(20)]
    values = [None if random.random() < nulls else pool[random.integers(20)] for _ in range(rows)]
    assert_alike(pa.array(values, to_arrow(TYPES[kind])))


@pytest.mark.parametrize("values", [
    [0, 255], [0, 256], [-(2**63), 2**63 - 1], [2**63 - 256, 2**63 - 1], [-(2**63), -(2**63) + 65535], [0, 2**32 - 1],
    [0, 2**32], [100, 5000, 300, 2600], [5, 5, 5], [-7, 14, 0, 700], [0, 3 * 2**60], [None, 4, None, 4_000_000_000_000],
])  # fmt: skip
def test_widths_and_steps(values: list[Any]) -> None:
    assert_alike(pa.array(values, pa.int64()))


@pytest.mark.parametrize("values", [
    [], [7], [1, 2, 3], [1, 2, 2], [1, None, 3], [-(2**63), 0, 2**63 - 1], list(range(0, 1_000_000, 10)),
    [*range(70_000), 69_999], [1, 1, 2, 1], [i // 64 for i in range(100_000)],
    [*[0] * 64, *[1] * 65, *range(2, 100_000)], [-(2**63), -(2**63), 2**63 - 1],
])  # fmt: skip
def test_whether_values_ascend(values: list[Any]) -> None:
    from fuseline.storage.columns import device_encode, encode

    host, found = both(pa.array(values, pa.int64()))
    assert host is not None
    device = found["libcudf"]
    assert device is not None
    expected = encode.with_order(host).ascending
    assert expected == (None not in values and values[:1] != [] and values == sorted({*values}))
    assert device_encode.with_order(device).ascending == expected
    clustered = encode.with_order(host).clustered
    assert device_encode.with_order(device).clustered == clustered
    by_kernels = found["kernels"]
    assert by_kernels is not None
    assert (by_kernels.ascending, by_kernels.clustered) == (expected, clustered)


def test_a_step_that_a_sample_does_not_see() -> None:
    values = np.zeros(1_000_000, np.int64)
    values[::7] = 1000
    values[999_999] = 10
    encoded = assert_alike(pa.array(values))
    assert encoded.encoding.width == 1


def test_wide_decimals_that_fit_64_bits() -> None:
    from decimal import Decimal

    fits = pa.array([Decimal("-1.50"), None, Decimal("92233720368547758.07")], pa.decimal128(38, 2))
    assert_alike(fits)
    beyond = pa.array([Decimal("92233720368547758.08")], pa.decimal128(38, 2))
    assert nowhere(beyond)


def test_unsigned_beyond_63_bits() -> None:
    assert nowhere(pa.array([2**63], pa.uint64()))
    assert_alike(pa.array([2**63 - 1, None, 0], pa.uint64()))


@pytest.mark.parametrize("values", [[True, False], [True], [False], [None, True], [None]])
def test_booleans(values: list[Any]) -> None:
    _, found = both(pa.array(values, pa.bool_()))
    for device in found.values():
        assert device is not None
        assert device.encoding.width == 1
        codes = device.codes.to_arrow().to_pylist()
        assert codes == [int(v or 0) for v in values]


def test_strings_that_mostly_differ_have_no_encoding() -> None:
    assert nowhere(pa.array([f"customer {i}" for i in range(100_000)]))


def test_texts_of_which_each_comes_again() -> None:
    assert_alike(pa.array([f"id {n * 7919 % 50_000}" for n in range(100_000)]))
    assert nowhere(pa.array([f"id {n * 7919 % 70_000}" for n in range(280_000)]))


def test_a_text_that_is_not_in_the_sample() -> None:
    values = np.array(["a", "bb", "", "ccc"])[np.arange(200_000) % 4]
    assert_alike(pa.array([*values, "late", None]))


def test_columns_that_are_encoded_together() -> None:
    random = np.random.default_rng(8)
    arrays = {
        kind: pa.array([value(random, t) for _ in range(3000)], to_arrow(t))
        for kind, t in TYPES.items()
    }
    from fuseline.operators.gpu.table import to_device
    from fuseline.storage.columns.device_encode import encode_on_device

    types = {kind: new_column(kind, t) for kind, t in TYPES.items()}
    columns = {kind: to_device(a, TYPES[kind]) for kind, a in arrays.items()}
    together = encoded_by_kernels(columns, types)
    assert set(together) == set(columns)
    for kind, column in columns.items():
        alone = encode_on_device(column, TYPES[kind])
        if alone is None:
            assert not isinstance(together[kind], EncodedColumn)
            continue
        # As text, in which NaN is NaN
        assert repr(together[kind].codes.to_arrow().to_pylist()) == repr(
            alone.codes.to_arrow().to_pylist()
        ), kind


@pytest.mark.parametrize("nulls", [False, True])
@pytest.mark.parametrize("text", ["words {}", "föhn {}", "{:010d}", "x" * 300 + "{}", "\x01\x7f{}"])
def test_long_texts_come_back_from_fewer_bytes(text: str, nulls: bool) -> None:
    from fuseline.operators.gpu.scan.compact import CompactText
    from fuseline.operators.gpu.table import to_device

    values = [None if nulls and n % 7 == 0 else text.format(n) for n in range(100_000)]
    column = to_device(pa.array(values), VARCHAR)
    types = {"x": new_column("x", VARCHAR)}
    compact = encoded_by_kernels({"x": column}, types)["x"]
    assert isinstance(compact, CompactText)
    assert compact.device_buffer_size() < 0.9 * column.device_buffer_size()
    assert compact.plain(kernels()).to_arrow().cast(pa.string()).to_pylist() == values
    as_it_is = encoded_by_kernels({"x": column}, types, compact=False)["x"]
    assert as_it_is.to_arrow().cast(pa.string()).to_pylist() == values


def nowhere(array: pa.Array) -> bool:
    """Whether an array has no encoding on the host nor on the device."""
    host, found = both(array)
    return host is None and set(found.values()) == {None}


def test_results_go_to_the_device_in_one_copy() -> None:
    from fuseline.operators.gpu.memory.upload import upload
    from fuseline.operators.gpu.table import to_arrow as to_host

    random = np.random.default_rng(5)
    columns = [new_column(kind, data_type) for kind, data_type in TYPES.items()]
    columns.append(new_column("empty strings", VARCHAR))
    for rows in (0, 1, 100):
        arrays = {}
        for c in columns:
            values = [None if random.random() < 0.3 else value(random, c.type) for _ in range(rows)]
            arrays[c] = pa.array(values, to_arrow(c.type))
        arrays[columns[-1]] = pa.array([""] * rows)
        back = to_host(upload(arrays, rows), columns)
        for c, found in zip(columns, back.columns, strict=True):
            same = found.combine_chunks().equals(arrays[c])  # but for NaN
            assert same or repr(found.to_pylist()) == repr(arrays[c].to_pylist()), c.type
