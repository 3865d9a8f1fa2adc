"""Kernels: the text that they are compiled from, and their machine code, found or made.

What runs was compiled in this process from the text that it generated, or has a proof of its origin (`stored`).
"""

from __future__ import annotations

import hashlib
import re
import warnings
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import cache, cached_property
from importlib.metadata import PackageNotFoundError, version
from itertools import accumulate
from pathlib import Path
from typing import Literal as OneOf, TypeVar

from ... import stopping
from ...records import dataclass
from ...storage.recent import Recent
from ..stored.folder import SOURCE, folder
from ..typed_values import NotFusable
from .compile_pool import CompilerEnded, compiled
from .compiler import Architecture, NotCompiled, Signature
from .native import processor

FUNCTIONS = {
    "cpu": (
        "",
        "atomic_",
        "ranks_",
        "udf_",
        "udf_checked_",
        "udf_folds_",
        "udf_math_",
        "udf_noted_",
        "udf_pass_",
    ),
    "cuda": ("", "alike_", "ranks_", "udf_"),
}
PACKAGES = {
    "cpu": ("numba", "llvmlite", "numpy"),
    "cuda": ("numba-cuda", "nvidia-nvvm", "nvidia-nvjitlink"),
}
NAME_LETTERS = 80  # of a kernel's name, in the name of its files
# What Python's parser reads of nested parentheses, less some; and how many of them are compiled within 5 s or so
DEEPEST, MOST_TERMS = 180, 1_500
# Machine code in memory, of kernels that were used last
CODES_KEPT = 512
CODE_BYTES_KEPT = 64 << 20

Origin = OneOf["memory", "disk", "compiler"]
Key = tuple[Path, bytes]
T = TypeVar("T")
R = TypeVar("R")


@dataclass(frozen=True)
class KernelFile:
    """A kernel's source and its place in a folder; without an architecture it is one for this processor."""

    directory: Path
    name: str
    source: str
    signature: Signature
    architecture: Architecture | None
    key: bytes  # of all that its machine code depends on

    @cached_property
    def _stem(self) -> str:
        letters = re.sub(r"\W", "_", self.name, flags=re.ASCII)[:NAME_LETTERS]
        return f"q_{letters}_{self.key.hex()[:16]}"

    @cached_property
    def path(self) -> Path:
        """Where people find the source, once it was compiled."""
        return self.directory / (self._stem + SOURCE)

    @property
    def is_compiled(self) -> bool:
        """Whether the machine code is there."""
        return self._found() is not None

    def machine_code(self) -> tuple[bytes, Origin]:
        """Return the machine code, and whether it was there or was compiled now, by another process; raises `NotCompiled`."""
        found = self._found()
        if found is not None:
            return found
        if self.key in _refused:
            raise self._named(NotCompiled(_refused[self.key]))
        place = folder(self.directory)
        place.show(self._stem, self.source)
        try:
            kept = (str(self.directory), self._stem, self.key.hex(), place.limit)
            code = compiled(self.source, self.name, self.signature, self.architecture, kept)
        except NotCompiled as error:
            if not isinstance(error, CompilerEnded):
                _refused[self.key] = str(error)
            self._named(error)
            raise
        place.keep(self._stem, self.key, code)
        _codes.keep((self.directory, self.key), code)
        return code, "compiler"

    def _named(self, error: NotCompiled) -> NotCompiled:
        error.kernel = self.key
        return error

    def _found(self) -> tuple[bytes, Origin] | None:
        code = _codes.find((self.directory, self.key))
        if code is not None:
            return code, "memory"
        code = folder(self.directory).load(self._stem, self.key)
        if code is None:
            return None
        _codes.keep((self.directory, self.key), code)
        return code, "disk"


def at_once(fetch: Callable[[T], R], kernels: Sequence[T], missing: int) -> list[R]:
    """Return what `fetch` gives for each kernel, of which so many have to be compiled, at the same time."""
    if missing < 2:
        return [fetch(kernel) for kernel in kernels]
    with ThreadPoolExecutor(missing, thread_name_prefix="fuseline-compiled") as waiting:
        return list(waiting.map(stopping.carried(fetch), kernels))


