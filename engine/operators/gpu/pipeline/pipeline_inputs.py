"""What a pipeline's kernels read in one run: the leaves of its body, their columns as codes and as they are.

`Relations` is what `codegen.compile_pipeline` asks about leaves (`codegen.row_sources.LeafColumns`).  What it was asked is kept for the next run,
which then looks for these columns alone.
"""

from __future__ import annotations

import time
import weakref
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import cache

import pyarrow as pa

from ....codegen.groups.results import domain
from ....codegen.row_sources import TRUTH, TRUTHS, RowSource, input_of
from ....codegen.typed_values import Input, unnumbered
from ....plan import physical as p
from ....plan.arrow.arrow_arrays import array_from
from ....plan.expr import Column, Expr, columns_of, new_column
from ....plan.shapes.plan_model import at_present, of_present
from ....plan.types import BOOLEAN
from ....storage.columns.encodings import EncodedColumn
from ...context import Context
from ...known_inputs import (
    Key,
    KnownInputs,
    KnownScan,
    Names,
    Read,
    serve_column,
    serve_rows,
    widened,
    widened_count,
)
from ..columns import INT64, reinterpret
from ..dictionaries import Held
from ..functions.expressions import evaluate
from ..scan.encoded import scan_columns
from ..scan.scan import DEVICE
from ..table import Table, to_device
from .derived_columns import derived
from .leaf_columns import Leaf, ScanLeaf, StoredLeaf


