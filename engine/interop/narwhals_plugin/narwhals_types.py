"""SQL types as Narwhals' and back."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from narwhals._utils import Version, isinstance_or_issubclass

from ...plan import types
from ...plan.coercion import enum_of
from ...plan.types import DataType, Kind, array_of, decimal, list_of, map_of, struct_of

if TYPE_CHECKING:
    from narwhals.dtypes import DType
    from narwhals.typing import IntoDType

_DTYPES = Version.MAIN.dtypes
_PLAIN: Mapping[DataType, type[DType]] = {
    types.BOOLEAN: _DTYPES.Boolean,
    types.TINYINT: _DTYPES.Int8,
    types.SMALLINT: _DTYPES.Int16,
    types.INTEGER: _DTYPES.Int32,
    types.BIGINT: _DTYPES.Int64,
    types.HUGEINT: _DTYPES.Int128,
    types.UTINYINT: _DTYPES.UInt8,
    types.USMALLINT: _DTYPES.UInt16,
    types.UINTEGER: _DTYPES.UInt32,
    types.UBIGINT: _DTYPES.UInt64,
    types.FLOAT: _DTYPES.Float32,
    types.DOUBLE: _DTYPES.Float64,
    types.VARCHAR: _DTYPES.String,
    types.BLOB: _DTYPES.Binary,
    types.DATE: _DTYPES.Date,
    types.TIME: _DTYPES.Time,
}
_OF_DTYPE = {dtype: data_type for data_type, dtype in _PLAIN.items()}
_UNITS = {
    "s": types.TIMESTAMP_S,
    "ms": types.TIMESTAMP_MS,
    "us": types.TIMESTAMP,
    "ns": types.TIMESTAMP_NS,
}
_UNIT_OF = {data_type: unit for unit, data_type in _UNITS.items()}


def to_dtype(data_type: DataType, version: Version, zone: str) -> DType:
    """Return the type of a column as Narwhals has it; timestamps with a zone are in that of the connection."""
    dtypes = version.dtypes
    plain = _PLAIN.get(data_type)
    if plain is not None:
        return plain()
    if data_type in _UNIT_OF:
        return dtypes.Datetime(_UNIT_OF[data_type])
    if data_type.is_enum:
        return dtypes.Enum() if version is Version.V1 else dtypes.Enum(data_type.names)
    inner = [to_dtype(child, version, zone) for child in data_type.children]
    match data_type.kind:
        case Kind.TIMESTAMPTZ:
            return dtypes.Datetime(time_zone=zone)
        case Kind.INTERVAL:
            return dtypes.Duration()
        case Kind.DECIMAL:
            return dtypes.Decimal(data_type.precision, data_type.scale)
        case Kind.LIST:
            length = data_type.precision  # of an ARRAY
            return dtypes.Array(inner[0], length) if length else dtypes.List(inner[0])
        case Kind.MAP:
            key, value = (field.dtype for field in inner[0].fields)
            return dtypes.Map(key, value)
        case Kind.STRUCT:
            fields = zip(data_type.names, inner, strict=True)
            return dtypes.Struct([dtypes.Field(name, dtype) for name, dtype in fields])
        case Kind.VARCHAR:  # JSON
            return dtypes.String()
    return dtypes.Unknown()


def to_data_type(dtype: IntoDType, version: Version, zone: str) -> DataType:
    """Return the SQL type of one of Narwhals'; raises `NotImplementedError` for one that SQL has not."""
    dtypes = version.dtypes
    plain = _OF_DTYPE.get(dtype.base_type())
    if plain is not None:
        return plain
    if isinstance_or_issubclass(dtype, dtypes.Datetime):
        return _moment(dtype, zone)
    if isinstance_or_issubclass(dtype, dtypes.Duration):
        return types.INTERVAL
    if isinstance(dtype, dtypes.Decimal):
        return decimal(dtype.precision, dtype.scale)
    if isinstance(dtype, dtypes.List):
        return list_of(to_data_type(dtype.inner, version, zone))
    if isinstance(dtype, dtypes.Array):
        return array_of(to_data_type(dtype.inner, version, zone), dtype.shape[0])
    if isinstance(dtype, dtypes.Map):
        pair = (to_data_type(part, version, zone) for part in (dtype.key, dtype.value))
        return map_of(*pair)
    if isinstance(dtype, dtypes.Struct):
        return struct_of((f.name, to_data_type(f.dtype, version, zone)) for f in dtype.fields)
    if isinstance_or_issubclass(dtype, dtypes.Enum):
        return _enum(dtype, version)
    raise NotImplementedError(f"Fuseline has no type for {dtype}: cast to another one.")


def _moment(dtype: IntoDType, zone: str) -> DataType:
    if not dtype.time_zone:
        return _UNITS[dtype.time_unit]
    if dtype.time_unit != "us":
        raise ValueError(
            f"A timestamp with a time zone counts microseconds, and this type is {dtype}."
        )
    if dtype.time_zone != zone:
        raise ValueError(
            f"Timestamps are in the time zone of the connection, {zone}: SET TimeZone = '{dtype.time_zone}' changes it."
        )
    return types.TIMESTAMPTZ


def _enum(dtype: IntoDType, version: Version) -> DataType:
    if version is Version.V1:
        raise NotImplementedError("Converting to Enum is not supported in narwhals.stable.v1")
    if not isinstance(dtype, version.dtypes.Enum):
        raise ValueError("Can not cast / initialize Enum without categories present")
    return enum_of(dtype.categories)
