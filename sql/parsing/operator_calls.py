"""Calls of operators by their signs, "+"(1, 2) is 1 + 2, and operators that are calls: x ~ ANY (patterns)."""

from __future__ import annotations

import re
from collections.abc import Callable

from sqlglot import exp

from fuseline.errors import Unsupported

from .pieces import span_of
from .unread import use


def _named(name: str) -> Callable[..., exp.Expr]:
    return lambda this, expression: exp.Anonymous(this=name, expressions=[this, expression])


# By the number of arguments
_OPERATORS: dict[int, dict[str, Callable[..., exp.Expr]]] = {
    1: {"+": exp.Unary, "-": exp.Neg, "~": exp.BitwiseNot, "@": exp.Abs},
    2: {
        "+": exp.Add,
        "-": exp.Sub,
        "*": exp.Mul,
        "/": exp.Div,
        "//": exp.IntDiv,
        "%": exp.Mod,
        "^": exp.Pow,
        "**": exp.Pow,
        "&": exp.BitwiseAnd,
        "|": exp.BitwiseOr,
        "<<": exp.BitwiseLeftShift,
        ">>": exp.BitwiseRightShift,
        "||": exp.DPipe,
        "=": exp.EQ,
        "!=": exp.NEQ,
        "<": exp.LT,
        "<=": exp.LTE,
        ">": exp.GT,
        ">=": exp.GTE,
        "~~": exp.Like,
        "~~*": exp.ILike,
        "~~~": exp.Glob,
        "^@": exp.StartsWith,
        "&&": exp.ArrayOverlaps,
        "@>": exp.ArrayContainsAll,
        "<@": exp.ArrayContainedBy,
        "->>": exp.JSONExtractScalar,
        "<->": _named("list_distance"),
        "<=>": _named("list_cosine_distance"),
        "!~~": lambda **sides: exp.Not(this=exp.Like(**sides)),
        "!~~*": lambda **sides: exp.Not(this=exp.ILike(**sides)),
    },
}


_NO_MATCH = re.compile(r"!~\s*(?:any|some|all)\s*\((?:[\s(\[]|array\b)*$", re.IGNORECASE)
_MATCHES = ("matches any", "matches all")


def operation(node: exp.Expr, text: str) -> exp.Expr | None:
    """Return what the call of an operator by its sign is, or a match with one or all of some patterns; None for other calls."""
    if isinstance(node, exp.RegexpLike):
        return _quantified_match(node, text)
    operands = node.expressions if isinstance(node, exp.Anonymous) else []
    make = _OPERATORS.get(len(operands), {}).get(node.name)
    if make is None:
        return None
    made = make(**dict(zip(("this", "expression"), operands, strict=False)))
    made.meta.update(node.meta)
    return made


def _quantified_match(node: exp.RegexpLike, text: str) -> exp.Expr | None:
    """Return a call of the macro that it stands for; x !~ ANY (l), which is NOT around a match here, is NOT x ~ ALL (l)."""
    right = node.expression
    word = right.name.lower() if isinstance(right, exp.Anonymous) else right.key
    if word not in ("any", "some", "all"):
        return None
    patterns = right.expressions[0] if isinstance(right, exp.Anonymous) else right.this
    if isinstance(patterns.unnest(), exp.Query):
        raise Unsupported("~ takes ANY and ALL of a list, and not of a subquery.", span_of(node))
    use(right)
    place = span_of(patterns) or span_of(node)
    if place is not None:
        text = (text if place.view is None else place.view.text)[: place.start]
    name = _MATCHES[(word == "all") != (_NO_MATCH.search(text) is not None)]
    made = exp.Anonymous(this=name, expressions=[node.this, patterns])
    made.meta.update(node.meta)
    return made
