"""Functions of strings and dates over random columns, on both backends."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pytest

pytest.importorskip("pylibcudf", reason="the cuda13 extra is not installed")

from fuseline.codegen.compile.compiler import NotCompiled
from fuseline.plan import infer
from fuseline.plan.expr import ColumnRef, Interval, Literal
from fuseline.plan.types import BIGINT, INTERVAL
from tests.compare import assert_same_as_duckdb
from tests.limits import SetLimits

from .plans import assert_agree, check, column, computed, number, scan, scan_of, text

pytestmark = pytest.mark.gpu

LINES = ["a,b,,c", "one\ntwo", "abc123def45", "a\nb", None, ",", "aab ab", "😀 smile", "Ä😀"]

STRINGS: list[tuple[str, list[Any]]] = [
    ("lower", []), ("upper", []), ("length", []), ("strlen", []), ("reverse", []), ("ascii", []),
    *(("substring", [number(s)]) for s in (1, 2, 0, -2, 9)),
    *(("substring", [number(s), number(n)]) for s in (1, 2, 0, -2, 9) for n in (0, 1, 3, -1)),
    *((f, [number(n)]) for f in ("left", "right") for n in (0, 1, 3, -1, -3, 99)),
    *((f, []) for f in ("trim", "ltrim", "rtrim")),
    *((f, [text(c)]) for f in ("trim", "ltrim", "rtrim") for c in ("a", "ab", "")),
    *((f, [number(n), text("*")]) for f in ("lpad", "rpad") for n in (0, 2, 5)),
    *(("repeat", [number(n)]) for n in (0, 1, 3, -1)),
    *(("replace", [text(a), text(b)]) for a, b in (("a", "xy"), ("", "x"), ("ab", ""))),
    *(("split_part", [text(","), number(n)]) for n in (1, 2, 3, 9)), ("split_part", [text("日"), number(1)]),
    *(("translate", [text(a), text(b)]) for a, b in (("ab", "xy"), ("ab", "x"), ("aa", "xy"), ("日ä", "äb"), ("", "x"))),
    *((f, [text(c)]) for f in ("contains", "starts_with", "ends_with", "position") for c in ("a", "", "b", "日")),
    *(("like", [text(x)]) for x in ("a%", "%b", "%a%", "a_b", "ab", "", "%", "_", "%a%b%", "__%")),
    ("like", [text("!%"), text("!")]), ("like", [text("%!%%"), text("!")]), ("like", [text(None)]),
    *(("ilike", [text(x)]) for x in ("A%", "%B", "%A%", "A_B")),
    *(("regexp_matches", [text(x)]) for x in ("a", "^a", "a|b", "[ab]+$", "a.*b", r"\d{2,}|日", "[^a-c]", "^$", "(?i)K")),
    *(("regexp_matches", [text("A.B"), text(o)]) for o in ("i", "s", "is", "l")),
    *(("regexp_full_match", [text(x)]) for x in ("a", "a|ab", "[ab]+")),
    *(("regexp_replace", [text(x), text("<>")]) for x in ("a", "[ab]+", "a[0-9]*b", "^a", "(a)(b)", "b*?$", "x?")),
    *(("regexp_replace", [text(x), text(r"<\1|\0>")]) for x in ("(a|ab)(b?)", "^([^,]*),", "(.)", r"(\w+)\W")),
    *(("regexp_replace", [text(x), text(r""), text("g")]) for x in ("a", "[ab]+", "(a)(b)", "x?", "^a", "[^a]*")),
    *(("regexp_extract", [text(x)]) for x in ("a", "[ab]+", "^a", "[0-9]+x", "a.b", "a|ab", ".$")),
    *(("regexp_extract", [text("([a-z]+)([0-9]+)?"), number(n)]) for n in (0, 1, 2)),
]  # fmt: skip


@pytest.mark.parametrize(
    ("function", "extra"),
    STRINGS,
    ids=lambda v: v if isinstance(v, str) else str([e.value for e in v]),
)
@pytest.mark.parametrize("coded", [True, False])
def test_strings(function: str, extra: list[Any], coded: bool, limits: SetLimits) -> None:
    if not coded:
        limits(dictionaries__MOST_KEYS=0)
    columns = [column("c", "varchar")]
    expr = infer.call(function, [ColumnRef(columns[0]), *extra])
    for child in (
        scan(np.random.default_rng(6), 80, columns, values=11),
        scan_of({"c": pa.array(LINES * 9)}, columns),
    ):
        assert_agree(computed(expr, child), ordered=True)


def test_concat() -> None:
    check(lambda a, b: infer.call("concat", [a, text("-"), b]), "varchar", "varchar")


def test_concat_with_separators() -> None:
    kinds = ("varchar", "varchar", "varchar")
    check(lambda a, b, c: infer.call("concat_ws", [text(", "), a, b, text("end"), c]), *kinds)
    check(lambda a, b, c: infer.call("concat_ws", [a, b, c]), *kinds)
    check(lambda a, b, c: infer.call("concat_ws", [text(None), a, b, c]), *kinds)
    check(lambda a: infer.call("concat_ws", [text(", "), a]), "varchar")
    check(lambda a, b: infer.call("concat_ws", [a, b]), "varchar", "varchar")
    check(lambda a, b: infer.call("concat_ws", [text(", "), a, b]), "varchar", "varchar")


@pytest.mark.parametrize("pattern", ["%a%b%", "_a%b%", "%b_", "%ab%c%"])
def test_long_searches(pattern: str, limits: SetLimits) -> None:
    """With few rows the pattern would be tried at once."""

    limits(NEEDLE_ROWS=1, dictionaries__MOST_KEYS=0)
    words = ["aab", "b", "xab yc", None, *(["something else"] * 9), "ab c", "", "abc"]
    key = column("c", "varchar")
    child = scan_of({"c": pa.array(words * 5)}, [key])
    for share in (1, 4):
        limits(NEEDLE_SHARE=share)
        expr = infer.call("like", [ColumnRef(key), text(pattern)])
        assert_agree(computed(expr, child), ordered=True)
        assert_agree(computed(infer.call("not", [expr]), child), ordered=True)


@pytest.mark.parametrize(
    ("function", "extra"),
    [("regexp_replace", [text("^(a|b)"), text(r"<\1>")]), ("regexp_matches", [text("[ab]$")])],
)
def test_regular_expressions_without_a_compiler(
    function: str, extra: list[Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    from fuseline.operators.gpu.functions import regular_expressions

    def refused(*given: Any) -> bytes:
        raise NotCompiled("no compiler")

    monkeypatch.setattr(regular_expressions, "_code", refused)
    with pytest.warns(RuntimeWarning, match="no compiler"):
        check(lambda a: infer.call(function, [a, *extra]), "varchar")


@pytest.mark.parametrize("zone", ["UTC", "Europe/Berlin", "America/New_York", "Asia/Kathmandu"])
@pytest.mark.parametrize("kind", ["zoned", "timestamp"])
def test_clocks_of_zones(zone: str, kind: str) -> None:
    check(lambda a: infer.call("timezone", [text(zone), a]), kind, values=60)
    check(lambda a: infer.call("timezone", [text(None), a]), kind, values=60)


def test_clocks_of_a_constant_moment() -> None:
    """A literal of another type is compared with moments by the clocks of the session's zone: both arguments are constants then."""
    table = pa.table({"z": pa.array([951_868_923_004_005, 0, None], pa.timestamp("us", "UTC"))})
    for other in ("timestamp '2000-03-01 01:02:03.004005'", "date '2000-03-01'", "null::timestamp"):
        assert_same_as_duckdb(
            f"select z, z = {other}, z is not distinct from {other} from t",
            {"t": table},
            setup=("set timezone = 'Europe/Berlin'",),
            backend="gpu",
            fuse=("always", "never"),
        )


