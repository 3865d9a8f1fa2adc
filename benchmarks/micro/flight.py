"""What `fuseline serve` costs beside the wire: ADBC's driver asks the server, and a stub that answers with the same bytes at once.

    python -m benchmarks.micro.flight --queries 8000 --json out/flight.json  # of eight clients each asks a thousand

Server and stub have a process each, and so has every client.  With one client and with eight, each query's time from `execute` to its last row
is taken at both in turn; the answers are compared first.  The stub does what the protocol asks and nothing else, so the difference is planning,
running and waiting for the server's one interpreter.  The memory of the server's process is read before and after each line's queries.
"""

from __future__ import annotations

import argparse
import json
import multiprocessing
import re
import statistics
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from pyarrow import flight

from fuseline.server import serving
from fuseline.server.flight_sql_messages import (
    ActionCreatePreparedStatementRequest,
    ActionCreatePreparedStatementResult,
    packed,
    unpacked,
)

ROWS = 1_000_000
QUERIES = {
    "one value": "select 1 as x",
    "groups": "select k, count(*) as n, sum(v) as s from t group by k order by k",
    "100,000 rows": "select * from t limit 100000",
}
WARM_RUNS = 20


class Stub(flight.FlightServerBase):
    """Answers each of `QUERIES` with a table that it has."""

    def __init__(self, answers: dict[str, pa.Table]) -> None:
        self.answers = answers
        super().__init__("grpc://127.0.0.1:0")

    def do_action(self, context: Any, action: Any) -> Iterator[bytes]:
        if action.type == "CreatePreparedStatement":
            asked = unpacked(action.body.to_pybytes())
            assert isinstance(asked, ActionCreatePreparedStatementRequest)
            rows = self.answers[asked.query].schema.serialize().to_pybytes()
            made = ActionCreatePreparedStatementResult(asked.query.encode(), rows)
            yield packed(made)

    def get_flight_info(self, context: Any, descriptor: Any) -> flight.FlightInfo:
        asked: Any = unpacked(descriptor.command)
        text = asked.prepared_statement_handle
        endpoint = flight.FlightEndpoint(flight.Ticket(text), [])
        return flight.FlightInfo(self.answers[text.decode()].schema, descriptor, [endpoint], -1, -1)

    def do_get(self, context: Any, ticket: Any) -> flight.RecordBatchStream:
        return flight.RecordBatchStream(self.answers[ticket.ticket.decode()])


def serve_fuseline(path: str, pipe: Any) -> None:
    options = serving.ServerOptions(
        port=0, tables=(f"t={path}",), settings={"device": "cpu", "fuse": "always"}
    )
    service = serving.started(options)
    pipe.send(service.port)
    pipe.recv()
    service.end()


def serve_stub(answers: dict[str, pa.Table], pipe: Any) -> None:
    stub = Stub(answers)
    pipe.send(stub.port)
    pipe.recv()
    stub.shutdown()


@contextmanager
def process_of(serve: Any, given: Any) -> Iterator[tuple[int, int]]:
    """The port of a server in a process of its own, and the number of the process."""
    context = multiprocessing.get_context("spawn")
    here, there = context.Pipe()
    process = context.Process(target=serve, args=(given, there))
    process.start()
    try:
        assert process.pid is not None
        yield here.recv(), process.pid
    finally:
        here.send("end")
        process.join(20)
        process.kill()


def answer(port: int, text: str) -> pa.Table:
    import adbc_driver_flightsql.dbapi as adbc

    uri = f"grpc://127.0.0.1:{port}"
    with adbc.connect(uri, autocommit=True) as connection, connection.cursor() as cursor:
        cursor.execute(text)
        found: pa.Table = cursor.fetch_arrow_table()
        return found


def ask(given: tuple[int, str, int]) -> list[float]:
    """The seconds of each of so many queries."""
    import adbc_driver_flightsql.dbapi as adbc

    port, text, count = given
    seconds = []
    with adbc.connect(f"grpc://127.0.0.1:{port}", autocommit=True) as connection:
        for number in range(WARM_RUNS + count):
            begun = time.perf_counter()
            with connection.cursor() as cursor:
                cursor.execute(text)
                cursor.fetch_arrow_table()
            if number >= WARM_RUNS:
                seconds.append(time.perf_counter() - begun)
    return seconds


def measure(clients: int, ports: dict[str, int], text: str, count: int) -> dict[str, list[float]]:
    found: dict[str, list[float]] = {name: [] for name in ports}
    context = multiprocessing.get_context("spawn")
    with context.Pool(clients) as pool:
        for _ in range(3):
            for name, port in ports.items():
                share = count // clients // 3 or 1
                for seconds in pool.map(ask, [(port, text, share)] * clients):
                    found[name] += seconds
    return found


def resident_mb(process: int) -> float:
    """Read how much memory a process has."""
    found = re.search(r"VmRSS:\s+(\d+) kB", Path(f"/proc/{process}/status").read_text())
    assert found is not None
    return int(found[1]) / 1024


def row(seconds: list[float]) -> dict[str, float]:
    ordered = sorted(seconds)
    p99 = ordered[min(len(ordered) - 1, int(len(ordered) * 0.99))]
    return {
        "p50_ms": statistics.median(ordered) * 1e3,
        "p99_ms": p99 * 1e3,
        "queries": len(ordered),
    }


def main() -> None:
    """Print a line for each query and number of clients."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--queries", type=int, default=300, help="of each kind and server")
    parser.add_argument("--json", type=Path)
    options = parser.parse_args()
    rng = np.random.default_rng(1)
    table = pa.table({"k": rng.integers(0, 20, ROWS), "v": rng.integers(0, 1000, ROWS)})
    results = []
    with tempfile.TemporaryDirectory() as folder:
        path = f"{folder}/t.parquet"
        pq.write_table(table, path)
        with process_of(serve_fuseline, path) as (port, server):
            answers = {text: answer(port, text) for text in QUERIES.values()}
            with process_of(serve_stub, answers) as (stub, _):
                ports = {"fuseline": port, "stub": stub}
                for name, text in QUERIES.items():
                    assert answer(stub, text).equals(answers[text])
                    for clients in (1, 8):
                        before = resident_mb(server)
                        found = measure(clients, ports, text, options.queries)
                        line: dict[str, Any] = {n: row(seconds) for n, seconds in found.items()}
                        line["server_mb"] = [round(before, 1), round(resident_mb(server), 1)]
                        results.append({"query": name, "clients": clients, **line})
                        print(json.dumps(results[-1]), flush=True)
    if options.json:
        options.json.parent.mkdir(parents=True, exist_ok=True)
        options.json.write_text(json.dumps(results, indent=1) + "\n")


if __name__ == "__main__":
    main()
