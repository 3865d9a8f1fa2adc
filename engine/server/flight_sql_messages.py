"""The messages of Flight and Flight SQL that the server reads and writes, with the numbers of their fields.

Those of Flight SQL travel inside an `Any`, which names them: `unpacked` and `packed`.  The protocol:
https://arrow.apache.org/docs/format/FlightSql.html
"""

from __future__ import annotations

from typing import dataclass_transform

from ..records import dataclass
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
PACKED: dict[str, type[PackedMessage]] = {}


@dataclass_transform(frozen_default=True)
class Message:
    """A frozen dataclass of fields with numbers."""

    def __init_subclass__(cls) -> None:
        dataclass(frozen=True)(cls)


class PackedMessage(Message):
    """A message that clients send inside an `Any`, by its name."""

    def __init_subclass__(cls) -> None:
        super().__init_subclass__()
        PACKED[cls.__name__] = cls


class _TextFields(Message):
    query: str = once(1, TEXT, "")
    transaction_id: bytes | None = perhaps(2, BYTES)


class _PreparedFields(Message):
    prepared_statement_handle: bytes = once(1, BYTES, b"")


class _TableFields(Message):
    catalog: str | None = perhaps(1, TEXT)
    db_schema: str | None = perhaps(2, TEXT)
    table: str = once(3, TEXT, "")


class AnyMessage(Message):
    """google.protobuf.Any: a message, and which one it is."""

    type_url: str = once(1, TEXT, "")
    value: bytes = once(2, BYTES, b"")


class CommandStatementQuery(_TextFields, PackedMessage):
    """Ask for the rows of a text."""


class CommandStatementUpdate(_TextFields, PackedMessage):
    """Carry out a text and ask how many rows it changed."""


class CommandPreparedStatementQuery(_PreparedFields, PackedMessage):
    """Ask for the rows of a prepared statement, or give it parameters."""


class CommandPreparedStatementUpdate(_PreparedFields, PackedMessage):
    """Carry out a prepared statement for each row of parameters."""


class TicketStatementQuery(PackedMessage):
    """The rows of a query that was asked for."""

    statement_handle: bytes = once(1, BYTES, b"")


class TableDefinitionOptions(Message):
    """What becomes of a table that is not there (1 create, 2 fail) or is (1 fail, 2 append, 3 replace)."""

    if_not_exist: int = once(1, INT32, 0)
    if_exists: int = once(2, INT32, 0)


class CommandStatementIngest(PackedMessage):
    """Store the rows that follow in a table."""

    table_definition_options: TableDefinitionOptions | None = perhaps(
        1, message(TableDefinitionOptions)
    )
    table: str = once(2, TEXT, "")
    schema: str | None = perhaps(3, TEXT)
    catalog: str | None = perhaps(4, TEXT)
    temporary: bool = once(5, BOOL, False)
    transaction_id: bytes | None = perhaps(6, BYTES)


class CommandGetCatalogs(PackedMessage):
    """Ask for the catalogs."""


class CommandGetDbSchemas(PackedMessage):
    """Ask for the schemas of a catalog whose names match a pattern."""

    catalog: str | None = perhaps(1, TEXT)
    db_schema_filter_pattern: str | None = perhaps(2, TEXT)


class CommandGetTables(PackedMessage):
    """Ask for tables and views, perhaps with their columns."""

    catalog: str | None = perhaps(1, TEXT)
    db_schema_filter_pattern: str | None = perhaps(2, TEXT)
    table_name_filter_pattern: str | None = perhaps(3, TEXT)
    table_types: tuple[str, ...] = repeated(4, TEXT)
    include_schema: bool = once(5, BOOL, False)


class CommandGetTableTypes(PackedMessage):
    """Ask which kinds of tables there are."""


class CommandGetPrimaryKeys(_TableFields, PackedMessage):
    """Ask for the columns of a table's primary key."""


class CommandGetExportedKeys(_TableFields, PackedMessage):
    """Ask for the foreign keys that point to a table."""


class CommandGetImportedKeys(_TableFields, PackedMessage):
    """Ask for the foreign keys of a table."""


class CommandGetCrossReference(PackedMessage):
    """Ask for the foreign keys of one table that point to another."""

    pk_table: str = once(3, TEXT, "")
    fk_table: str = once(6, TEXT, "")


