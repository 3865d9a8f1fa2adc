"""Operands: constants, columns, calls, casts, CASE, lists."""

from __future__ import annotations

from fuseline.plan.coercion import TYPE_NAMES
from fuseline.plan.text.quoted_name import several
from fuseline.sql.names.reader import (
    GRAMMAR_TYPES,
    UNITS,
    constant_text,
    identifier,
    interval_call,
    part_of,
    quoted,
    timestamp_type,
)

from .nested_constants import arrow_argument, is_arrow, lambda_argument, nested_constant
from .queries import RENAMED, array, exists, is_query, order_item, query, window
from .reader import Reader, Shown, Unreadable

_CONSTANTS = {"null": "NULL", "true": "true", "false": "false"}
_STRINGS = ("text", "escaped", "dollar")
# Functions that are nodes of their own in DuckDB's tree.
_IN_CAPITALS = {
    "coalesce": "COALESCE",
    "ifnull": "COALESCE",
    "grouping": "GROUPING",
    "grouping_id": "GROUPING",
    "try": "TRY",
}
_TRIMS = {"both": "trim", "leading": "ltrim", "trailing": "rtrim"}
_WITHIN_GROUP = {"percentile_cont": "quantile_cont", "percentile_disc": "quantile_disc"}
# Types of one word that may stand before a constant: DATE '2024-01-31'.
_TYPED = frozenset({*GRAMMAR_TYPES, *(n for n in TYPE_NAMES if n.isidentifier())}) - {
    "interval",
    "null",
}
_NO_COLUMNS = several(
    "select from where group having order limit and or not in is like then when else end as on using union "
    "intersect except offset between case"
)


def operand(reader: Reader) -> Shown:
    """Read an operand with its casts, subscripts and methods."""
    shown = _first(reader)
    while True:
        if reader.accept("::"):
            shown = Shown(f"CAST({shown.text} AS {type_text(reader)})")
        elif reader.peek() == "[":
            shown = Shown(shown.text + _subscript(reader))
        elif reader.peek() == "." and reader.peek(2) == "(":
            reader.take()
            name = reader.name().lower()
            arguments = [shown.text, *reader.in_parentheses(reader.shown)]
            shown = Shown(f"{quoted(name)}({', '.join(arguments)})")
        elif reader.peek() == "." and reader.kind(1) in ("word", "quoted"):
            reader.take()
            shown = Shown(f"({shown.text}).{quoted(reader.name())}")
        else:
            return shown


def _first(reader: Reader) -> Shown:
    kind, word = reader.kind(), reader.peek()
    if kind == "number":
        text = reader.take().text
        # DuckDB writes 0x1F as x1F.
        return Shown(text[1:] if text[:2].lower() in ("0x", "0b") else text, number=True)
    if kind in _STRINGS:
        return Shown(constant_text(reader.take()))
    if kind == "parameter":
        return Shown(_parameter(reader))
    if kind == "bytes":  # or bits
        text = reader.take().text
        return Shown(f"{text[0].upper()}{text[1:]}")
    if word == "(":
        return _parentheses(reader)
    if word in ("[", "{") or word + reader.peek(1) in ("map{", "array["):
        return Shown(nested_constant(reader))
    if kind not in ("word", "quoted"):
        raise Unreadable(word)
    return _word(reader, word)


def _word(reader: Reader, word: str) -> Shown:
    if word in _CONSTANTS:
        reader.take()
        return Shown(_CONSTANTS[word])
    if word == "case":
        return Shown(_case(reader))
    if word in ("cast", "try_cast") and reader.peek(1) == "(":
        return Shown(_cast(reader))
    if word == "interval" and (reader.kind(1) in (*_STRINGS, "number") or reader.peek(1) == "("):
        return Shown(_interval(reader))
    if _is_typed_constant(reader):
        written = type_text(reader)
        return Shown(f"CAST({constant_text(reader.take())} AS {written})")
    special = _SPECIAL_CALLS.get(word) if reader.peek(1) == "(" else None
    if special is not None:
        start = reader.place, reader.parameter
        reader.place += 2
        call = special(reader)
        if call is not None:
            reader.expect(")")
            return Shown(call)
        reader.place, reader.parameter = start
    return _name(reader)


def _is_typed_constant(reader: Reader) -> bool:
    """Whether DATE '2024-01-31' comes next, or DECIMAL(5, 1) '1.5'."""
    if reader.peek() not in _TYPED:
        return False
    if reader.peek(1) in ("with", "without"):
        return reader.peek(2) == "time" and reader.kind(4) in _STRINGS
    if reader.peek(1) != "(":
        return reader.kind(1) in _STRINGS
    ahead = 2
    while reader.kind(ahead) == "number" or reader.peek(ahead) == ",":
        ahead += 1
    return reader.peek(ahead) == ")" and reader.kind(ahead + 1) in _STRINGS


