"""What the server can, by the numbers of Flight SQL: the answer to GetSqlInfo, whose column of values is a dense union."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from importlib.metadata import version

import pyarrow as pa

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
