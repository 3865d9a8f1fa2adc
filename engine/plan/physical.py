"""Physical plans: the same relations with the algorithm, the build side and the device chosen.

Operators read columns; only `FilterRows`, `ComputeColumns`, `ValuesScan` and join residuals evaluate expressions, since
`lower` computes keys and aggregate arguments below the node that needs them.

A plan is frozen data: several connections may run it at once, and it can be pickled and run by another process.  Scans of Parquet
files then carry paths, footers and the rules by which files may be opened, and read the files there as long as they are the same;
scans of tables in memory carry all rows.  A pickle runs code where it is read: take plans from processes that are trusted.
"""

from __future__ import annotations

from dataclasses import field
from operator import attrgetter
from typing import TYPE_CHECKING, Literal as OneOf, Self

from ..errors import Span
from ..records import dataclass
from .expr import AggregateCall, Column, Expr
from .join_kinds import JoinKind
from .logical import CatalogTable, Item
from .node import Once, RelationNode
from .partitioning import Partitioning

if TYPE_CHECKING:
    from .pipeline_steps import PipelineSteps

Device = OneOf["gpu", "cpu"]
_WHOLE = attrgetter("table.sizes.whole")  # of tables of files


@dataclass(frozen=True, kw_only=True)
class Physical(RelationNode):
    """An operator on one device; `reason` says why it is not the GPU, `estimate` is the expected row count.

    `not_fused` says why no pipeline holds it, where one might be expected to; `partitioning`, on a cluster, where its rows are.
    """

    device: Device = field(default="cpu", compare=False)
    reason: str | None = field(default=None, compare=False)
    estimate: float | None = field(default=None, compare=False)
    not_fused: str | None = field(default=None, compare=False)
    partitioning: Partitioning | None = field(default=None, compare=False)

    def placed_as(self, other: Physical, estimate: float | None = None) -> Self:
        """Return this operator where another one is, for its reason, and with its expected rows unless so many are."""
        rows = other.estimate if estimate is None else estimate
        return self.replaced(device=other.device, reason=other.reason, estimate=rows)


@dataclass(frozen=True, slots=True)
class RowGroups:
    """The row groups of one file that a scan reads."""

    file: int
    groups: tuple[int, ...]


@dataclass(frozen=True)
class ParquetScan(Physical):
    """Columns of Parquet files, through the column cache; `selection` None reads all row groups.

    `pruned` says how many row groups statistics excluded, for `explain`.
    """

    table: CatalogTable
    made: tuple[Column, ...]
    sources: tuple[str, ...]
    selection: tuple[RowGroups, ...] | None = None
    pruned: int = 0

    @Once
    def whole_bytes(self) -> int:
        """The bytes of all rows of these columns, as operators read them."""
        return int(_WHOLE(self)(self.sources))


@dataclass(frozen=True)
class MemoryScan(Physical):
    """Columns of a registered or created table."""

    table: CatalogTable
    made: tuple[Column, ...]
    sources: tuple[str, ...]


@dataclass(frozen=True)
class RangeScan(Physical):
    """The BIGINT values start, start + step, ... before stop."""

    made: Column
    start: int
    stop: int
    step: int

    @Once
    def columns(self) -> tuple[Column, ...]:
        return (self.made,)


@dataclass(frozen=True)
class ValuesScan(Physical):
    """Rows of constant expressions (literals, casts and calls of them); maybe one row without columns."""

    made: tuple[Column, ...]
    rows: tuple[tuple[Expr, ...], ...]


@dataclass(frozen=True)
class FilterRows(Physical):
    """Keep the rows for which the predicate is TRUE; `keep` None passes all columns on."""

    input: Physical
    predicate: Expr
    keep: tuple[Column, ...] | None = None

    @Once
    def columns(self) -> tuple[Column, ...]:
        return self.input.columns if self.keep is None else self.keep


@dataclass(frozen=True)
class ComputeColumns(Physical):
    """Exactly the columns of `items`: computed, or passed on."""

    input: Physical
    items: tuple[Item, ...]

    @Once
    def columns(self) -> tuple[Column, ...]:
        return tuple(c for c, _ in self.items)


@dataclass(frozen=True)
class UnnestRows(Physical):
    """For each row one row for each element of its lists, as `logical.Unnest`; `keep` are the columns of the input that go on."""

    input: Physical
    lists: tuple[tuple[Column, Column], ...]  # an element's column, and the list's
    keep: tuple[Column, ...]
    ordinality: Column | None = None
    outer: bool = False

    @Once
    def columns(self) -> tuple[Column, ...]:
        made = tuple(column for column, _ in self.lists)
        return (*self.keep, *made, *(() if self.ordinality is None else (self.ordinality,)))


