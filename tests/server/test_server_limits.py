"""What clients may have of the server, and that nothing stays when they vanish: turns, limits, cancelling, idle expiry, many at once."""

from __future__ import annotations

import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import adbc_driver_manager
import psutil
import pyarrow as pa
import pytest
from pyarrow import flight

from fuseline.errors import Interrupted, UnknownName
from fuseline.server import flight_sql_messages as m
from fuseline.server.client_sessions import Handles
from fuseline.server.flight_service import FlightService
from fuseline.server.serving import ServerOptions, started
from fuseline.server.turns import ANYONE, ServerBusy, ServerLimits, Turns
from fuseline.server.wire_format import encode
from fuseline.stopping import Stop
from tests.server.serving_here import action, address, arrow, client, command, raw, served

T = pa.table({"a": range(100)})
SECONDS = 20.0  # until something has to have happened, on a machine that is busy
ENDLESS = "with recursive r(n) as (select 1 union all select n + 1 from r where n > 0) select max(n) from r"
LARGE = "select r.range as n, 'some text that makes the row wider' || r.range as t from range(1000000) r"


@pytest.fixture(scope="module")
def service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[FlightService]:
    settings = {"device": "cpu", "recursion_limit": 10**8}
    with served(tmp_path_factory.mktemp("t"), {"t": T}, writable=True, settings=settings) as found:
        yield found


def until(happened: Callable[[], object]) -> None:
    end = time.monotonic() + SECONDS
    while not happened():
        assert time.monotonic() < end, "it has not happened"
        time.sleep(0.01)


def is_idle(service: FlightService) -> bool:
    counts = service.metrics()
    return not counts["running"] and not counts["waiting"] and not service.statements._running


def ticket(connection: flight.FlightClient, text: str) -> flight.Ticket:
    info = connection.get_flight_info(command(m.CommandStatementQuery(text)))
    return info.endpoints[0].ticket


def begin(service: FlightService, text: str) -> tuple[threading.Thread, list[BaseException]]:
    """Run a query in a thread; its error comes into the list."""
    errors: list[BaseException] = []

    def run() -> None:
        try:
            with raw(service) as connection:
                connection.do_get(ticket(connection, text)).read_all()
        except (pa.ArrowException, flight.FlightError) as error:
            errors.append(error)

    thread = threading.Thread(target=run)
    thread.start()
    return thread, errors


# Turns


def test_the_client_that_has_the_fewest_running_comes_first() -> None:
    turns = Turns(ServerLimits(queries=2, client_queries=2))
    for _ in range(2):
        turns.enter("greedy", Stop())
    came: list[str] = []

    def wait(name: str) -> None:
        turns.enter(name, Stop())
        came.append(name)

    threads = [threading.Thread(target=wait, args=(name,)) for name in ("greedy", "modest")]
    threads[0].start()
    until(lambda: turns.waiting == 1)
    threads[1].start()
    until(lambda: turns.waiting == 2)
    turns.leave("greedy")
    until(lambda: came)
    assert came == ["modest"]
    turns.leave("greedy")
    until(lambda: len(came) == 2)
    for thread in threads:
        thread.join()


def test_a_client_has_its_own_limit() -> None:
    turns = Turns(ServerLimits(queries=4, client_queries=1, wait_seconds=0.05))
    turns.enter("one", Stop())
    with pytest.raises(ServerBusy, match="wait_seconds"):
        turns.enter("one", Stop())
    turns.enter("two", Stop())
    for _ in range(2):
        turns.enter(ANYONE, Stop())
    assert (turns.running, turns.waiting) == (4, 0)


def test_a_queue_has_an_end_and_can_be_left() -> None:
    turns = Turns(ServerLimits(queries=1, waiting=1))
    turns.enter("one", Stop())
    stop, stopped = Stop(), []

    def wait() -> None:
        with pytest.raises(Interrupted):
            turns.enter("two", stop)
        stopped.append(True)

    thread = threading.Thread(target=wait)
    thread.start()
    until(lambda: turns.waiting == 1)
    with pytest.raises(ServerBusy, match="1 queries wait already"):
        turns.enter("three", Stop())
    stop.ask()
    thread.join()
    assert stopped == [True]
    assert turns.waiting == 0


