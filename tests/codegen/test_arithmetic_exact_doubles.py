"""Casts of whole doubles to integers in kernels, as to_timestamp of whole seconds has them."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from fuseline.errors import ConversionError
from tests.codegen.fused import assert_fused
from tests.compare import assert_same_as_duckdb, connected
from tests.limits import SetLimits

EXACT = 9_007_199_254  # seconds, of which a double still holds the microseconds


@pytest.fixture(autouse=True)
def without_tables(limits: SetLimits) -> None:
    """Columns of few values are as those of many."""
    limits(LOOKUP_LIMIT=0)


def seconds(*ends: int) -> dict[str, Any]:
    """Whole seconds around 1970 and up to `ends`, with NULLs, and small numbers beside them."""
    values = np.array([*range(-90, 400, 7), 1_373_846_461, 1_375_000_000, *ends])
    null = np.arange(len(values)) % 5 == 2
    null[-len(ends) :] = False
    return {
        "t": pa.table(
            {"s": pa.array(values, mask=null), "n": pa.array((values % 100).astype(np.int16))}
        )
    }


@pytest.mark.parametrize("query", [
    "select date_trunc('minute', to_timestamp(s)) as x, count(*) from t group by 1",
    "select extract(minute from to_timestamp(s)) as x, count(*), max(to_timestamp(s)) from t group by 1",
    "select count(*) from t where minute(to_timestamp(s)) < 2 and second(to_timestamp(s)) > 30",
    "select sum(round(n::double * 3.0 * 5.0)::integer), min((s::double)::bigint) from t",
    "select max(make_timestamp(s)), min(make_timestamp(n::bigint * 1000000)) from t",
])  # fmt: skip
def test_they_are_integers_in_kernels(query: str) -> None:
    assert_fused(query, seconds(EXACT, -EXACT))


@pytest.mark.parametrize("query", [
    "select max(to_timestamp(s)), min(to_timestamp(s)) from t",
    "select max(make_timestamp(s * 500000)), min(make_timestamp(s)) from t",
    "select sum((n::double * 2.5)::integer), sum(round(n::double * 0.1)::bigint) from t",
    "select sum((n::double / 4)::integer), sum(try_cast(n::double * 1000.0 as smallint)) from t",
])  # fmt: skip
def test_what_may_be_no_whole_number_keeps_its_rounding(query: str) -> None:
    """Beyond 2**53 the product of a double is rounded, too."""
    assert_same_as_duckdb(query, seconds(EXACT * 1001, -EXACT * 1003), fuse=("always", "never"))


@pytest.mark.parametrize("fuse", ["always", "never"])
def test_what_the_type_does_not_hold_is_an_error(fuse: str) -> None:
    with (
        connected(seconds(EXACT), fuse=fuse) as connection,
        pytest.raises(ConversionError, match="out of range"),
    ):
        connection.sql("select sum((n::double * 1000.0)::smallint) from t").fetchall()
