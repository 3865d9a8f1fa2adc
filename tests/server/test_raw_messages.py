"""What gRPC's own client gets that writes its messages by hand: the schemas of answers, the session's cookie, refusals of wrong bytes."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from dataclasses import fields
from typing import Any

import pyarrow as pa
import pytest
from pyarrow import flight

from fuseline.server import flight_sql_messages as m
from fuseline.server.flight_service import FlightService
from fuseline.server.server_actions import ACTIONS
from fuseline.server.wire_format import MalformedMessage, decode, encode
from tests.server.serving_here import action, command, raw, served

T = pa.table({"a": [1, 2, 3], "b": ["x", "y", None]})


@pytest.fixture(scope="module")
def service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[FlightService]:
    with served(tmp_path_factory.mktemp("tables"), {"t": T}, writable=True) as started:
        yield started


@pytest.fixture
def connection(service: FlightService) -> Iterator[flight.FlightClient]:
    with raw(service) as opened:
        yield opened


def asked(connection: flight.FlightClient, message: object) -> pa.Table:
    """The answer to a question, whose columns are those that were told before."""
    info = connection.get_flight_info(command(message))
    table = connection.do_get(info.endpoints[0].ticket).read_all()
    assert table.schema == info.schema
    assert connection.get_schema(command(message)).schema == info.schema
    return table


def run(connection: flight.FlightClient, text: str) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = asked(connection, m.CommandStatementQuery(text)).to_pylist()
    return found


def update(connection: flight.FlightClient, text: str) -> int:
    descriptor = command(m.CommandStatementUpdate(text))
    writer, reader = connection.do_put(descriptor, pa.schema([]))
    writer.done_writing()
    answer = reader.read()
    writer.close()
    return decode(m.DoPutUpdateResult, answer.to_pybytes()).record_count


MESSAGES = [
    m.CommandStatementQuery("select 'ü'", b"\x00\xff"),
    m.CommandGetTables(None, "%", "", ("TABLE", "VIEW"), True),
    m.CommandGetSqlInfo((0, 127, 128, 2**32 - 1)),
    m.CommandGetXdbcTypeInfo(-5),
    m.DoPutUpdateResult(-1),
    m.CommandStatementIngest(m.TableDefinitionOptions(1, 3), "t", None, "c", True),
    m.SetSessionOptionsRequest(
        (
            m.SessionOption("a", m.SessionOptionValue(int64_value=-(2**63))),
            m.SessionOption("b", m.SessionOptionValue(double_value=0.5)),
            m.SessionOption("c", m.SessionOptionValue(string_list_value=m.StringList(("x", "")))),
        )
    ),
]


@pytest.mark.parametrize("message", MESSAGES, ids=lambda message: type(message).__name__)
def test_a_message_comes_back(message: Any) -> None:
    assert decode(type(message), encode(message)) == message
    if type(message).__name__ in m.PACKED:
        assert m.unpacked(m.packed(message)) == message


def test_numbers_may_come_one_by_one_or_together() -> None:
    assert decode(m.CommandGetSqlInfo, b"\x08\x01\x08\x02\x0a\x02\x03\x04").info == (1, 2, 3, 4)


@pytest.mark.parametrize(
    "data",
    [
        b"\x0a\x05abc",  # ends within a text
        b"\x0a\x01\xff",  # no UTF-8
        b"\x08\x01",  # a number where a text is
        b"\x0a",  # no length
        b"\x0b",  # a group, which there are no more
        b"\x00\x01",  # the field 0
        b"\x0a" + b"\xff" * 11,  # a number that does not end
        b"\x0a" + b"\xff" * 9 + b"\x7f",  # beyond 64 bits
    ],
)
def test_wrong_bytes_are_no_message(data: bytes) -> None:
    with pytest.raises(MalformedMessage):
        decode(m.CommandStatementQuery, data)


def test_unknown_fields_are_skipped() -> None:
    data = encode(m.CommandStatementQuery("select 1")) + b"\x98\x06\x01\x9d\x06abcd\x99\x06abcdefgh"
    assert decode(m.CommandStatementQuery, data).query == "select 1"


def test_the_primary_key(connection: flight.FlightClient) -> None:
    update(
        connection,
        "create or replace table keyed (k int, l int, v text not null, primary key (l, k))",
    )
    rows = asked(connection, m.CommandGetPrimaryKeys(None, None, "keyed")).to_pylist()
    assert [(r["column_name"], r["key_sequence"]) for r in rows] == [("l", 1), ("k", 2)]
    (table,) = asked(connection, m.CommandGetTables(None, None, "keyed", (), True)).to_pylist()
    schema = pa.ipc.read_schema(pa.py_buffer(table["table_schema"]))
    assert [field.nullable for field in schema] == [False, False, False]


def test_questions_about_keys_that_there_are_none_of(connection: flight.FlightClient) -> None:
    for kind in (m.CommandGetExportedKeys, m.CommandGetImportedKeys):
        assert asked(connection, kind(None, None, "t")).num_rows == 0
    assert asked(connection, m.CommandGetCrossReference("t", "t")).num_columns == 13


@pytest.mark.parametrize(
    ("pattern", "names"),
    [("t", ["t"]), ("T", ["t"]), ("_", ["t"]), ("%", ["p_q", "pxq", "t"]), (r"p\_q", ["p_q"]), ("p_q", ["p_q", "pxq"]), ("", [])],
)  # fmt: skip
def test_patterns_of_names(pattern: str, names: list[str], connection: flight.FlightClient) -> None:
    update(connection, "create or replace table p_q (x int); create or replace table pxq (x int)")
    question = m.CommandGetTables("memory", "main", pattern, ("TABLE",))
    found = asked(connection, question)["table_name"].to_pylist()
    assert [n for n in found if n in ("p_q", "pxq", "t")] == names


def test_another_catalog_has_nothing(connection: flight.FlightClient) -> None:
    assert asked(connection, m.CommandGetTables("other")).num_rows == 0
    assert asked(connection, m.CommandGetDbSchemas("other")).num_rows == 0
    assert asked(connection, m.CommandGetDbSchemas()).num_rows == 1
    assert asked(connection, m.CommandGetCatalogs()).to_pylist() == [{"catalog_name": "memory"}]
    assert asked(connection, m.CommandGetTableTypes()).num_rows == 2


def test_the_union_of_what_the_server_is(connection: flight.FlightClient) -> None:
    table = asked(connection, m.CommandGetSqlInfo((0, 3, 8, 509, 562)))
    value = table.schema.field("value").type
    assert value.mode == "dense"
    assert [(f.name, str(f.type)) for f in value] == [
        ("string_value", "string"),
        ("bool_value", "bool"),
        ("bigint_value", "int64"),
        ("int32_bitmask", "int32"),
        ("string_list", "list<string_data: string>"),
        ("int32_to_int32_list_map", "map<int32, list<$data$: int32>>"),
    ]
    values = dict(zip(table["info_name"].to_pylist(), table["value"].to_pylist(), strict=True))
    assert values[0] == "Fuseline"
    assert values[3] is False
    assert "sqrt" in values[509]
    assert asked(connection, m.CommandGetSqlInfo()).num_rows > 40


def test_types_as_odbc_asks_for_them(connection: flight.FlightClient) -> None:
    numbers = asked(connection, m.CommandGetXdbcTypeInfo())["data_type"].to_pylist()
    assert numbers == sorted(numbers)
    _, row = asked(connection, m.CommandGetXdbcTypeInfo(12)).to_pylist()
    assert (row["type_name"], row["literal_prefix"], row["create_params"]) == ("VARCHAR", "'", ["length"])  # fmt: skip


def test_a_ticket_is_for_one_time(connection: flight.FlightClient) -> None:
    info = connection.get_flight_info(command(m.CommandStatementQuery("select 1 as one")))
    ticket = info.endpoints[0].ticket
    assert connection.do_get(ticket).read_all().to_pylist() == [{"one": 1}]
    with pytest.raises(pa.ArrowInvalid, match="no such answer"):
        connection.do_get(ticket).read_all()


def test_planning_runs_nothing(connection: flight.FlightClient) -> None:
    """The columns come without a run, which would raise."""
    info = connection.get_flight_info(
        command(m.CommandStatementQuery("select cast('x' || range as int) as n from range(9)"))
    )
    assert info.schema.names == ["n"]
    with pytest.raises(pa.ArrowInvalid, match="x0"):
        connection.do_get(info.endpoints[0].ticket).read_all()


def test_a_schema_of_a_change_does_not_make_it(connection: flight.FlightClient) -> None:
    with pytest.raises(pa.ArrowInvalid, match="before it is run"):
        connection.get_schema(command(m.CommandStatementQuery("create table never (x int)")))
    assert asked(connection, m.CommandGetTables(None, None, "never")).num_rows == 0


class Cookies(flight.ClientMiddlewareFactory):
    """Keeps cookies between calls."""

    def __init__(self) -> None:
        self.kept: list[str] = []

    def start_call(self, info: object) -> flight.ClientMiddleware:
        return Jar(self)


class Jar(flight.ClientMiddleware):
    def __init__(self, cookies: Cookies) -> None:
        self.cookies = cookies

    def sending_headers(self) -> dict[str, str]:
        return {"cookie": self.cookies.kept[-1].split(";")[0]} if self.cookies.kept else {}

    def received_headers(self, headers: dict[str, list[str]]) -> None:
        self.cookies.kept += headers.get("set-cookie", [])


def options(connection: flight.FlightClient) -> dict[str, m.SessionOptionValue]:
    (data,) = action(connection, "GetSessionOptions", b"")
    return {o.key: o.value for o in decode(m.GetSessionOptionsResult, data).session_options}


def set_option(connection: flight.FlightClient, name: str, value: m.SessionOptionValue) -> int:
    """Which refusal the option got, 0 for none."""
    request = m.SetSessionOptionsRequest((m.SessionOption(name, value),))
    (data,) = action(connection, "SetSessionOptions", encode(request))
    errors = decode(m.SetSessionOptionsResult, data).errors
    return errors[0].value.value if errors else 0


def test_a_session_lives_from_its_first_option_to_its_close(service: FlightService) -> None:
    with raw(service, middleware=[Cookies()]) as connection:
        before = options(connection)
        value = m.SessionOptionValue
        assert set_option(connection, "threads", value(int64_value=1)) == 0
        assert set_option(connection, "catalog", value(string_value="memory")) == 0
        assert set_option(connection, "spill_dir", value(string_value="/tmp")) == 1
        assert set_option(connection, "threads", value(int64_value=4000)) == 2
        assert set_option(connection, "schema", value(string_value="other")) == 2
        assert options(connection)["threads"] == value(int64_value=1)
        assert set_option(connection, "threads", value()) == 0
        assert options(connection) == before
        (closed,) = action(connection, "CloseSession", b"")
        assert decode(m.CloseSessionResult, closed).status == 1
        assert not service.sessions.open


def test_health_and_metrics(connection: flight.FlightClient) -> None:
    assert action(connection, "Health", b"") == [b'{"healthy": true}']
    assert b'"queries"' in action(connection, "Metrics", b"")[0]
    assert {a.type for a in connection.list_actions()} == {*ACTIONS}
    assert [*connection.list_flights()] == []


@pytest.mark.parametrize("name", ["BeginSavepoint", "CreatePreparedSubstraitPlan", "Nothing"])
def test_actions_that_there_are_not(name: str, connection: flight.FlightClient) -> None:
    with pytest.raises(pa.ArrowNotImplementedError):
        action(connection, name, b"")


def test_a_transaction_that_is_over_is_not_found(connection: flight.FlightClient) -> None:
    (begun,) = action(connection, "BeginTransaction", m.packed(m.ActionBeginTransactionRequest()))
    handle = decode(
        m.ActionBeginTransactionResult, decode(m.AnyMessage, begun).value
    ).transaction_id
    for ends in (True, False):
        request = m.packed(m.ActionEndTransactionRequest(handle, 1))
        if ends:
            assert action(connection, "EndTransaction", request) == []
            continue
        with pytest.raises(pa.ArrowInvalid, match="no such transaction"):
            action(connection, "EndTransaction", request)


WRONG: list[Callable[[flight.FlightClient], object]] = [
    lambda c: c.get_flight_info(flight.FlightDescriptor.for_path("a", "b")),
    lambda c: c.get_flight_info(flight.FlightDescriptor.for_command(b"")),
    lambda c: c.get_flight_info(flight.FlightDescriptor.for_command(b"\xff" * 20)),
    lambda c: c.get_flight_info(command(m.CommandStatementUpdate("select 1"))),
    lambda c: c.get_schema(flight.FlightDescriptor.for_command(b"\x0a\x01a")),
    lambda c: c.do_get(flight.Ticket(b"")).read_all(),
    lambda c: c.do_get(flight.Ticket(m.packed(m.TicketStatementQuery(b"guess")))).read_all(),
    lambda c: c.do_get(flight.Ticket(m.packed(m.CommandStatementQuery("select 1")))).read_all(),
    lambda c: action(c, "CreatePreparedStatement", b"\x08"),
    lambda c: action(c, "ClosePreparedStatement", m.packed(m.CommandGetCatalogs())),
    lambda c: action(c, "EndTransaction", m.packed(m.ActionEndTransactionRequest(b"x", 7))),
    lambda c: action(c, "CancelFlightInfo", b"\x0a\x05"),
    lambda c: action(c, "SetSessionOptions", b"\x0a\x02\x0a\xff"),
    lambda c: update(c, "select from where"),
    lambda c: run(c, ""),
    lambda c: run(c, "select '\x00"),
    lambda c: run(c, "select " + "(" * 5000),
]  # fmt: skip


@pytest.mark.parametrize("call", WRONG, ids=range(len(WRONG)))
def test_what_is_wrong_is_an_invalid_argument(
    call: Callable[[flight.FlightClient], object], connection: flight.FlightClient
) -> None:
    with pytest.raises(pa.ArrowInvalid):
        call(connection)
    assert run(connection, "select 42 as x") == [{"x": 42}]


def mutated(choose: random.Random) -> bytes:
    """A message of the protocol, of which some bytes are others, missing, doubled or moved."""
    kind = choose.choice([*m.PACKED.values()])
    values = {f.name: _value(choose, str(f.type)) for f in fields(kind) if choose.random() < 0.7}
    data = bytearray(m.packed(kind(**values)))
    for _ in range(choose.randrange(4)):
        place = choose.randrange(len(data) + 1)
        match choose.randrange(4):
            case 0:
                data[place : place + 1] = bytes([choose.randrange(256)])
            case 1:
                del data[place : place + choose.randrange(8)]
            case 2:
                data[place:place] = choose.randbytes(choose.randrange(8))
            case 3:
                data += data[place:]
    return bytes(data)


def _value(choose: random.Random, kind: str) -> Any:
    if "tuple[str" in kind:
        return tuple("x" * choose.randrange(3) for _ in range(choose.randrange(3)))
    if "tuple[int" in kind:
        return tuple(choose.randrange(1000) for _ in range(choose.randrange(3)))
    if "TableDefinition" in kind:
        return m.TableDefinitionOptions(choose.randrange(4), choose.randrange(4))
    if "bool" in kind:
        return choose.random() < 0.5
    if "int" in kind:
        return choose.choice([0, 1, -1, 2**31 - 1])
    if "bytes" in kind:
        return choose.randbytes(choose.choice([0, 1, 16]))
    return choose.choice(
        ["", "select 1", "select ?", "t", "%", "selec", "select * from t", "ü\x00"]
    )


def send(connection: flight.FlightClient, choose: random.Random, data: bytes) -> str:
    """The error of one call of a random method with a message: one of Flight or Arrow is an answer too."""
    descriptor = flight.FlightDescriptor.for_command(data)
    try:
        match choose.randrange(5):
            case 0:
                info = connection.get_flight_info(descriptor)
                connection.do_get(info.endpoints[0].ticket).read_all()
            case 1:
                connection.get_schema(descriptor)
            case 2:
                connection.do_get(flight.Ticket(data)).read_all()
            case 3:
                name = choose.choice([*ACTIONS])
                action(connection, name, choose.choice([data, m.decode(m.AnyMessage, b"").value]))
            case 4:
                schema = choose.choice([pa.schema([]), T.schema])
                writer, reader = connection.do_put(descriptor, schema)
                if len(schema):
                    writer.write_table(T)
                writer.done_writing()
                reader.read()
                writer.close()
    except (pa.ArrowException, flight.FlightError, StopIteration) as error:
        return f"{type(error).__name__}: {error}"
    return ""


def fuzz(connection: flight.FlightClient, count: int, seed: int) -> None:
    print(f"seed {seed}")
    choose = random.Random(seed)
    for _ in range(count):
        data = mutated(choose)
        error = send(connection, choose, data)
        assert "Unforeseen" not in error, (data, error)
        assert not error.startswith("FlightInternalError"), (data, error)
    assert run(connection, "select 42 as x") == [{"x": 42}]


def test_random_messages(connection: flight.FlightClient) -> None:
    fuzz(connection, 300, 20_261)


@pytest.mark.nightly
def test_many_random_messages(connection: flight.FlightClient) -> None:
    fuzz(connection, 10_000, random.randrange(10**9))
