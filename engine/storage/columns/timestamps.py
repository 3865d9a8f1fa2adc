"""Timestamps of other units than the microseconds of TIMESTAMP: they are taken where no digit is lost, and INT96 of Parquet.

Nothing here rounds: 999 nanoseconds would be equal to none, and distinct moments one.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import pyarrow as pa

from ...errors import DataError
from ...plan.types import Kind

if TYPE_CHECKING:
    from ..tables.parquet import ParquetTable

MICROSECONDS = pa.timestamp("us")
INT96_UNIT = (
    "us"  # Arrow's reader would make nanoseconds of INT96, which wrap outside of 1677 to 2262
)


def check_timestamps(array: pa.Array, what: str) -> None:
    """Raise `DataError` for timestamps that are no whole microseconds or leave 64 bits of them; `what` names the column."""
    if pa.types.is_dictionary(array.type):
        array = array.dictionary
    if not pa.types.is_timestamp(array.type) or array.type.unit == "us":
        return
    try:
        array.cast(MICROSECONDS)
    except pa.ArrowInvalid:
        raise lost(what, array.type.unit) from None


def lost(what: str, unit: str) -> DataError:
    """Return the error for a column whose values are not microseconds."""
    if unit == "ns":
        return DataError(
            f"{what} holds nanoseconds, of which TIMESTAMP has no digits: round it to microseconds before "
            '(pandas: .dt.round("us"), Arrow: pyarrow.compute.round_temporal), or keep it as BIGINT.'
        )
    return DataError(f"{what} holds moments outside of TIMESTAMP's years 290308 BC to 294247 AD.")


def is_int96(table: ParquetTable, source: str, file: int) -> bool:
    """Whether a column of a file has Parquet's old type of timestamps."""
    if table.types[source].kind is not Kind.TIMESTAMP:
        return False
    schema, name = table.footers[file].schema, table.parquet_names[source]
    columns = (schema.column(i) for i in range(len(schema)))
    return any(c.path == name and c.physical_type == "INT96" for c in columns)
