"""CUDA kernels: a kernel file to a cubin, with no GPU and no driver.

Numba compiles to PTX and nvJitLink links that for one architecture, since an older driver cannot translate newer PTX.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cache
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any
from typing import Literal as OneOf

from ..steps import Program
from . import emit_cuda
from .cache import binary, file_digest, kernel_key, source_file
from .places import layout
from .shapes import Files, shape, shares

Architecture = tuple[int, int]  # compute capability: (9, 0) is Hopper
Signature = list[tuple[str, str]]


@cache
def toolchain() -> str:
    """Versions that a cubin depends on."""
    kinds = ("", "alike_", "ranks_")
    files = [Path(__file__).with_name(f"functions_{kind}cuda.py") for kind in kinds]
    functions = " ".join(map(file_digest, files))
    packages = ("numba-cuda", "nvidia-nvvm", "nvidia-nvjitlink")
    return " ".join([*(f"{p} {_version(p)}" for p in packages), f"functions {functions}"])


def _version(package: str) -> str:
    for name in (package, f"{package}-cu13"):
        try:
            return version(name)
        except PackageNotFoundError:
            continue
    return "unknown"


@dataclass(frozen=True)
class KernelFile:
    """A kernel's source on disk, and the place beside it for its machine code."""

    path: Path
    name: str
    source: str
    signature: Signature
    architecture: Architecture

    @property
    def is_compiled(self) -> bool:
        """Whether the machine code is there."""
        return self.path.with_suffix(".cubin").exists()

    def cubin(self) -> tuple[bytes, OneOf["disk", "compiler"]]:
        """Return the machine code, and whether it was there or was compiled now."""
        made: list[bytes] = []

        def build() -> bytes:
            made.append(compile_kernel(self.source, self.name, self.signature, self.architecture))
            return made[0]

        code = binary(self.path.with_suffix(".cubin"), build)
        return code, "compiler" if made else "disk"


_files: Files[KernelFile] = Files()


def kernel_file(
    program: Program, describe: Callable[[], str], directory: Path, architecture: Architecture
) -> KernelFile:
    """Write the source of a program's kernel, unless it is there; `describe` gives its docstring."""
    where = replace(layout(program), cut=None)  # as it follows from the rest, and holds the program
    key = shape(program), shares(program), where, directory, architecture
    found = _files.find(key)
    if found is None:
        source, signature = emit_cuda.source(program, describe()), emit_cuda.signature(program)
        made = written_file(program.name, source, signature, directory, architecture)
        found = _files.keep(key, made.path, made)
    return found


def written_file(
    name: str, source: str, signature: Signature, directory: Path, architecture: Architecture
) -> KernelFile:
    """Write a kernel's source, unless it is there."""
    key = kernel_key(source, repr(signature), _target(architecture), toolchain())
    path = source_file(directory, name, key, source)
    return KernelFile(path, name, source, signature, architecture)


def compile_kernel(
    source: str, name: str, signature: Signature, architecture: Architecture
) -> bytes:
    """Compile a kernel's source to a cubin whose entry is `name`."""
    return link(ptx(source, name, signature, architecture), name, architecture)


def ptx(source: str, name: str, signature: Signature, architecture: Architecture) -> str:
    """Compile a kernel's source to PTX whose entry is `name`."""
    from numba import cuda, types

    namespace: dict[str, Any] = {}
    exec(compile(source, f"<kernel {name}>", "exec"), namespace)
    arguments = types.void(*(_numba_type(text) for _, text in signature))
    text, _ = cuda.compile(
        namespace[name],
        arguments,
        device=False,
        abi="numba",
        cc=architecture,
        output="ptx",
        launch_bounds=namespace.get(emit_cuda.LAUNCH_BOUNDS),
    )
    entry = re.search(r"\.visible \.entry (\w+)\(", text)
    assert entry is not None
    return str(text).replace(entry.group(1), name)


def _numba_type(text: str) -> Any:
    from numba import types

    if text.startswith("*"):
        return types.CPointer(getattr(types, text[1:]))
    if text.startswith("["):
        return types.Array(getattr(types, text[1:-1]), 1, "C")
    return getattr(types, text)


def _target(architecture: Architecture) -> str:
    return f"sm_{architecture[0]}{architecture[1]}"


def link(text: str, name: str, architecture: Architecture) -> bytes:
    """Link PTX to a cubin."""
    from cuda.bindings import nvjitlink

    handle = nvjitlink.create(2, [f"-arch={_target(architecture)}", "-O3"])
    try:
        data = text.encode() + b"\0"
        nvjitlink.add_data(handle, nvjitlink.InputType.PTX, data, len(data), name)
        nvjitlink.complete(handle)
        code = bytearray(nvjitlink.get_linked_cubin_size(handle))
        nvjitlink.get_linked_cubin(handle, code)
        return bytes(code)
    finally:
        nvjitlink.destroy(handle)
