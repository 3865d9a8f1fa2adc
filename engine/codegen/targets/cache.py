"""Kernel files: generated sources, readable, and the machine code beside them.

A file's name holds what the kernel does and a hash of everything that its machine code depends on.  Files are written to a
temporary name and moved into place, so that processes may share the directory; a damaged entry is dropped and made anew.
"""

from __future__ import annotations

import hashlib
import os
import re
import tempfile
import warnings
from collections.abc import Callable
from contextlib import suppress
from functools import cache, lru_cache
from pathlib import Path

DIGEST_BYTES = 32
FILES_KNOWN = 512  # sources, and as much machine code, which are not read again while their files are not changed

Version = tuple[int, int, int]  # of a file: when it was last changed, its size, and which it is


def kernel_key(source: str, *depends_on: str) -> str:
    """The hash that names a kernel: of its statements and of the toolchain and target it is compiled for.

    The plan in the docstring and the comments are no part of it: they show the query's constants, which are arguments.
    """
    return _hash("\0".join([_statements(source), *depends_on]))[:16]


@cache
def file_digest(path: Path) -> str:
    """The hash of a file of functions that kernels call."""
    return hashlib.sha256(path.read_bytes()).hexdigest()[:16]


def _statements(source: str) -> str:
    """A source without the docstring at its head and without comments."""
    if source.startswith('"""'):
        _, _, source = source[3:].partition('"""')
    return re.sub(r"  # .*", "", source)


def _hash(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()


def source_file(directory: Path, name: str, key: str, source: str) -> Path:
    """Write a kernel's source, unless one of the same statements is there, and return its path.

    Falls back to a temporary directory, with one warning, when `directory` cannot be written.
    """
    file_name = f"q_{name}_{key}.py"
    try:
        return _written(directory / file_name, source)
    except OSError:
        return _written(_private_directory(directory) / file_name, source)


def _written(path: Path, source: str) -> Path:
    with suppress(FileNotFoundError, UnicodeDecodeError):
        # A file left as it is keeps its time, by which Numba knows its machine code
        if _statements_hash(path, version_of(path)) == _hash(_statements(source)):
            return path
    _replace(path, source.encode())
    return path


def version_of(path: Path) -> Version:
    """Return what tells this version of a file from others; raises `OSError` where there is none."""
    state = path.stat()
    return state.st_mtime_ns, state.st_size, state.st_ino


@lru_cache(maxsize=FILES_KNOWN)
def _statements_hash(path: Path, version: Version) -> str:
    """The hash of what a version of a file states."""
    return _hash(_statements(path.read_text(encoding="utf-8")))


def binary(path: Path, build: Callable[[], bytes]) -> bytes:
    """Return the machine code stored at `path`, or what `build` makes, which is stored.

    The file begins with the SHA-256 of the rest; one that does not match is built again.
    """
    with suppress(OSError):
        stored = _intact(path, version_of(path))
        if stored is not None:
            return stored
    code = build()
    with suppress(OSError):  # source_file has warned already
        _replace(path, hashlib.sha256(code).digest() + code)
    return code


@lru_cache(maxsize=FILES_KNOWN)
def _intact(path: Path, version: Version) -> bytes | None:
    """The machine code in a version of a file, None where it is damaged; whoever has loaded it keeps it too."""
    stored = path.read_bytes()
    digest, code = stored[:DIGEST_BYTES], stored[DIGEST_BYTES:]
    return code if code and hashlib.sha256(code).digest() == digest else None


def warn_without(kernel: str, error: BaseException) -> None:
    """Say that a kernel written by hand could not be made, so that a library does its work, more slowly."""
    warnings.warn(
        f"The kernel {kernel} could not be compiled or loaded ({type(error).__name__}: {error}): "
        "a library does its work in this process, more slowly.",
        RuntimeWarning,
        stacklevel=2,
    )


@cache
def _private_directory(wanted: Path) -> Path:
    """A directory of this process, for when the wanted one cannot be written."""
    warnings.warn(
        f"Kernel files cannot be written to {wanted}: kernels are kept for this process alone. "
        "Set FUSELINE_CACHE_DIR to a directory that can be written.",
        RuntimeWarning,
        stacklevel=2,
    )
    return Path(tempfile.mkdtemp(prefix="fuseline-kernels-"))


def _replace(path: Path, content: bytes) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    handle, temporary = tempfile.mkstemp(dir=path.parent, suffix=".tmp")
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(content)
        Path(temporary).replace(path)
    except OSError:
        Path(temporary).unlink(missing_ok=True)
        raise
