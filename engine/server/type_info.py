"""The SQL types for GetXdbcTypeInfo, as JDBC and ODBC ask for them."""

from __future__ import annotations

from typing import NamedTuple

import pyarrow as pa

from ..plan.arrow.arrow_types import arrow_table

NULLABLE, SEARCHABLE_BASIC, SEARCHABLE_FULL = 1, 2, 3
DATETIME, INTERVAL = 9, 10  # the general types of dates and times, and of intervals


class TypeRow(NamedTuple):
    """A type: its number in JDBC and ODBC, digits or characters, quotes of a literal, and what goes for numbers."""

    name: str
    number: int
    size: int | None
    quotes: tuple[str | None, str | None] = (None, None)
    params: tuple[str, ...] | None = None
    is_unsigned: bool | None = None
    scales: tuple[int | None, int | None] = (None, None)
    general: int | None = None
    subcode: int | None = None
    radix: int | None = None


QUOTED = ("'", "'")
TYPES = (
    TypeRow("TINYINT", -6, 3, is_unsigned=False, scales=(0, 0), radix=10),
    TypeRow("UTINYINT", -6, 3, is_unsigned=True, scales=(0, 0), radix=10),
    TypeRow("BIGINT", -5, 19, is_unsigned=False, scales=(0, 0), radix=10),
    TypeRow("UBIGINT", -5, 20, is_unsigned=True, scales=(0, 0), radix=10),
    TypeRow("BLOB", -3, None, QUOTED),
    TypeRow("BOOLEAN", -7, 1),
    TypeRow("DECIMAL", 3, 38, (None, None), ("precision", "scale"), False, (0, 38), radix=10),
    TypeRow("HUGEINT", 3, 38, is_unsigned=False, scales=(0, 0), radix=10),
    TypeRow("INTEGER", 4, 10, is_unsigned=False, scales=(0, 0), radix=10),
    TypeRow("UINTEGER", 4, 10, is_unsigned=True, scales=(0, 0), radix=10),
    TypeRow("SMALLINT", 5, 5, is_unsigned=False, scales=(0, 0), radix=10),
    TypeRow("USMALLINT", 5, 5, is_unsigned=True, scales=(0, 0), radix=10),
    TypeRow("FLOAT", 7, 24, is_unsigned=False, radix=2),
    TypeRow("DOUBLE", 8, 53, is_unsigned=False, radix=2),
    TypeRow("UUID", 12, 36, ("UUID '", "'")),
    TypeRow("VARCHAR", 12, None, QUOTED, ("length",)),
    TypeRow("INTERVAL", 10, None, ("INTERVAL '", "'"), general=INTERVAL),
    TypeRow("DATE", 91, 10, ("DATE '", "'"), general=DATETIME, subcode=1),
    TypeRow("TIME", 92, 15, ("TIME '", "'"), general=DATETIME, subcode=2),
    TypeRow("TIMESTAMP", 93, 26, ("TIMESTAMP '", "'"), general=DATETIME, subcode=3),
    TypeRow(
        "TIMESTAMP WITH TIME ZONE", 93, 32, ("TIMESTAMPTZ '", "'"), general=DATETIME, subcode=5
    ),
)


def _field(name: str, arrow: pa.DataType, required: bool = False) -> pa.Field:
    return pa.field(name, arrow, nullable=not required)


TYPE_INFO = pa.schema(
    [
        _field("type_name", pa.string(), True),
        _field("data_type", pa.int32(), True),
        _field("column_size", pa.int32()),
        _field("literal_prefix", pa.string()),
        _field("literal_suffix", pa.string()),
        _field("create_params", pa.list_(pa.field("item", pa.string(), nullable=False))),
        _field("nullable", pa.int32(), True),
        _field("case_sensitive", pa.bool_(), True),
        _field("searchable", pa.int32(), True),
        _field("unsigned_attribute", pa.bool_()),
        _field("fixed_prec_scale", pa.bool_(), True),
        _field("auto_increment", pa.bool_()),
        _field("local_type_name", pa.string()),
        _field("minimum_scale", pa.int32()),
        _field("maximum_scale", pa.int32()),
        _field("sql_data_type", pa.int32(), True),
        _field("datetime_subcode", pa.int32()),
        _field("num_prec_radix", pa.int32()),
        _field("interval_precision", pa.int32()),
    ]
)


def type_info(number: int | None) -> pa.Table:
    """Return the types, or those of one number of JDBC and ODBC, in their order."""
    chosen = sorted(
        (t for t in TYPES if number in (None, t.number)), key=lambda t: (t.number, t.name)
    )
    rows = [
        (
            t.name,
            t.number,
            t.size,
            *t.quotes,
            t.params,
            NULLABLE,
            t.name == "VARCHAR",
            SEARCHABLE_FULL if t.name == "VARCHAR" else SEARCHABLE_BASIC,
            t.is_unsigned,
            False,
            None if t.is_unsigned is None else False,
            None,
            *t.scales,
            t.general or t.number,
            t.subcode,
            t.radix,
            None,
        )
        for t in chosen
    ]
    return arrow_table(rows, TYPE_INFO)
