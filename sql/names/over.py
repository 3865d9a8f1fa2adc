"""OVER with its window as DuckDB writes it: frames that are the default are left out, others written in full."""

from __future__ import annotations

from collections.abc import Mapping

from .queries import order_item
from .reader import Reader, Unreadable, identifier, words

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


def with_definitions(text: str, written: Mapping[str, str]) -> str:
    """Return an expression with the definitions of named windows in the places of their names.

    `written` has the entries of WINDOW, as `w AS (ORDER BY a)`, by their names in lower case.

    >>> with_definitions("sum(a) over (w rows 1 preceding)", {"w": "w AS (ORDER BY a)"})
    'sum(a) over (ORDER BY a rows 1 preceding)'
    """
    tokens, parts, end = words(text), list[str](), 0
    for word, behind, after in zip(tokens, tokens[1:], [*tokens[2:], None], strict=False):
        name = after if behind.text == "(" else behind
        if word.lower != "over" or name is None or name.kind not in ("word", "quoted"):
            continue
        definition = written.get(identifier(name).lower())
        if definition is not None:
            inside = _inside(definition, written)
            parts += [text[end : behind.start], "(", inside, " " if name is after else ")"]
            end = name.end
    return "".join([*parts, text[end:]])


def _inside(definition: str, written: Mapping[str, str]) -> str:
    """Return what stands in the parentheses of a definition, of which the first word may be another window."""
    inside = definition[definition.index("(") + 1 : definition.rindex(")")]
    first = next(iter(words(inside)), None)
    if first is None or first.kind not in ("word", "quoted"):
        return inside
    base = written.get(identifier(first).lower())
    return inside if base is None else f"{_inside(base, written)} {inside[first.end :]}"
