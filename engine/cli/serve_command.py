"""`fuseline serve`: a server of Arrow Flight SQL in this process."""

from __future__ import annotations

import os
import signal
import sys
import threading
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

from ..errors import InvalidQuery
from ..records import dataclass
from ..server import serving
from ..server.turns import ServerLimits
from ..settings import server_secrets


@dataclass(frozen=True)
class ServeOptions:
    """The options as they were written; `secrets` are the files of tokens, users, certificate and key."""

    database: str
    host: str
    port: int
    writable: bool
    tables: Sequence[str]
    allowed: Sequence[str]
    secrets: tuple[Path | None, Path | None, Path | None, Path | None]
    limits: Sequence[str]
    settings: Sequence[str]


def run_server(options: ServeOptions) -> None:
    """Start a server, print its address, and go on until Ctrl-C or SIGTERM."""
    tokens, users, certificate, key = options.secrets
    known_tokens, passwords = serving.read_secrets(tokens, users, *server_secrets())
    limits = ServerLimits()
    for name, value in _named(options.limits, "--limit"):
        limits = limits.with_limit(name, value)
    service = serving.started(
        serving.ServerOptions(
            options.host,
            options.port,
            tuple(options.tables),
            tuple(options.allowed),
            options.database,
            options.writable,
            known_tokens,
            passwords,
            certificate,
            key,
            dict(_named(options.settings, "--set")),
            limits,
        )
    )
    ended = threading.Event()
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, lambda *_: ended.set())
    scheme = "grpc+tls" if certificate else "grpc"
    host = f"[{options.host}]" if ":" in options.host else options.host
    print(f"address  {scheme}://{host}:{service.port}")
    print(f"tables   {'writable' if options.writable else 'read only'}")
    print(f"login    {'asked for' if known_tokens or passwords else 'none'}")
    print("Ctrl-C ends it.", flush=True)
    ended.wait()
    if not serving.end(service):
        # Threads of gRPC wait for clients that read no further, and would keep the process
        sys.stdout.flush()
        os._exit(0)


def _named(definitions: Iterable[str], option: str) -> Iterator[tuple[str, str]]:
    for definition in definitions:
        name, separator, value = definition.partition("=")
        if not (name and separator and value):
            raise InvalidQuery(f"{option} takes name=value, not {definition!r}.")
        yield name.strip(), value.strip()
