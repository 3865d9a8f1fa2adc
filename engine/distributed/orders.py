"""What the client and the workers of a cluster say to each other for a query; tables in memory go once, whatever plans read them."""

from __future__ import annotations

import io
import pickle
import struct
from collections.abc import Hashable, Mapping
from dataclasses import replace
from functools import cached_property, lru_cache
from threading import Lock
from typing import Any
from weakref import WeakSet, finalize, ref

import pyarrow as pa

from ..errors import ExecutionError, FuselineError
from ..observe.profile import Meeting, NodeProfile
from ..plan.partitioning import Fact
from ..plan.physical import ConcatRows, Physical
from ..records import dataclass
from ..settings import Settings
from ..storage.shards import Placement
from ..storage.tables.memory_table import MemoryTable, ShardedTable
from .own_plans import Form
from .sent_functions import FunctionPickler

FEW_ROWS, FEW_BYTES = 512, 1 << 16  # of rows that are one batch
MESSAGE = struct.Struct("<ii")  # a mark, and the length of what follows, as messages of Arrow begin


@dataclass(frozen=True)
class SentPlan:
    """A plan for a worker that does not have it, and what it runs by each time: settings, and the placement of tables.

    `tables` are those of the plan that the worker does not have.
    """

    plan: bytes
    tables: dict[Hashable, MemoryTable]
    settings: Settings
    placement: Placement


@dataclass(frozen=True)
class QueryOrder:
    """A query as workers get it: its number, those of the team and the plan, and the plan where it was not sent before.

    All else that stays the same from query to query is sent with the plan: settings alone take longer to pack than the rest.
    `meets`: other workers run it at the same time; `answers`: its rows are wanted of this worker; `logs`: it tells Dask of the query.
    `agrees`: not all workers have run the plan, so that they agree on columns first.  `keep`: they stay there, as its share of this table, under the identity that it has at the client.
    `linked`: their GPUs are, so that rows may go from one to another.
    `settled`: the last run of the plan has come to its end on all of them, so that all remember the same of it.
    """

    query: int
    team: int
    plan: int
    timed: bool
    meets: bool
    linked: bool = False
    agrees: bool = False
    settled: bool = False
    sent: SentPlan | None = None
    answers: bool = False
    logs: bool = False
    keep: tuple[Hashable, ShardedTable] | None = None

    @property
    def is_short(self) -> bool:
        """Whether neither a plan nor a table goes with it, which may have arrays of many bytes beside them."""
        return self.sent is None and self.keep is None

    @cached_property
    def packed(self) -> bytes:
        return pickle.dumps(self, 5)


@dataclass
class Part:
    """What one worker says after a query: rows as an Arrow stream, in `one_batch` or several, or the error that ended it; `lost`: another worker's.

    `kept` are the rows and bytes that stay there.  `missing`: it does not know the plan, a table of it or the team.  `nodes` are those of
    its plan in the order of its profile, without the plan, where the run was timed.  `refuted`: what the plan relies on and is wrong.
    `unlinked`: its GPU's link to the others is gone.
    """

    rank: int = 0
    rows: pa.Buffer | None = None
    kept: tuple[int, int] = (0, 0)
    error: FuselineError | None = None
    lost: bool = False
    missing: bool = False
    refuted: Fact | None = None
    bytes_read: int = 0
    seconds: float = 0.0
    meetings: tuple[Meeting, ...] = ()
    nodes: tuple[NodeProfile, ...] = ()
    unlinked: bool = False
    one_batch: bool = False

    def table(self) -> pa.Table:
        rows = self.rows
        if rows is None or not self.one_batch:
            return pa.ipc.open_stream(rows).read_all()
        schema, begin = _schema_of(rows)
        return pa.Table.from_batches([pa.ipc.read_record_batch(rows.slice(begin), schema)])


@lru_cache(maxsize=512)
def _schema_in(message: bytes) -> pa.Schema:
    return pa.ipc.open_stream(message).schema


