"""The tables that all connections of a server see, and how the changes of one reach the others.

Each connection has a catalog of its own, whose names stand for the same immutable tables.  A text begins with the tables of now.  One that
changes tables runs alone among such texts, and what it changed is what the others begin with next.  A transaction works on its own names;
its end puts those that it changed in place, unless another one has changed one of them meanwhile: the first to commit wins.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from functools import partial
from typing import TypeVar

from ..catalog import Catalog
from ..connection import Connection
from ..database_statements.attach import IN_MEMORY, open_home
from ..errors import TransactionError
from ..plan.changes.catalog_objects import ObjectKey
from ..settings import Settings
from ..stopping import WAIT_SECONDS, Stop, Stoppable
from ..threads.fork_locks import new_lock
from .server_runner import ChangesTables, Permissions, ServerRunner

T = TypeVar("T")
Names = Mapping[ObjectKey, object]  # of tables and views
NOT_SHARED = ("macro", "type")  # kinds of objects, which are a session's


class SharedTables:
    """What the names of tables and views stand for, with a number that grows with each change."""

    def __init__(self) -> None:
        self.version = 0
        self.names: Names = {}
        self.lock = new_lock()
        self.changes = new_lock()  # held by the one text that changes tables

    def put(self, changed: Names, before: Names) -> None:
        """Let the changed names stand for something else from now on."""
        names = dict(self.names)
        for name in changes(before, changed):
            names.pop(name, None)
            if name in changed:
                names[name] = changed[name]
        self.names = names
        self.version += 1


def changes(before: Names, after: Names) -> list[ObjectKey]:
    """Return the names that stand for something else; the same files looked at anew are no change."""
    return [
        name
        for name in {**before, **after}
        if before.get(name) is not after.get(name)
        and not (_is_of_files(before.get(name)) and _is_of_files(after.get(name)))
    ]


def _is_of_files(entry: object) -> bool:
    return hasattr(entry, "is_current") or hasattr(entry, "is_as_found")


class ServedConnection:
    """A connection of the server: of all clients that have no session, of one session, or of one transaction."""

    def __init__(
        self,
        shared: SharedTables,
        settings: Settings,
        permissions: Permissions,
        model: ServedConnection | None = None,
        home: str = IN_MEMORY,
    ) -> None:
        """`model` is the connection whose column cache it uses; `home` the folder that keeps the tables."""
        cache = None if model is None else model.connection.cache
        self.shared, self.permissions = shared, permissions
        self.calls = 0  # that are being answered
        self._seen = -1
        self._began: Names = {}
        self.home = home
        made = Connection(settings, partial(ServerRunner, permissions=permissions, cache=cache))
        only_reads = permissions.read_only and home != IN_MEMORY
        self.connection: Connection = open_home(made, home, only_reads)

    @property
    def runner(self) -> ServerRunner:
        runner = self.connection._runner
        assert isinstance(runner, ServerRunner)
        return runner

    def enter(self) -> None:
        with self.shared.lock:
            self.calls += 1

    def leave(self) -> None:
        with self.shared.lock:
            self.calls -= 1

    def publish(self) -> None:
        """Let all connections see the tables of this one, which is not served yet."""
        with self.shared.lock:
            self.shared.put(_names(self.connection.catalog), {})
            self._seen = self.shared.version

    def run(self, stop: Stop, work: Callable[[Connection], T]) -> T:
        """Return what `work` makes, with the tables of now; where it changes tables it is done again, while nobody else does."""
        if self.permissions.takes_changes:
            with Stoppable(stop):
                return work(self.connection)
        self.refresh()
        try:
            with Stoppable(stop):
                return work(self.connection)
        except ChangesTables:
            pass
        with self._changing(stop), Stoppable(stop):
            return work(self.connection)

    def refresh(self) -> None:
        """See the tables of now."""
        if self.permissions.takes_changes or self._seen == self.shared.version:
            return
        with self.shared.lock:
            if self._seen != self.shared.version:
                self._adopt()

    @contextmanager
    def _changing(self, stop: Stop) -> Iterator[None]:
        with self._alone(stop):
            with self.shared.lock:
                self._adopt()
            before = _names(self.connection.catalog)
            self.permissions.changing.append(stop)
            try:
                yield
            finally:
                self.permissions.changing.remove(stop)
                with self.shared.lock:
                    self.shared.put(_names(self.connection.catalog), before)
                    self._seen = self.shared.version

    @contextmanager
    def _alone(self, stop: Stop) -> Iterator[None]:
        while not self.shared.changes.acquire(timeout=WAIT_SECONDS):
            stop.check()
        try:
            yield
        finally:
            self.shared.changes.release()

    def _adopt(self) -> None:
        catalog = self.connection.catalog
        with catalog._lock:
            own = {k: v for k, v in catalog._objects.items() if not _is_shared(catalog, k)}
            catalog._objects = {**self.shared.names, **own}  # type: ignore[dict-item]
            catalog.version += 1
        self._seen = self.shared.version

    def begin(self) -> None:
        """Begin a transaction, which this connection is of."""
        with self.shared.lock:
            self._adopt()
        self._began = _names(self.connection.catalog)
        self.connection.catalog.begin()

    def commit(self, stop: Stop) -> None:
        """Let all see what the transaction changed; raises `TransactionError` where another one was first, or a statement failed."""
        catalog = self.connection.catalog
        if catalog.failed:
            raise TransactionError(
                "An earlier statement of this transaction failed, so it was rolled back."
            )
        with self._alone(stop), self.shared.lock:
            after = _names(catalog)
            changed = changes(self._began, after)
            for name in changed:
                if changes({name: self._began.get(name)}, {name: self.shared.names.get(name)}):
                    raise TransactionError(
                        f'Another transaction has changed "{name.name}" meanwhile, so this one was rolled back: try again.'
                    )
            catalog.commit()  # has a folder keep its changes, or raises
            if changed:
                self.shared.put(after, self._began)

    def close(self) -> None:
        if not self.connection.is_closed:
            self.connection.close()


def _names(catalog: Catalog) -> Names:
    with catalog._lock:
        return {k: v for k, v in catalog._objects.items() if _is_shared(catalog, k)}


def _is_shared(catalog: Catalog, key: ObjectKey) -> bool:
    """Whether connections get an object from each other, and not from its folder or nowhere."""
    database = catalog.databases.get(key.database)
    in_folder = database is not None and database.folder is not None
    return key.kind not in NOT_SHARED and not in_folder
