"""What a pipeline reads: the rows that its kernel goes through, and build sides, read at the rows that probes find; and encoded
columns as the code generator sees them.
"""

from __future__ import annotations

from dataclasses import field
from typing import Protocol

import pyarrow as pa

from ..plan.expr import FALSE, TRUE, Column, Expr, new_column
from ..plan.physical import Physical, ValuesScan
from ..plan.types import BOOLEAN
from ..records import dataclass
from ..storage.columns.encodings import EncodedColumn
from .ranges import IntegerRange
from .typed_values import Input, NotFusable, unnumbered

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
    """What a backend tells the generator about leaves (scans and `Stored`) while it makes programs.

    `text_tables`: how many times as many codes of a text column as of others make a table of an expression over it.  `has_vectors`:
    whether functions of doubles take less time one operator at a time than in a kernel's loop.
    """

    text_tables: int
    has_vectors: bool

    def rows(self, leaf: Physical) -> int:
        """Return how many rows a leaf has, or at most has."""
        ...

    def varies(self, leaf: Physical) -> bool:
        """Whether kernels serve other rows of a leaf as well, at most as many."""
        ...

    def column(self, leaf: Physical, column: Column) -> Input:
        """Describe a leaf's column as kernels read it; raises `NotFusable` where it has no encoding."""
        ...

    def derived(self, leaf: Physical, expr: Expr) -> Input:
        """Describe an expression over one column of a leaf, evaluated on all its rows before the kernel runs.

        For what neither registers nor tables hold: LIKE over long text.  Its column is new.  Raises `NotFusable`.
        """
        ...

    @staticmethod
    def fold(expr: Expr, source: Input) -> pa.Array:
        """Evaluate an expression on the values of a column of few codes, in their order, and on NULL last: an Arrow array."""
        ...

    def repeated(self, index: int) -> bool:
        """Whether an earlier run found that keys of this build side repeat, although statistics allowed them to be unique."""
        ...


MOST_STRINGS = 1 << 16  # different ones: a kernel that reads more of them gains nothing by it


def input_of(column: Column, encoded: EncodedColumn) -> Input:
    """Describe an encoded column: its codes, and what values they stand for."""
    encoding = encoded.encoding
    codes = encoding.count(encoded.high)
    whole = codes is None and not encoding.is_float
    return Input(
        column,
        encoding,
        encoded.validity is not None,
        codes,
        IntegerRange(encoded.low or 0, encoded.high or 0) if whole else None,
        encoded.ascending and not whole,
        encoded.clustered,
    )


def encoded_values(expr: Expr, found: EncodedColumn | object) -> EncodedColumn:
    """Return the encoded values of an expression if kernels can use them; raises `NotFusable`."""
    if not isinstance(found, EncodedColumn):
        raise unnumbered("an expression", expr.type)
    values = found.encoding.values
    if values is not None and len(values) > MOST_STRINGS:
        raise NotFusable(f"an expression has more than {MOST_STRINGS:,} different values")
    return found
