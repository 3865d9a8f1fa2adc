"""Names of columns that dataframe calls make without an alias: those of the same SQL, for operators and calls."""

from __future__ import annotations

from ..plan.functions.operators import OPERATORS

_SIGNS = {row.name: row.sign.upper() for row in OPERATORS} | {"ne": "!=", "like": "~~"}


def call_name(function: str, args: list[str]) -> str:
    """Return the name of a call: `add` of a and 1 is (a + 1), `upper` of a is upper(a)."""
    if len(args) == 2 and _SIGNS.get(function):
        return f"({args[0]} {_SIGNS[function]} {args[1]})"
    match function:
        case "neg":
            return f"(-({args[0]}))"
        case "not":
            return f"(NOT {args[0]})"
        case "is_null" | "is_not_null":
            return f"({args[0]} {function.replace('_', ' ').upper()})"
    return f"{function}({', '.join(args)})"
