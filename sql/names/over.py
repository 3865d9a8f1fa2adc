"""OVER with its window as DuckDB writes it: frames that are the default are left out, others written in full."""

from __future__ import annotations

from .queries import order_item
from .reader import Reader, Unreadable

# DuckDB binds these aggregates as window functions of another name
RENAMED = {"first": "first_value", "last": "last_value", "count_star": "count"}
_UNITS = ("rows", "range", "groups")
_DEFAULT = "RANGE BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW"


def window(reader: Reader) -> str:
    """Read OVER and the window in parentheses; the definition of a named one stands elsewhere."""
    reader.expect("over")
    reader.expect("(")
    parts = []
    if reader.accept("partition", "by"):
        parts.append(f"PARTITION BY {', '.join(reader.listed(reader.shown))}")
    if reader.accept("order", "by"):
        parts.append(f"ORDER BY {', '.join(reader.listed(lambda: order_item(reader)))}")
    if reader.peek() in _UNITS:
        parts.append(_frame(reader))
    reader.expect(")")
    return f" OVER ({' '.join(filter(None, parts))})"


def _frame(reader: Reader) -> str:
    unit = reader.take().text.upper()
    if reader.accept("between"):
        start = _bound(reader)
        reader.expect("and")
        end = _bound(reader)
    else:
        start, end = _bound(reader), "CURRENT ROW"
    excluded = ""
    if reader.accept("exclude"):
        words = f"{reader.take().text} {'' if reader.peek() == ')' else reader.take().text}"
        if words.lower() != "no others":
            excluded = f" EXCLUDE {words.strip().upper()}"
    if start.startswith("UNBOUNDED") and end.startswith("UNBOUNDED"):
        unit = "ROWS"  # in which no row is looked at
    written = f"{unit} BETWEEN {start} AND {end}{excluded}"
    return "" if written == _DEFAULT else written


def _bound(reader: Reader) -> str:
    if reader.accept("current", "row"):
        return "CURRENT ROW"
    value = "UNBOUNDED" if reader.accept("unbounded") else reader.shown()
    side = reader.accept_one("preceding", "following")
    if not side:
        raise Unreadable("a bound")
    return f"{value} {side.upper()}"
