"""Statements of clients: planned when their answer is asked for, run when it is fetched; what gives no rows is carried out at once."""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import field
from functools import lru_cache, partial
from itertools import chain, islice
from typing import TYPE_CHECKING, NamedTuple

import pyarrow as pa

from ..deep import deeply_for
from ..errors import FuselineError, InvalidQuery, MemoryLimitError, Unsupported
from ..plan.statements import Query
from ..plan.text.quoted_name import quoted_name
from ..plan.types import DataType
from ..plan_cache import Parameters, new_cached_plan
from ..records import dataclass
from ..stopping import Stop, Stoppable, anywhere
from .calls import ServerCall
from .client_sessions import Handles
from .flight_sql_messages import CommandStatementIngest, TableDefinitionOptions
from .metadata_answers import arrow_schema
from .shared_tables import ServedConnection
from .turns import ServerLimits, Turns

if TYPE_CHECKING:
    from pyarrow import flight

    from ..connection import Connection
    from ..frame.frame import Frame
    from ..plan.logical import Logical
    from ..running import QueryRunner

ROWS_AT_A_TIME = 65_536
MESSAGE_BYTES = 4 << 20  # of rows that are sent together; clients of Go take at most 16 MiB
CREATE, APPEND, REPLACE = 1, 2, 3  # of `TableDefinitionOptions`
NO_TABLE, FAIL = 2, 1


class AskedParameters(Mapping[str, object]):
    """Stands for the parameters of a text that is only planned: each is NULL, and noted."""

    def __init__(self) -> None:
        self.asked: dict[str, None] = {}

    def __contains__(self, key: object) -> bool:
        self.asked[str(key)] = None
        return True

    def __getitem__(self, key: str) -> object:
        return None

    def __iter__(self) -> Iterator[str]:
        return iter(self.asked)

    def __len__(self) -> int:
        return len(self.asked)

    @property
    def names(self) -> list[str]:
        """The names of the parameters in their order: numbers from 1 on, or names."""
        numbers = [int(name) for name in self.asked if name.isdigit()]
        named = [name for name in self.asked if not name.isdigit()]
        return [str(i) for i in range(1, max(numbers, default=0) + 1)] + named


class ParameterRows(NamedTuple):
    """Rows of parameters, and the names of their columns, of which several may be the same."""

    names: list[str]
    values: list[tuple[object, ...]]


@dataclass
class Prepared:
    """A statement that was prepared, and the parameters that were bound to it last."""

    served: ServedConnection
    text: str
    parameters: list[str]
    rows: pa.Schema | None
    bound: list[Parameters] = field(default_factory=list)

    def values(self, rows: ParameterRows) -> list[Parameters]:
        """Return rows of values as the statement takes them: in order, or by name where it has names."""
        if all(name.isdigit() for name in self.parameters):
            return [list(row) for row in rows.values]
        names = [name.lstrip("$") for name in rows.names]
        return [dict(zip(names, row, strict=True)) for row in rows.values]


@dataclass(frozen=True)
class PlannedAnswer:
    """An answer that a client may fetch: its plan, and its columns."""

    served: ServedConnection
    frame: Frame
    columns: pa.Schema


