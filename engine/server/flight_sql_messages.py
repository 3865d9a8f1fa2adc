"""The messages of Flight and Flight SQL that the server reads and writes, with the numbers of their fields.

Those of Flight SQL travel inside an `Any`, which names them: `unpacked` and `packed`.  The protocol:
https://arrow.apache.org/docs/format/FlightSql.html
"""

from __future__ import annotations

from dataclasses import dataclass

from .wire_format import (
    BOOL,
    BYTES,
    DOUBLE,
    INT32,
    INT64,
    SFIXED64,
    TEXT,
    UINT32,
    MalformedMessage,
    decode,
    encode,
    message,
    once,
    perhaps,
    repeated,
)

PREFIX = "type.googleapis.com/"
PACKAGE = "arrow.flight.protocol.sql."


@dataclass(frozen=True)
class AnyMessage:
    """google.protobuf.Any: a message, and which one it is."""

    type_url: str = once(1, TEXT, "")
    value: bytes = once(2, BYTES, b"")


@dataclass(frozen=True)
class CommandStatementQuery:
    """Ask for the rows of a text."""

    query: str = once(1, TEXT, "")
    transaction_id: bytes | None = perhaps(2, BYTES)


@dataclass(frozen=True)
class CommandStatementUpdate:
    """Carry out a text and ask how many rows it changed."""

    query: str = once(1, TEXT, "")
    transaction_id: bytes | None = perhaps(2, BYTES)


@dataclass(frozen=True)
class CommandPreparedStatementQuery:
    """Ask for the rows of a prepared statement, or give it parameters."""

    prepared_statement_handle: bytes = once(1, BYTES, b"")


@dataclass(frozen=True)
class CommandPreparedStatementUpdate:
    """Carry out a prepared statement for each row of parameters."""

    prepared_statement_handle: bytes = once(1, BYTES, b"")


@dataclass(frozen=True)
class TicketStatementQuery:
    """The rows of a query that was asked for."""

    statement_handle: bytes = once(1, BYTES, b"")


@dataclass(frozen=True)
class TableDefinitionOptions:
    """What becomes of a table that is not there (1 create, 2 fail) or is (1 fail, 2 append, 3 replace)."""

    if_not_exist: int = once(1, INT32, 0)
    if_exists: int = once(2, INT32, 0)


@dataclass(frozen=True)
class CommandStatementIngest:
    """Store the rows that follow in a table."""

    table_definition_options: TableDefinitionOptions | None = perhaps(
        1, message(TableDefinitionOptions)
    )
    table: str = once(2, TEXT, "")
    schema: str | None = perhaps(3, TEXT)
    catalog: str | None = perhaps(4, TEXT)
    temporary: bool = once(5, BOOL, False)
    transaction_id: bytes | None = perhaps(6, BYTES)


@dataclass(frozen=True)
class CommandGetCatalogs:
    """Ask for the catalogs."""


@dataclass(frozen=True)
class CommandGetDbSchemas:
    """Ask for the schemas of a catalog whose names match a pattern."""

    catalog: str | None = perhaps(1, TEXT)
    db_schema_filter_pattern: str | None = perhaps(2, TEXT)


@dataclass(frozen=True)
class CommandGetTables:
    """Ask for tables and views, perhaps with their columns."""

    catalog: str | None = perhaps(1, TEXT)
    db_schema_filter_pattern: str | None = perhaps(2, TEXT)
    table_name_filter_pattern: str | None = perhaps(3, TEXT)
    table_types: tuple[str, ...] = repeated(4, TEXT)
    include_schema: bool = once(5, BOOL, False)


@dataclass(frozen=True)
class CommandGetTableTypes:
    """Ask which kinds of tables there are."""


@dataclass(frozen=True)
class CommandGetPrimaryKeys:
    """Ask for the columns of a table's primary key."""

    catalog: str | None = perhaps(1, TEXT)
    db_schema: str | None = perhaps(2, TEXT)
    table: str = once(3, TEXT, "")


@dataclass(frozen=True)
class CommandGetExportedKeys:
    """Ask for the foreign keys that point to a table."""

    catalog: str | None = perhaps(1, TEXT)
    db_schema: str | None = perhaps(2, TEXT)
    table: str = once(3, TEXT, "")


@dataclass(frozen=True)
class CommandGetImportedKeys:
    """Ask for the foreign keys of a table."""

    catalog: str | None = perhaps(1, TEXT)
    db_schema: str | None = perhaps(2, TEXT)
    table: str = once(3, TEXT, "")


@dataclass(frozen=True)
class CommandGetCrossReference:
    """Ask for the foreign keys of one table that point to another."""

    pk_table: str = once(3, TEXT, "")
    fk_table: str = once(6, TEXT, "")


@dataclass(frozen=True)
class CommandGetSqlInfo:
    """Ask what the server can, by numbers; for all without any."""

    info: tuple[int, ...] = repeated(1, UINT32)


@dataclass(frozen=True)
class CommandGetXdbcTypeInfo:
    """Ask for the types, perhaps for those of one number."""

    data_type: int | None = perhaps(1, INT32)


@dataclass(frozen=True)
class ActionCreatePreparedStatementRequest:
    """Plan a text that is to be run later."""

    query: str = once(1, TEXT, "")
    transaction_id: bytes | None = perhaps(2, BYTES)


@dataclass(frozen=True)
class ActionCreatePreparedStatementResult:
    """A prepared statement, with the columns of its rows and of its parameters as far as they are known."""

    prepared_statement_handle: bytes = once(1, BYTES, b"")
    dataset_schema: bytes = once(2, BYTES, b"")
    parameter_schema: bytes = once(3, BYTES, b"")