def test_moments_made_of_numbers() -> None:
    check(lambda a: infer.call("make_timestamp", [infer.cast(a, BIGINT)]), "integer", values=60)


PARTS = ("year", "month", "day", "quarter", "dayofweek", "isodow", "dayofyear")
CLOCK = ("hour", "minute", "second", "millisecond", "microsecond", "epoch")


WEEKS = ("week", "isoyear", "decade", "century", "millennium", "monthname", "dayname")


@pytest.mark.parametrize("kind", ["date", "timestamp"])
@pytest.mark.parametrize("function", [*PARTS, *WEEKS, *CLOCK, "last_day"])
def test_date_parts(function: str, kind: str) -> None:
    check(lambda a: infer.call(function, [a]), kind, values=60)


@pytest.mark.parametrize(
    "unit", ["microsecond", "second", "minute", "hour", "day", "week", "month", "quarter", "year"]
)
def test_date_units(unit: str) -> None:
    check(lambda a: infer.call("date_trunc", [text(unit), a]), "timestamp", values=60)
    if unit != "week":
        if unit not in ("month", "quarter", "year"):
            check(
                lambda a, b: infer.call("date_sub", [text(unit), a, b]),
                "timestamp",
                "timestamp",
                values=60,
            )
        check(
            lambda a, b: infer.call("date_diff", [text(unit), a, b]),
            "timestamp",
            "timestamp",
            values=60,
        )


INTERVALS = (Interval(1, 0, 0), Interval(-13, 0, 0), Interval(0, 90, 0), Interval(2, -3, 5_000_000))


@pytest.mark.parametrize("interval", INTERVALS, ids=str)
@pytest.mark.parametrize("kind", ["date", "timestamp"])
@pytest.mark.parametrize("function", ["add", "sub"])
def test_intervals(function: str, kind: str, interval: Interval) -> None:
    check(lambda a: infer.call(function, [a, Literal(interval, INTERVAL)]), kind, values=60)


def test_days() -> None:
    check(lambda a: infer.call("add", [a, number(40)]), "date")
    check(lambda a: infer.call("sub", [a, number(40)]), "date")
    check(lambda a, b: infer.call("sub", [a, b]), "date", "date")
