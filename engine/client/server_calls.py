"""What a client asks a server for, over Arrow Flight SQL: rows, changes, transactions; and errors with the classes that they had there."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor, wait
from contextlib import contextmanager, suppress
from functools import partial
from typing import TypeVar

import pyarrow as pa
from pyarrow import flight

from .. import errors
from ..plan_cache import Parameters
from ..records import dataclass
from ..server import flight_sql_messages as messages
from ..server.flight_errors import ERROR_HEADER, told_class
from ..server.wire_format import decode, encode
from ..stopping import WAIT_SECONDS, check

COMMIT, ROLLBACK = 1, 2
M = TypeVar("M")
_CONTEXT = re.compile(
    r"(?:\. Detail: \w+)?\.? ?gRPC client debug context:.*|\. Client context:.*", re.DOTALL
)
_PREFIX = re.compile(r"^Flight (?:error|returned [^:]*): |^.*?, with message: ", re.DOTALL)


@dataclass(frozen=True)
class Login:
    """Who asks: a token, or a user with a password; and the certificates that the server's is to be signed by, in PEM."""

    token: str | None = None
    user: str | None = None
    password: str | None = None
    certificates: bytes | None = None


class _Headers(flight.ClientMiddleware):
    """Sends the headers of a connection with each call."""

    def __init__(self, sent: Mapping[str, str]) -> None:
        self._sent = sent

    def sending_headers(self) -> dict[str, str]:
        return dict(self._sent)


class _HeadersOf(flight.ClientMiddlewareFactory):
    def __init__(self, sent: Mapping[str, str]) -> None:
        self._sent = sent

    def start_call(self, info: flight.CallInfo) -> _Headers:
        return _Headers(self._sent)


class ServerCalls:
    """A channel to a server, with the transaction that is open on it."""

    def __init__(self, address: str, login: Login) -> None:
        """Raise `OperationalError` where no server answers, or it does not know who asks."""
        self.address = address
        headers = {ERROR_HEADER: "1"}
        self._transaction: bytes | None = None
        with self._told(None):
            self._client = flight.FlightClient(
                address, tls_root_certs=login.certificates, middleware=[_HeadersOf(headers)]
            )
            if login.user is not None:
                name, value = self._client.authenticate_basic_token(
                    login.user, login.password or ""
                )
                headers[name.decode()] = value.decode()
            elif login.token is not None:
                headers["authorization"] = f"Bearer {login.token}"
            list(self._client.list_actions())

    def close(self) -> None:
        if self._transaction is not None:
            with suppress(errors.FuselineError):
                self.end(ROLLBACK)
        self._client.close()

    # Transactions

    def begin(self) -> None:
        with self._told("BEGIN"):
            answer = self._act("BeginTransaction", messages.ActionBeginTransactionRequest())
        self._transaction = _message(answer, messages.ActionBeginTransactionResult).transaction_id

    def end(self, action: int) -> None:
        """Commit or roll back; the transaction has ended then, also where that is an error."""
        assert self._transaction is not None, "begun"
        ended, self._transaction = self._transaction, None
        with self._told("COMMIT"):
            self._act("EndTransaction", messages.ActionEndTransactionRequest(ended, action))

    # Statements

    def columns(self, text: str, params: Parameters) -> pa.Schema:
        """Return the columns of a query, which is planned and not run."""
        with self._told(text), self._asked(text, params) as info:
            return info.schema

    def rows(self, text: str, params: Parameters) -> pa.Table:
        """Run a query and return its rows; what asks this thread to stop ends it there too."""
        with self._told(text), self._asked(text, params) as info:
            (endpoint,) = info.endpoints
            ticket = endpoint.ticket
            work = partial(_read, self._client, ticket)
            batches = _heard(work, partial(self._cancel, ticket))
            return pa.Table.from_batches(batches, info.schema)

    def _cancel(self, ticket: flight.Ticket) -> None:
        """Have the server stop what gives the rows of a ticket."""
        info = messages.InfoOfFlight(
            endpoint=(messages.Endpoint(messages.TicketBytes(ticket.ticket)),)
        )
        body = encode(messages.CancelFlightInfoRequest(info))
        with suppress(pa.ArrowException):
            list(self._client.do_action(flight.Action("CancelFlightInfo", body)))

    def change(self, text: str, params: Parameters) -> int:
        """Carry out a statement, and return how many rows it wrote, or -1."""
        rows = _row_of(params)
        return self.change_by_rows(text, rows) if rows is not None else self._changed(text)

    def change_by_rows(self, text: str, rows: pa.Table) -> int:
        """Carry out a statement for each row of parameters."""
        with self._told(text), self._prepared(text) as handle:
            return self._put(messages.CommandPreparedStatementUpdate(handle), rows)

    def _changed(self, text: str) -> int:
        with self._told(text):
            return self._put(messages.CommandStatementUpdate(text, self._transaction), pa.table({}))

    @contextmanager
    def _asked(self, text: str, params: Parameters) -> Iterator[flight.FlightInfo]:
        """Give the planned answer of a query."""
        rows = _row_of(params)
        if rows is None:
            yield self._client.get_flight_info(
                _descriptor(messages.CommandStatementQuery(text, self._transaction))
            )
            return
        with self._prepared(text) as handle:
            command = messages.CommandPreparedStatementQuery(handle)
            writer, _ = self._client.do_put(_descriptor(command), rows.schema)
            writer.write_table(rows)
            writer.close()
            yield self._client.get_flight_info(_descriptor(command))

    @contextmanager
    def _prepared(self, text: str) -> Iterator[bytes]:
        request = messages.ActionCreatePreparedStatementRequest(text, self._transaction)
        answer = self._act("CreatePreparedStatement", request)
        handle = _message(
            answer, messages.ActionCreatePreparedStatementResult
        ).prepared_statement_handle
        try:
            yield handle
        finally:
            with suppress(pa.ArrowException):
                self._act(
                    "ClosePreparedStatement", messages.ActionClosePreparedStatementRequest(handle)
                )

    def _put(self, command: object, rows: pa.Table) -> int:
        writer, reader = self._client.do_put(_descriptor(command), rows.schema)
        writer.write_table(rows)
        writer.done_writing()
        answer = reader.read()
        writer.close()
        return (
            -1
            if answer is None
            else decode(messages.DoPutUpdateResult, answer.to_pybytes()).record_count
        )

    def _act(self, name: str, request: object) -> list[bytes]:
        found = self._client.do_action(flight.Action(name, messages.packed(request)))
        return [result.body.to_pybytes() for result in found]

    @contextmanager
    def _told(self, text: str | None) -> Iterator[None]:
        """Raise what the server says is wrong as it was raised there."""
        try:
            yield
        except (pa.ArrowException, OSError, NotImplementedError) as error:
            raise error_of(error, self.address) from None


