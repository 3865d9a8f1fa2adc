"""A server in the test's own process, and clients that others wrote."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import adbc_driver_flightsql.dbapi as adbc
import pyarrow as pa
import pyarrow.parquet as pq
from pyarrow import flight

from fuseline.server import serving
from fuseline.server.flight_service import FlightService
from fuseline.server.flight_sql_messages import packed
from fuseline.server.turns import ServerLimits

Options = Mapping[str, str]


@contextmanager
def served(
    folder: Path | None = None, tables: Mapping[str, pa.Table] | None = None, **options: Any
) -> Iterator[FlightService]:
    """A server of these tables, which are written to files in the folder."""
    definitions = []
    for name, table in (tables or {}).items():
        assert folder is not None
        path = folder / f"{name}.parquet"
        pq.write_table(table, path)
        definitions.append(f"{name}={path}")
    given = {"tables": tuple(definitions), "settings": {"device": "cpu"}, **options}
    if isinstance(given.get("limits"), dict):
        given["limits"] = ServerLimits(**given["limits"])
    service = serving.started(serving.ServerOptions(port=0, **given))
    try:
        yield service
    finally:
        assert serving.end(service)


def address(service: FlightService, scheme: str = "grpc") -> str:
    return f"{scheme}://127.0.0.1:{service.port}"


def client(service: FlightService, options: Options | None = None, **more: Any) -> Any:
    """A connection of ADBC's driver, which is written in Go."""
    given = {str(getattr(key, "value", key)): value for key, value in (options or {}).items()}
    return adbc.connect(address(service), db_kwargs=given, **{"autocommit": True, **more})


def arrow(connection: Any, query: str, params: Any = None) -> pa.Table:
    with connection.cursor() as cursor:
        cursor.execute(query, params)
        return cursor.fetch_arrow_table()


def raw(service: FlightService, **options: Any) -> flight.FlightClient:
    return flight.connect(address(service), **options)


def command(message: object) -> flight.FlightDescriptor:
    return flight.FlightDescriptor.for_command(packed(message))


def action(
    connection: flight.FlightClient, name: str, body: bytes, options: Any = None
) -> list[bytes]:
    found = connection.do_action(flight.Action(name, body), options)
    return [result.body.to_pybytes() for result in found]