@dataclass(frozen=True)
class HashJoin(Physical):
    """Equality join on columns of equal types, pairwise; kinds as in `logical.Join`.

    `null_equal[i]`: key i matches NULL with NULL (IS NOT DISTINCT FROM).  `residual` decides, over columns of both sides,
    whether a pair of rows with equal keys is a match (for outer, semi, anti, mark and single joins as well).  `build` is the side to hash.
    `null_aware` (anti, mark) comes with exactly one key and no residual.
    `keep` are the columns that the parents read, in the order of output; None means all of both sides.
    `reduces` (semi): of the rows that it leaves out, the join that it is a build side of would find none.
    """

    left: Physical
    right: Physical
    kind: JoinKind
    left_keys: tuple[Column, ...]
    right_keys: tuple[Column, ...]
    null_equal: tuple[bool, ...]
    residual: Expr | None = None
    build: OneOf["left", "right"] = "right"
    null_aware: bool = False
    mark: Column | None = None
    keep: tuple[Column, ...] | None = None
    reduces: bool = False
    span: Span | None = field(default=None, compare=False, repr=False)

    @Once
    def columns(self) -> tuple[Column, ...]:
        if self.keep is not None:
            return self.keep
        return self.kind.outputs(self.left.columns, self.right.columns, self.mark)

    @property
    def probes_right(self) -> bool:
        """Whether a fused join goes through the rows of the right input: an inner join that hashes the left one."""
        return self.kind is JoinKind.INNER and self.build == "left"

    @property
    def probe_side(self) -> Physical:
        return self.right if self.probes_right else self.left

    @property
    def build_side(self) -> Physical:
        return self.left if self.probes_right else self.right

    @property
    def probe_keys(self) -> tuple[Column, ...]:
        return self.right_keys if self.probes_right else self.left_keys

    @property
    def build_keys(self) -> tuple[Column, ...]:
        return self.left_keys if self.probes_right else self.right_keys

    def with_build_side(self, side: Physical) -> HashJoin:
        return self.replaced(**{"left" if self.probes_right else "right": side})


@dataclass(frozen=True)
class NestedLoopJoin(Physical):
    """A join on any condition over columns of both sides, or the cross product; kinds as in `logical.Join`."""

    left: Physical
    right: Physical
    kind: JoinKind
    condition: Expr | None = None
    mark: Column | None = None
    keep: tuple[Column, ...] | None = None
    span: Span | None = field(default=None, compare=False, repr=False)

    @Once
    def columns(self) -> tuple[Column, ...]:
        if self.keep is not None:
            return self.keep
        return self.kind.outputs(self.left.columns, self.right.columns, self.mark)


@dataclass(frozen=True)
class HashAggregate(Physical):
    """Groups of equal keys (NULL equals NULL, NaN equals NaN, -0.0 equals 0.0); without keys exactly one row.

    Arguments, filters and ORDER BY items of the calls are `ColumnRef`s (or literals as extra arguments: separators,
    fractions).  Without aggregates this is DISTINCT.
    """

    input: Physical
    keys: tuple[Column, ...]
    aggregates: tuple[tuple[Column, AggregateCall], ...]

    @Once
    def columns(self) -> tuple[Column, ...]:
        return (*self.keys, *(c for c, _ in self.aggregates))


@dataclass(frozen=True)
class DistinctOn(Physical):
    """The first row, in input order, of each group of equal keys."""

    input: Physical
    keys: tuple[Column, ...]


@dataclass(frozen=True, slots=True)
class Order:
    """One sort key of a physical node."""

    column: Column
    descending: bool
    nulls_first: bool


@dataclass(frozen=True, slots=True)
class FirstRows:
    """That of all rows only the first `count` by `order` are read, and those that are equal to them."""

    order: Order
    count: int


@dataclass(frozen=True)
class SortRows(Physical):
    """A stable sort; NaN above all numbers."""

    input: Physical
    keys: tuple[Order, ...]


@dataclass(frozen=True)
class TopK(Physical):
    """Rows `offset` to `offset + count` of the sorted input."""

    input: Physical
    keys: tuple[Order, ...]
    count: int
    offset: int = 0


@dataclass(frozen=True)
class LimitRows(Physical):
    """Rows `offset` to `offset + count` of the input, or of each group of equal `keys`; count None means all."""

    input: Physical
    count: int | None
    offset: int = 0
    keys: tuple[Column, ...] = ()


@dataclass(frozen=True)
class ConcatRows(Physical):
    """UNION ALL of any number of inputs; column i of each input becomes `made[i]`, with the same type."""

    inputs: tuple[Physical, ...]
    made: tuple[Column, ...]


@dataclass(frozen=True)
class HashSetOperation(Physical):
    """INTERSECT and EXCEPT, with and without ALL, by position; NULL equals NULL."""

    left: Physical
    right: Physical
    kind: OneOf["intersect", "except"]
    all: bool
    made: tuple[Column, ...]


@dataclass(frozen=True)
class Transfer(Physical):
    """Move a table to `device`; `place` puts one between operators on different devices."""

    input: Physical


@dataclass(frozen=True)
class Stored(Physical):
    """In the body of a pipeline: the rows of its input of this number, which are complete before it starts."""

    number: int
    made: tuple[Column, ...]


@dataclass(frozen=True)
class Pipeline(Physical):
    """A source, steps and a sink, run by generated kernels; nothing in between is stored.

    `body` are the same steps as operators, which run one after the other when no kernel can hold them
    (`codegen.typed_values.NotFusable`) or when the answer is in doubt; what they read are scans and `Stored`.  One kernel goes from the
    source of the chain to the sink, and one more makes the index of each build side.  `cut`: a `TopK` alone reads its rows, and keeps these.
    """

    steps: PipelineSteps
    inputs: tuple[Physical, ...] = ()
    cut: FirstRows | None = None

    @property
    def body(self) -> Physical:
        return self.steps.body

    @Once
    def columns(self) -> tuple[Column, ...]:
        return self.steps.body.columns
