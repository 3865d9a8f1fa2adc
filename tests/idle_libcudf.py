"""What libcudf answers on the GPU that is not there (`idle_gpu`): columns of the right types and lengths, whose values are all zero."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import cache
from types import SimpleNamespace
from typing import Any

import numpy as np
import pyarrow as pa

ZEROS = np.zeros(1 << 24, np.uint8)  # what every column begins with; nobody writes there
WIDTHS = {"8": 1, "16": 2, "32": 4, "64": 8, "128": 16}


class Names:
    """An enumeration whose members are their names."""

    def __init__(self, members: Iterable[str] = ()) -> None:
        self.__dict__.update({name: name for name in members})

    def __getattr__(self, name: str) -> str:
        if name.startswith("__"):
            raise AttributeError(name)
        self.__dict__[name] = name
        return name

    def __iter__(self) -> Iterator[str]:
        return iter(list(self.__dict__))

    def __call__(self, name: str) -> str:
        return name


class DataType:
    def __init__(self, type_id: str, scale: int = 0) -> None:
        self._id, self._scale = type_id, scale

    def id(self) -> str:
        return self._id

    def scale(self) -> int:
        return self._scale


INT32, INT64, BOOL, STRING = (DataType(name) for name in ("INT32", "INT64", "BOOL8", "STRING"))


@cache
def width(name: str) -> int:
    """Bytes of a value of a type of this name."""
    found = [size for digits, size in WIDTHS.items() if name.endswith(digits)]
    return max(found) if found else 4 if name == "TIMESTAMP_DAYS" else 8


class View:
    """Memory of the device, or a part of it."""

    def __init__(self, owner: Any) -> None:
        self.ptr, self.size, self._owner = owner.ptr, owner.size, owner

    def byte_slice(self, part: slice) -> View:
        view = View(self)
        view.ptr, view.size = self.ptr + part.start, part.stop - part.start
        return view


NOTHING = View(SimpleNamespace(ptr=ZEROS.ctypes.data, size=ZEROS.size))


class Column:
    def __init__(
        self,
        data_type: DataType,
        size: int,
        data: Any,
        mask: Any,
        null_count: int,
        offset: int,
        children: Sequence[Column],
    ) -> None:
        self._type, self._size, self._data = data_type, size, data
        self._mask, self._nulls, self._offset, self._children = mask, null_count, offset, children

    def type(self) -> DataType:
        return self._type

    def size(self) -> int:
        return self._size

    def data(self) -> Any:
        return self._data

    def null_mask(self) -> Any:
        return self._mask

    def null_count(self) -> int:
        return self._nulls

    def offset(self) -> int:
        return self._offset

    def num_children(self) -> int:
        return len(self._children)

    def child(self, number: int) -> Column:
        return self._children[number]

    def children(self) -> list[Column]:
        return list(self._children)

    def device_buffer_size(self) -> int:
        return self._size * width(self._type._id)

    def copy(self) -> Column:
        return self

    def with_mask(self, mask: Any, nulls: int) -> Column:
        return Column(self._type, self._size, self._data, mask, nulls, 0, self._children)

    def to_scalar(self) -> Scalar:
        return Scalar(self._type)

    def to_arrow(self) -> pa.Array:
        name = self._type.id()
        if name == "STRING":
            return pa.array([""] * self._size)
        return pa.array(np.zeros(self._size, name.lower().replace("bool8", "bool")))

    @staticmethod
    def from_scalar(scalar: Scalar, size: int) -> Column:
        return zeros(scalar.type(), size)

    @staticmethod
    def from_arrow(array: pa.Array) -> Column:
        return zeros(
            STRING
            if pa.types.is_large_string(array.type) or pa.types.is_string(array.type)
            else INT64,
            len(array),
        )


class Scalar:
    def __init__(self, data_type: DataType) -> None:
        self._type = data_type

    def type(self) -> DataType:
        return self._type

    def to_py(self) -> int:
        return 0

    is_valid = staticmethod(lambda: True)

    @staticmethod
    def from_py(value: object, data_type: DataType = INT64) -> Scalar:
        return Scalar(data_type)


class Table:
    def __init__(self, columns: Sequence[Column]) -> None:
        self._columns = columns

    def columns(self) -> list[Column]:
        return list(self._columns)

    def num_rows(self) -> int:
        return self._columns[0].size()

    def num_columns(self) -> int:
        return len(self._columns)


def zeros(data_type: DataType, size: int) -> Column:
    """Return a column of zeros, or of empty texts."""
    children = [zeros(INT32, size + 1)] if data_type.id() == "STRING" else []
    return Column(data_type, size, NOTHING, None, 0, 0, children)


def like(table: Table | Column, size: int) -> Table | Column:
    if isinstance(table, Column):
        return zeros(table.type(), size)
    return Table([zeros(column.type(), size) for column in table.columns()])


def of_longer(left: Any, right: Any, operator: str, data_type: DataType) -> Column:
    return zeros(data_type, (left if isinstance(left, Column) else right).size())


def answers() -> dict[str, Callable[..., Any]]:
    """Return what libcudf's functions answer, by their names."""
    return {
        "binaryop.binary_operation": of_longer,
        "unary.cast": lambda column, kind: zeros(kind, column.size()),
        "unary.unary_operation": lambda column, operator: column,
        "unary.is_valid": lambda column: zeros(BOOL, column.size()),
        "transform.bools_to_mask": lambda column: (NOTHING, 0),
        "column_factories.make_empty_column": lambda kind: zeros(kind, 0),
        "filling.sequence": lambda size, first, step: zeros(first.type(), size),
        "filling.fill_in_place": lambda *_: None,
        "copying.gather": lambda table, rows, policy: like(table, rows.size()),
        "copying.slice": lambda table, ends: [like(table, ends[1] - ends[0])],
        "copying.copy_if_else": lambda yes, no, condition: zeros(yes.type(), condition.size()),
        "sorting.sort": lambda table, *_: table,
        "sorting.top_k": lambda column, count, *_: zeros(column.type(), count),
        "sorting.stable_sorted_order": lambda table, *_: zeros(INT32, table.num_rows()),
        "reduce.reduce": lambda column, how, kind: Scalar(kind),
        "reduce.minmax": lambda column: (Scalar(column.type()), Scalar(column.type())),
        "replace.replace_nulls": lambda column, value: column,
        "replace.normalize_nans_and_zeros": lambda column: column,
        "stream_compaction.apply_retention_mask": lambda table, mask: table,
        "concatenate.concatenate": lambda tables: tables[0],
        "null_mask.bitmask_allocation_size_bytes": lambda rows: -(-rows // 512) * 64,
    }


def fill(libcudf: Any) -> None:
    """Have a module that answers anything answer as libcudf where it is asked for columns."""
    libcudf.Column, libcudf.Table, libcudf.Scalar = Column, Table, Scalar
    libcudf.DataType, libcudf.gpumemoryview, libcudf.TypeId = DataType, View, Names()
    libcudf.types.Order, libcudf.types.NullOrder = Names(), Names()
    libcudf.binaryop.BinaryOperator = Names()
    for name, answer in answers().items():
        module, function = name.split(".")
        setattr(getattr(libcudf, module), function, answer)
