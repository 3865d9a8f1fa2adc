"""Sessions: connections of their own, with settings that their client chose within what the server allows;
and what clients name by handles that the server gave them: prepared statements, answers, transactions.
"""

from __future__ import annotations

import secrets
import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import field, replace
from typing import Generic, TypeVar

from ..errors import FuselineError, InvalidQuery, UnknownName
from ..records import dataclass
from ..settings import Settings
from ..stopping import Stop
from ..threads.fork_locks import new_lock
from . import flight_sql_messages as messages
from .server_runner import Permissions
from .shared_tables import ServedConnection
from .turns import ServerBusy, ServerLimits

T = TypeVar("T")


@dataclass
class HandedOut(Generic[T]):
    """A thing, whose it is, and when it was asked for last."""

    value: T
    client: str
    used: float = field(default_factory=time.monotonic)


class Handles(Generic[T]):
    """Things by handles that nobody can guess; another client's are not found.

    At most so many for each client, or with `of_all` for all of them together; one more is refused, or with `drops_oldest` takes the place
    of that client's oldest.  `end` lets go of one that is dropped.
    """

    def __init__(
        self,
        what: str,
        most: int,
        end: Callable[[T], None],
        *,
        of_all: bool = False,
        drops_oldest: bool = False,
    ) -> None:
        self._what, self._most, self._end = what, most, end
        self._of_all, self._drops_oldest = of_all, drops_oldest
        self._held: dict[bytes, HandedOut[T]] = {}
        self._lock = new_lock()

    def __len__(self) -> int:
        return len(self._held)

    def add(self, client: str, value: T) -> bytes:
        """Return a new handle; raises `ServerBusy` where there are too many."""
        handle = secrets.token_bytes(16)
        dropped = None
        with self._lock:
            own = [h for h, held in self._held.items() if self._of_all or held.client == client]
            if len(own) >= self._most:
                if not self._drops_oldest:
                    raise ServerBusy(
                        f"{self._most} {self._what}s are open, which is the server's limit: close some first."
                    )
                dropped = self._held.pop(own[0])
            self._held[handle] = HandedOut(value, client)
        if dropped is not None:
            self._end(dropped.value)
        return handle

    def get(self, client: str, handle: bytes) -> T:
        """Return what a handle stands for; raises `UnknownName`."""
        with self._lock:
            held = self._found(client, handle)
            held.used = time.monotonic()
            return held.value

    def take(self, client: str, handle: bytes) -> T:
        """Return what a handle stands for, which it does no longer; raises `UnknownName`."""
        with self._lock:
            self._found(client, handle)
            return self._held.pop(handle).value

    def _found(self, client: str, handle: bytes) -> HandedOut[T]:
        held = self._held.get(handle)
        if held is None or held.client != client:
            raise UnknownName(
                f"There is no such {self._what}: it was closed or fetched, or has not been used for too long."
            )
        return held

    def end_idle(self, seconds: float, is_used: Callable[[T], bool] = lambda value: False) -> None:
        """Drop what has not been asked for so long, and is not used now."""
        now = time.monotonic()
        idle = []
        for handle, held in self._snapshot():
            if is_used(held.value):
                held.used = now
            elif held.used < now - seconds:
                idle.append(handle)
        self._drop(idle)

    def end_all(self) -> None:
        self._drop([h for h, _ in self._snapshot()])

    def end_where(self, test: Callable[[T], bool]) -> None:
        """Drop those of which a test holds."""
        self._drop([h for h, held in self._snapshot() if test(held.value)])

    def _snapshot(self) -> list[tuple[bytes, HandedOut[T]]]:
        with self._lock:
            return [*self._held.items()]

    def _drop(self, handles: list[bytes]) -> None:
        for value in self._popped(handles):
            self._end(value)

    def _popped(self, handles: list[bytes]) -> Iterator[T]:
        for handle in handles:
            with self._lock:
                held = self._held.pop(handle, None)
            if held is not None:
                yield held.value


UNKNOWN_OPTION, WRONG_VALUE = 1, 2
FREE = ("timezone", "deterministic", "recursion_limit")
CAPPED = ("memory_limit", "statement_timeout", "threads")  # at most what the server has
PLACES = ("catalog", "schema")  # where names without one are looked up


