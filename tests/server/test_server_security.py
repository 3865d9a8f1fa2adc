"""Who may ask: logins and encryption."""

from __future__ import annotations

import base64
import subprocess
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import adbc_driver_flightsql as options
import adbc_driver_manager
import pyarrow as pa
import pytest
from pyarrow import flight

from fuseline.errors import (
    FileError,
    InvalidQuery,
    UnknownName,
)
from fuseline.server import flight_sql_messages as m, logins, serving
from fuseline.server.logins import Logins, NotLoggedIn, passwords_of, secret_lines
from fuseline.server.turns import ServerLimits
from tests.server.serving_here import action, arrow, client, command, raw, served

T = pa.table({"a": [1, 2, 3]})
LOGIN = {"tokens": ("letmein",), "passwords": {"ann": "correct horse", "bob": "b:attery"}}


def bearer(token: str) -> flight.FlightCallOptions:
    return flight.FlightCallOptions(headers=[(b"authorization", f"Bearer {token}".encode())])


def info(connection: flight.FlightClient, token: str) -> object:
    return connection.get_flight_info(command(m.CommandGetCatalogs()), bearer(token))


def test_a_token_is_asked_for() -> None:
    header = {options.DatabaseOptions.AUTHORIZATION_HEADER: "Bearer letmein"}
    with served(**LOGIN) as service:
        with client(service, header) as connection:
            assert arrow(connection, "select 1 as x").to_pylist() == [{"x": 1}]
        with raw(service) as connection:
            for wrong in ("letmei", "Letmein", "", "letmeinletmein"):
                with pytest.raises(flight.FlightUnauthenticatedError):
                    info(connection, wrong)
            info(connection, "letmein")
        assert service.metrics()["refused_logins"] == 4


METHODS = {
    "get_flight_info": lambda c: c.get_flight_info(command(m.CommandStatementQuery("select 1"))),
    "get_schema": lambda c: c.get_schema(command(m.CommandStatementQuery("select 1"))),
    "do_get": lambda c: c.do_get(flight.Ticket(m.packed(m.CommandGetCatalogs()))).read_all(),
    "do_put": lambda c: c.do_put(command(m.CommandStatementUpdate("x")), T.schema)[0].close(),
    "do_action": lambda c: action(c, "BeginTransaction", b""),
    "metrics": lambda c: action(c, "Metrics", b""),
    "list_actions": lambda c: c.list_actions(),
    "list_flights": lambda c: [*c.list_flights()],
    "do_exchange": lambda c: c.do_exchange(command(m.CommandGetCatalogs()))[1].read_chunk(),
}


def test_without_a_login_there_is_nothing_but_health() -> None:
    with served(**LOGIN) as service, raw(service) as connection:
        for name, call in METHODS.items():
            # pyarrow's client has no error of its own there
            kind = OSError if name == "get_schema" else flight.FlightUnauthenticatedError
            with pytest.raises(kind, match="Unauthenticated"):
                call(connection)
        assert action(connection, "Health", b"") == [b'{"healthy": true}']


def test_a_password_gets_a_token_for_some_time(monkeypatch: pytest.MonkeyPatch) -> None:
    limits, clock = {"token_seconds": 0.5}, [0.0]
    monkeypatch.setattr(logins, "time", SimpleNamespace(monotonic=lambda: clock[0]))
    with served(**LOGIN, limits=limits) as service, raw(service) as connection:
        _, header = connection.authenticate_basic_token("bob", "b:attery")
        token = header.decode().removeprefix("Bearer ")
        info(connection, token)
        clock[0] += 0.6
        with pytest.raises(flight.FlightUnauthenticatedError, match="over"):
            info(connection, token)


@pytest.mark.parametrize(
    ("user", "word"), [("ann", "wrong"), ("eve", "correct horse"), ("ann", "")]
)
def test_a_wrong_password_gets_none(user: str, word: str) -> None:
    with served(**LOGIN) as service, raw(service) as connection:
        with pytest.raises(flight.FlightUnauthenticatedError):
            connection.authenticate_basic_token(user, word)
        with pytest.raises(adbc_driver_manager.Error, match=r"(?i)unauthenticated"):
            client(service, {"username": user, "password": word})


def test_adbc_logs_in_with_a_password() -> None:
    with (
        served(**LOGIN) as service,
        client(service, {"username": "ann", "password": "correct horse"}) as connection,
    ):
        assert arrow(connection, "select 1 as x").to_pylist() == [{"x": 1}]