def _schema_of(stream: pa.Buffer) -> tuple[pa.Schema, int]:
    """The schema that a stream begins with, and where it ends: workers say the same for each run of a plan, and a schema takes six times as long to read as a row."""
    view = memoryview(stream)
    end = MESSAGE.size + MESSAGE.unpack_from(view)[1]
    return _schema_in(bytes(view[:end])), end


def stream_of(rows: pa.Table) -> tuple[pa.Buffer, bool]:
    """Rows as an Arrow stream, of a slice only what it shows, and whether they are one batch, without dictionaries, which nested values may have."""
    is_few = 0 < rows.num_rows <= FEW_ROWS and rows.nbytes <= FEW_BYTES
    if is_few and not any(
        kind.num_fields or pa.types.is_dictionary(kind) for kind in rows.schema.types
    ):
        (batch,) = rows.combine_chunks().to_batches()
        return pa.py_buffer(b"".join((rows.schema.serialize(), batch.serialize()))), True
    counted = pa.MockOutputStream()
    _write(rows, counted)
    made = pa.allocate_buffer(counted.size())  # a stream that grows copies what it has
    _write(rows, pa.FixedSizeBufferWriter(made))
    return made, False


def _write(rows: pa.Table, sink: pa.NativeFile) -> None:
    with pa.ipc.new_stream(sink, rows.schema) as writer:
        writer.write_table(rows)


def without_plan(node: NodeProfile) -> NodeProfile:
    """What is known of a node, without its plan and programs, which the client has no use for."""
    receipt = node.receipt
    if receipt is not None:
        builds = tuple(replace(build, program=None) for build in receipt.builds)
        receipt = replace(receipt, program=None, builds=builds)
    return replace(
        node, node=ConcatRows((), ()), receipt=receipt, host_values=dict(node.host_values)
    )


@dataclass(frozen=True)
class KnownPlan:
    """A plan that workers may have: its number, what it is for, its form, and what tells that it is gone."""

    number: int
    team: int
    settings: Settings
    placement: Placement
    form: Form
    plan: ref[Physical]

    def is_for(self, team: int, settings: Settings) -> bool:
        same = self.settings is settings or self.settings == settings
        return same and self.team == team


class SentTables:
    """The tables of this process that workers may have; `take_gone` tells those that live here no more."""

    def __init__(self) -> None:
        self._lock = Lock()
        self._known: WeakSet[MemoryTable] = WeakSet()
        self._gone: list[Hashable] = []

    def note(self, table: MemoryTable) -> None:
        with self._lock:
            if table not in self._known:
                self._known.add(table)
                finalize(table, self._gone.append, table.identity).atexit = False

    def take_gone(self) -> set[Hashable]:
        gone = self._gone[:]
        del self._gone[: len(gone)]
        return set(gone)


class _Packer(FunctionPickler):
    def __init__(self, file: io.BytesIO) -> None:
        super().__init__(file, protocol=5)
        self.tables: dict[Hashable, MemoryTable] = {}

    def persistent_id(self, value: Any) -> Hashable:
        # A table that serves one run is part of the plan
        if not isinstance(value, MemoryTable) or value.identity is None:
            return None
        self.tables[value.identity] = value
        return value.identity


class _Unpacker(pickle.Unpickler):
    def __init__(self, file: io.BytesIO, tables: Mapping[Hashable, MemoryTable]) -> None:
        super().__init__(file)
        self._tables = tables

    def persistent_load(self, identity: Any) -> MemoryTable:
        return self._tables[identity]


def packed(plan: Physical) -> tuple[bytes, dict[Hashable, MemoryTable]]:
    """Return a plan without its tables, and these by their identities."""
    file = io.BytesIO()
    packer = _Packer(file)
    packer.dump(plan)
    return file.getvalue(), packer.tables


def unpacked(sent: bytes, tables: Mapping[Hashable, MemoryTable]) -> Physical:
    """Return a plan over a worker's tables; raises `KeyError` for one that it does not have."""
    try:
        plan: Physical = _Unpacker(io.BytesIO(sent), tables).load()
    except (ImportError, AttributeError) as error:
        raise ExecutionError(
            f"A Python function of the query reads what a worker does not have: {error}. Install it there too."
        ) from error
    return plan
