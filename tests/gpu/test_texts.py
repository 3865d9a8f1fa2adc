"""Text as values and values as text: casts, strftime and strptime, with what libcudf reads otherwise among the rows."""

from __future__ import annotations

from datetime import date, datetime, timedelta
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from fuseline.errors import ConversionError, ExecutionError
from fuseline.plan import infer, physical as p
from fuseline.plan.expr import ColumnRef, new_column
from fuseline.plan.types import (
    BIGINT,
    BOOLEAN,
    DATE,
    DOUBLE,
    FLOAT,
    HUGEINT,
    INTEGER,
    SMALLINT,
    TIMESTAMP,
    TINYINT,
    UBIGINT,
    UTINYINT,
    VARCHAR,
    DataType,
    decimal,
    to_arrow,
)
from tests.compare import connected
from tests.limits import SetLimits

from .plans import assert_agree, both_raise, computed, run, scan_of, text

pytestmark = pytest.mark.gpu

TARGETS = (
    INTEGER, TINYINT, SMALLINT, BIGINT, UTINYINT, UBIGINT, HUGEINT, decimal(5, 2), decimal(18, 4), decimal(18, 18),
    decimal(30, 6), decimal(38, 2), DOUBLE, FLOAT, DATE, TIMESTAMP, BOOLEAN,
)  # fmt: skip
NUMBERS = (
    "1", "-5", "+7", " 3 ", "1e2", "abc", "", "1.5", "-2.5", "99999999999999999999", "12345678901", "007", "-0", "-0.0",
    "1_000", "3.14159265358979", "1e400", "nan", ".5", "5.", "0.1", "123456.789", "0.000001", "9007199254740993", "127",
    "128", "-129", "255", "256", "32768", "18446744073709551615", "123456789012345.6789", "0.123456789012345678", "-", ".",
    "+", "1.2.3", "--1", "9" * 38, "1" + "0" * 38, "0.30000000000000004", "1\n", "16777217", "-999.99", "999.995", "1 2",
)  # fmt: skip
MOMENTS = (
    "2020-01-31", "2020-02-29", "2020-02-30", "2019-02-29", "2020-13-01", "2020-00-10", "2020-1-5", "2020/01/05", " 2020-01-05 ",
    "0044-03-15 (BC)", "12020-01-01", "0001-01-01", "9999-12-31", "2020-01-31 01:02:03", "2020-01-31T01:02:03",
    "2020-01-31 01:02:03.5", "2020-01-31 01:02:03.123", "2020-01-31 01:02:03.123456", "2020-01-31 01:02:03.1234567",
    "2020-01-31 24:00:00", "2020-01-31 23:59:60", "2020-01-31 01:02", "20-01-31", "2020-01-3", "2020-01-311", "2020-01-31 ",
)  # fmt: skip
TRUTHS = ("true", "false", "t", "f", "TRUE", "False", "1", "0", "yes", "no", "truer", " true")
STRINGS = [*NUMBERS, *MOMENTS, *TRUTHS, None]


@pytest.fixture(params=["codes", "strings"], autouse=True)
def representation(request: pytest.FixtureRequest, limits: SetLimits) -> None:
    """Once with a dictionary, of which each value is looked at once, and once with strings in each row."""

    if request.param == "strings":
        limits(dictionaries__MOST_KEYS=0)


def of(values: list[Any], data_type: DataType = VARCHAR) -> tuple[p.MemoryScan, ColumnRef]:
    column = new_column("c", data_type)
    array = values if isinstance(values, pa.Array) else pa.array(values, to_arrow(data_type))
    return scan_of({"c": array}, [column]), ColumnRef(column)


@pytest.mark.parametrize("target", TARGETS, ids=str)
def test_try_cast_of_text(target: DataType) -> None:
    # A HUGEINT of 39 digits is refused, since NULL would be a wrong answer
    texts = [t for t in STRINGS if target != HUGEINT or t != "1" + "0" * 38]
    child, ref = of(texts * 2)
    assert_agree(computed(infer.cast(ref, target, safe=True), child), ordered=True)
    assert_agree(computed(infer.cast(ref, target, safe=True), p.LimitRows(child, 0)))


