"""What the server can, by the numbers of Flight SQL: the answer to GetSqlInfo, whose column of values is a dense union.

The SQL types for GetXdbcTypeInfo, as JDBC and ODBC ask for them.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from importlib.metadata import version
from typing import NamedTuple

import pyarrow as pa

from ..plan.arrow.arrow_types import arrow_table
from ..plan.functions import scalar_name
from ..plan.functions.dates import DATES
from ..plan.functions.numeric import NUMERIC
from ..plan.functions.row import FunctionRow
from ..plan.functions.strings import STRINGS as OF_TEXT

VALUES = [
    pa.field("string_value", pa.string()),
    pa.field("bool_value", pa.bool_()),
    pa.field("bigint_value", pa.int64()),
    pa.field("int32_bitmask", pa.int32()),
    pa.field("string_list", pa.list_(pa.field("string_data", pa.string()))),
    pa.field(
        "int32_to_int32_list_map",
        pa.map_(pa.int32(), pa.list_(pa.field("$data$", pa.int32()))),
    ),
]
STRING, BOOL, BIGINT, BITMASK, STRINGS, MAP = range(len(VALUES))
SQL_INFO = pa.schema(
    [
        pa.field("info_name", pa.uint32(), nullable=False),
        pa.field("value", pa.dense_union(VALUES), nullable=False),
    ]
)


def _bits(*numbers: int) -> int:
    return sum(1 << n for n in numbers)


def _names(rows: Iterable[FunctionRow]) -> list[str]:
    return sorted(row.name for row in rows if scalar_name(row.name))


Fact = tuple[int, object]

# What holds of the SQL, whoever asks
SYNTAX: dict[int, Fact] = {
    500: (BOOL, False),  # CREATE of catalogs, schemas, tables
    501: (BOOL, False),
    503: (BIGINT, 1),  # names without regard to case
    504: (STRING, '"'),
    505: (BIGINT, 1),
    506: (BOOL, True),
    507: (BIGINT, 3),  # NULLs last
    508: (STRINGS, []),
    509: (STRINGS, _names(NUMERIC)),
    510: (STRINGS, _names(OF_TEXT)),
    511: (STRINGS, []),
    512: (STRINGS, _names(DATES)),
    513: (STRING, "\\"),
    514: (STRING, ""),
    515: (BOOL, True),  # column aliases
    516: (BOOL, True),
    517: (MAP, []),
    518: (BOOL, True),
    519: (BOOL, False),
    520: (BOOL, True),  # expressions in ORDER BY, columns that are not selected
    521: (BOOL, True),
    522: (BITMASK, _bits(0, 1)),
    523: (BOOL, True),
    524: (BOOL, True),
    525: (BITMASK, _bits(0, 1)),
    526: (BITMASK, _bits(0)),
    527: (BOOL, False),
    528: (BIGINT, 2),  # full outer joins
    529: (STRING, "schema"),
    530: (STRING, "procedure"),
    531: (STRING, "catalog"),
    532: (BOOL, True),
    533: (BITMASK, 0),
    534: (BITMASK, 0),
    535: (BITMASK, 0),
    536: (BOOL, False),
    537: (BOOL, False),
    538: (BITMASK, _bits(0, 1, 2, 3)),
    539: (BOOL, True),
    540: (BITMASK, _bits(0, 1)),
    562: (BIGINT, 3),  # repeatable read
    563: (BOOL, True),
    564: (BITMASK, _bits(3)),
    565: (BOOL, False),
    566: (BOOL, False),
    572: (BOOL, True),
    573: (BOOL, False),
    574: (BOOL, True),
}


def facts(read_only: bool) -> dict[int, Fact]:
    """Return the value of each number, and which of `VALUES` it is."""
    writes = not read_only
    return SYNTAX | {
        0: (STRING, "Fuseline"),
        1: (STRING, version("fuseline")),
        2: (STRING, pa.__version__),
        3: (BOOL, read_only),
        4: (BOOL, True),  # SQL
        5: (BOOL, False),  # Substrait
        8: (BITMASK, 1),  # transactions without savepoints
        9: (BOOL, True),  # cancel
        10: (BOOL, writes),  # bulk ingestion, also in transactions
        11: (BOOL, writes),
        502: (BOOL, writes),
    }


def sql_info(wanted: Sequence[int], read_only: bool) -> pa.Table:
    """Return the facts of these numbers, of all without any; what is not known is left out."""
    known = facts(read_only)
    numbers = [n for n in (wanted or known) if n in known]
    lists: list[list[object]] = [[] for _ in VALUES]
    offsets = []
    for number in numbers:
        kind, value = known[number]
        offsets.append(len(lists[kind]))
        lists[kind].append(value)
    children = [pa.array(v, f.type) for v, f in zip(lists, VALUES, strict=True)]
    union = pa.UnionArray.from_dense(
        pa.array([known[n][0] for n in numbers], pa.int8()),
        pa.array(offsets, pa.int32()),
        children,
        [f.name for f in VALUES],
    )
    return pa.table([pa.array(numbers, pa.uint32()), union], schema=SQL_INFO)


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