def test_handles_end() -> None:
    ended: list[str] = []
    handles: Handles[str] = Handles("thing", 2, ended.append, drops_oldest=True)
    first = handles.add("me", "first")
    handles.add("me", "second")
    handles.add("me", "third")
    handles.add("you", "fourth")
    assert ended == ["first"]
    with pytest.raises(UnknownName):
        handles.get("me", first)
    handles.end_idle(0.0, lambda value: value == "second")
    assert ended == ["first", "third", "fourth"]
    closed: Handles[str] = Handles("thing", 1, ended.append, of_all=True)
    closed.add("me", "fifth")
    with pytest.raises(ServerBusy, match="1 thing"):
        closed.add("you", "sixth")


def memory() -> int:
    """The bytes of this process, without what Arrow keeps for the next table."""
    pa.default_memory_pool().release_unused()
    return int(psutil.Process().memory_info().rss)


# Cancelling, and clients that vanish


def test_a_client_stops_its_query(service: FlightService) -> None:
    with raw(service) as connection:
        info = connection.get_flight_info(command(m.CommandStatementQuery(ENDLESS)))
        errors: list[str] = []

        def read() -> None:
            try:
                connection.do_get(info.endpoints[0].ticket).read_all()
            except flight.FlightCancelledError as error:
                errors.append(str(error))

        thread = threading.Thread(target=read)
        thread.start()
        until(lambda: service.statements._running)
        endpoint = m.Endpoint(m.TicketBytes(info.endpoints[0].ticket.ticket))
        request = m.CancelFlightInfoRequest(m.InfoOfFlight((endpoint,)))
        (answer,) = action(connection, "CancelFlightInfo", encode(request))
        assert m.decode(m.CancelResult, answer).result == 1
        thread.join()
        assert "cancelled" in errors[0]
        (answer,) = action(connection, "CancelFlightInfo", encode(request))
        assert m.decode(m.CancelResult, answer).result == 3
    until(lambda: is_idle(service))


def test_adbc_cancels(service: FlightService) -> None:
    with client(service) as connection, connection.cursor() as cursor:
        cursor.execute(ENDLESS)
        timer = threading.Timer(0.3, cursor.adbc_cancel)
        timer.start()
        with pytest.raises(adbc_driver_manager.Error):
            cursor.fetchall()
        timer.join()
    until(lambda: is_idle(service))


def test_a_query_has_a_time_limit(tmp_path: Any) -> None:
    settings = {"device": "cpu", "recursion_limit": 10**8, "statement_timeout": "200ms"}
    with served(settings=settings) as found:
        thread, errors = begin(found, ENDLESS)
        thread.join()
        assert isinstance(errors[0], flight.FlightTimedOutError)
        assert is_idle(found)


@pytest.mark.parametrize("text", [ENDLESS, LARGE], ids=["running", "reading"])
def test_a_client_that_goes_away_frees_its_query(text: str, service: FlightService) -> None:
    with raw(service) as connection:
        if text == ENDLESS:  # no row comes before its client has waited long enough
            soon = flight.FlightCallOptions(timeout=0.5)
            with pytest.raises(flight.FlightTimedOutError):
                connection.do_get(ticket(connection, text), soon)
        else:
            reader = connection.do_get(ticket(connection, text))
            reader.read_chunk()
            assert service.metrics()["running"] == 1
            reader.cancel()
    until(lambda: is_idle(service))


VICTIM = """
import sys
from pyarrow import flight
connection = flight.connect(sys.argv[1])
info = connection.get_flight_info(flight.FlightDescriptor.for_command(bytes.fromhex(sys.argv[2])))
if sys.argv[3] == "waits":
    print("begun", flush=True)
reader = connection.do_get(info.endpoints[0].ticket)
reader.read_chunk()
print("begun", flush=True)
sys.stdin.read()
"""