class Statements:
    """The statements of all clients."""

    def __init__(self, limits: ServerLimits, turns: Turns) -> None:
        self._limits, self._turns = limits, turns
        most = limits.statements
        self.prepared: Handles[Prepared] = Handles("prepared statement", most, _nothing)
        self.answers: Handles[PlannedAnswer] = Handles("answer", most, _nothing, drops_oldest=True)
        self._running: dict[bytes, tuple[str, Stop]] = {}
        self.rows_sent = 0

    def stop_of(
        self, call: ServerCall, context: flight.ServerCallContext, served: ServedConnection
    ) -> Stop:
        """Return what ends the work of a call: its client's going, or the session's statement_timeout."""
        stop = Stop(served.connection.settings.statement_timeout)
        call.watch(context, stop)
        served.enter()
        call.at_end(served.leave)
        return stop

    def planned(
        self,
        call: ServerCall,
        stop: Stop,
        served: ServedConnection,
        text: str,
        params: Parameters = None,
    ) -> tuple[bytes, pa.Schema]:
        """Plan a text and return the handle of its answer, with its columns."""
        self._turn(call, stop)
        frame = served.run(stop, lambda connection: connection.sql(text, params))
        columns = _columns_of(frame.plan)
        return self.answers.add(call.client, PlannedAnswer(served, frame, columns)), columns

    def schema_of(
        self, call: ServerCall, stop: Stop, served: ServedConnection, text: str
    ) -> pa.Schema:
        """Return the columns of a text's answer, without carrying out anything; raises `InvalidQuery` where only that would tell."""
        self._turn(call, stop)
        _, columns = served.run(stop, lambda _: described(served.runner, text))
        if columns is None:
            raise InvalidQuery("Only a single query tells its columns before it is run.")
        return columns

    def prepare(
        self, call: ServerCall, stop: Stop, served: ServedConnection, text: str
    ) -> tuple[bytes, Prepared]:
        """Plan a text as far as its parameters let, and keep it."""
        self._turn(call, stop)
        asked, columns = served.run(stop, lambda _: described(served.runner, text))
        prepared = Prepared(served, text, asked.names, columns)
        return self.prepared.add(call.client, prepared), prepared

    def bind(self, call: ServerCall, handle: bytes, rows: ParameterRows) -> None:
        """Keep parameters for the next run of a prepared statement."""
        prepared = self.prepared.get(call.client, handle)
        prepared.bound = prepared.values(rows)

    def planned_again(
        self, call: ServerCall, context: flight.ServerCallContext, handle: bytes
    ) -> tuple[bytes, pa.Schema]:
        """Plan a prepared statement with its parameters, as `planned`."""
        prepared = self.prepared.get(call.client, handle)
        if len(prepared.bound) > 1:
            raise Unsupported(
                f"A query takes one row of parameters, and there are {len(prepared.bound)}: run it once for each."
            )
        params = prepared.bound[0] if prepared.bound else None
        stop = self.stop_of(call, context, prepared.served)
        return self.planned(call, stop, prepared.served, prepared.text, params)

    def update(
        self,
        call: ServerCall,
        stop: Stop,
        served: ServedConnection,
        text: str,
        sets: Sequence[Parameters] | None = None,
    ) -> int:
        """Carry out a text, once for each set of parameters where there are some; returns how many rows changed, or -1."""
        self._turn(call, stop)

        def work(connection: Connection) -> int:
            with connection.cursor() as cursor:
                if sets is None or len(sets) == 1:
                    cursor.execute(text, sets[0] if sets else None)
                else:
                    cursor.executemany(text, sets)
                return cursor.rowcount

        return served.run(stop, work)

    def update_again(
        self,
        call: ServerCall,
        context: flight.ServerCallContext,
        handle: bytes,
        rows: ParameterRows,
    ) -> int:
        """Carry out a prepared statement for each row of parameters, by default those that are bound."""
        prepared = self.prepared.get(call.client, handle)
        sets = prepared.values(rows) if rows.values else prepared.bound
        stop = self.stop_of(call, context, prepared.served)
        return self.update(call, stop, prepared.served, prepared.text, sets or None)

    def ingest(
        self,
        call: ServerCall,
        stop: Stop,
        served: ServedConnection,
        asked: CommandStatementIngest,
        reader: pa.RecordBatchReader,
    ) -> int:
        """Store rows in a table, which may be made for them; returns how many."""
        if asked.temporary:
            raise Unsupported("Tables of one client alone are not supported: leave temporary away.")
        served.runner.check_writable()
        rows = read_rows(reader, served.connection.settings.memory_limit, "memory_limit")
        options = asked.table_definition_options or TableDefinitionOptions()
        place = [part for part in (asked.catalog, asked.schema, asked.table) if part]
        self._turn(call, stop)  # a client that sends slowly takes none

        def work(connection: Connection) -> int:
            served.runner.check_changes()
            return _stored(connection, place, options, rows)

        return served.run(stop, work)

    def rows(
        self, call: ServerCall, context: flight.ServerCallContext, handle: bytes
    ) -> tuple[pa.Schema, Iterable[pa.RecordBatch]]:
        """Run what was planned and return its columns and record batches, which are made while they are read, or a list of what one message holds."""
        answer = self.answers.take(call.client, handle)
        stop = self.stop_of(call, context, answer.served)
        self._running[handle] = call.client, stop
        call.at_end(lambda: self._running.pop(handle, None))
        self._turn(call, stop)
        with Stoppable(stop):
            batches = answer.frame.to_batches(ROWS_AT_A_TIME)
            call.at_end(batches.close)
            ready = list(islice(batches, 2))
        sent = self._sent(call, chain(ready, batches), answer.columns)
        is_small = len(ready) < 2 and all(batch.nbytes <= MESSAGE_BYTES for batch in ready)
        return answer.columns, list(sent) if is_small else sent

    def cancel(self, client: str, handle: bytes) -> bool:
        """Stop the run of an answer, or drop one that was not fetched; False where there is none of this client."""
        found = self._running.get(handle)
        if found is not None and found[0] == client:
            found[1].ask()
            return True
        try:
            self.answers.take(client, handle)
        except FuselineError:
            return False
        return True

    def forget(self, served: ServedConnection) -> None:
        """Drop what belongs to a connection that is closed."""
        self.prepared.end_where(lambda p: p.served is served)
        self.answers.end_where(lambda a: a.served is served)

    def end_idle(self, seconds: float) -> None:
        self.prepared.end_idle(seconds)
        self.answers.end_idle(seconds)

    def _turn(self, call: ServerCall, stop: Stop) -> None:
        client = call.client
        self._turns.enter(client, stop)
        call.at_end(lambda: self._turns.leave(client))
        stop.restart()  # waiting did not count

    def _sent(
        self, call: ServerCall, batches: Iterable[pa.RecordBatch], columns: pa.Schema
    ) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            for piece in pieces(as_declared(batch, columns)):
                self.rows_sent += piece.num_rows
                call.waits_since = time.monotonic()
                yield piece
                call.waits_since = None


