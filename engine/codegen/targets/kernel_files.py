"""Kernels as files: the source, for people to read, and machine code beside it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import cache
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Literal as OneOf
from typing import TypeVar

from ... import stopping
from .cache import binary, file_digest, kernel_key, source_file
from .compile_pool import compiled
from .compiler import Architecture, Signature
from .native import processor

FUNCTIONS = {
    "cpu": ("", "alike_", "atomic_", "ranks_", "stack_"),
    "cuda": ("", "alike_", "ranks_"),
}
PACKAGES = {
    "cpu": ("numba", "llvmlite", "numpy"),
    "cuda": ("numba-cuda", "nvidia-nvvm", "nvidia-nvjitlink"),
}

T = TypeVar("T")
R = TypeVar("R")


@dataclass(frozen=True)
class KernelFile:
    """A kernel's source, and the place for its machine code; without an architecture it is one for this processor."""

    path: Path
    name: str
    source: str
    signature: Signature
    architecture: Architecture | None

    @property
    def is_compiled(self) -> bool:
        """Whether the machine code is there."""
        return self._stored.exists()

    @property
    def _stored(self) -> Path:
        return self.path.with_suffix(".o" if self.architecture is None else ".cubin")

    def machine_code(self) -> tuple[bytes, OneOf["disk", "compiler"]]:
        """Return the machine code, and whether it was there or was compiled now, by another process; raises `NotCompiled`."""
        made: list[bytes] = []

        def build() -> bytes:
            made.append(compiled(self.source, self.name, self.signature, self.architecture))
            return made[0]

        code = binary(self._stored, build)
        return code, "compiler" if made else "disk"


def at_once(fetch: Callable[[T], R], kernels: Sequence[T], missing: int) -> list[R]:
    """Return what `fetch` gives for each kernel, of which so many have to be compiled, at the same time."""
    if missing < 2:
        return [fetch(kernel) for kernel in kernels]
    with ThreadPoolExecutor(missing, thread_name_prefix="fuseline-compiled") as waiting:
        return list(waiting.map(stopping.carried(fetch), kernels))


def kernel_file(
    name: str, source: str, signature: Signature, directory: Path, architecture: Architecture | None
) -> KernelFile:
    """Write a kernel's source, unless it is there."""
    target = processor() if architecture is None else f"sm_{architecture[0]}{architecture[1]}"
    key = kernel_key(source, repr(signature), target, toolchain(architecture is None))
    path = source_file(directory, name, key, source)
    return KernelFile(path, name, source, signature, architecture)


@cache
def toolchain(cpu: bool) -> str:
    """Versions that machine code depends on."""
    target = "cpu" if cpu else "cuda"
    names = [f"functions_{kind}{target}.py" for kind in FUNCTIONS[target]]
    functions = " ".join(file_digest(Path(__file__).with_name(name)) for name in names)
    packages = (f"{package} {_version(package)}" for package in PACKAGES[target])
    return " ".join([*packages, f"functions {functions}"])


def _version(package: str) -> str:
    for name in (package, f"{package}-cu13"):
        try:
            return version(name)
        except PackageNotFoundError:
            continue
    return "unknown"