class Sessions:
    """The connections of a server: one for all clients without a session, and those of sessions and transactions."""

    def __init__(self, shared: ServedConnection, limits: ServerLimits) -> None:
        self.shared = shared
        most = limits.sessions
        self.open: Handles[ServedConnection] = Handles(
            "session", most, ServedConnection.close, of_all=True
        )
        self.transactions: Handles[ServedConnection] = Handles(
            "transaction", most, ServedConnection.close, of_all=True
        )

    def connection(
        self, client: str, session: bytes, transaction: bytes | None
    ) -> ServedConnection:
        """Return the connection of a call; raises `UnknownName` for a transaction or session that is over."""
        if transaction:
            return self.transactions.get(client, transaction)
        return self.open.get(client, session) if session else self.shared

    def new(self, client: str) -> tuple[bytes, ServedConnection]:
        """Open a session and return its handle."""
        served = self._another(self.shared, takes_changes=False)
        return self._kept(self.open, client, served), served

    def begin(self, client: str, session: bytes) -> bytes:
        """Begin a transaction with the settings of the session and return its handle."""
        served = self._another(self.connection(client, session, None), takes_changes=True)
        served.begin()
        return self._kept(self.transactions, client, served)

    def end(self, client: str, transaction: bytes, keeps: bool, stop: Stop) -> None:
        """End a transaction; raises `TransactionError` where its changes cannot be kept, and then keeps none."""
        served = self.transactions.take(client, transaction)
        try:
            if keeps:
                served.commit(stop)
        finally:
            served.close()

    def end_idle(self, seconds: float) -> None:
        self.open.end_idle(seconds, _is_used)
        self.transactions.end_idle(seconds, _is_used)

    def end_all(self) -> None:
        self.transactions.end_all()
        self.open.end_all()
        self.shared.close()

    def _another(self, model: ServedConnection, takes_changes: bool) -> ServedConnection:
        permissions = Permissions(
            model.permissions.read_only, is_own=True, takes_changes=takes_changes
        )
        settings = model.connection.settings
        made = ServedConnection(model.shared, settings, permissions, model, model.home)
        made.connection.catalog.current = model.connection.catalog.current
        return made

    @staticmethod
    def _kept(handles: Handles[ServedConnection], client: str, served: ServedConnection) -> bytes:
        try:
            return handles.add(client, served)
        except FuselineError:
            served.close()
            raise


def _is_used(served: ServedConnection) -> bool:
    return served.calls > 0


def set_options(
    served: ServedConnection, first: Settings, options: Iterable[messages.SessionOption]
) -> tuple[messages.RefusedOption, ...]:
    """Change options of a session and return those that it does not take; `first` are the settings of the server."""
    refused = []
    settings = served.connection.settings
    for option in options:
        name = option.key.lower()
        value = option.value or messages.SessionOptionValue()
        try:
            if name in PLACES:
                _use(served, name, _python_value(value))
                continue
            settings = _with_option(settings, first, name, _python_value(value))
        except UnknownName:
            refused.append(messages.RefusedOption(option.key, messages.OptionError(UNKNOWN_OPTION)))
        except FuselineError:
            refused.append(messages.RefusedOption(option.key, messages.OptionError(WRONG_VALUE)))
    if settings != served.connection.settings:
        served.runner.configure(settings)
    return tuple(refused)


def options_of(served: ServedConnection) -> tuple[messages.SessionOption, ...]:
    """Return all options of a session with their values."""
    settings = served.connection.settings
    named = dict(zip(PLACES, served.connection.catalog.here(), strict=True))
    named |= {name: getattr(settings, name) for name in (*FREE, *CAPPED)}
    return tuple(messages.SessionOption(name, _wire_value(value)) for name, value in named.items())


def _use(served: ServedConnection, name: str, value: object) -> None:
    """Look names up in another catalog or schema from now on; raises `InvalidQuery` where there is none."""
    served.refresh()
    catalog = served.connection.catalog
    catalog.refresh()
    parts = [str(value)] if name == "catalog" else [catalog.here().database, str(value)]
    try:
        catalog.use(parts)
    except UnknownName as error:
        raise InvalidQuery(error.message) from None


def _with_option(settings: Settings, first: Settings, name: str, value: object) -> Settings:
    if name not in (*FREE, *CAPPED):
        raise UnknownName(f'A session has no option "{name}".')
    if value is None:
        return settings.with_value_of(name, first)
    new = settings.with_option(name, value)
    most = getattr(first, name)
    if name in CAPPED and most is not None:
        given = getattr(new, name)
        if given is None or given > most:
            raise InvalidQuery(f"{name} is at most {most} here.")
    return replace(new)


def _python_value(value: messages.SessionOptionValue) -> object:
    if value.string_list_value is not None:
        return list(value.string_list_value.values)
    given = (value.string_value, value.bool_value, value.int64_value, value.double_value)
    return next((v for v in given if v is not None), None)


def _wire_value(value: object) -> messages.SessionOptionValue:
    if isinstance(value, bool):
        return messages.SessionOptionValue(bool_value=value)
    if isinstance(value, int):
        return messages.SessionOptionValue(int64_value=value)
    if isinstance(value, float):
        return messages.SessionOptionValue(double_value=value)
    if isinstance(value, list | tuple):
        return messages.SessionOptionValue(
            string_list_value=messages.StringList(tuple(map(str, value)))
        )
    return messages.SessionOptionValue(string_value="" if value is None else str(value))
