"""LIKE over many strings by a kernel (`handwritten.functions_like_cpu`) that looks through their bytes in order.

The kernel is loaded or compiled by a thread when it is first asked for; until then, and where that fails, `matches` has no answer
and the caller asks Arrow.
"""

from __future__ import annotations

import threading
from concurrent.futures import Future
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from ....codegen import handwritten
from ....codegen.compile.compile_pool import compiled
from ....codegen.compile.compiler import Signature
from ....codegen.compile.kernel_files import kernel_file, warn_without
from ....codegen.compile.native import NativeKernel
from ....plan.patterns import Literals
from .vectors import Array

FEW_ROWS = 1 << 14  # up to which Arrow is quick enough
SEEN = 4  # bytes by which a part is noticed
RARE = 2  # bytes of a part that not nearly all strings have

SOURCE = Path(handwritten.__file__).with_name("functions_like_cpu.py")
NAME = "search"

_kernels: dict[bool, Future[NativeKernel]] = {}  # for offsets of 64 and of 32 bits
_lock = threading.Lock()
_directory: Path | None = None


def matches(strings: pa.Array, parts: Literals) -> npt.NDArray[np.bool_] | None:
    """Return whether each string matches a pattern, anything for NULL; None when Arrow has to say it."""
    rows, kind = len(strings), pa.types
    if rows < max(FEW_ROWS, 1) or kind.is_dictionary(strings.type):
        return None
    wide = kind.is_large_string(strings.type)
    found = started(wide)
    if not found.done() or found.exception() is not None:
        return None
    _, ends, characters = strings.buffers()
    offsets = np.frombuffer(ends, np.int64 if wide else np.int32)[strings.offset :][: rows + 1]
    text = np.frombuffer(characters or b"", np.uint8)
    out = np.zeros(rows, np.uint8)
    found.result()(text, offsets, out, *_arguments(parts))
    return out.view(np.bool_)


def _arguments(parts: Literals) -> list[Array | int]:
    """The pattern, the number of the floating part to look for, -1 for none, and its first bytes with a mask of those."""
    sizes = [len(part) for part in parts.floating]
    enough = min(max(sizes, default=0), SEEN)
    wanted = next((i for i, size in enumerate(sizes) if size >= max(enough, RARE)), -1)
    first = parts.floating[wanted][:SEEN] if wanted >= 0 else b""
    seen = np.frombuffer(first.ljust(SEEN, b"\0"), np.uint8)
    mask = np.frombuffer((b"\xff" * len(first)).ljust(SEEN, b"\0"), np.uint8)
    pattern, bounds = np.frombuffer(parts.text, np.uint8), np.array(parts.bounds, np.int64)
    return [pattern, bounds, parts.size, len(parts.suffix), wanted, seen, mask]


def started(wide: bool) -> Future[NativeKernel]:
    """Return the kernel, which a thread compiles at first."""
    with _lock:
        if wide not in _kernels:
            found = _kernels[wide] = Future()
            threading.Thread(target=_compile, args=(found, wide), daemon=True).start()
        return _kernels[wide]


def keep_in(directory: Path) -> None:
    """Say where the machine code is kept: that of a process lies where the connection wanted it that was opened last."""
    global _directory  # noqa: PLW0603 - expressions run on threads that know of no connection
    _directory = directory


def _signature(wide: bool) -> Signature:
    return [
        ("text", "[uint8]"),
        ("offsets", "[int64]" if wide else "[int32]"),
        ("out", "[uint8]"),
        ("pattern", "[uint8]"),
        ("bounds", "[int64]"),
        *((name, "int64") for name in ("size", "suffix", "wanted")),
        ("seen", "[uint8]"),
        ("mask", "[uint8]"),
    ]


def _compile(found: Future[NativeKernel], wide: bool) -> None:
    try:
        source, signature = SOURCE.read_text(encoding="utf-8"), _signature(wide)
        if _directory is None:
            code = compiled(source, NAME, signature)
        else:
            code, _ = kernel_file(NAME, source, signature, _directory, None).machine_code()
        found.set_result(NativeKernel(code, signature))
    except Exception as error:  # whatever a compiler may raise
        found.set_exception(error)
        warn_without(NAME, error)
