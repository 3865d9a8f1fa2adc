"""LIKE by kernels of our own, both ways, against DuckDB: patterns and strings that are hard on them, columns of every layout."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa
import pytest
from hypothesis import HealthCheck, given, settings, strategies as st

from fuseline.plan.patterns import Literals
from tests.codegen.test_like import CASES, PATTERN, STRINGS, TEXT, parts_of
from tests.compare import assert_same_as_duckdb
from tests.limits import SetLimits

pytestmark = pytest.mark.gpu


@pytest.fixture(params=["rows", "blocks"])
def way(request: pytest.FixtureRequest, limits: SetLimits, tmp_path_factory: Any) -> Iterator[str]:
    """Few rows too go through our kernels, compiled once a session; strings never lie as codes."""
    from fuseline.operators.gpu.memory.device import kernel_files

    limits(
        dictionaries__MOST_KEYS=0,
        gpu__kernels_like__FEW_ROWS=0,
        FEW_BYTES=-1 if request.param == "blocks" else 1 << 40,
    )
    directory: Path = tmp_path_factory.getbasetemp() / "kernels"
    before, kernel_files.place = kernel_files.place, (directory, "always")
    yield request.param
    kernel_files.place = before


def device_column(strings: pa.Array) -> Any:
    import pylibcudf as plc

    return plc.Column.from_arrow(strings)


def matched(column: Any, parts: Literals) -> list[bool | None]:
    from fuseline.operators.gpu.functions.kernels_like import matches

    found = matches(column, parts)
    assert found is not None, "libcudf was to say it"
    result: list[bool | None] = found.to_arrow().to_pylist()
    return result


def expected(strings: pa.Array, pattern: str) -> list[bool | None]:
    t = pa.table({"s": strings})  # noqa: F841 - the query reads it
    return [row[0] for row in duckdb.execute("select s like $p from t", {"p": pattern}).fetchall()]


@pytest.mark.parametrize("pattern", [*CASES, "%", "abc%", "%日", "日本%", "a%b%a"])
def test_patterns(pattern: str, way: str) -> None:
    strings = pa.array(STRINGS * 40)
    assert matched(device_column(strings), parts_of(pattern)) == expected(strings, pattern)


@pytest.mark.parametrize("pattern", CASES)
def test_slices(pattern: str, way: str) -> None:
    """Offsets, bitmap and answer count from different rows."""
    import pylibcudf as plc

    strings = pa.array(STRINGS * 40)
    for start, stop in ((1, 900), (33, 34), (700, 1300)):
        (part,) = plc.copying.slice(device_column(strings), [start, stop])
        assert matched(part, parts_of(pattern)) == expected(strings[start:stop], pattern)


@pytest.mark.parametrize("pattern", CASES)
def test_offsets_of_64_bits(pattern: str, way: str) -> None:
    import pylibcudf as plc

    strings = pa.array(STRINGS * 40)
    narrow = device_column(strings)
    offsets = plc.unary.cast(narrow.child(0), plc.DataType(plc.TypeId.INT64))
    parts = (narrow.null_mask(), narrow.null_count(), 0, [offsets])
    wide = plc.Column(narrow.type(), narrow.size(), narrow.data(), *parts)
    assert matched(wide, parts_of(pattern)) == expected(strings, pattern)


@pytest.mark.parametrize(
    "strings", [[""], [None], ["", ""], ["abc"], [None, "special requests", None]]
)
def test_few_strings(strings: list[str | None], way: str) -> None:
    array = pa.array(strings, pa.string())
    for pattern in ("%abc%", "a%", "%special%requests%", "%b%c%", "%"):
        assert matched(device_column(array), parts_of(pattern)) == expected(array, pattern)


def test_long_strings(way: str) -> None:
    """Some among short ones, with parts far apart."""
    long = "x" * 100_000 + "special" + "y" * 100_000 + "requests" + "z" * 1000
    strings = pa.array([*STRINGS, long, *STRINGS, long[::-1], long[:150_000], long[100_003:]] * 3)
    for pattern in ("%special%requests%", "%special%", "%requests%z", "x%special%requests%"):
        assert matched(device_column(strings), parts_of(pattern)) == expected(strings, pattern)


@settings(max_examples=150, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.lists(st.none() | TEXT, min_size=1, max_size=600), PATTERN)
def test_random(way: str, values: list[str | None], pattern: str) -> None:
    strings = pa.array([None if v is None else v.replace("\0", "") for v in values], pa.string())
    assert matched(device_column(strings), parts_of(pattern)) == expected(strings, pattern)


@pytest.mark.parametrize(
    "predicate",
    [
        "s like '%special%requests%'", "s not like '%special%requests%'", "s like 'a%b'", "s ilike '%SPECIAL%Requests%'",
        r"s like '%a\%b%' escape '\'", "s like '%s_ecial%'", "contains(s, 'special')", "starts_with(s, 'special')",
        "suffix(s, 'requests')", "contains(s, '')", "s like ''", "s like '%%'", "not contains(s, 'a') and s like '%b%'",
    ],
)  # fmt: skip
def test_queries(predicate: str, way: str) -> None:
    table = {"t": pa.table({"s": pa.array([*STRINGS, "a%b", "xa%bx", "Special REQUESTS"] * 40)})}
    query = f"select count(*), count({predicate}) from t where {predicate}"
    assert_same_as_duckdb(query, table, backend="gpu", fuse=("always",))
    assert_same_as_duckdb(f"select s, {predicate} p from t", table, backend="gpu", fuse=("always",))


def test_large_columns_go_by_blocks(
    way: str, monkeypatch: pytest.MonkeyPatch, limits: SetLimits
) -> None:
    from fuseline.operators.gpu.functions import kernels_like

    limits(FEW_BYTES=2400)
    names, machine_code = [], kernels_like.machine_code
    monkeypatch.setattr(
        kernels_like,
        "machine_code",
        lambda name, make: names.append(name) or machine_code(name, make),
    )
    for strings, shape in ((["abcdef"] * 300, "like_rows"), (["abcdef"] * 500, "like_blocks")):
        assert matched(device_column(pa.array(strings)), parts_of("%cd%")) == [True] * len(strings)
        assert names[-1].startswith(shape)


def test_a_kernel_is_compiled_beside_the_query(way: str, tmp_path: Path) -> None:
    """With `auto` libcudf answers until the kernel is there; with `never` always."""
    from fuseline.operators.gpu.functions import kernels_like
    from fuseline.operators.gpu.memory.device import kernel_files
    from fuseline.operators.gpu.pipeline import fixed_kernels

    column, parts = device_column(pa.array(STRINGS)), parts_of("%special%")
    kernel_files.place = tmp_path, "never"
    assert kernels_like.matches(column, parts) is None
    kernel_files.place = tmp_path, "auto"
    assert kernels_like.matches(column, parts) is None
    (pending,) = [code for (folder, _), code in fixed_kernels._codes.items() if folder == tmp_path]
    pending.result(120)
    assert matched(column, parts) == expected(pa.array(STRINGS), "%special%")