def _parameter(reader: Reader) -> str:
    text = reader.take().text
    if text != "?":
        return text
    reader.parameter += 1
    return f"${reader.parameter - 1}"


def _parentheses(reader: Reader) -> Shown:
    if reader.peek(1) != "(" and is_query(reader, 1):
        return _subquery(reader)
    if reader.accept("(", ")"):
        return Shown('"row"()')
    start = reader.place, reader.parameter
    reader.take()
    first = reader.expression()
    if reader.accept(")"):
        return first
    reader.place, reader.parameter = start
    if is_query(reader, 1):  # ((select 1) union (select 2)), and not ((select 1) + 1)
        return _subquery(reader)
    return Shown(f'"row"({", ".join(reader.in_parentheses(reader.shown))})')


def _subquery(reader: Reader) -> Shown:
    reader.expect("(")
    found = query(reader)
    reader.expect(")")
    return Shown(f"({found})")


def _subscript(reader: Reader) -> str:
    reader.expect("[")
    places = ["", "-"] if reader.accept("::") else []
    places.append("" if reader.peek() == ":" else reader.shown())
    while len(places) <= len("::") and reader.accept(":"):
        if reader.peek() == "-" and reader.peek(1) == ":":
            reader.expect("-")
            places.append("-")
        else:
            places.append("" if reader.peek() == "]" else reader.shown())
    reader.expect("]")
    return f"[{':'.join(places)}]"


def _case(reader: Reader) -> str:
    reader.expect("case")
    value = None if reader.peek() == "when" else reader.shown()
    parts = ["CASE "]
    while reader.accept("when"):
        condition = reader.shown()
        if value is not None:
            condition = f"({value} = {condition})"
        reader.expect("then")
        parts.append(f"WHEN ({condition}) THEN ({reader.shown()})")
    default = reader.shown() if reader.accept("else") else "NULL"
    reader.expect("end")
    return " ".join([*parts, f"ELSE {default} END"])


def _cast(reader: Reader) -> str:
    function = reader.take().text.upper()
    reader.expect("(")
    value = reader.shown()
    reader.expect("as")
    written = type_text(reader)
    reader.expect(")")
    return f"{function}({value} AS {written})"


def type_text(reader: Reader) -> str:
    """Read a type: what the grammar has a word for in that word, others as written."""
    if reader.kind() == "quoted":
        return reader.name()
    word = reader.take()
    if word.kind != "word":
        raise Unreadable("a type")
    name = GRAMMAR_TYPES.get(word.lower, quoted(word.text) if word.lower == "json" else word.text)
    if word.lower == "double" and reader.accept("precision"):
        name = "DOUBLE"
    elif word.lower in ("character", "char", "nchar"):
        reader.accept("varying")
    if word.lower == "map" and reader.peek() == "(":
        name = f"MAP({', '.join(reader.in_parentheses(lambda: type_text(reader)))})"
    if word.lower == "tuple" and reader.peek() == "(":
        name = f"TUPLE({', '.join(reader.in_parentheses(lambda: type_text(reader)))})"
    if word.lower in ("struct", "row") and reader.peek() == "(":
        fields = reader.in_parentheses(lambda: f"{quoted(reader.name())} {type_text(reader)}")
        name = f"STRUCT({', '.join(fields)})"
    if reader.peek() == "(":
        parameters = reader.in_parentheses(reader.shown)
        plain = f"{name}({', '.join(parameters)})"
        name = timestamp_type(parameters[0]) if name == "TIMESTAMP" else plain
    if word.lower in ("timestamp", "time"):
        if reader.accept("with", "time", "zone"):
            name += " WITH TIME ZONE"
        else:
            reader.accept("without", "time", "zone")
    if reader.accept("array") and reader.peek() != "[":
        name += "[]"
    while reader.accept("["):
        length = "" if reader.peek() == "]" else reader.shown()
        reader.expect("]")
        name += f"[{length}]"
    return name


def _interval(reader: Reader) -> str:
    reader.expect("interval")
    if reader.accept("("):
        value = reader.shown()
        reader.expect(")")
    else:
        value = operand_constant(reader)
    if reader.peek() in UNITS and reader.kind() == "word":
        return interval_call(value, reader.take().lower)
    return f"CAST({value} AS INTERVAL)"


def operand_constant(reader: Reader) -> str:
    word = reader.take()
    return word.text if word.kind == "number" else constant_text(word)


def _name(reader: Reader) -> Shown:
    """Read a column or a call, with the names before it."""
    quotes = reader.kind() == "quoted"
    if not quotes and reader.peek() in _NO_COLUMNS and reader.peek(1) != "(":
        raise Unreadable(reader.peek())
    parts = [identifier(reader.take())]
    while reader.peek() == "." and reader.kind(1) in ("word", "quoted"):
        reader.take()
        parts.append(reader.name())
    if reader.peek() == "." and reader.peek(1) == "*":
        reader.place += 2
        return Shown(".".join([*map(quoted, parts), "*"]))
    if reader.peek() == "(":
        return Shown(_call(reader, parts))
    if not quotes and len(parts) == 1 and parts[0].lower() in _BARE:
        return Shown(parts[0].lower())
    return Shown(".".join(map(quoted, parts)))


