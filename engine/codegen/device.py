"""CUDA kernels: a kernel file to a cubin, with no GPU and no driver.

Numba compiles to PTX and nvJitLink links that for one architecture, since an older driver cannot translate newer PTX.
"""

from __future__ import annotations

import re
from functools import cache
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

from . import emit_cuda
from .cache import binary, kernel_key, source_file
from .steps import Program

Architecture = tuple[int, int]  # compute capability: (9, 0) is Hopper


@cache
def toolchain() -> str:
    """Versions that a cubin depends on."""
    return " ".join(f"{p} {_version(p)}" for p in ("numba-cuda", "nvidia-nvvm", "nvidia-nvjitlink"))


def _version(package: str) -> str:
    for name in (package, f"{package}-cu13"):
        try:
            return version(name)
        except PackageNotFoundError:
            continue
    return "unknown"


def cubin(
    program: Program, description: str, directory: Path, architecture: Architecture
) -> tuple[bytes, Path]:
    """Return the machine code of a program, from the directory or compiled now, and the kernel's file."""
    source = emit_cuda.source(program, description)
    signature = repr(emit_cuda.signature(program))
    target = f"sm_{architecture[0]}{architecture[1]}"
    key = kernel_key(source, signature, target, toolchain())
    path = source_file(directory, program.name, key, source)
    code = binary(
        path.with_suffix(".cubin"),
        lambda: compile_kernel(source, program.name, emit_cuda.signature(program), architecture),
    )
    return code, path


def compile_kernel(
    source: str, name: str, signature: list[tuple[str, str]], architecture: Architecture
) -> bytes:
    """Compile a kernel's source to a cubin whose entry is `name`."""
    from numba import cuda, types

    namespace: dict[str, Any] = {}
    exec(compile(source, f"<kernel {name}>", "exec"), namespace)
    arguments = types.void(*(_numba_type(text) for _, text in signature))
    ptx, _ = cuda.compile(
        namespace[name], arguments, device=False, abi="numba", cc=architecture, output="ptx"
    )
    entry = re.search(r"\.visible \.entry (\w+)\(", ptx)
    assert entry is not None
    return _link(ptx.replace(entry.group(1), name), name, architecture)


def _numba_type(text: str) -> Any:
    from numba import types

    if text.startswith("*"):
        return types.CPointer(getattr(types, text[1:]))
    if text.startswith("["):
        return types.Array(getattr(types, text[1:-1]), 1, "C")
    return getattr(types, text)


def _link(ptx: str, name: str, architecture: Architecture) -> bytes:
    from cuda.bindings import nvjitlink

    handle = nvjitlink.create(2, [f"-arch=sm_{architecture[0]}{architecture[1]}", "-O3"])
    try:
        text = ptx.encode() + b"\0"
        nvjitlink.add_data(handle, nvjitlink.InputType.PTX, text, len(text), name)
        nvjitlink.complete(handle)
        code = bytearray(nvjitlink.get_linked_cubin_size(handle))
        nvjitlink.get_linked_cubin(handle, code)
        return bytes(code)
    finally:
        nvjitlink.destroy(handle)
