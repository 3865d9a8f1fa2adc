"""Columns as in registers, which kernels leave, and in the form of operators: decimals of both are unscaled integers."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from ...codegen.groups.results import Registers
from ...plan.types import DataType
from ...storage.columns.encodings import values_of
from .table import from_numpy, to_logical, to_physical, validity

INT64 = pa.int64()


def of_registers(values: Registers) -> pa.Array:
    """Return a column in the form of operators."""
    data_type = values.type
    if not data_type.is_decimal:
        return values.array()
    if data_type.is_wide_decimal:
        return to_physical(values.array(), data_type)
    return from_numpy(values.values, values.valid, INT64)


def of_operators(array: pa.Array, data_type: DataType) -> Registers | pa.Array:
    """Return a column that an operator made as in registers where decimals need no 128 bits, else in the Arrow type of results."""
    if data_type.is_decimal and not data_type.is_wide_decimal:
        return Registers(values_of(array, np.int64), validity(array), data_type)
    return to_logical(array, data_type)
