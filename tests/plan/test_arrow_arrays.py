"""Arrow's arrays of values are those that Arrow makes, and a new process that asks queries does not import pandas for them."""

from __future__ import annotations

import math
import subprocess
import sys
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from fuseline.plan.arrow.arrow_arrays import array_from, scalar_from

VALUES: list[list[Any]] = [
    [], [None], [1, None, -(2**63)], [2**31], [True, None, False], [0.0, -0.0, math.inf, None], ["", "aé", None], [b"", b"\0", None],
    [1, 2.5], [True, 1], [[1], None, []], [{"a": 1}], ["x" * 300] * 9,
]  # fmt: skip
TYPES = [None, pa.int8(), pa.int32(), pa.int64(), pa.uint64(), pa.bool_(), pa.float32(), pa.float64(), pa.string(), pa.large_string(), pa.binary(), pa.list_(pa.int16()), pa.decimal128(20, 2)]  # fmt: skip


def made(make: Any, *args: Any) -> Any:
    try:
        array = make(*args)
    except (pa.ArrowInvalid, pa.ArrowTypeError, pa.ArrowNotImplementedError, OverflowError) as e:
        return type(e)
    if isinstance(array, pa.Array):
        array.validate(full=True)
    return array


@pytest.mark.parametrize("arrow", TYPES, ids=str)
@pytest.mark.parametrize("values", VALUES, ids=lambda v: str(v)[:20])
def test_arrays_are_those_of_arrow(values: list[Any], arrow: pa.DataType | None) -> None:
    for array in (values, tuple(values)):
        ours, theirs = made(array_from, array, arrow), made(pa.array, array, arrow)
        assert ours == theirs
        assert getattr(ours, "type", None) == getattr(theirs, "type", None)
    for value in values:
        assert made(scalar_from, value, arrow) == made(pa.scalar, value, arrow)


@pytest.mark.parametrize("dtype", ["i1", "u2", "i8", ">i4", "f4", "f8", "?", "M8[us]", "U3"])
def test_arrays_of_numpy_are_those_of_arrow(dtype: str) -> None:
    for values in (np.zeros(9, dtype), np.ones(9, dtype)[::-2]):
        ours, theirs = made(array_from, values), made(pa.array, values)
        assert ours == theirs
        assert getattr(ours, "type", None) == getattr(theirs, "type", None)


def test_a_half_of_a_pair_is_refused_as_by_arrow() -> None:
    with pytest.raises(UnicodeEncodeError):
        array_from(["\ud800"])


SCRIPT = """
import sys, fuseline
c = fuseline.connect(device=DEVICE)
c.register("t", {"a": list(range(2000)), "s": [f"x{i % 70}" for i in range(2000)], "x": [i / 3 for i in range(2000)]})
for fuse in ("always", "never"):
    c.execute(f"set fuse = '{fuse}'")
    for query in QUERIES:
        assert c.sql(query).to_arrow().num_rows, query
        assert "pandas" not in sys.modules, query
moments = "select date '2020-01-01' + a::int, timestamp '2020-01-01' + interval (a) hour, time '10:00', s, x, a from t"
assert len(c.sql(moments).fetchall()) == 2000
assert "pandas" not in sys.modules
"""
QUERIES = [
    "select s, sum(a), avg(x) from t where s like '%x1%' and s <> 'x2' group by s order by s limit 3",
    "select a.s, count(distinct b.s), max(b.s) from t a join t b on a.s = b.s where a.s in ('x3', 'x4') group by a.s",
    "select upper(s) || '!', case when a > 5 then 'm' else s end, date '2024-01-01' + a::int from t order by s, a limit 9",
    "select s, row_number() over (partition by s order by a), substr(s, 2, 1) from t where s like '_1%' and s between 'x1' and 'x5'",
    "select count(*) from t where s ilike 'X%1' or regexp_matches(s, '[0-9]7') or a in (select a + 1 from t where x > 7)",
    "select s, a from t order by s desc, a",
    "select (x * 1e-9)::varchar, (x::float * 1e20::float)::varchar, a::decimal(9, 2)::varchar, lower(s) from t",
    "select string_agg(s, ',' order by a), quantile_cont(x, 0.5), min(s) from t",
]


@pytest.mark.parametrize("device", ["cpu", pytest.param("gpu", marks=pytest.mark.gpu)])
@pytest.mark.skipif(not pytest.importorskip("pandas"), reason="pandas is not installed")
def test_queries_do_not_import_pandas(device: str) -> None:
    script = f"QUERIES = {QUERIES!r}\nDEVICE = {device!r}\n{SCRIPT}"
    subprocess.run([sys.executable, "-c", script], check=True, timeout=300)
