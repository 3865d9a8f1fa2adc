"""What an operator gets besides its node and inputs, what a pipeline gives back besides its table, and what runs of a plan remember for
later ones, outside of the plan, which is data that several connections may share.

A `PlanMemory` belongs to a connection.  It knows nodes by their identity, and forgets one when that is gone: with its plan, or a
pipeline that was made for one run with that run.
"""

from __future__ import annotations

from dataclasses import field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Generic, Literal as OneOf, NamedTuple, Protocol, TypeVar
from weakref import ref

from ..codegen.typed_values import NotFusable
from ..plan import physical as p
from ..plan.node import walk
from ..plan.physical import Physical, Stored
from ..plan.shapes.plan_model import ShapedPart, Variants
from ..progress.run_progress import Progress
from ..records import dataclass
from .last_steps import LastSteps
from .row_interpreter import RowSteps

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    import pyarrow as pa

    from ..plan.expr import Expr
    from ..storage.columns.cache import CacheKey, ColumnCache
    from ..storage.columns.encodings import EncodedColumn
    from .column_tiers import LiftedColumn
    from .exchange.exchange_placed import PlacedRows
    from .exchange.exchange_rounds import ExchangeRounds
    from .narrowed_builds import ChunkPlan
    from .scan_runs import Selection

T = TypeVar("T")


@dataclass(frozen=True)
class Feedback:
    """What runs of a pipeline's kernels have found out: build sides whose keys repeat, how large its result is.

    `built` are the rows of hashed indexes of which other numbers were expected.
    """

    repeating: frozenset[int] = frozenset()
    slots: int | None = None  # of the hash table of groups
    listed: int | None = None  # rows that come out
    long_groups: bool = False  # some have too many rows to be made in their order
    built: Mapping[int, int] = field(default_factory=dict)
    count_bits: int = 0  # that counts need at least


@dataclass(frozen=True)
class Refused:
    """Why no kernel holds a pipeline over so many rows of its inputs."""

    rows: tuple[int, ...]
    reason: str


@dataclass(frozen=True)
class Apart:
    """A pipeline in two: `rest` reads the rows of `side` as its last input."""

    side: p.Pipeline
    rest: p.Pipeline


@dataclass
class PipelineMemory(Generic[T]):
    """What one pipeline's runs leave: its kernels, which are the backend's own, or why it has none, and what it consists of instead.

    `compiled` are the kernels whose machine code is known to be there.  `short_of_memory`: the last run had no room for its kernels'
    buffers.  `parts` are the pipelines below the last operator of a body that no kernel holds, by their place among its children;
    `chunked` what runs over a chunk, by the build sides that are made before and those that are read whole.
    `divided` are the chunks that came out where there was no room for all rows at once, and how much there was.
    """

    kernels: T | None = None
    compiled: T | None = None
    feedback: Feedback = Feedback()
    short_of_memory: bool = False
    refused: Refused | None = None
    apart: Apart | None = None
    parts: dict[int, p.Pipeline] = field(default_factory=dict)
    chunked: dict[tuple[int, ...], ChunkPlan] = field(default_factory=dict)
    divided: tuple[int, list[Selection]] | None = None


class _ByNode(Generic[T]):
    """A value for each node that is asked for, as long as that node lives; safe with several threads."""

    def __init__(self, make: Callable[[p.Physical], T]) -> None:
        self._make = make
        self._kept: dict[int, tuple[T, ref[p.Physical]]] = {}

    def __call__(self, node: p.Physical) -> T:
        try:
            return self._kept[id(node)][0]
        except KeyError:
            return self._begun(node)

    def __len__(self) -> int:
        return len(self._kept)

    def _begun(self, node: p.Physical) -> T:
        kept, key = self._kept, id(node)
        # The callback of a reference that another thread was faster than goes with it
        return kept.setdefault(key, (self._make(node), ref(node, lambda _: kept.pop(key, None))))[0]


@dataclass
class ShapeMemory(Generic[T]):
    """What runs of a pipeline leave to those of other texts, which have other constants in it."""

    kernels: Variants[p.Pipeline, T | NotFusable]
    feedback: Feedback = Feedback()


class PlanMemory:
    """The memories of a connection's plans, those of pipelines with slots for constants apart, and what steps compute a few rows."""

    def __init__(self) -> None:
        self.shape = _ByNode(_shape_memory)
        self.pipeline: _ByNode[PipelineMemory[Any]] = _ByNode(lambda node: PipelineMemory())
        self.row_steps = _ByNode(_row_steps)
        self.last_steps = _ByNode(LastSteps)


def _shape_memory(node: p.Physical) -> ShapeMemory[object]:
    assert isinstance(node, p.Pipeline)
    return ShapeMemory(Variants(node))


def _row_steps(node: p.Physical) -> RowSteps:
    if isinstance(node, p.FilterRows):
        return RowSteps.condition(node.predicate)
    if isinstance(node, p.NestedLoopJoin) and node.condition is not None:
        return RowSteps.condition(node.condition)
    assert isinstance(node, p.ComputeColumns)
    return RowSteps.of(node.items)


