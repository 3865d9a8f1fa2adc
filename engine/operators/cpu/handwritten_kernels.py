"""Kernels written by hand (`codegen.handwritten`) that operators call: a thread loads or compiles them when they are first asked for.

Until then, and where that fails, a library does their work.
"""

from __future__ import annotations

import threading
from collections.abc import Mapping, Sequence
from concurrent.futures import Future
from hashlib import sha256
from pathlib import Path
from typing import TypeAlias

from ... import stopping
from ...codegen.compile.compile_pool import compiled
from ...codegen.compile.compiler import Signature
from ...codegen.compile.kernel_files import at_once, kernel_file, warn_without
from ...codegen.compile.native import NativeKernel
from ...codegen.handwritten import cpu
from ...threads.fork_locks import new_lock

KernelsByName: TypeAlias = dict[str, NativeKernel]

_directory: Path | None = None


def keep_in(directory: Path) -> None:
    """Say where the machine code is kept: that of a process lies where the connection wanted it that was opened last."""
    global _directory  # noqa: PLW0603 - expressions run on threads that know of no connection
    _directory = directory


def kept_in() -> Path | None:
    """Return where the machine code of this process is kept."""
    return _directory


class HandwrittenKernels:
    """The functions of one source that belong together, by name, and the sources that it imports."""

    def __init__(
        self, source: str, signatures: Mapping[str, Signature], uses: Sequence[str] = ()
    ) -> None:
        self.source, *self._uses = map(Path(cpu.__file__).with_name, (source, *uses))
        self.signatures = signatures
        self._lock = new_lock()
        self._found: Future[KernelsByName] | None = None

    def at_hand(self, *, wait: bool = False) -> KernelsByName | None:
        """Return the kernels; None where compiling failed, and while they are compiled unless this waits for it."""
        found = self.started()
        if wait and not found.done():
            done: Future[None] = Future()
            found.add_done_callback(lambda _: done.set_result(None))
            stopping.wait(done)
        return found.result() if found.done() and found.exception() is None else None

    def started(self) -> Future[KernelsByName]:
        """Return the kernels, which a thread compiles at first."""
        with self._lock:
            if self._found is None:
                self._found = Future()
                threading.Thread(target=self._compile, args=(self._found,), daemon=True).start()
            return self._found

    def _compile(self, found: Future[KernelsByName]) -> None:
        try:
            codes = at_once(self._code, list(self.signatures), len(self.signatures))
            pairs = zip(self.signatures.items(), codes, strict=True)
            found.set_result({name: NativeKernel(code, types) for (name, types), code in pairs})
        except Exception as error:  # whatever a compiler may raise
            found.set_exception(error)
            warn_without(", ".join(self.signatures), error)

    def _code(self, name: str) -> bytes:
        text, signature = self.source.read_text(encoding="utf-8"), self.signatures[name]
        for other in self._uses:  # of which machine code that is kept depends, too
            text += f"# {other.name}: {sha256(other.read_bytes()).hexdigest()}\n"
        if _directory is None:
            return compiled(text, name, signature)
        return kernel_file(name, text, signature, _directory, None).machine_code()[0]