def kill_clients(service: FlightService, count: int) -> None:
    """Begin to read in other processes, and kill them."""
    for number in range(count):
        how, text = ("reads", LARGE) if number % 2 == 0 else ("waits", ENDLESS)
        data = m.packed(m.CommandStatementQuery(text)).hex()
        process = subprocess.Popen(
            [sys.executable, "-c", VICTIM, address(service), data, how],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        assert process.stdout is not None
        assert process.stdout.readline() == "begun\n"
        until(lambda: service.metrics()["running"] == 1 and service.statements._running)
        process.kill()
        process.communicate()
        until(lambda: is_idle(service))
    with client(service) as connection:
        assert arrow(connection, "select 42 as x").to_pylist() == [{"x": 42}]


def test_clients_that_are_killed(service: FlightService) -> None:
    kill_clients(service, 2)


@pytest.mark.nightly
def test_many_clients_that_are_killed(service: FlightService) -> None:
    kill_clients(service, 20)
    before = memory()
    kill_clients(service, 80)
    assert memory() - before < 64 << 20
    assert pa.total_allocated_bytes() < 8 << 20  # of which an answer takes more than 100


def test_a_client_that_reads_no_further_loses_its_answer() -> None:
    limits = {"idle_seconds": 0.3}
    with served(limits=limits) as found, raw(found) as connection:
        reader = connection.do_get(ticket(connection, LARGE))
        reader.read_chunk()
        until(lambda: is_idle(found))
        with pytest.raises((pa.ArrowException, flight.FlightError)):
            reader.read_all()


def test_what_is_idle_ends() -> None:
    limits = {"idle_seconds": 0.2}
    with served(limits=limits) as found, raw(found) as connection:
        ticket(connection, "select 1")
        asked = m.packed(m.ActionCreatePreparedStatementRequest("select 1"))
        action(connection, "CreatePreparedStatement", asked)
        action(connection, "BeginTransaction", m.packed(m.ActionBeginTransactionRequest()))
        action(connection, "SetSessionOptions", b"")
        until(lambda: sum(found.metrics()[n] for n in ("sessions", "transactions")) == 0)
        until(lambda: found.metrics()["prepared_statements"] == 0)
        until(lambda: found.metrics()["answers_to_fetch"] == 0)


def test_sessions_and_parameters_have_limits() -> None:
    limits = {"sessions": 1, "parameter_bytes": 1000}
    with served(limits=limits) as found, raw(found) as connection:
        action(connection, "SetSessionOptions", b"")
        with pytest.raises(flight.FlightUnavailableError, match="1 session"):
            action(connection, "SetSessionOptions", b"")
        with client(found) as other, pytest.raises(adbc_driver_manager.Error, match="1,000 bytes"):
            arrow(other, "select ? as p", ("x" * 2000,))


def test_the_server_ends_while_queries_run() -> None:
    options = ServerOptions(port=0, settings={"device": "cpu", "recursion_limit": 10**8})
    found = started(options)
    thread, errors = begin(found, ENDLESS)
    until(lambda: found.statements._running)
    found.end()
    thread.join()
    assert len(errors) == 1


def test_a_port_is_of_one_server(service: FlightService) -> None:
    with pytest.raises(Exception, match="cannot be listened at") as error:
        started(ServerOptions(port=service.port, settings={"device": "cpu"}))
    assert "Traceback" not in str(error.value)


# Many at once


def ask_much(service: FlightService, seed: int, count: int) -> None:
    with client(service) as connection, connection.cursor() as cursor:
        for i in range(count):
            number = seed * 1000 + i
            match i % 4:
                case 0:
                    cursor.execute("select count(*) from t where a < ?", (number % 100,))
                    assert cursor.fetchall() == [(number % 100,)]
                case 1:
                    cursor.execute(f"select sum(a) + {number} as s from t")
                    assert cursor.fetchall() == [(4950 + number,)]
                case 2:
                    cursor.execute(f"select range + {number} as n from range(2000) order by n")
                    column = cursor.fetch_arrow_table()["n"]
                    assert (len(column), column[0].as_py()) == (2000, number)
                case 3:
                    cursor.execute("insert into counts values (?)", (number,))


def all_at_once(service: FlightService, clients: int, count: int) -> None:
    with client(service) as connection:
        arrow(connection, "create or replace table counts (n bigint)")
    with ThreadPoolExecutor(clients) as pool:
        [*pool.map(lambda seed: ask_much(service, seed, count), range(clients))]
    with client(service) as connection:
        (row,) = arrow(connection, "select count(*) as n from counts").to_pylist()
    assert row["n"] == clients * (count // 4)


def test_eight_clients_at_once(service: FlightService) -> None:
    all_at_once(service, 8, 12)
    assert is_idle(service)


@pytest.mark.nightly
def test_eight_clients_with_a_thousand_queries_each(service: FlightService) -> None:
    all_at_once(service, 8, 200)
    before = memory()
    all_at_once(service, 8, 1000)
    grown = memory() - before
    print(f"grown by {grown >> 20} MiB")
    assert grown < 64 << 20
    assert is_idle(service)
