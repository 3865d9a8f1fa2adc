"""Columns go from operators to registers and back without a change, decimals of up to 18 digits without 128 bits in between."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from fuseline.codegen.groups.results import Registers
from fuseline.operators.cpu.pipeline.finish import of_operators, of_registers
from fuseline.operators.cpu.table import to_logical, to_physical
from fuseline.plan.types import BIGINT, BOOLEAN, DATE, DOUBLE, VARCHAR, DataType, decimal

TYPES: list[tuple[DataType, list[Any]]] = [
    (decimal(18, 2), [10**18 - 1, -(10**18) + 1, 0, None]),
    (decimal(4, 4), [None, None]),
    (decimal(9, 0), []),
    (decimal(38, 3), [None, "99999999999999999999999999999999999.999"]),
    (BIGINT, [2**63 - 1, -(2**63), None]),
    (DOUBLE, [0.5, float("nan"), None]),
    (BOOLEAN, [True, None, False]),
    (DATE, [0, None, -719162]),
    (VARCHAR, ["", None, "é"]),
]


def physical(data_type: DataType, values: list[Any]) -> pa.Array:
    if data_type.is_decimal and not data_type.is_wide_decimal:
        return pa.array(values, pa.int64())
    logical = {"DATE": pa.date32(), "DOUBLE": pa.float64(), "BIGINT": pa.int64()}
    if data_type.is_decimal:
        return pa.array(values, pa.string()).cast(pa.decimal128(38, 3))
    return pa.array(values, logical.get(str(data_type)))


@pytest.mark.parametrize(("data_type", "values"), TYPES, ids=str)
@pytest.mark.parametrize("offset", [0, 1])
def test_there_and_back(data_type: DataType, values: list[Any], offset: int) -> None:
    array = physical(data_type, values)
    array = array.slice(min(offset, len(array)))
    held = of_operators(array, data_type)
    assert isinstance(held, Registers) == (data_type.is_decimal and not data_type.is_wide_decimal)
    logical = held.array() if isinstance(held, Registers) else held
    expected = to_logical(array, data_type)
    assert logical.type == expected.type
    assert repr(logical.to_pylist()) == repr(expected.to_pylist())
    back = of_registers(held) if isinstance(held, Registers) else to_physical(held, data_type)
    assert back.type == array.type
    assert repr(back.to_pylist()) == repr(array.to_pylist())


def test_rows_picked_in_registers() -> None:
    held = of_operators(pa.array([5, None, 7], pa.int64()), decimal(10, 1))
    assert isinstance(held, Registers)
    assert of_registers(held.take(np.array([2, 1]))).to_pylist() == [7, None]