def _read(client: flight.FlightClient, ticket: flight.Ticket) -> list[pa.RecordBatch]:
    reader = client.do_get(ticket)
    found: list[pa.RecordBatch] = []
    while True:
        try:
            batch = reader.read_chunk().data
        except StopIteration:
            return found
        if batch is not None:
            found.append(batch)


def _heard(work: Callable[[], M], cancel: Callable[[], None]) -> M:
    """Do work that waits for a server in another thread, so that this one hears `interrupt`, time limits and Ctrl-C meanwhile."""
    with ThreadPoolExecutor(1, "fuseline-fetch") as pool:
        future = pool.submit(work)
        try:
            while not future.done():
                check()
                wait([future], WAIT_SECONDS)
        except BaseException:
            cancel()
            raise
        return future.result()


def _descriptor(command: object) -> flight.FlightDescriptor:
    return flight.FlightDescriptor.for_command(messages.packed(command))


def _message(answer: Sequence[bytes], kind: type[M]) -> M:
    found = decode(messages.AnyMessage, answer[0]) if answer else messages.AnyMessage()
    if found.type_url.rpartition(".")[2] != kind.__name__:
        raise errors.OperationalError(
            f"The server answers without {kind.__name__}: it speaks another protocol."
        )
    return decode(kind, found.value)


def _row_of(params: Parameters) -> pa.Table | None:
    """Return parameters as a row, with names or numbers; None where there are none."""
    if params is None or not len(params):
        return None
    values = (
        dict(params)
        if isinstance(params, Mapping)
        else {str(i): v for i, v in enumerate(params, 1)}
    )
    try:
        return pa.table({name: pa.array([value]) for name, value in values.items()})
    except (pa.ArrowException, TypeError) as error:
        raise errors.InvalidQuery(
            f"A parameter has no type that travels to a server: {error}."
        ) from None


_BY_STATUS: tuple[tuple[type[BaseException], Callable[[str], errors.FuselineError]], ...] = (
    (flight.FlightCancelledError, errors.Interrupted),
    (flight.FlightTimedOutError, errors.Interrupted),
    (flight.FlightInternalError, errors.InternalError),
    (flight.FlightError, errors.OperationalError),
    (NotImplementedError, errors.Unsupported),
    (pa.ArrowInvalid, errors.InvalidQuery),
)


def error_of(error: BaseException, address: str) -> errors.FuselineError:
    """Return an error of the server: in its class and with its place where a server of ours tells them, else by the status."""
    said = str(error)
    told = told_class(said)
    if told is not None:
        name, message, text = told
        kind = getattr(errors, name, errors.OperationalError)
        known = (
            kind
            if isinstance(kind, type) and issubclass(kind, errors.FuselineError)
            else errors.OperationalError
        )
        made = known.__new__(known)
        errors.FuselineError.__init__(made, message)
        made.shown = text
        return made
    text = _CONTEXT.sub("", _PREFIX.sub("", said)).strip()
    if isinstance(error, flight.FlightUnavailableError):
        text = f"The server at {address} does not answer: {text}"
    kind = next(
        (make for known, make in _BY_STATUS if isinstance(error, known)), errors.OperationalError
    )
    return kind(text)
