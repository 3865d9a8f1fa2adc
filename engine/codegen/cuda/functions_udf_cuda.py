"""Python functions in CUDA kernels: the same as in CPU kernels (`functions_udf_cpu`), compiled by numba-cuda, of which nothing needs a driver.

A loop of them ends: after `MOST_TURNS` its function fails for the row, and the host computes it, where a query can be stopped.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from types import SimpleNamespace

from numba import cuda, types
from numba.cuda import dispatcher
from numba.cuda.compiler import CUDACompiler, CUDACompileResult, compile_extra
from numba.cuda.core import analysis, ir, ir_utils
from numba.cuda.core.callconv import CUDACallConv
from numba.cuda.core.compiler_machinery import FunctionPass, PassManager, register_pass
from numba.cuda.core.targetconfig import ConfigStack
from numba.cuda.core.untyped_passes import InlineClosureLikes
from numba.cuda.extending import overload
from numba.cuda.flags import CUDAFlags
from numba.cuda.typing.templates import infer_global, make_intrinsic_template

from ..cpu.functions_udf_checked_cpu import stub
from ..cpu.functions_udf_cpu import Compilers, python_function as python_function_of
from ..cpu.functions_udf_noted_cpu import INTRINSICS, OVERLOADS
from ..cpu.functions_udf_pass_cpu import Rewrite, step_of

MOST_TURNS = 1 << 16


def _target() -> SimpleNamespace:
    """The device of the kernel that is being compiled, which need not be there: numba-cuda asks for one to compile what is overloaded."""
    return SimpleNamespace(compute_capability=ConfigStack.top_or_none().compute_capability)


dispatcher.get_current_device = _target
for _function, _choose in OVERLOADS:
    overload(_function)(_choose)
for _made in INTRINSICS:
    _template = make_intrinsic_template(
        _made, _made._defn, _made._name, prefer_literal=False, kwargs={}
    )
    infer_global(_made, types.Function(_template))

REWRITE = Rewrite(ir, ir_utils)
turned = stub("turned")


@overload(turned)
def _turned(count):  # type: ignore[no-untyped-def]
    def counted(count):  # type: ignore[no-untyped-def]
        if count >= MOST_TURNS:
            raise ArithmeticError
        return count + 1

    return counted


def _count_turns(function: ir.FunctionIR) -> None:
    """Have each loop of a function count its turns, and raise after so many."""
    blocks = function.blocks
    first = blocks[min(blocks)]
    for loop in analysis.compute_cfg_from_blocks(blocks).loops().values():
        head = blocks[loop.header]
        count = REWRITE.variable(first)
        head.body[:0] = REWRITE.called(turned, (count,), count, head)
        first.body.insert(0, ir.Assign(ir.Const(0, first.loc), count, first.loc))
    function._definitions = ir_utils.build_definitions(blocks)


# Operators that raise, in loops that end, and such that tell
CheckedOnDevice = step_of(
    FunctionPass, register_pass, "checked_on_device", REWRITE.checked, _count_turns
)
ToldOnDevice = step_of(FunctionPass, register_pass, "told_on_device", REWRITE.told)


class DeviceCompiler(CUDACompiler):
    """numba-cuda's compiler with a step more."""

    step: type[FunctionPass] | None = None

    def define_pipelines(self) -> list[PassManager]:
        (made,) = super().define_pipelines()
        if self.step is not None:
            made.add_pass_after(self.step, InlineClosureLikes)
            made.finalize()
        return [made]


class CheckedCompiler(DeviceCompiler):
    """With operators that raise."""

    step = CheckedOnDevice


class ToldCompiler(DeviceCompiler):
    """With operators that tell."""

    step = ToldOnDevice


class DeviceFunctionDispatcher(dispatcher.CUDADispatcher):
    """A device function that is compiled for the architecture of the kernel that calls it, and not for a device that is there."""

    def compile_device(
        self, args: tuple[types.Type, ...], return_type: types.Type | None = None
    ) -> CUDACompileResult:
        if args not in self.overloads:
            context = self.targetctx
            flags = CUDAFlags()
            flags.no_compile = flags.no_cpython_wrapper = flags.no_cfunc_wrapper = True
            flags.error_model = "python"
            flags.nvvm_options = {"opt": 3, "fastmath": False}
            flags.compute_capability = _target().compute_capability
            made = compile_extra(
                typingctx=self.typingctx,
                targetctx=context,
                func=self.py_func,
                args=args,
                return_type=return_type,
                flags=flags,
                locals={},
                pipeline_class=self._compiler.pipeline_class,
                call_conv=CUDACallConv(context),
                abi_info={},
            )
            made.library.finalize()
            context.insert_user_function(made.entry_point, made.fndesc, [made.library])
            self.overloads[args] = made
        return self.overloads[args]


def _compiled(
    pipeline: type[DeviceCompiler], function: Callable[..., object]
) -> DeviceFunctionDispatcher:
    return DeviceFunctionDispatcher(function, {"device": True, "opt": True}, pipeline)


CUDA = Compilers(
    partial(_compiled, CheckedCompiler),
    partial(_compiled, ToldCompiler),
    partial(_compiled, DeviceCompiler),
)
python_function = partial(python_function_of, target=CUDA)


@cuda.jit(device=True, inline="always")
def value_of(found):  # type: ignore[no-untyped-def]
    return found[0]


@cuda.jit(device=True, inline="always")
def failed_of(found):  # type: ignore[no-untyped-def]
    return found[1]
