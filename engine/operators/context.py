"""What an operator gets besides its node and inputs, and what a pipeline gives back besides its table."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol
from typing import Literal as OneOf

import pyarrow as pa

from ..plan.expr import Expr
from ..plan.physical import Physical, Stored
from ..storage.columns.cache import ColumnCache
from ..storage.columns.encodings import EncodedColumn
from .plan_memory import PlanMemory

MOST_DERIVED = 1 << 26  # bytes of what pipelines make of columns that stay until the query ends

# Where a kernel came from: the plan's last run, machine code on disk, or the compiler
Origin = OneOf["memory", "disk", "compiler"]


ORIGINS: tuple[Origin, ...] = ("memory", "disk", "compiler")


def latest(origins: Iterable[Origin]) -> Origin:
    """Return where all of several kernels came from: from the compiler, if one of them did."""
    return max(origins, key=ORIGINS.index)


@dataclass(frozen=True, slots=True)
class BuildReceipt:
    """An index that a pipeline made of a build side before its own kernel ran: from `rows` rows, in `bytes` bytes.

    `form` is that of `codegen.indexes`; `program` is the `codegen.program.Program` of its kernel.
    """

    kernel: Path
    form: str
    rows: int
    bytes: int
    program: Any = field(repr=False, compare=False)


@dataclass(frozen=True, slots=True)
class PipelineReceipt:
    """What a pipeline did in one run: with its kernel, or one operator at a time for a `reason`.

    The kernels read `rows` rows and `bytes` encoded bytes in `seconds`, from the first launch until the result was there; before
    that, columns that were not in the cache took `load_seconds` to read and encode, and the kernels `compile_seconds` to be
    generated and found or compiled.  `rows` are those that the last kernel goes through, `builds` the indexes that it probes.
    `chunks` counts the shares of a table that did not fit into memory.  `operations` are the arithmetic operations of a row.
    `program` is a `codegen.program.Program`.
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
    builds: tuple[BuildReceipt, ...] = ()

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
        count = len(self.builds)
        indexes = f" and {count} index{'es' if count > 1 else ''}" if count else ""
        return f"{chunks}kernel {self.kernel.name}{indexes}"


class Peers(Protocol):
    """The workers of a cluster, this one among them, which all run the same plan."""

    workers: int
    rank: int

    def exchange(
        self, number: int, parts: Sequence[Sequence[pa.RecordBatch] | None]
    ) -> list[pa.RecordBatch]:
        """Give each worker its part, and return those of all for this one, in the order of workers; None: that worker gets none of anybody."""
        ...


@dataclass
class Context:
    """One query's surroundings.

    `check` is `Stop.check` of the query: it raises when the query is to stop; operators call it between chunks.
    `bytes_read` counts what scans read from memory or files, for the profile.  `receipts` holds, by the identity of a node,
    what makes the receipt of what a pipeline did, should anybody ask; it keeps no table.  `remarks` what else its profile should say.  `host_values` counts, by function, the single values that GPU
    operators had the host compute.  `spilled` counts the bytes of joins in parts, by the place where they lay.  `fuse`,
    `deterministic` and `memory_limit` are the settings of these names; `memory` is what earlier runs of the connection's plans have left.
    `hold` counts bytes that a node's table takes, or lets go of, towards the memory limit, and raises `MemoryLimitError` beyond it.
    `ask` raises `MemoryError` where there is no room for bytes that a node is about to take for itself.
    `peers` are the workers of a cluster, if this is one of them.
    """

    cache: ColumnCache
    check: Callable[[], None]
    threads: int
    kernel_directory: Path = Path()
    fuse: str = "always"
    deterministic: bool = False
    memory_limit: int | None = None
    memory: PlanMemory = field(default_factory=PlanMemory)
    bytes_read: int = 0
    receipts: dict[int, Callable[[], PipelineReceipt]] = field(default_factory=dict)
    remarks: dict[int, str] = field(default_factory=dict)
    host_values: Counter[str] = field(default_factory=Counter)
    spilled: Counter[str] = field(default_factory=Counter)
    hold: Callable[[Physical, int], None] = lambda node, nbytes: None
    ask: Callable[[Physical, int], None] = lambda node, nbytes: None
    peers: Peers | None = None
    _derived: dict[tuple[int, Expr], tuple[Physical, EncodedColumn]] = field(default_factory=dict)

    def derived(
        self, leaf: Physical, rows: int, expr: Expr, make: Callable[[], EncodedColumn]
    ) -> EncodedColumn:
        """Return an expression's values in all rows of a leaf: of a scan that several pipelines read, `make` makes them once.

        `rows` are those of this reading: what is in the cache decides whether a scan leaves out row groups.
        """
        known = self._derived.get((id(leaf), expr))
        if known is not None and known[1].rows == rows:
            return known[1]
        made = make()
        size = made.nbytes + sum(column.nbytes for _, column in self._derived.values())
        if not isinstance(leaf, Stored) and size <= MOST_DERIVED:
            self._derived[id(leaf), expr] = leaf, made  # the leaf too, so that its id stays its own
        return made
