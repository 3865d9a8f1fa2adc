"""What a pipeline reads: scans and the tables of its inputs, as the code generator asks for them and as kernels take them."""

from __future__ import annotations

import weakref
from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from typing import Any

import pyarrow as pa

from ....codegen.groups.results import domain
from ....codegen.row_sources import encoded_values, input_of
from ....codegen.typed_values import Input, NotFusable, unnumbered
from ....errors import ConversionError, ExecutionError, OutOfRange
from ....plan import physical as p
from ....plan.expr import Column, Expr, columns_of, new_column
from ....plan.shapes.plan_model import at_present
from ....plan.types import Kind
from ....storage.columns.cache import TableScan
from ....storage.columns.encode import encode
from ....storage.columns.encodings import EncodedColumn, codes_of
from ...context import Context
from ...known_inputs import (
    Key,
    KnownInputs,
    KnownScan,
    Read,
    serve_column,
    serve_rows,
    widened,
    widened_count,
)
from ..functions.expressions import evaluate
from ..memory.chunks import each
from ..rows import values_scan
from ..scan.encoded import EncodedScan, encoded_scan
from ..scan.scan import DEVICE, memory_scan, parquet_scan
from ..table import Indices, Table, physical_type, take_array, to_physical

ROWS_SEEN = 1 << 10  # of a column, to tell in which order it is
ROWS_COMPARED = 1 << 12  # to tell whether most have values that others have too


