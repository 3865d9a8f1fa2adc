"""A5: TRY_CAST gave NULL in silence where DuckDB has a value: each pair of types over the extremes of the first."""

from __future__ import annotations

import duckdb
import pyarrow as pa
import pytest

import fuseline
from fuseline.errors import FuselineError
from tests.compare import (
    Ordering,
    assert_same_as_duckdb,
    difference,
    duckdb_answer,
    fuseline_answer,
)
from tests.random_queries.extremes import POOL, SPELLINGS

OTHERS = ("time", "uuid", "blob", "json", "timestamptz", "timestamp_s", "timestamp_ms", "timestamp_ns", "bit", "integer[]", "enum('a', 'b')")  # fmt: skip
TARGETS = (*POOL, *OTHERS)
REFUSED = {("varchar", "hugeint"): "has 39 digits, and HUGEINT holds 38 here"}
CLOCKS = [
    f"{day}{hour}{minute}{second}{end}"
    for day in ("", "2024-01-01 ", "2024-01-01T")
    for hour in ("1", "12", "24", "25")
    for minute in ("", ":", ":0", ":00", ":5x", ":60")
    for second in ("", ":", ":01", ":01.", ":01.5")
    for end in ("", " ", "Z", " Z", "+02", " +02", "x")
]
ENDS = [
    *("294247-01-10 04:00:54.775807", "294247-01-10 04:00:54.775806", "294247-01-10 04:00:54.4999", "294247-01-10 04:00:54.5"),
    *("294247-01-10 04:00:54.7749", "294247-01-10 04:00:54.7755", "294247-01-10 05:00:54.775807+01", "294247-01-10 04:00:54.775807Z"),
    *("290309-12-22 (BC) 00:00:00", "290309-12-22 (BC) 00:00:00.6", "2262-04-11 23:47:16.854775", "2024-01-01 ", "2024-01-01T"),
]  # fmt: skip


@pytest.mark.parametrize("source", POOL)
def test_each_target(source: str) -> None:
    """A value, or NULL, or a refusal while planning: each as DuckDB's, over columns and over one constant."""
    values = [*POOL[source].values, None]
    if source == "varchar":
        values += SPELLINGS
    table = pa.table({"i": range(len(values)), "c": POOL[source].array(values)})
    column = POOL[source].column("c")
    wrong = []
    with duckdb.connect() as theirs, fuseline.connect(device="cpu") as ours:
        theirs.register("t", table)
        ours.register("t", table)
        for target in TARGETS:
            query = f"select i, try_cast({column} as {target}) as v from t order by i"
            try:
                expected = duckdb_answer(theirs, query)
            except duckdb.Error:
                expected = None
            try:
                found = fuseline_answer(ours, query)
            except FuselineError as error:
                if expected is not None and REFUSED.get((source, target), "-") not in error.message:
                    wrong.append(f"{target}: {error.message}")
                continue
            if expected is None:
                wrong.append(f"{target}: answered")
            elif problem := difference(expected, found, Ordering(True)):
                wrong.append(f"{target}: {problem}")
    assert wrong == []


@pytest.mark.parametrize("texts", [CLOCKS, ENDS], ids=["clocks", "ends"])
def test_texts_of_moments(texts: list[str]) -> None:
    kinds = (
        "time",
        "date",
        "timestamp",
        "timestamptz",
        "timestamp_s",
        "timestamp_ms",
        "timestamp_ns",
    )
    items = ", ".join(f"try_cast(s as {kind})::varchar as v{i}" for i, kind in enumerate(kinds))
    again = ", ".join(
        f"try_cast(try_cast(s as timestamp) as {kind}) as w{i}" for i, kind in enumerate(kinds[4:6])
    )
    table = pa.table({"s": texts})
    assert_same_as_duckdb(f"select s, {items}, {again} from t", {"t": table}, backend="cpu")