def test_handles_are_of_their_client() -> None:
    with served(**LOGIN) as service, raw(service) as connection:
        (begun,) = action(
            connection,
            "BeginTransaction",
            m.packed(m.ActionBeginTransactionRequest()),
            bearer("letmein"),
        )
        handle = m.decode(m.ActionBeginTransactionResult, m.decode(m.AnyMessage, begun).value)
        _, header = connection.authenticate_basic_token("ann", "correct horse")
        others = flight.FlightCallOptions(headers=[(b"authorization", header)])
        asked = m.CommandStatementQuery("select 1", handle.transaction_id)
        connection.get_flight_info(command(asked), bearer("letmein"))
        with pytest.raises(pa.ArrowInvalid, match="no such transaction"):
            connection.get_flight_info(command(asked), others)


def test_only_digests_are_kept() -> None:
    logins = Logins(["letmein"], {"ann": "correct horse"})
    token = logins.new_token("user ann")
    shown = repr(vars(logins))
    assert not any(secret in shown for secret in ("letmein", "correct horse", token))


@pytest.mark.parametrize(
    "header",
    ["", "Bearer", "Bearer ", "letmein", "Basic", "Basic !!", "Basic " + base64.b64encode(b"\xff:x").decode(), "Digest letmein"],
)  # fmt: skip
def test_a_header_that_says_nothing(header: str) -> None:
    with pytest.raises(NotLoggedIn):
        Logins(["letmein"], {"ann": "x"}).client(header)


def test_secrets_are_read_from_files_of_their_owner_alone(tmp_path: Path) -> None:
    path = tmp_path / "tokens"
    path.write_text("one\n\n two \n")
    path.chmod(0o644)
    with pytest.raises(FileError, match="chmod 600"):
        secret_lines(path)
    path.chmod(0o600)
    assert secret_lines(path) == ["one", "two"]
    assert passwords_of(["a:b:c"]) == {"a": "b:c"}
    with pytest.raises(InvalidQuery, match="Line 2"):
        passwords_of(["a:b", "secret"])


# Encryption


@pytest.fixture(scope="module")
def certificate(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    folder = tmp_path_factory.mktemp("tls")
    cert, key = folder / "cert.pem", folder / "key.pem"
    subprocess.run(
        [
            *("openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256"),
            *("-nodes", "-days", "2", "-subj", "/CN=localhost"),
            *("-addext", "subjectAltName=DNS:localhost,IP:127.0.0.1", "-keyout", key, "-out", cert),
        ],
        check=True,
        capture_output=True,
    )
    return cert, key


def test_an_encrypted_connection(certificate: tuple[Path, Path]) -> None:
    cert, key = certificate
    chain = {"adbc.flight.sql.client_option.tls_root_certs": cert.read_text(), "username": "ann", "password": "correct horse"}  # fmt: skip
    with served(tls_cert=cert, tls_key=key, host="127.0.0.1", **LOGIN) as service:
        import adbc_driver_flightsql.dbapi as adbc

        uri = f"grpc+tls://localhost:{service.port}"
        with adbc.connect(uri, db_kwargs=chain, autocommit=True) as connection:
            assert arrow(connection, "select 1 as x").to_pylist() == [{"x": 1}]
        with raw(service) as plain, pytest.raises(flight.FlightUnavailableError):
            info(plain, "letmein")


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"host": "0.0.0.0"}, "encrypted"),
        ({"host": "0.0.0.0", "tokens": ("x",)}, "--tls-cert"),
        ({"host": "::", "tokens": ("x",)}, "--tls-cert"),
        ({"host": "example.org", "tokens": ("x",)}, "--tls-cert"),
        ({"tls_cert": Path("x")}, "go together"),
        ({"tables": ("t",)}, "name=path"),
    ],
)
def test_options_that_do_not_go_together(given: dict[str, Any], message: str) -> None:
    with pytest.raises(InvalidQuery, match=message):
        serving.started(serving.ServerOptions(port=0, settings={"device": "cpu"}, **given))


def test_others_have_to_log_in_also_when_encrypted(certificate: tuple[Path, Path]) -> None:
    cert, key = certificate
    with pytest.raises(InvalidQuery, match="log in"):
        serving.started(serving.ServerOptions(host="0.0.0.0", tls_cert=cert, tls_key=key))


def test_limits_have_names_and_units() -> None:
    limits = ServerLimits().with_limit("idle_seconds", "5min").with_limit("queries", "3")
    assert (limits.idle_seconds, limits.queries) == (300.0, 3)
    assert limits.with_limit("parameter_bytes", "1KiB").parameter_bytes == 1024
    with pytest.raises(UnknownName, match="client_queries"):
        limits.with_limit("query", "3")
    for wrong in ("0", "-1", "many", "", "1e3"):
        with pytest.raises(InvalidQuery):
            limits.with_limit("queries", wrong)