USUAL: dict[DataType, list[str | None]] = {
    INTEGER: ["1", None, "-20", "300"],
    decimal(9, 2): ["1", "2.5", None, "-3.25"],
    decimal(30, 2): ["1", "2.5", None, "-3.25"],
    DOUBLE: ["1", "2.5", None, "-3.1415926"],
    DATE: ["2020-01-31", None, "1969-07-20"],
    TIMESTAMP: ["2020-01-31 01:02:03", None, "1969-07-20 20:17:40"],
    BOOLEAN: ["true", "false", None],
}


@pytest.mark.parametrize("target", USUAL, ids=str)
def test_cast_of_text(target: DataType, monkeypatch: pytest.MonkeyPatch) -> None:
    """The usual spellings need no host."""
    from fuseline.operators.gpu import host_backend

    bad, ref = of([*USUAL[target], "no value"] * 9)
    both_raise(computed(infer.cast(ref, target), bad), ConversionError)
    child, ref = of(USUAL[target] * 9)
    monkeypatch.setattr(host_backend, "evaluate", None)
    assert_agree(computed(infer.cast(ref, target), child), ordered=True)


def test_only_the_rows_of_a_branch_are_cast() -> None:
    child, ref = of(["1", "x", None, " 2 ", "y"] * 9)
    is_letter = infer.in_list(ref, [text("x"), text("y")])
    guarded = infer.case([is_letter], [infer.cast(text(None), INTEGER)], infer.cast(ref, INTEGER))
    assert_agree(computed(guarded, child), ordered=True)


def days(*numbers: int | None) -> pa.Array:
    return pa.array(numbers, pa.int32()).cast(pa.date32())


DATES = days(0, -1, 18000, None, -719_162, 2_932_896, 10957)
FAR = days(-719_163, 2_932_897, 3_000_000, -800_000, None, 12)
CLOCKS = [
    datetime(2020, 1, 31, 1, 2, 3), datetime(2020, 1, 31, 13, 2, 3, 500_000), datetime(1969, 12, 31, 23, 59, 59, 999_999),
    None, datetime(1000, 1, 1), datetime(33, 1, 2, 3, 4, 5, 60), datetime(9999, 12, 31, 23, 59, 59, 999_999), datetime(1, 1, 1),
]  # fmt: skip
FAR_CLOCKS = pa.array([-62_135_596_800_000_001, 253_402_300_800_000_000, 0, None], pa.int64())


@pytest.mark.parametrize("values", [DATES, FAR], ids=["usual", "far"])
def test_dates_as_text(values: pa.Array) -> None:
    child, ref = of(values, DATE)  # type: ignore[arg-type]
    expected = run(computed(infer.cast(ref, VARCHAR), child), _backend("cpu")).column(0)
    assert run(computed(infer.cast(ref, VARCHAR), child), _backend("gpu")).column(0) == expected


@pytest.mark.parametrize(
    "values", [CLOCKS, FAR_CLOCKS.cast(pa.timestamp("us"))], ids=["usual", "far"]
)
def test_timestamps_as_text(values: Any) -> None:
    child, ref = of(values, TIMESTAMP)
    expected = run(computed(infer.cast(ref, VARCHAR), child), _backend("cpu")).column(0)
    assert run(computed(infer.cast(ref, VARCHAR), child), _backend("gpu")).column(0) == expected


def test_values_computed_on_the_host_are_counted() -> None:
    with connected({"t": pa.table({"day": FAR})}, "gpu", fuse="never") as connection:
        frame = connection.sql("select day::varchar, day + 1 from t")
        profile = connection.run(frame.plan).profile
        notes = [node.note for node in profile.nodes if node.host_values]
        assert notes == ["values computed on the host: 4 of CAST AS VARCHAR"]
        assert f"ComputeColumns: {notes[0]}" in frame.explain("analyze")
        usual = connection.run(connection.sql("select day + 1 from t").plan).profile
        assert not any(node.host_values for node in usual.nodes)