def kernel_file(
    name: str, source: str, signature: Signature, directory: Path, architecture: Architecture | None
) -> KernelFile:
    """Return the kernel of a source; raises `NotFusable` for one that the compiler could not read, or not soon."""
    opened = source.count("(")
    if opened > MOST_TERMS and _statements(source).count("(") > MOST_TERMS:
        raise NotFusable("so many terms that compiling would take long")
    if opened > DEEPEST and _depth(_statements(source)) > DEEPEST:
        raise NotFusable("an expression that is nested too deeply for a kernel")
    target = processor() if architecture is None else f"sm_{architecture[0]}{architecture[1]}"
    tools = toolchain(architecture is None)
    key = kernel_key(source, name, repr(signature), target, tools)
    return KernelFile(directory, name, source, signature, architecture, key)


def kernels_of(
    source: Path, signatures: Mapping[str, Signature]
) -> Callable[[str, Path, Architecture], KernelFile]:
    """Return what gives the kernels of a file that is written by hand, by their names."""

    @cache
    def kernel(name: str, directory: Path, architecture: Architecture) -> KernelFile:
        text = source.read_text(encoding="utf-8")
        return kernel_file(name, text, signatures[name], directory, architecture)

    return kernel


def _statements(source: str) -> str:
    """A source without the docstring at its head."""
    return source[3:].partition('"""')[2] if source.startswith('"""') else source


def _depth(source: str) -> int:
    """How deep parentheses are nested."""
    signs = re.findall("[()]", source)
    return max(accumulate(1 if sign == "(" else -1 for sign in signs), default=0)


def kernel_key(source: str, *depends_on: str) -> bytes:
    """The hash of a kernel's statements, and of what else its machine code depends on; comments are no part of it."""
    text = "\0".join([re.sub(r"  # .*", "", _statements(source)), *depends_on])
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).digest()


@cache
def toolchain(cpu: bool) -> str:
    """Versions that machine code depends on."""
    target = "cpu" if cpu else "cuda"
    here = Path(__file__).parent
    kinds = [(kind, target) for kind in FUNCTIONS[target]]
    if not cpu:  # Python functions are the CPU's
        kinds += [(kind, "cpu") for kind in FUNCTIONS["cpu"] if kind.startswith("udf_")]
    functions = (here.parent / of / f"functions_{kind}{of}.py" for kind, of in kinds)
    files = [here / "compiler.py", *functions]
    texts = b"".join(file.read_bytes() for file in files)
    packages = (f"{package} {_version(package)}" for package in PACKAGES[target])
    return " ".join([*packages, f"fuseline {hashlib.sha256(texts).hexdigest()}"])


def _version(package: str) -> str:
    for name in (package, f"{package}-cu13"):
        try:
            return version(name)
        except PackageNotFoundError:
            continue
    return "unknown"


# Machine code in memory by folder and key
_codes: Recent[Key, bytes] = Recent(CODES_KEPT, CODE_BYTES_KEPT, lambda code: len(code or b""))
forget = _codes.forget
_refused: dict[bytes, str] = {}  # by key, what the compiler said of kernels that it refuses
_warned: set[bytes] = set()  # keys of those of which a warning told


def compiler_refusal(error: NotCompiled) -> str:
    """Return why operators run in the place of a kernel.

    Warn once for each kernel, since that is a fault of ours, unless the compiler only ended: receipts say it of every run.
    """
    if not isinstance(error, CompilerEnded) and error.kernel not in _warned:
        _warned.update(() if error.kernel is None else (error.kernel,))
        warnings.warn(
            f"A kernel could not be compiled, so that its operators run one at a time, more slowly: please report it ({error}).",
            RuntimeWarning,
            stacklevel=2,
        )
    return f"a kernel could not be compiled: {error}"


def warn_without(kernel: str, error: BaseException) -> None:
    """Say that a kernel written by hand could not be made, so that a library does its work, more slowly."""
    warnings.warn(
        f"The kernel {kernel} could not be compiled or loaded ({type(error).__name__}: {error}): "
        "a library does its work in this process, more slowly.",
        RuntimeWarning,
        stacklevel=2,
    )
