"""Before a plan runs for the first time: the workers load what kernels will read of their shares, and agree on its form, in one meeting for all columns.

Who has no room for a column, or a limit on memory, says so, and each keeps its own form of that column; an answer does not depend on it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from types import MappingProxyType
from typing import TYPE_CHECKING, Literal as OneOf, NamedTuple, Protocol, cast

import numpy as np
import pyarrow as pa

from ...plan import physical as p
from ...plan.arrow.arrow_arrays import array_from
from ...plan.expr import ColumnRef
from ...plan.node import walk_once
from ...storage.columns.agreement import (
    I64_MAX,
    REFUSED,
    UNKNOWN,
    ColumnFacts,
    ColumnForm,
    Kind,
    common_dictionaries,
    common_form,
    facts_of,
    place_of_texts,
)
from ...storage.columns.cache import NO_ENCODING, TableScan, kernel_key, part_of
from ...storage.columns.encodings import EncodedColumn, rounded
from ..context import Context, Peers
from .exchange_rounds import FEW_ROWS, HEADERS

if TYPE_CHECKING:
    from ...storage.tables.memory_table import MemoryTable
    from ...storage.tables.parquet import ParquetTable


CODES = FEW_ROWS - HEADERS  # less the number of the exchange: the number of the meeting
TEXTS, NOTHING = 0, 1  # what a worker has of a column that is no codes: texts, or no rows


def number_of(texts: pa.Array, dictionaries: Mapping[str, pa.Array]) -> int:
    """Return what workers call a dictionary of theirs, `TEXTS` for another one."""
    place = place_of_texts(texts)
    found = (digest for digest, known in dictionaries.items() if place_of_texts(known) == place)
    return next(map(_number, found), TEXTS)


def number_of_rows(digest: str) -> int:
    """What workers call the rows of a relation that each of them has whole: a number below those of dictionaries."""
    return -_number(digest)


RowNumbers = OneOf["row numbers"]


def common_texts(
    peers: Peers, exchange: int, own: Sequence[int]
) -> list[pa.Array | RowNumbers | None]:
    """Return for each column what goes in the place of its texts, by what each worker says that it has: codes of a dictionary, or row numbers.

    None where texts go.  Who has no rows takes any codes, but row numbers only of a relation that it has.
    """
    known = {_number(digest): texts for digest, texts in peers.dictionaries.items()}
    told = peers.meet(CODES - exchange, np.array(own, np.int64).tobytes())
    found: list[pa.Array | RowNumbers | None] = []
    for numbers in np.array([np.frombuffer(said, np.int64) for said in told]).T.tolist():
        if len({*numbers}) == 1 and numbers[0] < TEXTS:
            found.append("row numbers")
            continue
        said = {*numbers} - {NOTHING}
        found.append(known.get(said.pop()) if len(said) == 1 else None)
    return found


def _number(digest: str) -> int:
    return int(digest[:15] or "0", 16) + NOTHING + 1


AGREEMENT = -(1 << 40)  # the number of the meeting


class KernelColumns(Protocol):
    """What a backend does for it."""

    def load_for_kernels(self, scan: TableScan, context: Context) -> None:
        """Bring a scan's columns into the cache as kernels read them."""
        ...

    def take_form(self, scan: TableScan, source: str, form: ColumnForm, context: Context) -> None:
        """Bring a column that is in the cache into a form."""
        ...


class SharedColumn(NamedTuple):
    """A column of which each worker reads its rows."""

    scan: TableScan
    source: str


def shared_columns(plan: p.Physical) -> list[SharedColumn]:
    """Return what kernels of a plan will read of shares, in an order that is the same on all workers."""
    wanted: dict[int, tuple[TableScan, set[str]]] = {}
    for node in walk_once(plan):
        if isinstance(node, p.Pipeline):
            read = node.steps.columns_read
            for leaf in _shares(node):
                sources = wanted.setdefault(id(leaf), (leaf, set()))[1]
                sources |= {s for c, s in zip(leaf.made, leaf.sources, strict=True) if c in read}
    return [SharedColumn(scan, s) for scan, sources in wanted.values() for s in sorted(sources)]


def _shares(node: p.Pipeline) -> Iterator[TableScan]:
    for chain in node.steps.chains:
        leaf = chain.source
        if isinstance(leaf, p.ParquetScan | p.MemoryScan) and leaf.table.identity is not None:
            at = leaf.partitioning
            if at is not None and at.is_shared:
                yield leaf


class Agreed(NamedTuple):
    """What all workers know of a plan's columns: dictionaries by their digests, and by the ids of columns bounds of the integers that any has."""

    dictionaries: Mapping[str, pa.Array] = MappingProxyType({})
    bounds: Mapping[int, tuple[int, int]] = MappingProxyType({})


NOTHING_AGREED = Agreed()


def agree(
    plan: p.Physical,
    columns: Sequence[SharedColumn],
    backends: Mapping[p.Device, KernelColumns],
    context: Context,
) -> Agreed:
    """Load a plan's columns and bring them into the form that all workers have; raises `ClusterError` where another one has failed."""
    peers = context.peers
    assert peers is not None
    _load(columns, backends, context)
    facts = [_facts(column, context) for column in columns]
    told = peers.exchange(AGREEMENT, [[_message(columns, facts)]] * peers.workers)
    peers.over.add(AGREEMENT)
    names = told[peers.rank].column("column")
    if any(not batch.column("column").equals(names) for batch in told):
        return NOTHING_AGREED
    each = [_told(batch) for batch in told]
    forms = [common_form(of_column, peers.rank) for of_column in zip(*each, strict=True)]
    for column, form in zip(columns, forms, strict=True):
        if form is not None:
            context.check()
            scan, _ = _held(column, context)
            key = kernel_key(scan, column.source, scan.device)
            context.cache.lasting.forms[key] = form
            if isinstance(context.cache.peek(key), EncodedColumn):
                backends[scan.device].take_form(scan, column.source, form, context)
    return Agreed(common_dictionaries(forms), _with_renamed(dict(_bounds(columns, each)), plan))