@dataclass(frozen=True)
class ActionClosePreparedStatementRequest:
    """Let a prepared statement go."""

    prepared_statement_handle: bytes = once(1, BYTES, b"")


@dataclass(frozen=True)
class ActionBeginTransactionRequest:
    """Begin a transaction."""


@dataclass(frozen=True)
class ActionBeginTransactionResult:
    """The transaction that has begun."""

    transaction_id: bytes = once(1, BYTES, b"")


@dataclass(frozen=True)
class ActionEndTransactionRequest:
    """End a transaction: action 1 keeps its changes, 2 undoes them."""

    transaction_id: bytes = once(1, BYTES, b"")
    action: int = once(2, INT32, 0)


@dataclass(frozen=True)
class DoPutUpdateResult:
    """How many rows a statement changed; -1 where nobody knows."""

    record_count: int = once(1, INT64, 0)


@dataclass(frozen=True)
class DoPutPreparedStatementResult:
    """The prepared statement that has the parameters."""

    prepared_statement_handle: bytes | None = perhaps(1, BYTES)


@dataclass(frozen=True)
class ActionCancelQueryRequest:
    """Stop a query, by the bytes of its FlightInfo: an earlier form of `CancelFlightInfoRequest`."""

    info: bytes = once(1, BYTES, b"")


@dataclass(frozen=True)
class CancelResult:
    """1: stopped, 2: being stopped, 3: cannot be stopped."""

    result: int = once(1, INT32, 0)


# Flight's own, which travel without an `Any`


@dataclass(frozen=True)
class TicketBytes:
    """A ticket of Flight."""

    ticket: bytes = once(1, BYTES, b"")


@dataclass(frozen=True)
class Endpoint:
    """A part of an answer: where it is to be had."""

    ticket: TicketBytes | None = perhaps(1, message(TicketBytes))


@dataclass(frozen=True)
class InfoOfFlight:
    """What GetFlightInfo answered, of which only the endpoints are looked at."""

    endpoint: tuple[Endpoint, ...] = repeated(3, message(Endpoint))


@dataclass(frozen=True)
class CancelFlightInfoRequest:
    """Stop the query of an answer."""

    info: InfoOfFlight | None = perhaps(1, message(InfoOfFlight))


@dataclass(frozen=True)
class StringList:
    """Several texts as one value of a session option."""

    values: tuple[str, ...] = repeated(1, TEXT)


@dataclass(frozen=True)
class SessionOptionValue:
    """The value of a session option: one of these, or none to go back to the default."""

    string_value: str | None = perhaps(1, TEXT)
    bool_value: bool | None = perhaps(2, BOOL)
    int64_value: int | None = perhaps(3, SFIXED64)
    double_value: float | None = perhaps(4, DOUBLE)
    string_list_value: StringList | None = perhaps(5, message(StringList))


@dataclass(frozen=True)
class SessionOption:
    """A session option by its name."""

    key: str = once(1, TEXT, "")
    value: SessionOptionValue | None = perhaps(2, message(SessionOptionValue))


@dataclass(frozen=True)
class SetSessionOptionsRequest:
    """Change options of the caller's session."""

    session_options: tuple[SessionOption, ...] = repeated(1, message(SessionOption))


@dataclass(frozen=True)
class OptionError:
    """1: there is no such option, 2: it does not take the value, 3: it cannot be set."""

    value: int = once(1, INT32, 0)


@dataclass(frozen=True)
class RefusedOption:
    """An option that was not changed, and why."""

    key: str = once(1, TEXT, "")
    value: OptionError | None = perhaps(2, message(OptionError))


@dataclass(frozen=True)
class SetSessionOptionsResult:
    """The options that were not changed."""

    errors: tuple[RefusedOption, ...] = repeated(1, message(RefusedOption))


@dataclass(frozen=True)
class GetSessionOptionsResult:
    """All options of the caller's session."""

    session_options: tuple[SessionOption, ...] = repeated(1, message(SessionOption))


@dataclass(frozen=True)
class CloseSessionResult:
    """1: closed, 2: closing, 3: cannot be closed."""

    status: int = once(1, INT32, 0)


PACKED = {
    kind.__name__: kind
    for kind in (
        CommandStatementQuery,
        CommandStatementUpdate,
        CommandPreparedStatementQuery,
        CommandPreparedStatementUpdate,
        TicketStatementQuery,
        CommandStatementIngest,
        CommandGetCatalogs,
        CommandGetDbSchemas,
        CommandGetTables,
        CommandGetTableTypes,
        CommandGetPrimaryKeys,
        CommandGetExportedKeys,
        CommandGetImportedKeys,
        CommandGetCrossReference,
        CommandGetSqlInfo,
        CommandGetXdbcTypeInfo,
        ActionCreatePreparedStatementRequest,
        ActionClosePreparedStatementRequest,
        ActionBeginTransactionRequest,
        ActionEndTransactionRequest,
        ActionCancelQueryRequest,
    )
}


def unpacked(data: bytes) -> object:
    """Return the message of Flight SQL in an `Any`; raises `MalformedMessage` for one that is unknown."""
    found = decode(AnyMessage, data)
    name = found.type_url.rpartition("/")[2].removeprefix(PACKAGE)
    kind = PACKED.get(name)
    if kind is None:
        raise MalformedMessage(
            f'The message is none of Flight SQL that this server knows: "{name[:100]}".'
        )
    return decode(kind, found.value)


def packed(value: object) -> bytes:
    """Return the bytes of an `Any` with a message of Flight SQL."""
    name = type(value).__name__
    sent = "ActionCancelQueryResult" if isinstance(value, CancelResult) else name
    return encode(AnyMessage(f"{PREFIX}{PACKAGE}{sent}", encode(value)))