class Leaves:
    """The leaves of a pipeline's body: a `codegen.row_sources.LeafColumns`, and the arrays behind its answers.

    `wanted` are columns that kernels will probably read, which are loaded together; `repeating` the build sides of which an
    earlier run found that their keys repeat.  `widens`: what is said of stored rows holds for others too, as constants leave them.
    """

    text_tables = 16  # a value has two rows or more, and a row of text takes longer than a look
    has_vectors = True

    def __init__(
        self,
        inputs: tuple[Table, ...],
        wanted: Collection[Column],
        repeating: Collection[int],
        context: Context,
        widens: bool = False,
    ) -> None:
        self._inputs = inputs
        self._widens = widens
        self._wanted = wanted
        self._repeating = repeating
        self._context = context
        self._scans: dict[int, EncodedScan] = {}
        # Of an earlier run, all of whose columns are in the cache
        self._known: Mapping[int, KnownScan] = {}
        self._derived: dict[tuple[int, Expr], Column] = {}
        self._exprs: dict[Key, Expr] = {}
        self.columns: dict[Key, EncodedColumn] = {}  # that were asked for

    @property
    def loading(self) -> float:
        """The seconds in which columns were brought into the cache."""
        return sum([scan.loading for scan in self._scans.values()]) if self._scans else 0.0

    def rows(self, leaf: p.Physical) -> int:
        """Return how many rows a leaf has, or at most has where those are stored or a chunk's."""
        if (chunk := self._context.chunk.get(id(leaf))) is not None:
            return chunk.most
        rows = self.count(leaf)
        return widened_count(rows) if self._widens and isinstance(leaf, p.Stored) else rows

    def varies(self, leaf: p.Physical) -> bool:
        """Whether a leaf has other columns in each run: rows that operators have left, or those of a chunk."""
        return isinstance(leaf, p.Stored) or id(leaf) in self._context.chunk

    def count(self, leaf: p.Physical) -> int:
        """Return how many rows a leaf has."""
        if isinstance(leaf, p.Stored):
            return self._inputs[leaf.number].num_rows
        known = self._known.get(id(leaf))
        return self._scan(leaf).rows if known is None else known.rows

    def column(self, leaf: p.Physical, column: Column) -> Input:
        return self._described(leaf, column, self.encoded(leaf, column))

    def _described(self, leaf: p.Physical, column: Column, encoded: EncodedColumn) -> Input:
        found = input_of(column, encoded)
        return widened(found) if self._widens and isinstance(leaf, p.Stored) else found

    def derived(self, leaf: p.Physical, expr: Expr) -> Input:
        made = self._derived.get((id(leaf), expr)) or new_column("derived", expr.type)
        return input_of(made, self._evaluated(leaf, made, expr))

    @staticmethod
    def fold(expr: Expr, source: Input) -> pa.Array:
        """Evaluate an expression on each value of a column, in the order of its codes, and on NULL last."""
        values = to_physical(domain(source), source.column.type)
        return evaluate(expr, Table({source.column.id: values}, len(values)))

    def repeated(self, index: int) -> bool:
        return index in self._repeating

    def encoded(self, leaf: p.Physical, column: Column) -> EncodedColumn:
        """Return a leaf's column, or one that `derived` made; raises `NotFusable` for one that has no encoding."""
        held = self.columns.get((id(leaf), column.id))
        if held is None:
            if isinstance(leaf, p.Stored):
                held = stored_column(self._inputs[leaf.number], column, self._context)
            else:
                held = self._scan(leaf)[column]
            self.columns[id(leaf), column.id] = held
        return held

    def _read(self, leaf: p.Physical, made: Column) -> Read:
        """Return what a later run has to know of a column that was read."""
        key = id(leaf), made.id
        column, expr = self.columns[key], self._exprs.get(key)
        return Read(leaf, made, self._described(leaf, made, column), expr, weakref.ref(column))

    def known(
        self, read: Collection[tuple[p.Physical, Column]], leaves: Collection[p.Physical]
    ) -> KnownInputs:
        """Return what a later run has to know of the columns that kernels read, and of all leaves of the body."""
        rows = [(leaf, self.rows(leaf)) for leaf in leaves]  # which has looked at all scans
        reads = tuple([self._read(leaf, column) for leaf, column in read])
        return KnownInputs(
            reads, tuple([(leaf, self._as_read(leaf), n) for leaf, n in rows]), DEVICE
        )

    def renewed(self, known: KnownInputs) -> KnownInputs:
        """Return the same of columns that were loaded anew since."""
        reads = [replace(r, encoded=weakref.ref(self.columns[r.key])) for r in known.reads]
        leaves = [(leaf, self._as_read(leaf), rows) for leaf, _, rows in known.leaves]
        return KnownInputs(tuple(reads), tuple(leaves), DEVICE)

    def columns_of(self, known: KnownInputs) -> list[EncodedColumn]:
        """Return the columns that kernels read."""
        return [self.columns[read.key] for read in known.reads]

    def _as_read(self, leaf: p.Physical) -> TableScan | None:
        scan = self._scans.get(id(leaf))
        return None if scan is None or id(leaf) in self._context.chunk else scan.scan

    def in_order(self, leaf: p.Physical, column: Column) -> bool:
        """Whether rows seem to come in the order of one of the leaf's columns, from a look at some."""
        if column not in leaf.columns:
            return False
        try:
            codes = self.encoded(leaf, column).flat().codes
        except NotFusable:
            return False
        seen = codes[:: max(1, len(codes) // ROWS_SEEN)]
        return bool((seen[1:] >= seen[:-1]).all())

    def repeat(self, leaf: p.Physical, columns: Sequence[Column]) -> bool:
        """Whether most rows seem to have values of the leaf's columns that others have too, from a look at some."""
        if not set(leaf.columns).issuperset(columns):
            return False
        try:
            codes = [self.encoded(leaf, column).flat().codes for column in columns]
        except NotFusable:
            return False
        step = max(1, self.count(leaf) // ROWS_COMPARED)
        seen = list(zip(*(c[::step].tolist() for c in codes), strict=True))
        return 3 * len(set(seen)) <= 2 * len(seen)

    def find(self, known: KnownInputs) -> bool:
        """Look in the cache for the very columns of scans that an earlier run has read; say whether they are all there."""
        found = self._context.cache.together(known)
        if found is None:
            found = known.scanned_in(self._context.cache)
        if found is None:
            return False
        self.columns.update(found)
        self._known = known.scans
        return True

    def fits(self, known: KnownInputs) -> bool:
        """Whether all leaves and columns that an earlier run has read are such that its kernels serve again."""
        leaves = (self._has(leaf, rows) for leaf, _, rows in known.leaves)
        return all(leaves) and all(map(self._is_same, known.reads))

    def others_fit(self, known: KnownInputs) -> bool:
        """Whether columns of stored rows, and derived ones, are so, where all scans' columns are the same."""
        for leaf, rows, reads in known.others:
            if not (self._has(leaf, rows) and all(map(self._is_same, reads))):
                return False
        return all(map(self._is_same, known.derived))

    def _has(self, leaf: p.Physical, count: int) -> bool:
        if not isinstance(leaf, p.Stored):
            return self.rows(leaf) == count
        return serve_rows(count, self.count(leaf))

    def _is_same(self, read: Read) -> bool:
        if read.expr is not None:
            now = self._evaluated(read.leaf, read.column, read.expr)
        else:
            now = self.encoded(read.leaf, read.column)
        same = read.encoded is not None and read.encoded() is now
        return same or serve_column(read.source, input_of(read.column, now))

    def _evaluated(self, leaf: p.Physical, made: Column, expr: Expr) -> EncodedColumn:
        key = id(leaf), made.id
        held = self.columns.get(key)
        if held is None:
            now = at_present(expr)  # other texts find out whether theirs fits

            def evaluated() -> EncodedColumn:
                (column,) = columns_of(now)
                (values,) = self.plain(leaf, [column])
                return derived(now, column, values, self._context)

            held = self._context.derived(leaf, self.count(leaf), now, evaluated)
            self.columns[key] = held
            self._derived[id(leaf), expr] = made
            self._exprs[key] = expr
        return held

    def gathered(
        self, leaf: p.Physical, columns: Sequence[Column], rows: Indices
    ) -> list[pa.Array]:
        """Return columns in physical form at some row numbers; -1 gives NULL.

        What is there encoded is gathered as codes, so that only the values that are picked are decoded.
        """
        encoded: list[EncodedColumn | None] = [None] * len(columns)
        if not isinstance(leaf, p.Stored | p.ValuesScan):
            encoded = self._scan(leaf).held(columns)
        found: list[EncodedColumn | pa.Array] = [*encoded]
        if None in encoded:
            others = [c for c, held in zip(columns, encoded, strict=True) if held is None]
            plain = iter(self.plain(leaf, others))
            found = [next(plain) if held is None else held for held in encoded]

        def pick(pair: tuple[Column, EncodedColumn | pa.Array]) -> pa.Array:
            column, held = pair
            if not isinstance(held, EncodedColumn):
                return take_array(held, rows)
            codes = take_array(codes_of(held), rows)
            return held.encoding.decode(codes, physical_type(column.type))

        return each(pick, list(zip(columns, found, strict=True)), len(rows))

    def plain(self, leaf: p.Physical, columns: Sequence[Column]) -> list[pa.Array]:
        """Return columns of the leaf as operators read them, all their rows."""
        if isinstance(leaf, p.Stored):
            table = self._inputs[leaf.number]
        elif isinstance(leaf, p.ValuesScan):
            table = values_scan(leaf, (), self._context)
        else:
            scan = self._scan(leaf).plain(columns)
            operator: Any = memory_scan if isinstance(scan, p.MemoryScan) else parquet_scan
            table = operator(scan, (), self._context)
        return [table[c] for c in columns]

    def _scan(self, leaf: p.Physical) -> EncodedScan:
        assert isinstance(leaf, p.ParquetScan | p.MemoryScan)
        held = self._scans.get(id(leaf))
        if held is None:
            known, chunk = self._known.get(id(leaf)), self._context.chunk.get(id(leaf))
            if known is None:
                scan = leaf if chunk is None else chunk.scan
                held = encoded_scan(scan, self._wanted, self._context)
            else:
                there = {source: self.columns[key] for source, key in known.reads}
                held = EncodedScan(known.names.scan, there, set(), self._context)
            self._scans[id(leaf)] = held
        return held


def derived(expr: Expr, column: Column, held: pa.Array, context: Context) -> EncodedColumn:
    """Return the values of an expression over `column` in all rows of `held`, encoded.

    A BOOLEAN's encoding does not depend on its values, so that a kernel made for one run fits the next.  Raises `NotFusable` for
    what has no encoding, and where the expression fails in some row, which an operator's filters may never get to.
    """
    try:
        values = evaluate(expr, Table({column.id: held}, len(held)), context.threads)
    except (ConversionError, ExecutionError, OutOfRange) as error:
        raise NotFusable(f"an expression fails in some row: {error.message}") from error
    narrow = expr.type.kind is not Kind.BOOLEAN
    return encoded_values(expr, encode(values, expr.type, context.threads, narrow))


def stored_column(table: Table, column: Column, context: Context) -> EncodedColumn:
    """Return a column of a table that an operator made as kernels read it; raises `NotFusable` for one that has no encoding."""
    held = table.encoded.get(column.id)
    if held is None:
        held = encode(table[column], column.type, context.threads, narrow=False)
        if held is None:
            raise unnumbered(f'"{column.name}"', column.type)
        bounds = context.bounds.get(column.id)
        if bounds is not None and held.low is not None and held.high is not None:
            low, high = min(held.low, bounds[0]), max(held.high, bounds[1])
            held = replace(held, low=low, high=high)
        table.encoded[column.id] = held
    return held
