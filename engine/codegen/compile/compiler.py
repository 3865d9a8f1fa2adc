"""Compiles kernels: source text in memory to machine code, for either target, with nothing read from disk.

These are functions of their arguments alone, all of which can be pickled: another process may compile.

A CPU kernel becomes an object file with one C function, `int64_t kernel(const int64_t *words)`.  The words are its arguments, as
`native.NativeKernel` packs them.  It calls nothing but `native.CALLED`, so it neither allocates nor raises.
"""

from __future__ import annotations

import linecache
import re
from collections.abc import Callable
from functools import cache
from itertools import count
from typing import TYPE_CHECKING, Any

from ...threads.fork_locks import new_lock
from .native import ENTRY, called, undefined_symbols

if TYPE_CHECKING:
    from llvmlite.binding import ModuleRef as Module
    from llvmlite.ir import IRBuilder, Value
    from numba.core.codegen import CodeLibrary, JITCPUCodegen
    from numba.core.cpu import CPUContext
    from numba.core.funcdesc import FunctionDescriptor
    from numba.core.registry import CPUTarget
    from numba.types import Type

Architecture = tuple[int, int]  # compute capability: (9, 0) is Hopper
# Name and type of each parameter.  `[T]` is an array; on the CPU `[T:C]` one of two dimensions, and `[T:F]` one that is laid out
# in columns; on CUDA `*T` is a pointer
Signature = list[tuple[str, str]]


def parameters(text: str) -> Signature:
    """Return a signature, or a part of one, as in `rows width int64, codes *uint8`: names, and behind them the type that they have."""
    groups = [group.split() for group in text.split(",")]
    return [(name, kind) for *names, kind in groups for name in names]


# A CUDA source's name for the threads of a block and the least blocks of a multiprocessor, which limit registers
LAUNCH_BOUNDS = "LAUNCH_BOUNDS"

SOURCES = f"{__package__.rpartition('.')[0]}.handwritten"  # whose files import from one another
RAISED = "raise"
ROUNDS = 3  # of the optimizer, at most

_compiling = new_lock()  # Numba's compiler has one of its own, taken later


class NotCompiled(RuntimeError):
    """A kernel that the compiler refuses, or of which it made something that cannot run by itself; `kernel` is its key, if known."""

    kernel: bytes | None = None


def compile_host(source: str, entry: str, signature: Signature) -> bytes:
    """Compile a kernel for this processor to an object file."""
    from numba.core.registry import cpu_target

    function = _namespace(source, entry, f"{SOURCES}.cpu")[entry]
    with _compiling:
        library = _lowered(function, signature, cpu_target)
        code = bytes(_codegen()._tm.emit_object(library._final_module))
    unknown = undefined_symbols(code) - called().keys()
    if unknown:
        raise NotCompiled(f"The kernel {entry} calls {', '.join(sorted(unknown))}.")
    return code


def compile_device(
    source: str, entry: str, signature: Signature, architecture: Architecture
) -> bytes:
    """Compile a kernel to a cubin, with no GPU and no driver.

    Numba compiles to PTX and nvJitLink links that for one architecture, since an older driver cannot translate newer PTX.
    """
    return link(ptx(source, entry, signature, architecture), entry, architecture)


def _namespace(source: str, entry: str, package: str = SOURCES) -> dict[str, Any]:
    """Run a source as a module of a package; tracebacks and error messages of the compiler show its lines."""
    name = f"<kernel {entry}>"
    linecache.cache[name] = len(source), None, source.splitlines(keepends=True), name
    namespace: dict[str, Any] = {"__name__": name, "__package__": package}
    exec(compile(source, name, "exec"), namespace)
    return namespace


# The CPU


def _lowered(
    function: Callable[..., object], signature: Signature, target: CPUTarget
) -> CodeLibrary:
    """Compile a function, and its C function beside it, into a library of Numba's."""
    from numba.core import compiler
    from numba.core.compiler_lock import global_compiler_lock

    flags = compiler.Flags()
    flags.error_model = "numpy"
    flags.no_cpython_wrapper = True
    flags.no_compile = True
    flags.enable_pyobject = False
    context = target.target_context.subtarget(_internal_codegen=_codegen())
    context.create_cfunc_wrapper = _c_function(context)
    function = getattr(function, "py_func", function)
    types = tuple(_host_type(text) for _, text in signature)
    with global_compiler_lock:
        library = _codegen().create_library(ENTRY)
        compiler.compile_extra(
            target.typing_context, context, function, types, None, flags, {}, library=library
        )
        library.finalize()
    return library


def _host_type(text: str) -> Type:
    from numba import types

    if not text.startswith("["):
        return getattr(types, text)
    item, _, layout = text[1:-1].partition(":")
    kind = types.boolean if item == "bool_" else getattr(types, item)
    return types.Array(kind, 2, layout) if layout else types.Array(kind, 1, "C")


