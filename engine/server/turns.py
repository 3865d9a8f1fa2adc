"""Whose query runs next: so many at once, so many of one client, the others wait in a queue of limited length."""

from __future__ import annotations

import threading
from collections import Counter
from dataclasses import fields, replace

from ..errors import InvalidQuery, OperationalError, UnknownName
from ..records import dataclass
from ..settings import parse_bytes, parse_seconds
from ..stopping import WAIT_SECONDS, Stop

ANYONE = "anyone"  # who calls a server that asks for no login


class ServerBusy(OperationalError):
    """The server has as much to do as it takes; the limit is named."""


@dataclass(frozen=True)
class ServerLimits:
    """How much clients may have of the server; bytes, seconds and counts.

    queries          that run at once, those included whose rows a client is still reading
    client_queries   of one client among them; those that need no login count as many
    waiting          queries that wait for their turn
    wait_seconds     after which a query that waits is refused
    sessions         sessions and transactions that are open at once
    statements       prepared statements of one client, and answers that it has not fetched yet
    idle_seconds     after which sessions, transactions, prepared statements, unread answers and answers that nobody goes on reading end
    parameter_bytes  of all parameters of a statement
    token_seconds    after which a token ends that a client got for its password
    """

    queries: int = 8
    client_queries: int = 4
    waiting: int = 64
    wait_seconds: float = 60.0
    sessions: int = 256
    statements: int = 256
    idle_seconds: float = 600.0
    parameter_bytes: int = 256 << 20
    token_seconds: float = 86_400.0

    def with_limit(self, name: str, value: str) -> ServerLimits:
        """Return these limits with one changed; raises `UnknownName` and `InvalidQuery`."""
        known = {f.name: type(getattr(self, f.name)) for f in fields(self)}
        if name not in known:
            raise UnknownName(f'There is no limit "{name}". The limits are {", ".join(known)}.')
        if name.endswith("_seconds"):
            found = parse_seconds(name, value)
        elif name.endswith("_bytes"):
            found = parse_bytes(name, value)
        else:
            found = int(value) if value.isascii() and value.isdigit() and len(value) < 10 else None
        if not found:
            raise InvalidQuery(f"The limit {name} does not take {value!r}: it is more than 0.")
        return replace(self, **{name: known[name](found)})


class Turns:
    """Gives queries their turn: of those that wait first one of the client that has the fewest running, then the oldest."""

    def __init__(self, limits: ServerLimits) -> None:
        self._limits = limits
        self._lock = threading.Lock()
        self._changed = threading.Condition(self._lock)
        self._running: Counter[str] = Counter()
        self._waiting: list[tuple[int, str]] = []
        self._number = 0

    @property
    def running(self) -> int:
        return self._running.total()

    @property
    def waiting(self) -> int:
        return len(self._waiting)

    def enter(self, client: str, stop: Stop) -> None:
        """Wait for a turn; raises `ServerBusy` where too many wait or it takes too long, and what stops the query."""
        limits = self._limits
        with self._lock:
            if not self._waiting and self._has_room(client):
                self._running[client] += 1
                return
            if len(self._waiting) >= limits.waiting:
                raise ServerBusy(
                    f"{limits.waiting} queries wait already, which is the server's limit (--limit waiting=...): try again later."
                )
            self._number += 1
            own = self._number, client
            self._waiting.append(own)
            try:
                self._await_turn(own, stop)
                self._running[client] += 1
            finally:
                self._waiting.remove(own)
                self._changed.notify_all()

    def leave(self, client: str) -> None:
        with self._lock:
            self._running[client] -= 1
            if not self._running[client]:
                del self._running[client]
            if self._waiting:
                self._changed.notify_all()

    def _await_turn(self, own: tuple[int, str], stop: Stop) -> None:
        left = self._limits.wait_seconds
        while self._next() != own:
            if left <= 0:
                raise ServerBusy(
                    f"The query had no turn for {self._limits.wait_seconds:g} s, which is the server's limit (--limit wait_seconds=...): try again later."
                )
            stop.check()
            self._changed.wait(WAIT_SECONDS)
            left -= WAIT_SECONDS

    def _next(self) -> tuple[int, str] | None:
        ready = [own for own in self._waiting if self._has_room(own[1])]
        return min(ready, key=lambda own: (self._running[own[1]], own[0]), default=None)

    def _has_room(self, client: str) -> bool:
        limits = self._limits
        most = limits.queries if client == ANYONE else limits.client_queries
        return self.running < limits.queries and self._running[client] < most
