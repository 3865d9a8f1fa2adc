"""How many functions of Python a repeated text calls in the server: all clients wait for one another there."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from fuseline.server.flight_service import FlightService
from fuseline.server.flight_sql_messages import CommandStatementQuery
from tests.work import calls_of

from .serving_here import command, raw, served

MOST = {"get_flight_info": 115, "do_get": 470}  # 107 and 438 when this was written
TEXT = "select a + 1 as b from (values (1), (2)) t (a)"


def test_a_repeated_text_calls_few_functions(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    counts: dict[str, int] = {}
    for name in MOST:
        plain = getattr(FlightService, name)

        def counted(*args: Any, plain: Any = plain, name: str = name) -> Any:
            found: list[Any] = []
            counts[name] = calls_of(lambda: found.append(plain(*args)))
            return found[0]

        monkeypatch.setattr(FlightService, name, counted)
    with served(tmp_path, {"t": pa.table({"a": [1]})}) as service, raw(service) as client:
        asked = command(CommandStatementQuery(TEXT))
        for _ in range(4):
            rows = client.do_get(client.get_flight_info(asked).endpoints[0].ticket).read_all()
    assert rows.column("b").to_pylist() == [2, 3]
    assert {name: counts[name] for name in MOST if counts[name] > MOST[name]} == {}