@cache
def _codegen() -> JITCPUCodegen:
    """What makes LLVM's modules of kernels for this processor, without an engine that keeps and runs them."""
    from numba.core.codegen import AOTCodeLibrary, JITCPUCodegen

    class Library(AOTCodeLibrary):
        def _optimize_final_module(self) -> None:
            """What only the C function calls is no symbol: the optimizer may change it, or leave it out."""
            for function in self._final_module.functions if self.name == ENTRY else ():
                if not function.is_declaration and function.name != ENTRY:
                    function.linkage = "internal"
            # In a long kernel calls stay, of which the next round knows from their functions' shortened bodies that none raises
            for _ in range(ROUNDS):
                super()._optimize_final_module()
                if not any(function.name == RAISED for function in self._final_module.functions):
                    break

    class Codegen(JITCPUCodegen):
        _library_class = Library

        def _add_module(self, module: Module) -> None:
            pass

    return Codegen("fuseline")


def _c_function(context: CPUContext) -> Callable[..., None]:
    """Return what adds the C function to a library, in the place of Numba's, which reports errors to Python."""
    from llvmlite import ir
    from numba.core import types

    word = ir.IntType(64)

    def create(
        library: CodeLibrary, fndesc: FunctionDescriptor, env: object, call_helper: object
    ) -> None:
        module = context.create_module("c_function")
        convention, result = context.call_conv, fndesc.restype
        inner = convention.get_function_type(result, fndesc.argtypes)
        callee = ir.Function(module, inner, fndesc.llvm_func_name)
        outer = ir.Function(module, ir.FunctionType(word, [word.as_pointer()]), ENTRY)
        builder = ir.IRBuilder(outer.append_basic_block("entry"))
        places = count()

        def next_word() -> Value:
            return builder.load(builder.gep(outer.args[0], [word(next(places))]))

        arguments = [_argument(kind, next_word, context, builder) for kind in fndesc.argtypes]
        status, out = convention.call_function(
            builder, callee, result, fndesc.argtypes, arguments, attrs=("noinline",)
        )
        # A symbol that nothing defines: it goes if the optimizer finds that the kernel cannot raise
        with builder.if_then(status.is_error, likely=False):
            builder.call(ir.Function(module, ir.FunctionType(ir.VoidType(), []), RAISED), [])
        if result == types.none:
            out = word(0)
        elif out.type != word:
            out = (
                builder.sext(out, word)
                if getattr(result, "signed", False)
                else builder.zext(out, word)
            )
        builder.ret(out)
        library.add_ir_module(module)

    return create


def _argument(
    kind: Type, next_word: Callable[[], Value], context: CPUContext, builder: IRBuilder
) -> Value:
    """Make an argument, as Numba passes it, of words."""
    from llvmlite import ir
    from numba.core import types
    from numba.np.arrayobj import make_array, populate_array

    first = next_word()
    if isinstance(kind, types.Float):
        value = builder.bitcast(first, ir.DoubleType())
        return builder.fptrunc(value, ir.FloatType()) if kind.bitwidth == 32 else value
    if not isinstance(kind, types.Array):
        wanted = context.get_value_type(kind)
        return first if wanted == first.type else builder.trunc(first, wanted)
    element = context.get_data_type(kind.dtype)
    item = first.type(context.get_abi_sizeof(element))
    shape = [next_word() for _ in range(kind.ndim)]
    strides = [item]
    if kind.ndim > 1:
        step = builder.mul(shape[kind.layout == "C"], item)
        strides = [step, item] if kind.layout == "C" else [item, step]
    array = make_array(kind)(context, builder)
    data = builder.inttoptr(first, element.as_pointer())
    populate_array(array, data=data, shape=shape, strides=strides, itemsize=item, meminfo=None)
    return array._getvalue()


# CUDA


def ptx(source: str, entry: str, signature: Signature, architecture: Architecture) -> str:
    """Compile a kernel's source to PTX whose entry is `entry`."""
    from numba import cuda, types

    namespace = _namespace(source, entry)
    text, _ = cuda.compile(
        namespace[entry],
        types.void(*(_device_type(text) for _, text in signature)),
        device=False,
        abi="numba",
        cc=architecture,
        output="ptx",
        launch_bounds=namespace.get(LAUNCH_BOUNDS),
    )
    found = re.search(r"\.visible \.entry (\w+)\(", text)
    assert found is not None
    return str(text).replace(found.group(1), entry)


def _device_type(text: str) -> Type:
    from numba import types

    if text.startswith("*"):
        return types.CPointer(getattr(types, text[1:]))
    if text.startswith("["):
        return types.Array(getattr(types, text[1:-1]), 1, "C")
    return getattr(types, text)


def link(text: str, entry: str, architecture: Architecture) -> bytes:
    """Link PTX to a cubin."""
    from cuda.bindings import nvjitlink

    handle = nvjitlink.create(2, [f"-arch=sm_{architecture[0]}{architecture[1]}", "-O3"])
    try:
        data = text.encode() + b"\0"
        nvjitlink.add_data(handle, nvjitlink.InputType.PTX, data, len(data), entry)
        nvjitlink.complete(handle)
        code = bytearray(nvjitlink.get_linked_cubin_size(handle))
        nvjitlink.get_linked_cubin(handle, code)
        return bytes(code)
    finally:
        nvjitlink.destroy(handle)
