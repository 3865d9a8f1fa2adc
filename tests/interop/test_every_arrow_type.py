"""Columns of every Arrow type with its extremes, registered and asked in each way: an answer, or an error that names the column."""

from __future__ import annotations

from collections.abc import Callable
from decimal import Decimal, localcontext
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from fuseline.errors import FuselineError

pytestmark = pytest.mark.usefixtures("fuse")

ENDS = pa.array([-(2**63), 2**63 - 1, 0, None], pa.int64())
SHORT_ENDS = pa.array([-(2**31), 2**31 - 1, None], pa.int32())


def decimals(text: str, kind: pa.DataType) -> pa.Array:
    with localcontext(prec=90):
        return pa.array([Decimal(text), None], kind)


COLUMNS: dict[str, Any] = {
    **{str(t): ENDS.view(t) for t in map(pa.timestamp, ("s", "ms", "us", "ns"))},
    **{
        str(t): ENDS.view(t)
        for t in (pa.date64(), pa.time64("us"), pa.duration("ns"), pa.duration("s"))
    },
    "timestamp with a zone": ENDS.view(pa.timestamp("us", "UTC")),
    "date32": SHORT_ENDS.view(pa.date32()),
    "time32": SHORT_ENDS.view(pa.time32("s")),
    "interval": pa.array([(2**31 - 1, -(2**31), 2**63 - 1), None], pa.month_day_nano_interval()),
    "decimal32": decimals("9.99", pa.decimal32(3, 2)),
    "decimal64": decimals("9.99", pa.decimal64(10, 2)),
    "decimal256": decimals("9" * 70, pa.decimal256(76, 0)),
    "small decimal256": decimals("1.5", pa.decimal256(40, 2)),
    "negative scale": decimals("100", pa.decimal128(3, -2)),
    "float16": pa.array([np.float16("nan"), np.float16("inf")]),
    "binary": pa.array([b"\xff", None]),
    "fixed binary": pa.array([b"ab", None], pa.binary(2)),
    "binary view": pa.array([b"\xff"], pa.binary_view()),
    "string view": pa.array(["é", None], pa.string_view()),
    "large string": pa.array(["é", None], pa.large_string()),
    "dictionary": pa.array(["a", None, "a"]).dictionary_encode(),
    "NULL in the dictionary": pa.DictionaryArray.from_arrays([0, 1, None], ["a", None]),
    "a value twice in the dictionary": pa.DictionaryArray.from_arrays([0, 1], ["a", "a"]),
    "dictionary of numbers": pa.array([1, 2]).dictionary_encode(),
    "run ends": pa.RunEndEncodedArray.from_arrays([2, 3], ["a", "b"]),
    "list": pa.array([[1], None]),
    "list view": pa.array([[1], None], pa.list_view(pa.int64())),
    "struct": pa.array([{"a": 1}, None]),
    "map": pa.array([[("a", 1)]], pa.map_(pa.string(), pa.int64())),
    "null": pa.nulls(3),
    "bool8": pa.ExtensionArray.from_storage(pa.bool8(), pa.array([1, 0], pa.int8())),
    "uuid": pa.array([b"0" * 16], pa.binary(16)).cast(pa.uuid()),
    "json": pa.ExtensionArray.from_storage(pa.json_(), pa.array(["{}"])),
}
QUERIES = [
    "select x from t",
    "select count(x), min(x), max(x) from t",
    "select x, count(*) from t group by x order by x",
    "select count(*) from t where x is not null and k >= 0",
    "select x::varchar from t",
    "select count(*) from t a join t b on a.x = b.x",
]


def tried(make: Callable[[], Any]) -> str | None:
    """What the error says, if there is one."""
    try:
        frame = make()
        assert len(frame.to_pandas()) == len(frame.fetchall())
        frame.to_polars()
    except FuselineError as error:
        return error.message
    return None


@pytest.mark.by_day(3)
@pytest.mark.filterwarnings("ignore:The table .* is without the columns:UserWarning")
@pytest.mark.parametrize("name", COLUMNS)
def test_an_answer_or_an_error_of_ours(name: str, connection: Any) -> None:
    column = COLUMNS[name]
    connection.register("t", pa.table({"x": column, "k": range(len(column))}))
    for query in QUERIES:
        said = tried(lambda query=query: connection.sql(query))
        assert said is None or '"x"' in said or "Polars" in said
    assert connection.sql("select count(*), sum(k) from t").fetchall()[0][0] == len(column)
