"""Functions that are computed once for each distinct value."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from fuseline.errors import ExecutionError
from fuseline.operators.cpu.functions.values.each_value import of_values
from fuseline.operators.cpu.functions.vectors import Vector
from fuseline.plan.expr import Call
from fuseline.plan.types import BIGINT, VARCHAR
from tests.compare import assert_same_as_duckdb, connected

WORDS = {"s": ["duck", None, "héé", "", "duck"] * 40, "t": ["dukc", "a", "hé", "x", None] * 40}
CALLS = ("levenshtein(s, t)", "damerau_levenshtein(s, t)", "jaro_winkler_similarity(s, t)", "sha256(s)", "hex(s)", "strip_accents(s)",
         "format('{:>6}|{}', s, t)", "printf('%-6s|%s', s, t)", "left_grapheme(s, 2)", "parse_filename(s || '/' || t || '.gz', true)")  # fmt: skip


@pytest.mark.parametrize("call", CALLS)
def test_over_columns_and_values_of_few(call: str, backend: str) -> None:
    query = f"select s, t, {call} as v from words where s is not null and t is not null group by all order by all"
    assert_same_as_duckdb(query, {"words": WORDS}, backend=backend, fuse=("always", "never"))


def test_it_is_called_once_for_each_distinct_row() -> None:
    seen: list[tuple[Any, ...]] = []

    def joined(*values: Any) -> str | None:
        seen.append(values)
        return None if values[0] == "" else "".join(map(str, values))

    text = Vector(VARCHAR, pa.array(["a", "b", None, "a", "", "b"]))
    number = Vector(BIGINT, np.array([1, 2, 3, 1, 1, 3]))
    made = of_values(joined)(Call("joined", (), VARCHAR), (text, number))
    assert made.data.to_pylist() == ["a1", "b2", None, "a1", None, "b3"]
    assert len(seen) == len(set(seen)) == 4


@pytest.mark.parametrize("call", [
    "printf('%x %o %u %X %#x', k, k, k, k, k)", "printf('%hhd %hd %ld %lld %jd %zd %td', k, k, k, k, k, k, k)", "printf('%hhx %hu %lx', k, k, k)",
    "printf('%c%lc', abs(k) % 100, 65)", "printf('%lf %Le %ls %hs', k + 0.5, 1e0, 'a', 'b')", "format('{0} {0} {1}', k, 2)",
    "json_extract(j, ['$.a', '$.b'])::varchar || json_extract_string(j, ['$.a', '$.b'])::varchar", "k ~~~ '1*'",
])  # fmt: skip
def test_calls_over_rows(call: str) -> None:
    rows = {
        "k": [1, -1, 300, -129, 70000, None],
        "j": ['{"a": [1]}', '{"b": "x"}', None, "1"] + ["[]"] * 2,
    }
    call = call.replace("k ~~~", "k::varchar ~~~")
    assert_same_as_duckdb(f"select {call}, {call} as v from t", {"t": rows}, backend="cpu")


@pytest.mark.parametrize("call", [
    "format('{} {{}} {}|{}', s, k, k % 2 = 0)", "format('{1:>8}|{0:<6}|{1}', s, k)", "format('{:{}}|', s, abs(k) % 9 + 1)", "format('{{}}')", "format('{{}}{}', s)",
    "format(replace(s, '{0}', '{{0}}') || '{}{{', k)", "format('{:.2f} {:+e} {:08.3f}', d, d, d)", "printf('%s {} %d%%|%5d|%-6s|', s, k, k, s)", "printf('%08.3f|%+.1e|%,d|%x', d, d, k, k)", "printf('%d %s', k % 2 = 0, k % 2 = 0)",
])  # fmt: skip
def test_formats_of_rows(call: str) -> None:
    rows = {
        "k": [1, -1, 300, -129, 70000, None] * 3,
        "s": ["a", "{0}", "%d", "é", None, ""] * 3,
        "d": [0.5, -1e10, 1e-5, None, 3.0, 2.25] * 3,
    }
    assert_same_as_duckdb(f"select {call} as v from t", {"t": rows}, backend="cpu")


@pytest.mark.parametrize(
    "call",
    [
        "format('{} {0}', 1)",
        "format('{0} {}', 1)",
        "format('{:c}', 65)",
        "printf('%qd', 1)",
        "printf('%c', 233)",
    ],
)
def test_formats_of_no_sense_are_refused(call: str) -> None:
    with connected() as connection, pytest.raises(ExecutionError):
        connection.sql(f"select {call}").fetchall()


@pytest.mark.parametrize("size", ["0", "1", "1023", "1024", "-16000", "9223372036854775807"])
def test_sizes(size: str) -> None:
    with connected() as connection:
        query = f"select format_bytes({size}), formatReadableDecimalSize({size})"
        assert_same_as_duckdb(query, connection=connection)
