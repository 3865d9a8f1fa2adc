"""What a pipeline reads: the rows that its kernel goes through, and build sides, read at the rows that probes find."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Protocol

from ..plan.expr import FALSE, TRUE, Column, Expr, new_column
from ..plan.physical import Physical, ValuesScan
from ..plan.types import BOOLEAN
from .typed_values import Input

# A relation of the two truth values, which no kernel reads: a BOOLEAN that a kernel alone knows comes out as a row number of it
TRUTH = new_column("truth", BOOLEAN)
TRUTHS = ValuesScan((TRUTH,), ((FALSE,), (TRUE,)))


@dataclass(frozen=True, slots=True)
class RowSource:
    """One reading of a leaf of the pipeline's body; number 0 is the one whose rows the kernel goes through.

    `aliases` are this reading's own columns by those of the leaf (or those that `LeafColumns.derived` made of them), since a table
    may be read several times.  `row` is the name of the variable that holds its row number; `optional`: that may be -1,
    where a left join found none.
    """

    number: int
    leaf: Physical
    rows: int
    row: str
    aliases: dict[Column, Column] = field(default_factory=dict)
    optional: bool = False

    @property
    def stored(self) -> dict[Column, Column]:
        """The leaf's columns by their aliases."""
        return {alias: column for column, alias in self.aliases.items()}


class LeafColumns(Protocol):
    """What a backend tells the generator about leaves (scans and `Stored`) while it makes programs."""

    def rows(self, leaf: Physical) -> int:
        """Return how many rows a leaf has."""
        ...

    def column(self, leaf: Physical, column: Column) -> Input:
        """Describe a leaf's column as kernels read it; raises `NotFusable` where it has no encoding."""
        ...

    def derived(self, leaf: Physical, expr: Expr) -> Input:
        """Describe an expression over one column of a leaf, evaluated on all its rows before the kernel runs.

        For what neither registers nor tables hold: LIKE over long text.  Its column is new.  Raises `NotFusable`.
        """
        ...

    def fold(self, expr: Expr, source: Input) -> Any:
        """Evaluate an expression on the values of a column of few codes, in their order, and on NULL last: an Arrow array."""
        ...

    def repeated(self, index: int) -> bool:
        """Whether an earlier run found that keys of this build side repeat, although statistics allowed them to be unique."""
        ...
