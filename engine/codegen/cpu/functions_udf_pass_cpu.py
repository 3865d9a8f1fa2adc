"""The step of Numba's compiler that puts Python's own arithmetic into compiled Python functions."""

from __future__ import annotations

import math
import operator
from typing import Any

from numba.core import ir
from numba.core.compiler_machinery import FunctionPass, register_pass
from numba.core.ir_utils import build_definitions, mk_unique_var

from .functions_udf_checked_cpu import OPERATORS, negated
from .functions_udf_math_cpu import MATH


@register_pass(mutates_CFG=False, analysis_only=False)
class CheckedArithmetic(FunctionPass):
    """Operators and functions of `math` become calls of those here, and what is raised has no text, which would take memory."""

    _name = "fuseline_checked_arithmetic"

    def __init__(self) -> None:
        FunctionPass.__init__(self)

    def run_pass(self, state: Any) -> bool:
        blocks = state.func_ir.blocks
        known = {
            statement.target.name: statement.value.value
            for block in blocks.values()
            for statement in block.find_insts(ir.Assign)
            if isinstance(statement.value, ir.Global | ir.FreeVar)
        }
        for block in blocks.values():
            last = block.body[-1]
            if isinstance(last, ir.Raise | ir.StaticRaise | ir.DynamicRaise):
                block.body[:] = [ir.StaticRaise(ValueError, (), last.loc)]
            body: list[Any] = []
            for statement in block.body:
                if isinstance(statement, ir.Assign) and isinstance(statement.value, ir.Expr):
                    body += _replaced(statement, block.scope, known)
                body.append(statement)
            block.body[:] = body
        state.func_ir._definitions = build_definitions(blocks)
        return True


def _replaced(statement: Any, scope: Any, known: dict[str, Any]) -> list[Any]:
    """Change an expression in place; return what has to come before it."""
    value, place = statement.value, statement.loc
    if value.op == "getattr" and known.get(value.value.name) is math and value.attr in MATH:
        statement.value = ir.Global(value.attr, MATH[value.attr], place)
        return []
    given: tuple[Any, ...]
    match value.op:
        case "binop":
            made, given = OPERATORS.get(value.fn), (value.lhs, value.rhs)
        case "inplace_binop":
            made, given = OPERATORS.get(value.immutable_fn), (value.lhs, value.rhs)
        case "unary" if value.fn in (operator.neg, "-"):
            made, given = negated, (value.value,)
        case _:
            return []
    if made is None:
        return []
    name = ir.Var(scope, mk_unique_var("$checked"), place)
    scope.define(name.name, place) if name.name not in scope.localvars else None
    statement.value = ir.Expr.call(name, given, (), place)
    return [ir.Assign(ir.Global(made.__name__, made, place), name, place)]
