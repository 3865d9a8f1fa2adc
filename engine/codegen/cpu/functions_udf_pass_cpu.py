"""The step of Numba's compiler that puts Python's own arithmetic into compiled Python functions."""

from __future__ import annotations

import math
import operator
from collections.abc import Callable
from types import FunctionType, ModuleType

from numba.core import ir, ir_utils
from numba.core.compiler import StateDict
from numba.core.compiler_machinery import FunctionPass, register_pass
from numba.core.ir import Assign, Block, FunctionIR, Stmt, Var

from ...records import dataclass
from .functions_udf_checked_cpu import OPERATORS, TOLD, negated
from .functions_udf_math_cpu import MATH


@dataclass(frozen=True, slots=True)
class Rewrite:
    """What is changed in a function, as a target's compiler has it: of these modules each target's compiler has its own."""

    ir: ModuleType
    tools: ModuleType

    def checked(self, function: FunctionIR) -> None:
        """Replace operators and functions of `math` by those that raise; what is raised has no text, which would take memory."""
        self._rewrite(function, None)

    def told(self, function: FunctionIR) -> None:
        """The same, but what would raise is told at the end, so that nothing branches: the function returns its value and whether it failed."""
        ir, blocks = self.ir, function.blocks
        first = blocks[min(blocks)]
        failed = self.variable(first)
        self._rewrite(function, failed)
        first.body.insert(0, ir.Assign(ir.Const(False, first.loc), failed, first.loc))
        for block in blocks.values():
            last = block.body[-1]
            if isinstance(last, ir.Return):
                pair = self.variable(block)
                made = ir.Expr.build_tuple([last.value, failed], last.loc)
                block.body.insert(-1, ir.Assign(made, pair, last.loc))
                last.value = pair
        function._definitions = self.tools.build_definitions(blocks)

    def variable(self, block: Block) -> Var:
        """Return a new variable of a block."""
        return block.scope.redefine(self.tools.mk_unique_var("$checked"), block.loc)

    def _rewrite(self, function: FunctionIR, failed: Var | None) -> None:
        """Replace operators; with `failed` by those that tell, which is noted in that variable."""
        ir, blocks = self.ir, function.blocks
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
            body: list[Stmt] = []
            for statement in block.body:
                changed = [statement]
                if isinstance(statement, ir.Assign) and isinstance(statement.value, ir.Expr):
                    changed = self._replaced(statement, block, known, failed)
                body += changed
            block.body[:] = body
        function._definitions = self.tools.build_definitions(blocks)

    def _replaced(
        self,
        statement: Assign,
        block: Block,
        known: dict[str, object],
        failed: Var | None,
    ) -> list[Stmt]:
        """Return the statements that an expression's becomes."""
        ir, value, place = self.ir, statement.value, statement.loc
        if value.op == "getattr" and known.get(value.value.name) is math and value.attr in MATH:
            statement.value = ir.Global(value.attr, MATH[value.attr], place)
            return [statement]
        sign: Callable[..., object] | None = None
        given: tuple[Var, ...] = ()
        match value.op:
            case "binop":
                sign, given = value.fn, (value.lhs, value.rhs)
            case "inplace_binop":
                sign, given = value.immutable_fn, (value.lhs, value.rhs)
            case "unary" if value.fn in (operator.neg, "-"):
                return self.called(negated, (value.value,), statement.target, block)
        made = None if sign is None else (OPERATORS if failed is None else TOLD).get(sign)
        if made is None:
            return [statement]
        if failed is None:
            return self.called(made, given, statement.target, block)
        pair, bad = self.variable(block), self.variable(block)
        statement.value = ir.Expr.static_getitem(pair, 0, None, place)
        noted = ir.Expr.binop(operator.or_, failed, bad, place)
        return [
            *self.called(made, given, pair, block),
            statement,
            ir.Assign(ir.Expr.static_getitem(pair, 1, None, place), bad, place),
            ir.Assign(noted, failed, place),
        ]

    def called(
        self, function: FunctionType, given: tuple[Var, ...], target: Var, block: Block
    ) -> list[Stmt]:
        """Return the statements that give a variable the value of a function."""
        ir, name, place = self.ir, self.variable(block), target.loc
        return [
            ir.Assign(ir.Global(function.__name__, function, place), name, place),
            ir.Assign(ir.Expr.call(name, given, (), place), target, place),
        ]


REWRITE = Rewrite(ir, ir_utils)


def step_of(
    kind: type,
    register: Callable[..., Callable[[type], type]],
    name: str,
    *steps: Callable[[FunctionIR], object],
) -> type:
    """Return a pass of a compiler over a function, of these steps."""

    class CompilerStep(kind):
        _name = f"fuseline_{name}"

        def __init__(self) -> None:  # which a pass has of its own
            super().__init__()

        def run_pass(self, state: StateDict) -> bool:
            for step in steps:
                step(state.func_ir)
            return True

    register(mutates_CFG=False, analysis_only=False)(CompilerStep)
    return CompilerStep


# Operators that raise, and such that tell
CheckedArithmetic = step_of(FunctionPass, register_pass, "checked_arithmetic", REWRITE.checked)
ToldArithmetic = step_of(FunctionPass, register_pass, "told_arithmetic", REWRITE.told)
