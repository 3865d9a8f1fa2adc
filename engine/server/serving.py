"""A server from the options that its operator chose, until it is told to end."""

from __future__ import annotations

import glob
import ipaddress
import os
import re
import threading
import warnings
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import field
from pathlib import Path

import pyarrow as pa

from ..database_statements.attach import IN_MEMORY
from ..errors import ExecutionError, FileError, InvalidQuery
from ..plan.files.read_options import format_read
from ..records import dataclass
from ..settings import Settings
from ..storage.remote.urls import is_remote
from .flight_service import FlightService
from .logins import Logins, passwords_of, secret_lines
from .server_runner import Permissions
from .shared_tables import ServedConnection, SharedTables
from .turns import ServerLimits

SECONDS_TO_END = 10.0  # that calls have to end in when the server is told to


@dataclass(frozen=True)
class ServerOptions:
    """What `fuseline serve` takes; `database` is a folder that has tables, `settings` are those of all connections."""

    host: str = "127.0.0.1"
    port: int = 31337
    tables: tuple[str, ...] = ()  # name=path
    allowed: tuple[str, ...] = ()
    database: str = IN_MEMORY
    writable: bool = False
    tokens: tuple[str, ...] = ()
    passwords: Mapping[str, str] = field(default_factory=dict)
    tls_cert: Path | None = None
    tls_key: Path | None = None
    settings: Mapping[str, object] = field(default_factory=dict)
    limits: ServerLimits = field(default_factory=ServerLimits)


def started(options: ServerOptions) -> FlightService:
    """Start a server and return it; raises `InvalidQuery` for options that do not go together, `FileError`, `ExecutionError`."""
    certificate = _certificate(options)
    is_local = is_loopback(options.host)
    logins = Logins(options.tokens, options.passwords, options.limits.token_seconds)
    if certificate is None and not is_local:
        raise InvalidQuery(
            f"{options.host} is reached from other machines, so connections have to be encrypted: give --tls-cert and --tls-key, or --host 127.0.0.1."
        )
    if not logins.are_asked_for and not is_local:
        raise InvalidQuery(
            f"{options.host} is reached from other machines, so clients have to log in: give --token-file or --users-file, or --host 127.0.0.1."
        )
    shared = _first_connection(options)
    scheme = "grpc+tls" if certificate else "grpc"
    host = f"[{options.host}]" if ":" in options.host else options.host
    try:
        return FlightService(
            f"{scheme}://{host}:{options.port}", shared, logins, options.limits, certificate
        )
    except (pa.ArrowException, OSError, ValueError) as error:
        shared.close()
        reason = str(error).split(". Detail")[0]
        raise ExecutionError(
            f"{options.host}:{options.port} cannot be listened at: {reason}."
        ) from error


def end(service: FlightService) -> bool:
    """End a server; False where calls had not ended in time, as those of clients that read no further."""
    ended = threading.Thread(target=service.end, name="fuseline-end", daemon=True)
    ended.start()
    ended.join(SECONDS_TO_END)
    return not ended.is_alive()


def is_loopback(host: str) -> bool:
    """Whether an address is reached from this machine alone."""
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def read_secrets(
    token_file: Path | None, users_file: Path | None, tokens: str, users: str
) -> tuple[tuple[str, ...], dict[str, str]]:
    """Return tokens and passwords from files of a line each, and from texts of environment variables, whose parts commas separate."""
    lines = [] if token_file is None else secret_lines(token_file)
    named = [] if users_file is None else secret_lines(users_file)
    for path, found in ((token_file, lines), (users_file, named)):
        if path is not None and not found:
            raise FileError(f'"{path}" is empty: it has a line for each.')
    lines += [part.strip() for part in tokens.split(",") if part.strip()]
    named += [part.strip() for part in users.split(",") if part.strip()]
    return tuple(lines), passwords_of(named)


def _first_connection(options: ServerOptions) -> ServedConnection:
    definitions = [_definition(table) for table in options.tables]
    places = [*options.allowed, *(_readable_place(path) for _, path in definitions)]
    settings = Settings.from_environment()
    chosen: dict[str, object] = {
        **options.settings,
        "python_enable_replacements": False,
        "python_scan_all_frames": False,
        "allowed_paths": places,
        "external_access": False,
        "lock_settings": True,
    }
    for name, value in chosen.items():
        if value is not None:
            settings = settings.with_option(name, value)
    permissions = Permissions(not options.writable)
    served = ServedConnection(SharedTables(), settings, permissions, home=options.database)
    try:
        _read_tables(served, definitions)
    except BaseException:
        served.close()
        raise
    served.publish()
    return served


def _read_tables(served: ServedConnection, definitions: Iterable[tuple[str, str]]) -> None:
    for name, path in definitions:
        reader = {
            "parquet": served.connection.read_parquet,
            "csv": served.connection.read_csv,
            "json": served.connection.read_json,
            "arrow": served.connection.read_ipc,
        }[format_read(path) or "parquet"]
        with warnings.catch_warnings():
            warnings.simplefilter("default")
            reader(path, name)


def _definition(table: str) -> tuple[str, str]:
    name, separator, path = table.partition("=")
    if not (name and separator and path):
        raise InvalidQuery(f"--table takes name=path, not {table!r}.")
    return name, path


def _readable_place(path: str) -> str:
    """Return what clients may open for a table's sake: its file or folder, of a pattern the folder before it."""
    if is_remote(path):
        before = re.split(r"[*?\[]", path, maxsplit=1)[0]
        return path if before == path else before[: before.rindex("/") + 1]
    parts = Path(os.path.abspath(path)).parts  # noqa: PTH100 - keeps links, which the settings resolve
    fixed: Sequence[str] = parts
    for i, part in enumerate(parts):
        if glob.has_magic(part):
            fixed = parts[:i]
            break
    return str(Path(*fixed))


def _certificate(options: ServerOptions) -> tuple[bytes, bytes] | None:
    if options.tls_cert is None and options.tls_key is None:
        return None
    if options.tls_cert is None or options.tls_key is None:
        raise InvalidQuery("--tls-cert and --tls-key go together.")
    try:
        return options.tls_cert.read_bytes(), options.tls_key.read_bytes()
    except OSError as error:
        raise FileError(f"The certificate or its key cannot be read: {error}.") from error
