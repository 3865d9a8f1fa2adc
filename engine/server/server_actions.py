"""The actions of Flight and Flight SQL, and two of our own: Health and Metrics."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import TYPE_CHECKING, TypeVar

import pyarrow as pa

from ..errors import FuselineError, InvalidQuery, UnknownName, Unsupported
from ..records import dataclass
from . import flight_sql_messages as messages
from .calls import COOKIE, ServerCall
from .client_sessions import options_of, set_options
from .wire_format import MalformedMessage, decode, encode

if TYPE_CHECKING:
    from pyarrow import flight

    from .flight_service import FlightService

COMMIT, ROLLBACK = 1, 2
CANCELLED, NOT_CANCELLABLE = 1, 3
CLOSED = 1


@dataclass(frozen=True)
class Asked:
    """An action that a client asks for."""

    service: FlightService
    call: ServerCall
    context: flight.ServerCallContext
    body: bytes


Action = Callable[[Asked], list[bytes]]
M = TypeVar("M")


def _message(asked: Asked, kind: type[M]) -> M:
    found = messages.unpacked(asked.body)
    if not isinstance(found, kind):
        raise MalformedMessage(f"This action takes {kind.__name__}, not {type(found).__name__}.")
    return found


def _create_prepared(asked: Asked) -> list[bytes]:
    request = _message(asked, messages.ActionCreatePreparedStatementRequest)
    service, call = asked.service, asked.call
    served = service.sessions.connection(call.client, call.session, request.transaction_id)
    statements = service.statements
    stop = statements.stop_of(call, asked.context, served)
    handle, prepared = statements.prepare(call, stop, served, request.query)
    parameters = pa.schema([pa.field(name, pa.null()) for name in prepared.parameters])
    rows = b"" if prepared.rows is None else prepared.rows.serialize().to_pybytes()
    made = messages.ActionCreatePreparedStatementResult(
        handle, rows, parameters.serialize().to_pybytes()
    )
    return [messages.packed(made)]


def _close_prepared(asked: Asked) -> list[bytes]:
    request = _message(asked, messages.ActionClosePreparedStatementRequest)
    asked.service.statements.prepared.take(asked.call.client, request.prepared_statement_handle)
    return []


def _begin(asked: Asked) -> list[bytes]:
    _message(asked, messages.ActionBeginTransactionRequest)
    call = asked.call
    return [
        messages.packed(
            messages.ActionBeginTransactionResult(
                asked.service.sessions.begin(call.client, call.session)
            )
        )
    ]


def _end(asked: Asked) -> list[bytes]:
    request = _message(asked, messages.ActionEndTransactionRequest)
    if request.action not in (COMMIT, ROLLBACK):
        raise InvalidQuery(
            "A transaction is ended by 1, which commits it, or 2, which rolls it back."
        )
    service, call = asked.service, asked.call
    served = service.sessions.transactions.get(call.client, request.transaction_id)
    stop = service.statements.stop_of(call, asked.context, served)
    try:
        service.sessions.end(call.client, request.transaction_id, request.action == COMMIT, stop)
    finally:
        service.statements.forget(served)
    return []


def _no_savepoints(asked: Asked) -> list[bytes]:
    raise Unsupported("Savepoints are not supported: end the transaction and begin another.")


def _no_substrait(asked: Asked) -> list[bytes]:
    raise Unsupported("Substrait plans are not supported: send SQL.")


def _stop(asked: Asked, info: messages.InfoOfFlight) -> messages.CancelResult:
    """Stop the queries of an answer."""
    stopped = False
    for endpoint in info.endpoint:
        ticket = b"" if endpoint.ticket is None else endpoint.ticket.ticket
        found = messages.unpacked(ticket)
        if isinstance(found, messages.TicketStatementQuery):
            client = asked.call.client
            stopped |= asked.service.statements.cancel(client, found.statement_handle)
    return messages.CancelResult(CANCELLED if stopped else NOT_CANCELLABLE)


def _cancel_info(asked: Asked) -> list[bytes]:
    request = decode(messages.CancelFlightInfoRequest, asked.body)
    return [encode(_stop(asked, request.info or messages.InfoOfFlight()))]


def _cancel_query(asked: Asked) -> list[bytes]:
    request = _message(asked, messages.ActionCancelQueryRequest)
    return [messages.packed(_stop(asked, decode(messages.InfoOfFlight, request.info)))]


def _set_options(asked: Asked) -> list[bytes]:
    request = decode(messages.SetSessionOptionsRequest, asked.body)
    service, call = asked.service, asked.call
    sessions = service.sessions
    try:
        served = sessions.open.get(call.client, call.session)
    except UnknownName:
        handle, served = sessions.new(call.client)
        cookie = f"{COOKIE}={handle.hex()}; Path=/; HttpOnly; SameSite=Strict"
        asked.context.add_header("set-cookie", cookie)
    first = sessions.shared.connection.settings
    return [
        encode(
            messages.SetSessionOptionsResult(set_options(served, first, request.session_options))
        )
    ]


def _get_options(asked: Asked) -> list[bytes]:
    call = asked.call
    served = asked.service.sessions.connection(call.client, call.session, None)
    return [encode(messages.GetSessionOptionsResult(options_of(served)))]


def _close_session(asked: Asked) -> list[bytes]:
    service, call = asked.service, asked.call
    served = service.sessions.open.take(call.client, call.session)
    service.statements.forget(served)
    served.close()
    asked.context.add_header("set-cookie", f"{COOKIE}=; Path=/; Max-Age=0")
    return [encode(messages.CloseSessionResult(CLOSED))]


def _health(asked: Asked) -> list[bytes]:
    """Ask a query, as a client would."""
    try:
        served = asked.service.sessions.shared
        ((one,),) = served.connection.sql("SELECT 1").fetchall()
        healthy = one == 1
    except FuselineError:
        healthy = False
    return [json.dumps({"healthy": healthy}).encode()]


def _metrics(asked: Asked) -> list[bytes]:
    return [json.dumps(asked.service.metrics()).encode()]


ACTIONS: dict[str, tuple[str, Action]] = {
    "CreatePreparedStatement": ("Plan a statement that is run later.", _create_prepared),
    "ClosePreparedStatement": ("Let a prepared statement go.", _close_prepared),
    "BeginTransaction": ("Begin a transaction.", _begin),
    "EndTransaction": ("Commit a transaction or roll it back.", _end),
    "BeginSavepoint": ("Not supported.", _no_savepoints),
    "EndSavepoint": ("Not supported.", _no_savepoints),
    "CreatePreparedSubstraitPlan": ("Not supported.", _no_substrait),
    "CancelFlightInfo": ("Stop a query.", _cancel_info),
    "CancelQuery": ("Stop a query, as clients did before CancelFlightInfo.", _cancel_query),
    "SetSessionOptions": ("Change settings of the session.", _set_options),
    "GetSessionOptions": ("Tell the settings of the session.", _get_options),
    "CloseSession": ("End the session.", _close_session),
    "Health": ("Whether queries are answered; needs no login.", _health),
    "Metrics": ("Counts of what the server does, as JSON.", _metrics),
}
FOR_EVERYONE = ("Health",)
