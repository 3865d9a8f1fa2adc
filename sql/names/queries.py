"""Subqueries as DuckDB writes them: SELECT with its clauses, joins in parentheses, set operations."""

from __future__ import annotations

from collections.abc import Mapping

from fuseline.plan.text.quoted_name import several
from fuseline.sql.names.reader import quoted

from .reader import Reader, Unreadable, identifier, words

_STARTS = ("select", "with", "from", "values")
_SET_OPERATIONS = ("union", "intersect", "except")
_SIDES = (
    "left",
    "right",
    "full",
    "semi",
    "anti",
    "cross",
    "inner",
    "natural",
    "positional",
    "asof",
)
_ENDS = several(
    "where group having order limit offset union intersect except on using join qualify window sample "
    "select from as tablesample"
) | frozenset(_SIDES)


def is_query(reader: Reader, ahead: int = 0) -> bool:
    """Whether a query comes next, in parentheses or not."""
    while reader.peek(ahead) == "(":
        ahead += 1
    return reader.peek(ahead) in _STARTS and reader.kind(ahead) == "word"


def query(reader: Reader) -> str:
    """Read a query up to the parenthesis that closes it."""
    common = _with(reader)
    shown, parts = _operand(reader)
    while reader.peek() in _SET_OPERATIONS:
        word = reader.take().text.upper()
        word += " ALL" if reader.accept("all") else ""
        reader.accept("distinct")
        if reader.accept("by", "name"):
            raise Unreadable("by name")
        right, _ = _operand(reader)
        # DuckDB writes a chain of the same operation without parentheses and blanks between its parts.
        shown = f"{shown}{word} ({right})" if parts == word else f"({shown}) {word} ({right})"
        parts = word
    return common + shown + _end(reader)


def _operand(reader: Reader) -> tuple[str, str]:
    if reader.accept("("):
        found = query(reader)
        reader.expect(")")
        return found, ""
    return _select(reader), ""


def _with(reader: Reader) -> str:
    if not reader.accept("with"):
        return ""
    recursive = "RECURSIVE " if reader.accept("recursive") else ""
    return f"WITH {recursive}{', '.join(reader.listed(lambda: _entry(reader)))} "


def _entry(reader: Reader) -> str:
    name = quoted(reader.name())
    if reader.peek() == "(":
        name += f" ({', '.join(reader.in_parentheses(lambda: quoted(reader.name())))})"
    reader.expect("as")
    kept = ""
    if reader.accept("materialized"):
        kept = "MATERIALIZED "
    elif reader.accept("not", "materialized"):
        kept = "NOT MATERIALIZED "
    reader.expect("(")
    found = query(reader)
    reader.expect(")")
    return f"{name} AS {kept}({found})"


def _select(reader: Reader) -> str:
    if reader.accept("values"):
        rows = reader.listed(lambda: f"({', '.join(reader.in_parentheses(reader.shown))})")
        return f"SELECT * FROM (VALUES {', '.join(rows)}) AS valueslist"
    first = _from(reader)
    distinct, items = "", "*"
    if reader.accept("select"):
        distinct = _distinct(reader)
        items = ", ".join(reader.listed(lambda: _item(reader)))
    elif not first:
        raise Unreadable(reader.peek())
    shown = f"SELECT {distinct}{items}{first or _from(reader)}"
    if reader.accept("where"):
        shown += f" WHERE {reader.shown()}"
    if reader.accept("group", "by"):
        shown += f" GROUP BY {_keys(reader)}"
    if reader.accept("having"):
        shown += f" HAVING {reader.shown()}"
    return shown


def _distinct(reader: Reader) -> str:
    if not reader.accept("distinct"):
        reader.accept("all")
        return ""
    if reader.accept("on"):
        return f"DISTINCT ON ({', '.join(reader.in_parentheses(reader.shown))}) "
    return "DISTINCT "


def _item(reader: Reader) -> str:
    if reader.accept("*"):
        return "*"
    shown = reader.shown()
    if reader.accept("as"):
        return f"{shown} AS {quoted(reader.name())}"
    if _is_alias(reader):
        return f"{shown} AS {quoted(reader.name())}"
    return shown


def _is_alias(reader: Reader) -> bool:
    return reader.kind() == "quoted" or (reader.kind() == "word" and reader.peek() not in _ENDS)


def _keys(reader: Reader) -> str:
    if reader.accept("all"):
        return "ALL"
    if reader.peek() in ("rollup", "cube", "grouping"):
        raise Unreadable("grouping sets")
    return ", ".join(reader.listed(reader.shown))


def _from(reader: Reader) -> str:
    if not reader.accept("from"):
        return ""
    return " FROM " + " , ".join(reader.listed(lambda: _joined(reader)))


def _joined(reader: Reader) -> str:
    left = _table(reader)
    while reader.peek() in (*_SIDES, "join"):
        left = f"({left} {_join(reader)})"
    return left


def _join(reader: Reader) -> str:
    natural = reader.accept("natural")
    side = reader.accept_one(*_SIDES)
    if side in ("asof", "positional"):
        raise Unreadable(side)
    reader.accept("outer")
    reader.expect("join")
    words = f"{'NATURAL ' if natural else ''}{(side or 'inner').upper()} JOIN"
    right = _table(reader)
    if reader.accept("on"):
        return f"{words} {right} ON ({reader.shown()})"
    if reader.accept("using"):
        names = reader.in_parentheses(lambda: quoted(reader.name()))
        return f"{words} {right} USING ({', '.join(names)})"
    return f"{words} {right}"


def _table(reader: Reader) -> str:
    if reader.peek() == "(" and is_query(reader, 1):
        reader.take()
        shown = f"({query(reader)})"
        reader.expect(")")
    elif reader.accept("("):
        shown = _joined(reader)
        reader.expect(")")
    elif reader.kind() in ("word", "quoted"):
        shown = reader.shown()
    else:
        raise Unreadable(reader.peek())
    if reader.peek() == "tablesample":
        raise Unreadable("tablesample")
    if reader.accept("as") or _is_alias(reader):
        shown += f" AS {quoted(reader.name())}"
        if reader.peek() == "(":
            shown += f"({', '.join(reader.in_parentheses(lambda: quoted(reader.name())))})"
    return shown


def _end(reader: Reader) -> str:
    shown = ""
    if reader.accept("order", "by"):
        if reader.accept("all"):
            shown = " ORDER BY COLUMNS(*)"
        else:
            shown = f" ORDER BY {', '.join(reader.listed(lambda: order_item(reader)))}"
    for word in ("limit", "offset"):
        if reader.accept(word):
            shown += f" {word.upper()} {reader.shown()}"
    return shown


def order_item(reader: Reader) -> str:
    """Read a sort key with its direction."""
    shown = reader.shown()
    direction = reader.accept_one("asc", "desc")
    if direction:
        shown += f" {direction.upper()}"
    if reader.accept("nulls", "first"):
        shown += " NULLS FIRST"
    elif reader.accept("nulls", "last"):
        shown += " NULLS LAST"
    return shown


def exists(reader: Reader) -> str:
    """Read what is behind `EXISTS (`."""
    return f"EXISTS({query(reader)})"


def array(reader: Reader) -> str | None:
    """Read a query behind `ARRAY (`; one that is ordered DuckDB shows with names of its own."""
    if not is_query(reader):
        return None
    found, made = query(reader), "array_agg(#1)"
    if " ORDER BY " in found:
        raise Unreadable("a query without an order")
    return (
        f"(SELECT CASE  WHEN (({made} IS NULL)) THEN (list_value()) ELSE {made} END FROM ({found}))"
    )


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
