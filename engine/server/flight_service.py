"""What gRPC calls: each method finds who asks for what, and has it answered.

A text's way: GetFlightInfo plans it (`client_statements`) and gives a ticket; DoGet with the ticket runs it and sends the rows, as fast as the client
reads them.  Questions about the catalog are their own tickets.  DoPut carries out updates, binds parameters and stores rows.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator

import pyarrow as pa
from pyarrow import flight

from ..errors import InvalidQuery, Unsupported
from ..stopping import Stop
from . import flight_sql_messages as messages
from .calls import Calls, ServerCall
from .client_sessions import Sessions
from .client_statements import ParameterRows, Statements, read_rows
from .flight_errors import CALL, answered
from .logins import Logins
from .metadata_answers import metadata_answer, schema_of
from .server_actions import ACTIONS, FOR_EVERYONE, Asked
from .shared_tables import ServedConnection
from .turns import ServerLimits, Turns
from .wire_format import MalformedMessage, encode


class _NoHandshake(flight.ServerAuthHandler):
    """Lets the handshake pass that clients log in with: the header with the password is looked at before."""

    def authenticate(self, outgoing: object, incoming: object) -> None:
        """Do nothing."""

    def is_valid(self, token: bytes) -> bytes:
        return b""


class FlightService(flight.FlightServerBase):
    """A server of Flight SQL over one connection's tables; serves from its making until `end`."""

    def __init__(
        self,
        location: str,
        shared: ServedConnection,
        logins: Logins,
        limits: ServerLimits,
        certificate: tuple[bytes, bytes] | None = None,
    ) -> None:
        """`certificate`: the chain and the key of TLS, in PEM."""
        self.limits, self.turns = limits, Turns(limits)
        self.sessions = Sessions(shared, limits)
        self.statements = Statements(limits, self.turns)
        self.calls = Calls(logins, limits.idle_seconds, self._sweep)
        self._began, self.failures, self.queries = time.monotonic(), 0, 0
        super().__init__(
            location,
            auth_handler=_NoHandshake(),
            middleware={CALL: self.calls},
            tls_certificates=[certificate] if certificate else None,
        )

    # What gRPC calls

    @answered
    def get_flight_info(
        self, context: flight.ServerCallContext, descriptor: flight.FlightDescriptor
    ) -> flight.FlightInfo:
        call, asked = self._call(context), _asked(descriptor)
        columns = schema_of(asked)
        if columns is not None:
            return _info(columns, descriptor, descriptor.command)
        match asked:
            case messages.CommandStatementQuery(query=text, transaction_id=transaction):
                served, stop = self._served(call, context, transaction)
                handle, columns = self.statements.planned(call, stop, served, text)
            case messages.CommandPreparedStatementQuery(prepared_statement_handle=prepared):
                handle, columns = self.statements.planned_again(call, context, prepared)
            case _:
                raise MalformedMessage(f"{type(asked).__name__} has no answer that can be fetched.")
        return _info(columns, descriptor, messages.packed(messages.TicketStatementQuery(handle)))

    @answered
    def get_schema(
        self, context: flight.ServerCallContext, descriptor: flight.FlightDescriptor
    ) -> flight.SchemaResult:
        call, asked = self._call(context), _asked(descriptor)
        columns = schema_of(asked)
        match asked:
            case messages.CommandStatementQuery(query=text, transaction_id=transaction):
                served, stop = self._served(call, context, transaction)
                columns = self.statements.schema_of(call, stop, served, text)
            case messages.CommandPreparedStatementQuery(prepared_statement_handle=handle):
                columns = self.statements.prepared.get(call.client, handle).rows
        if columns is None:
            raise InvalidQuery("The columns of this answer are not known before it is run.")
        return flight.SchemaResult(columns)

    @answered
    def do_get(
        self, context: flight.ServerCallContext, ticket: flight.Ticket
    ) -> flight.FlightDataStream:
        call, asked = self._call(context), messages.unpacked(ticket.ticket)
        if schema_of(asked) is not None:
            served = self.sessions.connection(call.client, call.session, None)
            return flight.RecordBatchStream(metadata_answer(asked, served))
        if not isinstance(asked, messages.TicketStatementQuery):
            raise MalformedMessage(f"{type(asked).__name__} is no ticket: ask for one first.")
        self.queries += 1
        columns, batches = self.statements.rows(call, context, asked.statement_handle)
        if isinstance(batches, list):  # sent without asking Python again
            call.waits_since = time.monotonic()
            return flight.RecordBatchStream(pa.Table.from_batches(batches, columns))
        return flight.GeneratorStream(columns, self._sent(context, batches))

    @answered
    def do_put(
        self,
        context: flight.ServerCallContext,
        descriptor: flight.FlightDescriptor,
        reader: flight.MetadataRecordBatchReader,
        writer: flight.FlightMetadataWriter,
    ) -> None:
        call, asked = self._call(context), _asked(descriptor)
        statements = self.statements
        match asked:
            case messages.CommandStatementUpdate(query=text, transaction_id=transaction):
                served, stop = self._served(call, context, transaction)
                count = statements.update(call, stop, served, text)
            case messages.CommandPreparedStatementUpdate(prepared_statement_handle=handle):
                rows = self._parameters(reader)
                count = statements.update_again(call, context, handle, rows)
            case messages.CommandStatementIngest(transaction_id=transaction):
                served, stop = self._served(call, context, transaction)
                count = statements.ingest(call, stop, served, asked, reader)
            case messages.CommandPreparedStatementQuery(prepared_statement_handle=handle):
                statements.bind(call, handle, self._parameters(reader))
                writer.write(pa.py_buffer(encode(messages.DoPutPreparedStatementResult(handle))))
                return
            case _:
                raise MalformedMessage(f"{type(asked).__name__} takes no rows.")
        self.queries += 1
        writer.write(pa.py_buffer(encode(messages.DoPutUpdateResult(count))))

    @answered
    def do_action(
        self, context: flight.ServerCallContext, action: flight.Action
    ) -> Iterator[flight.Result]:
        call: ServerCall = context.get_middleware(CALL)
        if action.type not in FOR_EVERYONE:
            call.check_login()
        found = ACTIONS.get(action.type)
        if found is None:
            raise Unsupported(f'There is no action "{action.type[:100]}".')
        body = action.body.to_pybytes() if action.body is not None else b""
        for answer in found[1](Asked(self, call, context, body)):
            yield flight.Result(answer)

    @answered
    def list_actions(self, context: flight.ServerCallContext) -> list[tuple[str, str]]:
        self._call(context)
        return [(name, said) for name, (said, _) in ACTIONS.items()]

    @answered
    def list_flights(
        self, context: flight.ServerCallContext, criteria: bytes
    ) -> Iterator[flight.FlightInfo]:
        self._call(context)
        yield from ()

    @answered
    def do_exchange(
        self,
        context: flight.ServerCallContext,
        descriptor: flight.FlightDescriptor,
        reader: flight.MetadataRecordBatchReader,
        writer: flight.FlightMetadataWriter,
    ) -> None:
        self._call(context)
        raise Unsupported("Exchanging rows is not part of Flight SQL.")

    # What it is asked by its own

    def failed(self, error: BaseException) -> None:
        """Count a call that ended with an error."""
        self.failures += 1

    def metrics(self) -> dict[str, float]:
        """Return counts of what the server has done and does now."""
        statements, sessions = self.statements, self.sessions
        return {
            "uptime_seconds": round(time.monotonic() - self._began, 3),
            "queries": self.queries,
            "failures": self.failures,
            "refused_logins": self.calls.refused,
            "rows_sent": statements.rows_sent,
            "running": self.turns.running,
            "waiting": self.turns.waiting,
            "sessions": len(sessions.open),
            "transactions": len(sessions.transactions),
            "prepared_statements": len(statements.prepared),
            "answers_to_fetch": len(statements.answers),
        }

    def end(self) -> None:
        """Stop what runs, take no more calls, and let everything go; returns when all calls have ended."""
        self.calls.stop_all()
        self.shutdown()
        self.calls.end()
        self.sessions.end_all()

    @answered
    def _sent(
        self, context: flight.ServerCallContext, batches: Iterable[pa.RecordBatch]
    ) -> Iterator[pa.RecordBatch]:
        yield from batches

    def _call(self, context: flight.ServerCallContext) -> ServerCall:
        """Return the call, of a client that may ask; raises `NotLoggedIn`."""
        call: ServerCall = context.get_middleware(CALL)
        call.check_login()
        return call

    def _served(
        self, call: ServerCall, context: flight.ServerCallContext, transaction: bytes | None
    ) -> tuple[ServedConnection, Stop]:
        """Return the connection of a call, and what stops its statement."""
        served = self.sessions.connection(call.client, call.session, transaction)
        return served, self.statements.stop_of(call, context, served)

    def _parameters(self, reader: flight.MetadataRecordBatchReader) -> ParameterRows:
        try:
            reader.schema  # noqa: B018 - raises where none was sent
        except (pa.ArrowInvalid, StopIteration):
            return ParameterRows([], [])
        rows = read_rows(reader, self.limits.parameter_bytes, "the server's limit parameter_bytes")
        columns = [column.to_pylist() for column in rows.columns]
        return ParameterRows(rows.column_names, [*zip(*columns, strict=True)])

    def _sweep(self) -> None:
        seconds = self.limits.idle_seconds
        self.sessions.end_idle(seconds)
        self.statements.end_idle(seconds)


def _asked(descriptor: flight.FlightDescriptor) -> object:
    if descriptor.descriptor_type != flight.DescriptorType.CMD:
        raise MalformedMessage("A descriptor of Flight SQL is a command, not a path.")
    return messages.unpacked(descriptor.command)


def _info(
    columns: pa.Schema, descriptor: flight.FlightDescriptor, ticket: bytes
) -> flight.FlightInfo:
    endpoint = flight.FlightEndpoint(flight.Ticket(ticket), [])
    return flight.FlightInfo(columns, descriptor, [endpoint], -1, -1)