class CommandGetSqlInfo(PackedMessage):
    """Ask what the server can, by numbers; for all without any."""

    info: tuple[int, ...] = repeated(1, UINT32)


class CommandGetXdbcTypeInfo(PackedMessage):
    """Ask for the types, perhaps for those of one number."""

    data_type: int | None = perhaps(1, INT32)


class ActionCreatePreparedStatementRequest(_TextFields, PackedMessage):
    """Plan a text that is to be run later."""


class ActionCreatePreparedStatementResult(Message):
    """A prepared statement, with the columns of its rows and of its parameters as far as they are known."""

    prepared_statement_handle: bytes = once(1, BYTES, b"")
    dataset_schema: bytes = once(2, BYTES, b"")
    parameter_schema: bytes = once(3, BYTES, b"")


class ActionClosePreparedStatementRequest(_PreparedFields, PackedMessage):
    """Let a prepared statement go."""


class ActionBeginTransactionRequest(PackedMessage):
    """Begin a transaction."""


class ActionBeginTransactionResult(Message):
    """The transaction that has begun."""

    transaction_id: bytes = once(1, BYTES, b"")


class ActionEndTransactionRequest(PackedMessage):
    """End a transaction: action 1 keeps its changes, 2 undoes them."""

    transaction_id: bytes = once(1, BYTES, b"")
    action: int = once(2, INT32, 0)


class DoPutUpdateResult(Message):
    """How many rows a statement changed; -1 where nobody knows."""

    record_count: int = once(1, INT64, 0)


class DoPutPreparedStatementResult(Message):
    """The prepared statement that has the parameters."""

    prepared_statement_handle: bytes | None = perhaps(1, BYTES)


class ActionCancelQueryRequest(PackedMessage):
    """Stop a query, by the bytes of its FlightInfo: an earlier form of `CancelFlightInfoRequest`."""

    info: bytes = once(1, BYTES, b"")


class CancelResult(Message):
    """1: stopped, 2: being stopped, 3: cannot be stopped."""

    result: int = once(1, INT32, 0)


# Flight's own, which travel without an `Any`


class TicketBytes(Message):
    """A ticket of Flight."""

    ticket: bytes = once(1, BYTES, b"")


class Endpoint(Message):
    """A part of an answer: where it is to be had."""

    ticket: TicketBytes | None = perhaps(1, message(TicketBytes))


class InfoOfFlight(Message):
    """What GetFlightInfo answered, of which only the endpoints are looked at."""

    endpoint: tuple[Endpoint, ...] = repeated(3, message(Endpoint))


class CancelFlightInfoRequest(Message):
    """Stop the query of an answer."""

    info: InfoOfFlight | None = perhaps(1, message(InfoOfFlight))


class StringList(Message):
    """Several texts as one value of a session option."""

    values: tuple[str, ...] = repeated(1, TEXT)


class SessionOptionValue(Message):
    """The value of a session option: one of these, or none to go back to the default."""

    string_value: str | None = perhaps(1, TEXT)
    bool_value: bool | None = perhaps(2, BOOL)
    int64_value: int | None = perhaps(3, SFIXED64)
    double_value: float | None = perhaps(4, DOUBLE)
    string_list_value: StringList | None = perhaps(5, message(StringList))


class SessionOption(Message):
    """A session option by its name."""

    key: str = once(1, TEXT, "")
    value: SessionOptionValue | None = perhaps(2, message(SessionOptionValue))


class SetSessionOptionsRequest(Message):
    """Change options of the caller's session."""

    session_options: tuple[SessionOption, ...] = repeated(1, message(SessionOption))


class OptionError(Message):
    """1: there is no such option, 2: it does not take the value, 3: it cannot be set."""

    value: int = once(1, INT32, 0)


class RefusedOption(Message):
    """An option that was not changed, and why."""

    key: str = once(1, TEXT, "")
    value: OptionError | None = perhaps(2, message(OptionError))


class SetSessionOptionsResult(Message):
    """The options that were not changed."""

    errors: tuple[RefusedOption, ...] = repeated(1, message(RefusedOption))


class GetSessionOptionsResult(Message):
    """All options of the caller's session."""

    session_options: tuple[SessionOption, ...] = repeated(1, message(SessionOption))


class CloseSessionResult(Message):
    """1: closed, 2: closing, 3: cannot be closed."""

    status: int = once(1, INT32, 0)


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
