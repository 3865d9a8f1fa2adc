"""Functions of strings and dates over random columns, on both backends."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from fuseline.operators import gpu
from fuseline.plan import infer
from fuseline.plan.expr import ColumnRef, Interval, Literal
from fuseline.plan.types import INTERVAL

from .plans import assert_same, check, column, computed, number, scan, text

pytestmark = pytest.mark.gpu


STRINGS: list[tuple[str, list[Any]]] = [
    ("lower", []), ("upper", []), ("length", []), ("octet_length", []), ("reverse", []), ("ascii", []),
    *(("substring", [number(s)]) for s in (1, 2, 0, -2, 9)),
    *(("substring", [number(s), number(n)]) for s in (1, 2, 0, -2, 9) for n in (0, 1, 3, -1)),
    *((f, [number(n)]) for f in ("left", "right") for n in (0, 1, 3, -1, -3, 99)),
    *((f, []) for f in ("trim", "ltrim", "rtrim")),
    *((f, [text(c)]) for f in ("trim", "ltrim", "rtrim") for c in ("a", "ab", "")),
    *((f, [number(n), text("*")]) for f in ("lpad", "rpad") for n in (0, 2, 5)),
    *(("repeat", [number(n)]) for n in (0, 1, 3, -1)),
    *(("replace", [text(a), text(b)]) for a, b in (("a", "xy"), ("", "x"), ("ab", ""))),
    *((f, [text(c)]) for f in ("contains", "starts_with", "ends_with", "position") for c in ("a", "", "b", "日")),
    *(("like", [text(x)]) for x in ("a%", "%b", "%a%", "a_b", "ab", "", "%", "_", "%a%b%", "__%")),
    ("like", [text("!%"), text("!")]), ("like", [text("%!%%"), text("!")]), ("like", [text(None)]),
    *(("ilike", [text(x)]) for x in ("A%", "%B", "%A%", "A_B")),
    *(("regexp_matches", [text(x)]) for x in ("a", "^a", "a|b", "[ab]+", "a.*b")),
    *(("regexp_full_match", [text(x)]) for x in ("a", "a|ab", "[ab]+")),
]  # fmt: skip


@pytest.mark.parametrize(
    ("function", "extra"),
    STRINGS,
    ids=lambda v: v if isinstance(v, str) else str([e.value for e in v]),
)
def test_strings(function: str, extra: list[Any]) -> None:
    columns = [column("c", "varchar")]
    expr = infer.call(function, [ColumnRef(columns[0]), *extra])
    child = scan(np.random.default_rng(6), 80, columns, values=11)
    node = computed(expr, child)
    if gpu.unsupported(node) is None:
        assert_same(node, ordered=True)


def test_concat() -> None:
    check(lambda a, b: infer.call("concat", [a, text("-"), b]), "varchar", "varchar")


PARTS = ("year", "month", "day", "quarter", "dayofweek", "isodow", "dayofyear")
CLOCK = ("hour", "minute", "second", "millisecond", "microsecond", "epoch")


@pytest.mark.parametrize("kind", ["date", "timestamp"])
@pytest.mark.parametrize("function", [*PARTS, *CLOCK, "last_day"])
def test_date_parts(function: str, kind: str) -> None:
    check(lambda a: infer.call(function, [a]), kind, values=60)


@pytest.mark.parametrize(
    "unit", ["microsecond", "second", "minute", "hour", "day", "week", "month", "quarter", "year"]
)
def test_date_units(unit: str) -> None:
    check(lambda a: infer.call("date_trunc", [text(unit), a]), "timestamp", values=60)
    if unit != "week":
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
