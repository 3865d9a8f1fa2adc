"""What the first query needs besides its data, brought into memory by a thread while its tables are opened."""

from __future__ import annotations

import os
import threading
from contextlib import suppress
from functools import cache
from importlib import import_module
from typing import TYPE_CHECKING

from .plan.physical import Device

if TYPE_CHECKING:
    from .frame.frame import Frame

MODULES = (".frame.frame", ".sql", ".planner", ".frame.cursor", ".run_statements")


@cache
def import_ahead(device: Device) -> threading.Thread:
    """Start the thread, once a process and device, and return it.

    Who needs one of the modules sooner waits for its import as for any other thread's.  The thread is no daemon: an interpreter
    that ends must not tear down modules half imported, and waits the fraction of a second.
    """
    thread = threading.Thread(target=_import, args=(device,), name="fuseline-imports")
    thread.start()
    # An import that another thread has begun would never end in a forked process
    os.register_at_fork(before=thread.join)
    return thread


@cache
def frame_class() -> type[Frame]:
    """Return what queries are given as, when the thread has imported it."""
    from .frame.frame import Frame

    return Frame


def _import(device: Device) -> None:
    # What is missing or of another version is reported by the query that needs it
    with suppress(ImportError, AttributeError):
        for name in MODULES:
            import_module(name, __package__)
        if device == "gpu":
            from .codegen.compile.kernel_files import toolchain

            toolchain(cpu=False)  # reads the metadata of installed packages
