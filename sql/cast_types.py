"""The type of a cast as the query's text has it, for the names of result columns; sqlglot keeps types without their places."""

from __future__ import annotations

import re

from sqlglot import exp

from fuseline.errors import Span, balanced

from .spans import span_of

_TYPES = {
    "int": "INTEGER",
    "integer": "INTEGER",
    "smallint": "SMALLINT",
    "bigint": "BIGINT",
    "real": "FLOAT",
    "float": "FLOAT",
    "decimal": "DECIMAL",
    "dec": "DECIMAL",
    "numeric": "DECIMAL",
    "boolean": "BOOLEAN",
    "varchar": "VARCHAR",
    "char": "VARCHAR",
    "timestamp": "TIMESTAMP",
    "interval": "INTERVAL",
}
_TYPES_OF_SQLGLOT = {name.upper(): shown for name, shown in _TYPES.items()} | {"TEXT": "VARCHAR"}
_TEMPORAL = {
    "date": exp.DType.DATE,
    "timestamp": exp.DType.TIMESTAMPNTZ,
    "datetime": exp.DType.TIMESTAMPNTZ,
}
_TYPE_AFTER = re.compile(r"[\s)]*(?:::|\bas\b)\s*(\w+)(?:\s*\([\d\s,]*\))?", re.IGNORECASE)
_WORD_BEFORE = re.compile(r"(\w+)\s*$")
_CONSTANT_CAST = re.compile(r"\b(?:null|true|false)\s*(?:::|\bas\b)\s*(\w+)", re.IGNORECASE)


def written_type(node: exp.Expr, text: str) -> str:
    """Return the type of a cast as written, but for the names that the grammar knows."""
    operand = _operand(node, text)
    written = ""
    if operand is not None:
        before = _WORD_BEFORE.search(text[: operand.start])
        typed = _is_typed_constant(node, text)
        word = before if typed else _TYPE_AFTER.match(text, operand.end) or before
        written = word.group(1) if word else ""
    else:  # NULL, TRUE and FALSE keep no place; all such casts of the text have the type, or none is known
        found = {word.lower(): word for word in _CONSTANT_CAST.findall(text)}
        written = next(iter(found.values())) if len(found) == 1 else ""
    target = node.args["to"]
    name = _TYPES.get(written.lower(), written) or _TYPES_OF_SQLGLOT.get(target.this.name, "")
    name = name or target.this.name.lower()
    parameters = ", ".join(p.name for p in target.expressions)
    return f"{name}({parameters})" if parameters else name


def _operand(cast: exp.Expr, text: str) -> Span | None:
    """Return the place of what is cast, with the types of casts inside."""
    operand = cast.this
    if not isinstance(operand, exp.Cast) or _is_typed_constant(operand, text):
        place = span_of(operand)
        return None if place is None else balanced(text, place)
    inner = _operand(operand, text)
    written = None if inner is None else _TYPE_AFTER.match(text, inner.end)
    if inner is None or written is None:
        return inner
    return balanced(text, Span(inner.start, written.end(), inner.view))


def _is_typed_constant(node: exp.Expr, text: str) -> bool:
    """Whether a cast is written DATE '2024-01-31'."""
    place = span_of(node.this)
    if place is None or not isinstance(node.this, exp.Literal) or not node.this.is_string:
        return False
    before = _WORD_BEFORE.search(text[: place.start])
    kind = None if before is None else _TEMPORAL.get(before.group(1).lower())
    return node.args["to"].this is kind
