"""Medians and quantiles of groups by radix selection, with so few slots that it goes over several steps."""

from __future__ import annotations

import random
from collections.abc import Callable
from datetime import date, datetime, timedelta
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest

from fuseline.operators.cpu.aggregate import selected_places
from fuseline.operators.cpu.memory import chunks
from tests.compare import assert_same_as_duckdb
from tests.limits import SetLimits

ROWS = 3000
draw = random.Random(11)
SPECIAL = [0.0, -0.0, float("inf"), float("-inf"), float("nan"), 1e-300]
NUMBERS: dict[str, tuple[Callable[[int], Any], pa.DataType]] = {
    "integers": (lambda n: draw.randrange(-1000, 1000), pa.int32()),
    "all 64 bits": (lambda n: draw.choice([-(2**63), 2**63 - 1, draw.randrange(2**63)]), pa.int64()),
    "without a sign": (lambda n: draw.randrange(2**64), pa.uint64()),
    "few values": (lambda n: draw.choice([1, 1, 1, 7]), pa.int8()),
    "one value": (lambda n: 5, pa.int64()),
    "an outlier": (lambda n: 2**60 if n == 77 else n % 90, pa.int64()),
    "a value a group": (lambda n: n % 5, pa.int64()),
    "doubles": (lambda n: draw.choice([*SPECIAL, draw.gauss(0, 1e6)]), pa.float64()),
    "floats": (lambda n: draw.gauss(0, 10), pa.float32()),
    "NULLs": (lambda n: None if n % 3 else draw.randrange(500), pa.int64()),
    "NULL groups": (lambda n: None if n % 5 < 2 else n, pa.int64()),
    "nothing but NULLs": (lambda n: None, pa.int64()),
    "decimals": (lambda n: Decimal(draw.randrange(-(10**8), 10**8)).scaleb(-2), pa.decimal128(12, 2)),
    "wide decimals": (lambda n: Decimal(draw.randrange(10**30)), pa.decimal128(38, 0)),
}  # fmt: skip
OTHERS: dict[str, tuple[Callable[[int], Any], pa.DataType]] = {
    "dates": (lambda n: date(1990, 1, 1) + timedelta(draw.randrange(5000)), pa.date32()),
    "moments": (lambda n: datetime(1990, 1, 1) + timedelta(0, draw.randrange(9**9)), pa.timestamp("us")),
}  # fmt: skip


@pytest.fixture(autouse=True)
def few_slots(limits: SetLimits, monkeypatch: pytest.MonkeyPatch) -> None:
    limits(FEW_PLACED=20, RADIX_SLOTS=64, LEAST_RADIX=2)
    monkeypatch.setattr(chunks, "CHUNK_ROWS", 700)


def table(name: str) -> pa.Table:
    value, kind = {**NUMBERS, **OTHERS}[name]
    made = pa.array([value(n) for n in range(ROWS)], kind)
    return pa.table({"g": [n % 5 for n in range(ROWS)], "v": made, "n": range(ROWS)})


@pytest.mark.by_day(2)
@pytest.mark.parametrize("name", [*NUMBERS, *OTHERS])
def test_they_are_duckdbs(name: str) -> None:
    fractions = (0, 0.1, 0.5, 0.999, 1)
    calls = ["median(v)", *(f"quantile_cont(v, {f}), quantile_disc(v, {f})" for f in fractions)]
    for where in ("true", "g <> 3 and n % 2 = 0", "n > 2990", "n < 0"):
        query = f"select g, {', '.join(calls)} from t where {where} group by g"
        assert_same_as_duckdb(query, {"t": table(name)}, ordered=False)
        assert_same_as_duckdb(f"select {', '.join(calls)} from t where {where}", {"t": table(name)})


@pytest.mark.parametrize("name", ["integers", "NULLs", "doubles", "all 64 bits"])
def test_descending(name: str) -> None:
    calls = [
        f"quantile_{kind}({f}) within group (order by v desc)"
        for kind in ("cont", "disc")
        for f in (0, 0.3, 0.5, 1)
    ]
    sql = ", ".join(calls).replace("quantile_", "percentile_")
    assert_same_as_duckdb(f"select g, {sql} from t group by g", {"t": table(name)}, ordered=False)


def test_strings() -> None:
    words = [None, "", "a", "ab", "same first bytes 1", "same first bytes 2", "é", "z"]
    values = [draw.choice(words) for _ in range(ROWS)]
    given = pa.table({"g": [n % 5 for n in range(ROWS)], "v": values})
    query = "select g, quantile_disc(v, 0.5), quantile_disc(v, 0.9) from t group by g"
    assert_same_as_duckdb(query, {"t": given}, ordered=False)


def test_few_rows_are_sorted(monkeypatch: pytest.MonkeyPatch, limits: SetLimits) -> None:
    limits(RADIX_SLOTS=1 << 12, FEW_PLACED=ROWS // 10)
    placed: list[int] = []
    of = selected_places.SortedPlaces.of

    def counted(array: pa.Array, *given: Any) -> Any:
        placed.append(len(array))
        return of(array, *given)

    monkeypatch.setattr(selected_places.SortedPlaces, "of", counted)
    query = "select n % 5 as g, median(v), quantile_cont(v, 0.9) from t group by g"
    given = pa.table({"n": range(ROWS), "v": [n * 7919 % 2003 for n in range(ROWS)]})
    assert_same_as_duckdb(query, {"t": given}, ordered=False)
    assert len(placed) == 2
    assert sum(placed) < ROWS / 20
