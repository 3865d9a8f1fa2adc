"""Letters whose case a kernel changes, and text that it leaves to libcudf."""

from __future__ import annotations

import pyarrow as pa
import pytest

from tests.compare import assert_same_as_duckdb
from tests.limits import SetLimits

pytestmark = pytest.mark.gpu
LETTERS = (
    "select upper(t) as u, lower(t) as l, t ilike '%b_1%' as i from x order by all",
    "select count(*) as n from x where t ilike 'AB%9'",
    "select upper(s) as u, lower(s) as l, s ilike '%É%' as i from x order by all",
    "select upper(t) as u from (select t from x order by n limit 500 offset 77) as p order by all",
)


@pytest.mark.parametrize("query", LETTERS)
def test_letters(query: str, limits: SetLimits) -> None:
    limits(letters__LEAST_BYTES=1, few_rows__MOST_ROWS=1)
    n = range(5000)
    texts = pa.table(
        {
            "n": list(n),
            "t": [None if i % 9 == 0 else f"aB{i % 300}cZ[@`{{ {'x' * (i % 11)}" for i in n],
            "s": [f"É ß aß{i % 40}K" for i in n],
        }
    )
    assert_same_as_duckdb(query, {"x": texts}, backend="gpu", fuse=("always", "never"))
