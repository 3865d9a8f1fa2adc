"""How the Python functions of a plan run: a line for each, below the plan."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import fields

from ..plan.expr import Expr
from ..plan.node import Node, walk, walk_once
from ..plan.physical import Physical, Pipeline
from ..plan.udf.python_aggregate import PythonFold
from ..plan.udf.python_function import PythonCall


def function_lines(plan: Node) -> list[str]:
    """Return what a physical plan does with its Python functions, each once."""
    found: dict[str, None] = {}
    for node in walk_once(plan):
        if isinstance(node, Pipeline):
            for part in walk(node.body):
                found |= dict.fromkeys(_line(call, True) for call in _calls(part))
        elif isinstance(node, Physical):
            found |= dict.fromkeys(_line(call, False) for call in _calls(node))
    return list(found)


def _line(call: PythonCall | PythonFold, in_kernel: bool) -> str:
    if isinstance(call, PythonFold):
        return (
            f"Python aggregate {call.function.name}: compiled, a loop over the values of each group on the CPU: "
            "they are gathered first, which no kernel does"
        )
    name = f"Python function {call.function.name}"
    if call.image is None:
        how = "over Arrow arrays" if call.function.way == "vectorized" else "row by row"
        why = "" if call.function.way == "vectorized" else f": it {call.why}"
        return f"{name}: Python runs it {how}{why}"
    if in_kernel:
        return f"{name}: compiled, inside the kernel"
    return f"{name}: compiled, a loop over arrays on the CPU: its operator is in no pipeline"


def _calls(node: Node) -> Iterator[PythonCall | PythonFold]:
    for field in fields(node):  # type: ignore[arg-type]
        for expr in _expressions(getattr(node, field.name)):
            yield from (part for part in walk(expr) if isinstance(part, PythonCall | PythonFold))


def _expressions(value: object) -> Iterator[Expr]:
    if isinstance(value, Expr):
        yield value
    elif isinstance(value, tuple):
        for part in value:
            yield from _expressions(part)
