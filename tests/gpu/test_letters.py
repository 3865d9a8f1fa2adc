"""Letters whose case a kernel changes, and text that it leaves to libcudf."""

from __future__ import annotations

import pyarrow as pa
import pyarrow.compute as pc
import pytest

import fuseline
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


@pytest.mark.parametrize("name", ["upper", "lower"])
def test_each_character_as_on_the_host(name: str, limits: SetLimits) -> None:
    """DuckDB's Unicode and Arrow's are some characters apart, so that Arrow says what is right, and both what is of the common ones."""
    limits(few_rows__MOST_ROWS=1)
    characters = pa.array([chr(i) for i in range(1, 0x21000) if not 0xD800 <= i < 0xE000])
    with fuseline.connect("gpu", require_gpu=True) as connection:
        connection.register("x", pa.table({"t": characters}))
        found = connection.sql(f"select {name}(t) as c from x").to_arrow()["c"].combine_chunks()
    assert found.cast(pa.string()) == getattr(pc, f"utf8_{name}")(characters)
    common = pa.table({"t": pa.array([chr(i) for i in range(1, 0x180)] + ["ẞ", "ﬁn", "Ὦ", "ῼ"])})
    query = f"select {name}(t) as c, t ilike '%İ%' as i, t ilike 'ß%' as s from x"
    assert_same_as_duckdb(query, {"x": common}, backend="gpu", fuse=("always", "never"))
