"""What an operator gets besides its node and inputs, and what a pipeline gives back besides its table."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from threading import Event
from typing import Any
from typing import Literal as OneOf

from ..storage.cache import ColumnCache

# Where a kernel came from: the plan's last run, machine code on disk, or the compiler
Origin = OneOf["memory", "disk", "compiler"]


@dataclass(frozen=True, slots=True)
class PipelineReceipt:
    """What a pipeline did in one run: with its kernel, or one operator at a time for a `reason`.

    The kernel read `rows` rows and `bytes` encoded bytes in `seconds`, from its launch until its result was there; before that,
    columns that were not in the cache took `load_seconds` to read and encode, and the kernel `compile_seconds` to be generated
    and found or compiled.  `chunks` counts the shares of a table that did not fit into memory.  `operations` are the arithmetic operations of a row.  `program` is a `codegen.steps.Program`.
    """

    reason: str | None = None
    kernel: Path | None = None
    origin: Origin = "memory"
    rows: int = 0
    bytes: int = 0
    seconds: float = 0.0
    load_seconds: float = 0.0
    compile_seconds: float = 0.0
    operations: int = 0
    program: Any = field(default=None, repr=False, compare=False)
    chunks: int = 0

    @property
    def fused(self) -> bool:
        """Whether the answer is the kernel's."""
        return self.reason is None

    @property
    def warm(self) -> bool:
        """Whether columns and kernel were in memory already."""
        return self.load_seconds == 0 and self.origin == "memory"

    @property
    def bandwidth(self) -> float:
        """Encoded bytes that the kernel read a second."""
        return self.bytes / self.seconds if self.seconds else 0.0

    @property
    def summary(self) -> str:
        """The kernel's file, or why there is none, and in how many chunks the table came."""
        chunks = f"streamed in {self.chunks} chunks, " if self.chunks else ""
        if self.reason is not None or self.kernel is None:
            return f"{chunks}one operator at a time: {self.reason}"
        return f"{chunks}kernel {self.kernel.name}"


@dataclass
class Context:
    """One query's surroundings.

    `check` raises `KeyboardInterrupt` when the user asked to stop; operators call it between chunks.
    `bytes_read` counts what scans read from memory or files, for the profile.  `receipts` holds, by the identity of a node,
    what a pipeline did, `remarks` what else its profile should say.  `host_values` counts, by function, the single values that GPU operators had the host compute.  `fuse`, `deterministic` and `memory_limit` are the settings of these names.
    """

    cache: ColumnCache
    check: Callable[[], None]
    threads: int
    kernel_directory: Path = Path()
    fuse: str = "always"
    deterministic: bool = False
    memory_limit: int | None = None
    bytes_read: int = 0
    receipts: dict[int, PipelineReceipt] = field(default_factory=dict)
    remarks: dict[int, str] = field(default_factory=dict)
    host_values: Counter[str] = field(default_factory=Counter)


def stop_check(stopped: Event) -> Callable[[], None]:
    """Return the check of a query that other threads may stop by setting an event."""

    def check() -> None:
        if stopped.is_set():
            raise KeyboardInterrupt

    return check