def test_the_host_must_be_given(monkeypatch: pytest.MonkeyPatch) -> None:
    from fuseline.operators.gpu import host_backend

    monkeypatch.setattr(host_backend._Given, "evaluator", None)
    child, ref = of(FAR, DATE)  # type: ignore[arg-type]
    with pytest.raises(RuntimeError, match="needs the host for some values"):
        run(computed(infer.cast(ref, VARCHAR), child), _backend("gpu"))


def _backend(name: str) -> Any:
    from fuseline.operators import cpu, gpu

    return {"cpu": cpu, "gpu": gpu}[name]


@pytest.mark.parametrize(
    "data_type", [decimal(7, 2), decimal(18, 17), decimal(30, 4), HUGEINT, decimal(5, 0)], ids=str
)
def test_decimals_as_text(data_type: DataType) -> None:
    low, high = data_type.integer_range
    numbers = [0, 1, -1, 5, -50, 12345 % high, low + 1, high - 1, None]
    whole = pa.array(numbers, pa.decimal128(38, 0))
    array = pa.Array.from_buffers(
        to_arrow(data_type), len(whole), whole.buffers(), whole.null_count
    )
    child, ref = of(array, data_type)  # type: ignore[arg-type]
    assert_agree(computed(infer.cast(ref, VARCHAR), child), ordered=True)


FORMATS = (
    "%Y-%m-%d", "%d.%m.%y %H:%M:%S", "%I:%M %p", "%j %U %W %w %u", "%G-W%V", "%a %A %b %B %h", "%f", "%g", "%n", "%x %X",
    "%c", "year %Y",
)  # fmt: skip


@pytest.mark.parametrize("layout", FORMATS)
def test_strftime(layout: str) -> None:
    for values in (CLOCKS, FAR_CLOCKS.cast(pa.timestamp("us"))):
        child, ref = of(values, TIMESTAMP)
        assert_agree(computed(infer.call("strftime", [ref, text(layout)]), child), ordered=True)


@pytest.mark.parametrize(
    "layout", ["%Y-%m-%d", "%d.%m.%Y %H:%M", "%Y%m%d%H%M%S", "%Y-%m-%d %H:%M:%S.%f"]
)
def test_strptime(layout: str) -> None:
    moments = [datetime(2020, 1, 31, 1, 2, 3) + timedelta(hours=7777 * i) for i in range(20)]
    strings = [None, *(m.strftime(layout) for m in moments), moments[3].strftime(f"  {layout} ")]
    child, ref = of(strings * 3)
    node = computed(infer.call("strptime", [ref, text(layout)]), child)
    assert_agree(node, ordered=True)
    bad, ref = of([*strings, "2020-02-30 nonsense"] * 3)
    both_raise(computed(infer.call("strptime", [ref, text(layout)]), bad), ExecutionError)
    assert_agree(computed(infer.call("try_strptime", [ref, text(layout)]), bad), ordered=True)


@pytest.mark.parametrize("function", [
    "week", "isoyear", "decade", "century", "millennium", "monthname", "dayname", "year", "dayofyear",
])  # fmt: skip
def test_parts_of_far_dates(function: str) -> None:
    """libcudf's years have 16 bits."""
    around = [
        date(y, m, d)
        for y in (1, 1999, 2000, 2001, 2020, 9999)
        for m, d in ((1, 1), (1, 4), (12, 31))
    ]
    near = pa.array([*around, None], pa.date32())
    extremes = (2**31 - 9, -(2**31) + 9) if not function.endswith("name") else (0,)
    far = days(-12_687_429, 11_248_738, -719_163, None, 5, *extremes)
    for values in (near, far):
        child, ref = of(values, DATE)  # type: ignore[arg-type]
        assert_agree(computed(infer.call(function, [ref]), child), ordered=True)


def test_random_numbers_there_and_back() -> None:
    rng = np.random.default_rng(3)
    numbers = [int(v) for v in rng.integers(-(2**62), 2**62, 300)] + [2**63 - 1, -(2**63), 0]
    child, ref = of(numbers, BIGINT)
    back = infer.cast(infer.cast(ref, VARCHAR), BIGINT)
    assert assert_agree(computed(back, child), ordered=True).column(0).to_pylist() == numbers