def is_lasting(node: p.Physical) -> bool:
    """Whether a plan's tables say the same in each run: one without an identity is read anew each time."""
    own = walk(node.body) if isinstance(node, p.Pipeline) else iter((node,))
    scans = (part for part in own if isinstance(part, p.ParquetScan | p.MemoryScan))
    known = all(scan.table.identity is not None for scan in scans)
    return known and all(map(is_lasting, node.children))


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
    `chunks` counts the shares of a table that did not fit into memory, `tries` how often there was none for one of these.  `operations` are the arithmetic operations of a row.
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
    tries: int = 0
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
    def division(self) -> str:
        """In how many chunks the table came, if in any, and how often there was no memory for one."""
        text = f"streamed in {self.chunks} chunks" if self.chunks else ""
        return f"{text} after {self.tries} that did not fit" if self.tries else text

    @property
    def summary(self) -> str:
        """The kernel's file, or why there is none, and in how many chunks the table came."""
        chunks = f"{self.division}, " if self.chunks else ""
        if self.reason is not None or self.kernel is None:
            return f"{chunks}one operator at a time: {self.reason}"
        count = len(self.builds)
        indexes = f" and {count} index{'es' if count > 1 else ''}" if count else ""
        return f"{chunks}kernel {self.kernel.name}{indexes}"


class MovedBytes(NamedTuple):
    """Device memory that goes to a worker, or comes from one."""

    rank: int
    address: int
    size: int


class Peers(Protocol):
    """The workers of a cluster, this one among them, which all run the same plan.

    `has_link`: device memory can go from worker to worker without the host, which all of them know; `linked`: it still can from this one.
    `owes`: the others wait for what this one is about to give them.  `over` are the numbers of the exchanges that are done, and
    the complements of those that have found no heavy keys.  `dictionaries` of texts are those that all have, by their digests.
    """

    workers: int
    rank: int
    dictionaries: Mapping[str, pa.Array]
    has_link: bool
    owes: bool
    over: set[int]

    @property
    def linked(self) -> bool: ...

    def exchange(
        self, number: int, parts: Sequence[Sequence[pa.RecordBatch] | None]
    ) -> list[pa.RecordBatch]:
        """Give each worker its part, and return those of all for this one, in the order of workers; None: that worker gets none of anybody."""
        ...

    def exchange_few(
        self, number: int, parts: Sequence[Sequence[pa.RecordBatch] | None] | None
    ) -> list[pa.RecordBatch] | None:
        """As `exchange`, of linked workers in one meeting if all have few rows; None where one has many, for which its parts are None."""
        ...

    def meet(self, number: int, message: bytes) -> Sequence[bytes]:
        """Tell all linked workers something, and return what each says; a second call returns the same."""
        ...

    def move(
        self, number: int, outgoing: Sequence[MovedBytes], incoming: Sequence[MovedBytes]
    ) -> None:
        """Move device memory between workers that know what each other gives and takes, and wait for it."""
        ...


class ChunkScan(NamedTuple):
    """What a chunk reads in the place of a scan, and how many rows one of the chunks reads there at most."""

    scan: p.ParquetScan
    most: int


@dataclass
class Context:
    """One query's surroundings.

    `check` is `Stop.check` of the query: it raises when the query is to stop; operators call it between chunks.
    `bytes_read` counts what scans read from memory or files, for the profile.  `receipts` holds, by the identity of a node,
    what makes the receipt of what a pipeline did, should anybody ask; it keeps no table.  `remarks` what else its profile should say.  `host_values` counts, by function, the single values that GPU
    operators had the host compute.  `spilled` counts the bytes of joins in parts, by the place where they lay.
    `lifted` are the columns that were brought into the cache from tiers below, where there are some, `unlifted` why the column store did not have one, by table and column.  `fuse`,
    `deterministic` and `memory_limit` are the settings of these names; `memory` is what earlier runs of the connection's plans have left.
    `shaped` are the run's pipelines that serve other constants too.  `hold` counts bytes that a node's table takes, or lets go of, towards the memory limit, and raises `MemoryLimitError` beyond it.
    `ask` raises `MemoryError` where there is no room for bytes that a node is about to take for itself.
    `chunk` has, by the identity of a scan, what a run over a chunk reads in its place: all chunks run the same nodes, so that one's kernels serve the next.
    `plain` are columns that were read to be encoded, for operators that run while kernels compile.  `progress` counts how far the run is.  `peers` are the workers of a cluster, if this is one of them; `heavy` are, by the number of an exchange, the parts of rows that stay,
    `rounds` how far those are that go from device to device, `placed` what has come in others.  `bounds` hold the integers of all workers in a column, by its id.
    """

    cache: ColumnCache
    check: Callable[[], None]
    threads: int
    kernel_directory: Path = Path()
    fuse: str = "always"
    deterministic: bool = False
    memory_limit: int | None = None
    memory: PlanMemory = field(default_factory=PlanMemory)
    shaped: Mapping[int, ShapedPart[Physical]] = field(default_factory=dict)
    bytes_read: int = 0
    receipts: dict[int, Callable[[], PipelineReceipt]] = field(default_factory=dict)
    remarks: dict[int, str] = field(default_factory=dict)
    host_values: dict[str, int] = field(default_factory=dict)
    spilled: dict[str, int] = field(default_factory=dict)
    lifted: list[LiftedColumn] = field(default_factory=list)
    unlifted: dict[tuple[str, str], str] = field(default_factory=dict)
    hold: Callable[[Physical, int], None] = lambda node, nbytes: None
    ask: Callable[[Physical, int], None] = lambda node, nbytes: None
    chunk: Mapping[int, ChunkScan] = field(default_factory=dict)
    plain: dict[CacheKey, pa.Array] = field(default_factory=dict)
    progress: Progress = field(default_factory=Progress)
    peers: Peers | None = None
    heavy: dict[int, frozenset[int]] = field(default_factory=dict)
    rounds: dict[int, ExchangeRounds] = field(default_factory=dict)
    placed: dict[int, PlacedRows] = field(default_factory=dict)
    bounds: Mapping[int, tuple[int, int]] = field(default_factory=dict)
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