def described(runner: QueryRunner, text: str) -> tuple[AskedParameters, pa.Schema | None]:
    """Return the parameters of a text, and the columns of its rows where it is one query that can be planned without them.

    A query without parameters is in the plan cache from then on, where its run finds it.
    """
    from ..sql import TextSlots, plan_sql, split

    asked, plans, version = AskedParameters(), runner.plans, runner.catalog.version
    known, shape = plans.find(text, None, runner.settings)
    if known is not None and not known.stale_tables():
        return asked, _columns_of(known.source)
    pieces_of_text = list(split(text))
    if not pieces_of_text:
        raise InvalidQuery("There is no statement in the text.")
    if len(pieces_of_text) > 1:
        return asked, None
    try:
        slots = None if shape is None else TextSlots(shape)
        bound = partial(next, plan_sql(text, runner.catalog, asked, slots=slots))
        statement = deeply_for(text, partial(anywhere, bound))
    except FuselineError:
        if not asked:
            raise
        return asked, None  # its parameters have to be of some type
    if not isinstance(statement, Query):
        return asked, None
    if not asked and statement.is_kept:
        is_known = shape is not None and plans.knows(shape)
        prepared = new_cached_plan(slots, statement, text, version, is_known)
        plans.keep_text(text, None, prepared, version)
    return asked, _columns_of(statement.plan)


def _columns_of(plan: Logical) -> pa.Schema:
    return _schema_of(tuple((c.name, c.type) for c in plan.columns))


@lru_cache(maxsize=256)
def _schema_of(columns: tuple[tuple[str, DataType], ...]) -> pa.Schema:
    """Return the columns of an answer as Arrow has them, made once for the texts that clients repeat."""
    return arrow_schema(columns)


def _stored(
    connection: Connection, place: list[str], options: TableDefinitionOptions, rows: pa.Table
) -> int:
    """Store rows in a table, given by its name and perhaps schema and catalog."""
    catalog = connection.catalog
    name = place[-1] if place else ""
    is_there = catalog.located(place) is not None if place else False
    if not is_there and options.if_not_exist == NO_TABLE:
        raise catalog.unknown(name)
    if is_there and options.if_exists not in (APPEND, REPLACE):
        raise InvalidQuery(f'There is a table or view "{name}" already.')
    given = f"__ingested_{name}"
    into = ".".join(map(quoted_name, place))
    if is_there and options.if_exists == APPEND:
        names = ", ".join(map(quoted_name, rows.column_names))
        text = f"INSERT INTO {into} ({names}) SELECT * FROM {quoted_name(given)}"
    else:
        text = f"CREATE OR REPLACE TABLE {into} AS SELECT * FROM {quoted_name(given)}"
    connection.register(given, rows)
    try:
        connection.execute(text)
    finally:
        connection.unregister(given)
    return int(rows.num_rows)


def read_rows(reader: flight.MetadataRecordBatchReader, most: int | None, limit: str) -> pa.Table:
    """Return all rows that a client sends; raises `MemoryLimitError` where they take more bytes than the limit of this name."""
    batches: list[pa.RecordBatch] = []
    taken, schema = 0, reader.schema
    while True:
        try:
            batch = reader.read_chunk().data
        except StopIteration:
            return pa.Table.from_batches(batches, schema)
        if batch is None:
            continue
        taken += batch.nbytes
        if most is not None and taken > most:
            raise MemoryLimitError(
                f"The rows that were sent take more than {most:,} bytes, which is {limit}: send fewer at a time."
            )
        batches.append(batch)


def as_declared(batch: pa.RecordBatch, columns: pa.Schema) -> pa.RecordBatch:
    """Return a batch with the columns that the client was told, which differ in what is said beside their types."""
    if batch.schema.types == columns.types:
        return (
            pa.RecordBatch.from_arrays(batch.columns, schema=columns)
            if batch.num_columns
            else batch
        )
    arrays = [a.cast(f.type) for a, f in zip(batch.columns, columns, strict=True)]
    return pa.RecordBatch.from_arrays(arrays, schema=columns)


def pieces(batch: pa.RecordBatch) -> Iterator[pa.RecordBatch]:
    """Yield a batch in parts of at most `MESSAGE_BYTES`, of a row at least."""
    if batch.num_rows > 1 and batch.nbytes > MESSAGE_BYTES:
        half = batch.num_rows // 2
        yield from pieces(batch.slice(0, half))
        yield from pieces(batch.slice(half))
    else:
        yield batch


def _nothing(_: object) -> None:
    """Let go of what needs no end of its own."""