def _bounds(
    columns: Sequence[SharedColumn], told: Sequence[Sequence[ColumnFacts]]
) -> Iterator[tuple[int, tuple[int, int]]]:
    """Yield bounds of integers by the columns that scans make of them: those that footers say, and of what was loaded those that there are."""
    for scan in {id(scan): scan for scan, _ in columns}.values():
        known_columns = scan.table.statistics().columns
        for column, source in zip(scan.made, scan.sources, strict=True):
            said = known_columns.get(source)
            if said is None or not column.type.is_integer or not column.type.fits_register:
                continue
            if isinstance(said.low, int) and isinstance(said.high, int):
                yield column.id, rounded((max(said.low, ~I64_MAX), min(said.high, I64_MAX)))
    for (scan, source), of_column in zip(columns, zip(*told, strict=True), strict=True):
        known = [facts for facts in of_column if facts.kind == "integers"]
        if known and all(facts.kind in ("integers", "empty") for facts in of_column):
            ends = rounded((min(f.low for f in known), max(f.high for f in known)))
            for column, name in zip(scan.made, scan.sources, strict=True):
                if name == source:
                    yield column.id, ends


def _with_renamed(
    bounds: dict[int, tuple[int, int]], plan: p.Physical
) -> dict[int, tuple[int, int]]:
    """Bounds hold under other names, too."""
    bodies = [n.steps.body if isinstance(n, p.Pipeline) else n for n in walk_once(plan)]
    nodes = {id(node): node for body in bodies for node in walk_once(body)}
    for node in reversed(list(nodes.values())):
        if isinstance(node, p.ComputeColumns):
            for made, expr in node.items:
                if isinstance(expr, ColumnRef) and expr.column.id in bounds:
                    bounds.setdefault(made.id, bounds[expr.column.id])
    return bounds


def _load(
    columns: Sequence[SharedColumn], backends: Mapping[p.Device, KernelColumns], context: Context
) -> None:
    """Load what there is room for: a scan's columns together, as its pipeline would."""
    if context.memory_limit is not None:
        return
    scans = {id(scan): scan for scan, _ in columns}
    for key, scan in scans.items():
        sources = {column.source for column in columns if id(column.scan) == key}
        pairs = zip(scan.made, scan.sources, strict=True)
        part = part_of(scan, [(c, s) for c, s in pairs if s in sources])
        if _has_room(part, context):
            with suppress(MemoryError):  # then a pipeline finds out what it can do
                backends[scan.device].load_for_kernels(part, context)


def _has_room(scan: TableScan, context: Context) -> bool:
    """Whether the columns of a scan would stay in the cache."""
    limit = context.cache.limits[scan.device]
    if isinstance(scan, p.MemoryScan):
        memory = cast("MemoryTable", scan.table)
        return bool(memory.data.nbytes <= limit)
    table = cast("ParquetTable", scan.table)
    groups = table.all_row_groups if scan.selection is None else scan.selection
    return sum(table.sizes.plain(scan.sources, part) for part in groups) <= limit


def _held(column: SharedColumn, context: Context) -> tuple[TableScan, object]:
    """Return what the cache has of a column, and the scan that it has it for: all rows of a share serve for some row groups, too."""
    scan, source = column
    held = context.cache.peek(kernel_key(scan, source, scan.device))
    if held is None and isinstance(scan, p.ParquetScan) and scan.selection is not None:
        every = replace(scan, selection=None)
        whole = context.cache.peek(kernel_key(every, source, scan.device))
        if whole is not None:
            return every, whole
    return scan, held


def _facts(column: SharedColumn, context: Context) -> ColumnFacts:
    _, held = _held(column, context)
    if held is NO_ENCODING:
        return REFUSED
    return facts_of(held) if isinstance(held, EncodedColumn) else UNKNOWN


def _message(columns: Sequence[SharedColumn], facts: Sequence[ColumnFacts]) -> pa.RecordBatch:
    """A row a column."""
    texts = [None if f.texts is None else f.texts.to_pylist() for f in facts]
    return pa.record_batch(
        {
            "column": array_from([f"{c.scan.table.name}.{c.source}" for c in columns], pa.string()),
            "kind": array_from([f.kind for f in facts], pa.string()),
            "nullable": array_from([f.nullable for f in facts], pa.bool_()),
            "low": array_from([f.low for f in facts], pa.int64()),
            "high": array_from([f.high for f in facts], pa.int64()),
            "step": array_from([f.step for f in facts], pa.int64()),
            "wide": array_from([f.wide for f in facts], pa.bool_()),
            "count": array_from([f.count for f in facts], pa.int64()),
            "ascending": array_from([f.ascending for f in facts], pa.bool_()),
            "clustered": array_from([f.clustered for f in facts], pa.bool_()),
            "texts": array_from(texts, pa.list_(pa.string())),
        }
    )


def _told(batch: pa.RecordBatch) -> list[ColumnFacts]:
    names = [name for name in batch.schema.names if name not in ("column", "texts")]
    values = zip(*(batch.column(name).to_pylist() for name in names), strict=True)
    texts = [row.values if row.is_valid else None for row in batch.column("texts")]
    found = []
    for row, own in zip(values, texts, strict=True):
        known = dict(zip(names, row, strict=True))
        kind = cast("Kind", known.pop("kind"))
        found.append(ColumnFacts(kind, texts=own, **known))
    return found
