"""What clients name by handles that the server gave them: prepared statements, answers, transactions, sessions."""

from __future__ import annotations

import secrets
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Generic, TypeVar

from ..errors import UnknownName
from ..threads.fork_locks import new_lock
from .turns import ServerBusy

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