class Relations:
    """The leaves of a body in one run; `repeating` are the build sides of which an earlier run found that keys repeat.

    With `widens` what is said of stored rows holds for others too, as constants leave them.
    """

    text_tables = 1
    has_vectors = False

    def __init__(
        self, inputs: Sequence[Table], context: Context, repeating: frozenset[int] = frozenset()
    ) -> None:
        self.inputs, self.context, self.repeating = inputs, context, repeating
        # In whose cache columns lie that are no chunk's
        self.lasting = (
            context if not context.chunk else replace(context, cache=context.cache.lasting)
        )
        self.widens = False
        self._known: KnownInputs
        self._counts: Mapping[int, int] = {}  # of stored rows that kernels were made for
        self.loading = 0.0  # seconds in which columns were brought into the cache
        self._leaves: dict[int, tuple[p.Physical, Leaf]] = {}
        self._scans: Mapping[int, KnownScan] = {}
        self._reads: dict[Key, Read] = {}
        self.columns: dict[Key, EncodedColumn] = {}

    # What the generator asks

    def rows(self, leaf: p.Physical) -> int:
        """Return how many rows a leaf has, or at most has where those are stored or a chunk's."""
        if id(leaf) in self._counts:
            return self._counts[id(leaf)]
        if (chunk := self.context.chunk.get(id(leaf))) is not None:
            return chunk.most
        rows = self.count(leaf)
        return widened_count(rows) if self.widens and isinstance(leaf, p.Stored) else rows

    def varies(self, leaf: p.Physical) -> bool:
        """Whether a leaf has other columns in each run: rows that operators have left, or those of a chunk."""
        return isinstance(leaf, p.Stored) or id(leaf) in self.context.chunk

    def count(self, leaf: p.Physical) -> int:
        """Return how many rows a leaf has."""
        scan = self._scans.get(id(leaf))
        return self.leaf(leaf).rows if scan is None else scan.rows

    def column(self, leaf: p.Physical, column: Column) -> Input:
        key = id(leaf), column.id
        if key not in self._reads:
            found = self.leaf(leaf)
            encoded = found.encoded(column)
            if encoded is None:
                raise unnumbered(f'"{column.name}"', column.type)
            fixed = isinstance(found, ScanLeaf) and not self.context.chunk
            ref = weakref.ref(encoded) if fixed else None
            told = input_of(column, encoded)
            if self.widens and isinstance(leaf, p.Stored):
                told = widened(told)
            self._add(Read(leaf, column, told, None, ref), encoded)
        return self._reads[key].source

    def derived(self, leaf: p.Physical, expr: Expr) -> Input:
        for read in self._reads.values():
            if read.leaf is leaf and read.expr == expr:
                return read.source
        made = new_column("derived", expr.type)
        # Other texts find out whether theirs fits
        encoded = self._evaluated(leaf, at_present(expr))
        source = input_of(made, encoded)
        self._add(Read(leaf, made, source, expr), encoded)
        return source

    @staticmethod
    def fold(expr: Expr, source: Input) -> pa.Array:
        values = to_device(domain(source), source.column.type)
        result = evaluate(expr, Table({source.column.id: values}, values.size()))
        if expr.type.is_decimal and not expr.type.is_wide_decimal:
            result = reinterpret(result, INT64)
        return result.to_arrow()

    def repeated(self, index: int) -> bool:
        return index in self.repeating

    # What a run asks, by the places of columns and leaves in what its kernels are known to read (`late_arguments.RunInputs`)

    def column_at(self, number: int) -> EncodedColumn:
        return self.columns[self._known.reads[number].key]

    def count_at(self, number: int) -> int:
        return self.count(self._known.leaves[number][0])

    # What the operator asks

    def names(self, leaf: p.Physical) -> Names | None:
        """Return what a scan's columns are called, if an earlier run has read it too."""
        known = self._scans.get(id(leaf))
        return None if known is None else known.names

    def leaf(self, leaf: p.Physical) -> Leaf:
        key = id(leaf)
        if key not in self._leaves:
            found: Leaf
            if isinstance(leaf, p.Stored):
                found = StoredLeaf(self.inputs[leaf.number])
            elif leaf is TRUTHS:
                found = StoredLeaf(Table({TRUTH.id: _truths()}, len(TRUTHS.rows)))
            elif key in self._scans:
                scan = self._scans[key]
                there = {name: self.columns[key] for name, key in scan.reads}
                found = ScanLeaf(scan.names, there, scan.rows, self.lasting)
            else:
                assert isinstance(leaf, p.ParquetScan | p.MemoryScan)
                start, chunk = time.perf_counter(), self.context.chunk.get(key)
                context = self.lasting if chunk is None else self.context
                columns = scan_columns(leaf if chunk is None else chunk.scan, context)
                if columns.loaded:
                    self.loading += time.perf_counter() - start
                found = ScanLeaf(
                    Names(columns.scan, DEVICE), columns.encoded, columns.rows, context
                )
            self._leaves[key] = leaf, found  # the node too, so that no other gets its identity
        return self._leaves[key][1]

    def encoded(self, relation: RowSource, column: Column) -> tuple[Read, EncodedColumn]:
        """Return what a kernel reads as a column of a relation: the leaf's own, or an alias of it."""
        key = id(relation.leaf), own_column(relation, column).id
        return self._reads[key], self.columns[key]

    def known(self) -> KnownInputs:
        """Return what the generator asked for.

        Of kernels for chunks no column has its place, nor has one of a side that is read whole: once that had left the cache and come
        back, kernels were generated anew for all chunks but one, in each run (5 of TPC-H's first 9 queries at SF0.1 within 10 MB).
        """
        leaves = []
        for node, leaf in self._leaves.values():
            scan = leaf.scan if isinstance(leaf, ScanLeaf) and not self.context.chunk else None
            leaves.append((node, scan, self.rows(node)))
        self._known = KnownInputs(tuple(self._reads.values()), tuple(leaves), DEVICE)
        return self._known

    def find(self, known: KnownInputs) -> bool:
        """Look for the columns of an earlier run, those of scans in the cache alone; say whether its kernels fit them.

        Columns of scans must be the same, those of stored rows as the kernels were told.  Where they are not, all is as before.
        """
        self._known = known
        cache = self.lasting.cache
        scanned = cache.together(known)
        if scanned is None:
            scanned = known.scanned_in(cache)
        if scanned is not None:
            self.columns, self._reads, self._scans = scanned, known.scanned, known.scans
            if not known.others and not known.derived:
                return True
            self.columns, self._reads = {**scanned}, {**known.scanned}
            others = not known.others or self._found_stored(known)
            if others and (not known.derived or self._found_derived(known)):
                return True
        self.forget()
        return False

    def forget(self, widens: bool = False) -> None:
        """Have all columns asked for anew, by who generates kernels, but for those that operators have left."""
        self.widens = widens
        self._leaves = {
            i: pair for i, pair in self._leaves.items() if isinstance(pair[1], StoredLeaf)
        }
        self._reads, self.columns, self._scans, self._counts = {}, {}, {}, {}

    def _found_stored(self, known: KnownInputs) -> bool:
        for node, rows, reads in known.others:
            leaf = self.leaf(node)
            chunk = self.context.chunk.get(id(node))
            count = leaf.rows if chunk is None else chunk.most
            if not (serve_rows(rows, count) if isinstance(node, p.Stored) else rows == count):
                return False
            if isinstance(leaf, StoredLeaf):
                leaf.encode([r.column for r in reads])
            for read in reads:
                encoded = leaf.encoded(read.column)
                if encoded is None or not known.serve(read, encoded):
                    return False
                self._reads[read.key], self.columns[read.key] = read, encoded
        self._counts = {id(node): rows for node, rows, _ in known.others}
        return True

    def _found_derived(self, known: KnownInputs) -> bool:
        for read in known.derived:
            assert read.expr is not None
            encoded = self._evaluated(read.leaf, of_present(read.model))
            if not serve_column(read.source, input_of(read.column, encoded)):
                return False
            self._add(read, encoded)
        return True

    def _add(self, read: Read, encoded: EncodedColumn) -> None:
        self._reads[read.key] = read
        self.columns[read.key] = encoded

    def _evaluated(self, leaf: p.Physical, expr: Expr) -> EncodedColumn:
        def made() -> EncodedColumn:
            (column,) = columns_of(expr)
            return derived(expr, column, self.leaf(leaf).held(column), self.context)

        return self.context.derived(leaf, self.count(leaf), expr, made)


@cache
def _truths() -> Held:
    return to_device(array_from([False, True]), BOOLEAN)


def own_column(relation: RowSource, column: Column) -> Column:
    """Return the leaf's column of which a relation has an alias, or the column itself."""
    for own, alias in relation.aliases.items():
        if alias == column:
            return own
    return column
