"""Machine code of kernels that no plan generates, for operators that do without until it is there."""

from __future__ import annotations

import threading
from collections.abc import Callable
from concurrent.futures import Future
from pathlib import Path

from ....codegen.compile.compiler import Architecture
from ....codegen.compile.kernel_files import KernelFile, warn_without
from ....errors import Interrupted
from ..memory.device import kernel_files
from . import launch

NO_DIRECTORY = Path()

_codes: dict[tuple[Path, str], Future[bytes]] = {}
_made: dict[tuple[Path, str], bytes] = {}  # those of `_codes` that are compiled
_lock = threading.Lock()


def machine_code(name: str, make: Callable[[Path, Architecture], KernelFile]) -> bytes | None:
    """Return the code of a kernel, of which there is one of a name; None while it is being compiled, and where it cannot be."""
    place = kernel_files.place
    if place is None or place[1] == "never":
        return None
    directory, fuse = place
    made = _made.get((directory, name))
    if made is not None or directory == NO_DIRECTORY:  # at last: paths are compared in Python
        return made
    with _lock:
        found = _codes.get((directory, name))
        start = found is None
        if found is None:
            found = _codes[directory, name] = Future()
    if start:
        file = make(directory, launch.architecture())
        if fuse == "auto" and not file.is_compiled:
            threading.Thread(target=_compile, args=(file, found), daemon=True).start()
        else:
            try:
                _compile(file, found)
            except (Interrupted, KeyboardInterrupt):
                with _lock:
                    _codes.pop((directory, name), None)  # another query asks again
                raise
    if found.done() and found.exception() is None:
        _made[directory, name] = found.result()
    if fuse == "auto" and not found.done():
        return None
    return found.result() if found.exception() is None else None


def _compile(file: KernelFile, found: Future[bytes]) -> None:
    try:
        code, _ = file.machine_code()
        found.set_result(code)
    except (Interrupted, KeyboardInterrupt) as stopped:
        found.set_exception(stopped)  # who waits for it goes on without
        raise
    except Exception as error:  # whatever a compiler that is not there or a full disk may raise
        found.set_exception(error)
        warn_without(file.name, error)
