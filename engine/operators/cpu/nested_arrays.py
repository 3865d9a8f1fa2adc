"""Arrow's lists and structs taken apart and put together; no operator but what computes with their insides looks into them.

A list of Arrow is offsets and elements; lists may share elements, and a NULL list may have some.  Here the elements of an
array are those of its own lists that are not NULL, one list after the other.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from ...errors import ExecutionError
from ...plan.arrow.arrow_arrays import from_numpy, null_as, truth_values
from ...plan.arrow.nested_buffers import nested_array
from ...plan.types import DataType, Kind
from ...records import dataclass
from ...storage.columns.encodings import numbers

Ints = npt.NDArray[np.int64]
Mask = npt.NDArray[np.bool_]
MOST_ELEMENTS = (1 << 31) - 1  # that the int32 offsets of an Arrow list address


@dataclass(frozen=True)
class Lists:
    """An array of lists: how long each is (0 for NULL), all elements, and which lists are not NULL (None: all)."""

    lengths: Ints
    elements: pa.Array
    valid: Mask | None

    @classmethod
    def of(cls, array: pa.Array) -> Lists:
        if pa.types.is_null(array.type):
            array = pa.nulls(len(array), pa.list_(pa.null()))
        if pa.types.is_map(array.type):
            array = _entries(array)
        lengths = numbers(null_as(pc.list_value_length(array), 0)).astype(np.int64)
        valid = truth_values(array.is_valid()) if array.null_count else None
        return cls(lengths, array.flatten(), valid)

    @property
    def starts(self) -> Ints:
        """Where the elements of each list begin."""
        ends: Ints = np.cumsum(self.lengths)
        return ends - self.lengths

    @property
    def rows(self) -> Ints:
        """The list of each element."""
        return np.repeat(np.arange(len(self.lengths)), self.lengths)

    @property
    def places(self) -> Ints:
        """The place of each element in its list, from 0 on."""
        return np.arange(len(self.elements)) - np.repeat(self.starts, self.lengths)


def _entries(array: pa.MapArray) -> pa.ListArray:
    """View maps as lists of their entries."""
    found = array.values
    arrow, buffers = pa.list_(pa.field("l", found.type)), array.buffers()[:2]
    return nested_array(arrow, len(array), buffers, [found], offset=array.offset)


def check_elements(count: int) -> None:
    """Raise `ExecutionError` for more elements than the lists of a chunk have."""
    if count > MOST_ELEMENTS:
        raise ExecutionError(
            f"Lists of {count:,} elements are made at once, and {MOST_ELEMENTS:,} are the most: filter rows before."
        )


def list_array(
    lengths: Ints, elements: pa.Array, valid: Mask | None, arrow: pa.DataType
) -> pa.Array:
    """Return lists of the given lengths over elements, one after the other; raises `ExecutionError` for too many."""
    offsets = np.zeros(len(lengths) + 1, np.int64)
    np.cumsum(lengths, out=offsets[1:])
    check_elements(int(offsets[-1]))
    bitmap = None if valid is None else pa.py_buffer(np.packbits(valid, bitorder="little"))
    nulls = 0 if valid is None else len(valid) - int(np.count_nonzero(valid))
    buffers = [bitmap, pa.py_buffer(offsets.astype(np.int32))]
    return nested_array(arrow, len(lengths), buffers, [elements], nulls)


def struct_array(fields: Sequence[pa.Array], valid: Mask | None, arrow: pa.DataType) -> pa.Array:
    """Return structs of the given fields."""
    mask = None if valid is None else from_numpy(~valid)
    return pa.StructArray.from_arrays(fields, fields=list(arrow), mask=mask)


def fields_of(array: pa.Array) -> list[pa.Array]:
    """Return the fields of structs, NULL where a struct is."""
    return list(array.flatten())


def _of_one_length(lists: Lists, elements: pa.Array, arrow: pa.DataType) -> pa.Array:
    """Return lists that are NULL or of the length that Arrow's type says, in which a NULL has elements, too."""
    if lists.valid is None:
        return pa.FixedSizeListArray.from_arrays(elements, type=arrow)
    size = arrow.list_size
    known = np.repeat(lists.valid, size)
    places = np.where(known, np.cumsum(known) - 1, 0)
    filled = elements.take(from_numpy(places, known))
    return pa.FixedSizeListArray.from_arrays(filled, type=arrow, mask=from_numpy(~lists.valid))


def changed(
    array: pa.Array,
    data_type: DataType,
    arrow: pa.DataType,
    change: Callable[[pa.Array, DataType], pa.Array],
) -> pa.Array:
    """Return lists, structs or maps as an array of the type `arrow`, their children as `change` makes them."""
    if pa.types.is_null(array.type):
        return pa.nulls(len(array), arrow)
    valid = truth_values(array.is_valid()) if array.null_count else None
    if data_type.kind is Kind.STRUCT:
        made = [change(f, t) for f, t in zip(fields_of(array), data_type.children, strict=True)]
        return struct_array(made, valid, arrow)
    lists = Lists.of(array)
    elements = change(lists.elements, data_type.children[0])
    if pa.types.is_fixed_size_list(arrow):
        return _of_one_length(lists, elements, arrow)
    if pa.types.is_map(arrow):
        entry = pa.struct([arrow.key_field, arrow.item_field])
        children = [f.cast(n.type) for f, n in zip(fields_of(elements), entry, strict=True)]
        elements = nested_array(entry, len(elements), [None], children, 0)
    return list_array(lists.lengths, elements, valid, arrow)
