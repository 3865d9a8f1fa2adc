"""The step of Numba's compiler that puts Python's own arithmetic into compiled Python functions."""

from __future__ import annotations

import math
import operator
from typing import Any

from numba.core import ir
from numba.core.compiler_machinery import FunctionPass, register_pass
from numba.core.ir_utils import build_definitions, mk_unique_var

from .functions_udf_checked_cpu import OPERATORS, TOLD, negated
from .functions_udf_math_cpu import MATH


@register_pass(mutates_CFG=False, analysis_only=False)
class CheckedArithmetic(FunctionPass):
    """Operators and functions of `math` become calls of those here, and what is raised has no text, which would take memory."""

    _name = "fuseline_checked_arithmetic"

    def __init__(self) -> None:
        FunctionPass.__init__(self)

    def run_pass(self, state: Any) -> bool:
        _rewrite(state.func_ir, None)
        return True


@register_pass(mutates_CFG=False, analysis_only=False)
class ToldArithmetic(FunctionPass):
    """As `CheckedArithmetic`, but what would raise is told at the end, so that nothing branches: the function returns its value and whether it failed."""

    _name = "fuseline_told_arithmetic"

    def __init__(self) -> None:
        FunctionPass.__init__(self)

    def run_pass(self, state: Any) -> bool:
        blocks = state.func_ir.blocks
        first = blocks[min(blocks)]
        failed = _variable(first.scope, first.loc)
        _rewrite(state.func_ir, failed)
        first.body.insert(0, ir.Assign(ir.Const(False, first.loc), failed, first.loc))
        for block in blocks.values():
            last = block.body[-1]
            if isinstance(last, ir.Return):
                pair = _variable(block.scope, last.loc)
                made = ir.Expr.build_tuple([last.value, failed], last.loc)
                block.body.insert(-1, ir.Assign(made, pair, last.loc))
                last.value = pair
        state.func_ir._definitions = build_definitions(blocks)
        return True


def _rewrite(function: Any, failed: Any) -> None:
    """Replace operators; with `failed` by those that tell, which is noted in that variable."""
    blocks = function.blocks
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
            changed = [statement]
            if isinstance(statement, ir.Assign) and isinstance(statement.value, ir.Expr):
                changed = _replaced(statement, block.scope, known, failed)
            body += changed
        block.body[:] = body
    function._definitions = build_definitions(blocks)


def _replaced(statement: Any, scope: Any, known: dict[str, Any], failed: Any) -> list[Any]:
    """Return the statements that an expression's becomes."""
    value, place = statement.value, statement.loc
    if value.op == "getattr" and known.get(value.value.name) is math and value.attr in MATH:
        statement.value = ir.Global(value.attr, MATH[value.attr], place)
        return [statement]
    sign: Any = None
    given: tuple[Any, ...] = ()
    match value.op:
        case "binop":
            sign, given = value.fn, (value.lhs, value.rhs)
        case "inplace_binop":
            sign, given = value.immutable_fn, (value.lhs, value.rhs)
        case "unary" if value.fn in (operator.neg, "-"):
            made, name = negated, _variable(scope, place)
            statement.value = ir.Expr.call(name, (value.value,), (), place)
            return [ir.Assign(ir.Global(made.__name__, made, place), name, place), statement]
    made = (OPERATORS if failed is None else TOLD).get(sign)
    if made is None:
        return [statement]
    name = _variable(scope, place)
    callee = ir.Assign(ir.Global(made.__name__, made, place), name, place)
    call = ir.Expr.call(name, given, (), place)
    if failed is None:
        statement.value = call
        return [callee, statement]
    pair, bad = _variable(scope, place), _variable(scope, place)
    statement.value = ir.Expr.static_getitem(pair, 0, None, place)
    noted = ir.Expr.binop(operator.or_, failed, bad, place)
    return [
        callee,
        ir.Assign(call, pair, place),
        statement,
        ir.Assign(ir.Expr.static_getitem(pair, 1, None, place), bad, place),
        ir.Assign(noted, failed, place),
    ]


def _variable(scope: Any, place: Any) -> Any:
    return scope.redefine(mk_unique_var("$checked"), place)
