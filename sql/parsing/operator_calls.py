"""Calls of operators by their signs: "+"(1, 2) is 1 + 2."""

from __future__ import annotations

from collections.abc import Callable

from sqlglot import exp


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


def operation(node: exp.Expr) -> exp.Expr | None:
    """Return what the call of an operator by its sign is, None for other calls."""
    operands = node.expressions if isinstance(node, exp.Anonymous) else []
    make = _OPERATORS.get(len(operands), {}).get(node.name)
    if make is None:
        return None
    made = make(**dict(zip(("this", "expression"), operands, strict=False)))
    made.meta.update(node.meta)
    return made