_BARE = ("current_date", "current_time", "current_timestamp", "localtime", "localtimestamp")


def _call(reader: Reader, parts: list[str]) -> str:
    name = parts[-1].lower()
    before = "".join(f"{quoted(part)}." for part in parts[:-1])
    reader.expect("(")
    arguments, distinct = _arguments(reader)
    order = _order(reader) + _nulls(reader)
    reader.expect(")")
    if name == "count" and not arguments and not distinct:
        name = "count_star"
    shown = _IN_CAPITALS.get(name) or quoted(name)
    if name == "date" and len(arguments) == 1:
        return f"CAST({arguments[0]} AS {parts[-1].upper()})"
    if reader.accept("within", "group", "("):
        order = _order(reader)
        reader.expect(")")
        shown = _WITHIN_GROUP.get(name, shown)
        if name not in _WITHIN_GROUP:
            call = f"{before}{shown}({distinct}{', '.join(arguments)}) WITHIN GROUP ({order})"
            return call + _filter(reader)
    inside = f"({distinct}{', '.join(arguments)}{order}){_filter(reader)}"
    if reader.peek() == "over":
        return f"{before}{RENAMED.get(name, name)}{inside}{window(reader)}"
    return f"{before}{shown}{inside}"


def _arguments(reader: Reader) -> tuple[list[str], str]:
    if reader.peek() in (")", "order") or _star(reader):
        return [], ""
    distinct = "DISTINCT " if reader.accept("distinct") else ""
    reader.accept("all")
    return reader.listed(lambda: _argument(reader)), distinct


def _star(reader: Reader) -> bool:
    """Take `*`, also in parentheses."""
    depth = 0
    while reader.peek(depth) == "(":
        depth += 1
    return reader.accept(*"(" * depth, "*", *")" * depth)


def _argument(reader: Reader) -> str:
    if reader.accept("lambda"):
        return lambda_argument(reader)
    if is_arrow(reader):
        return arrow_argument(reader)
    if reader.kind() == "word" and reader.peek(1) in (":=", "=>"):
        name = reader.name()
        reader.take()
        return f"{quoted(name)} := {reader.shown()}"
    return reader.shown()


def _order(reader: Reader) -> str:
    if not reader.accept("order", "by"):
        return ""
    return " ORDER BY " + ", ".join(reader.listed(lambda: order_item(reader)))


def _nulls(reader: Reader) -> str:
    reader.accept("respect", "nulls")
    return " IGNORE NULLS" if reader.accept("ignore", "nulls") else ""


def _filter(reader: Reader) -> str:
    if not reader.accept("filter", "("):
        return ""
    reader.accept("where")
    condition = reader.shown()
    reader.expect(")")
    return f" FILTER (WHERE {condition})"


# Calls with words between their arguments.  They begin behind the parenthesis; None where the call is an ordinary one.


def _extract(reader: Reader) -> str | None:
    word = reader.take()
    if not reader.accept("from"):
        return None
    return f"date_part({part_of(word)}, {reader.shown()})"


def _substring(reader: Reader) -> str | None:
    value = reader.shown()
    if reader.peek() not in ("from", "for"):
        return None
    start = reader.shown() if reader.accept("from") else "1"
    length = [reader.shown()] if reader.accept("for") else []
    return f'"substring"({", ".join([value, start, *length])})'


def _position(reader: Reader) -> str | None:
    # IN would be read as the operator.
    start = reader.place
    depth = 0
    while reader.peek() != "in" or depth:
        depth += {"(": 1, ")": -1}.get(reader.peek(), 0)
        if depth < 0 or reader.at_end():
            return None
        reader.place += 1
    part = type(reader)(reader.tokens[start : reader.place], reader.text, reader.parameter)
    searched = part.shown()
    reader.parameter = part.parameter
    reader.take()
    return f'"position"({reader.shown()}, {searched})'


def _trim(reader: Reader) -> str | None:
    function = _TRIMS[reader.accept_one(*_TRIMS) or "both"]
    characters = [] if reader.peek() == "from" else reader.listed(reader.shown)
    values = reader.listed(reader.shown) if reader.accept("from") else []
    return f"{quoted(function)}({', '.join([*values, *characters])})"


def _overlay(reader: Reader) -> str | None:
    value = reader.shown()
    if not reader.accept("placing"):
        return None
    other = reader.shown()
    reader.expect("from")
    numbers = [reader.shown()]
    if reader.accept("for"):
        numbers.append(reader.shown())
    return f'"overlay"({", ".join([value, other, *numbers])})'


_SPECIAL_CALLS = {"exists": exists, "array": array, "extract": _extract, "substring": _substring, "position": _position, "trim": _trim, "overlay": _overlay}  # fmt: skip
