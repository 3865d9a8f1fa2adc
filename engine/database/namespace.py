"""What the names of a connection stand for, changes of that, and transactions over it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal as OneOf

from ..errors import CatalogError, TransactionError, check_name
from ..plan.changes import catalog_objects as co
from ..plan.changes.sequences import Sequence
from ..plan.temporal import zones
from ..plan.udf.python_function import PythonAggregate, PythonFunction
from .attached_databases import (
    AttachedDatabase,
    AttachedDatabases,
    CatalogEntry,
    Entries,
    Relation,
)
from .folder_database import ConflictError


class Namespace(AttachedDatabases):
    """Objects by name, and changes of them.

    Every change is atomic: a table is replaced, never altered, and a query keeps the tables it was planned with.  So a transaction
    is what the names stood for when it began.
    """

    def __init__(self) -> None:
        super().__init__()
        self._only_reads = False
        self._functions_before: dict[str, PythonFunction | PythonAggregate] = {}
        self.failed = False  # an error in the transaction left nothing to do but to roll back

    # Transactions

    def begin(self, only_reads: bool = False) -> None:
        """Begin a transaction; raises `TransactionError` inside of one."""
        with self._lock:
            if self._before is not None:
                raise TransactionError(
                    "A transaction is open already: COMMIT or ROLLBACK it first."
                )
            self.refresh()
            self._before, self._only_reads = self._objects, only_reads
            self._functions_before = dict(self.session.functions)
            self.session.began = zones.clock()

    def fail(self) -> None:
        """Let the transaction, if there is one, take no more statements after an error in it."""
        self.failed = self._before is not None

    def check_transaction(self) -> None:
        """Raise `TransactionError` after an error in the transaction."""
        if self.failed:
            raise TransactionError("An earlier statement of this transaction failed: ROLLBACK it.")

    def commit(self) -> None:
        """End the transaction and keep its changes; raises `TransactionError` outside of one.

        Where a folder cannot keep them the transaction is rolled back, and the error raised.
        """
        with self._lock:
            before, now = self._end("COMMIT"), self._objects
            changes = {
                key: now.get(key)
                for key in before.keys() | now.keys()
                if before.get(key) is not now.get(key)
            }
            try:
                kept = self._kept(changes)
            except BaseException:
                self._objects, self.session.functions = before, self._functions_before
                self.version += 1
                raise
            if kept is not changes:
                self._objects = _with(now, kept)
                self.version += 1

    def roll_back(self) -> list[CatalogEntry]:
        """End the transaction, undo its changes, and return what no name stands for any more; raises as `commit`."""
        with self._lock:
            made = self._objects
            self._objects = self._end("ROLLBACK")
            self.session.functions = self._functions_before
            self.version += 1
            kept = {id(entry) for entry in self._objects.values()}
            return [entry for entry in made.values() if id(entry) not in kept]

    @property
    def in_transaction(self) -> bool:
        return self._before is not None

    def _end(self, what: str) -> Entries:
        """Return what the names stood for before the transaction."""
        if self._before is None:
            raise TransactionError(f"There is no transaction for {what} to end: write BEGIN first.")
        before, self._before = self._before, None
        self._only_reads, self.failed, self.session.began = False, False, None
        return before

    # Changes

    def change(self, changes: Mapping[co.ObjectKey, CatalogEntry | None]) -> None:
        """Let keys stand for other objects, or for none: all of them or, where an error is raised, none.

        Raises `TransactionError` in a transaction that only reads or writes another folder, `CatalogError` for a database that is
        only read, and `FileError` where a folder cannot keep them.
        """
        with self._lock:
            if self._only_reads:
                raise TransactionError(
                    "This transaction only reads: COMMIT it before tables are changed."
                )
            for name in {key.database for key in changes}:
                self._check_can_write(self.databases[name])
            if self._before is None:
                changes = self._kept(changes)
            before, self._objects = self._objects, _with(self._objects, changes)
            self.version += 1
            self.row_changes += all(_is_next(before.get(key), new) for key, new in changes.items())

    def check_writable(self, name: str) -> None:
        """Raise `CatalogError` for a database that is only read."""
        database = self.databases[name]
        if database.read_only:
            raise CatalogError(
                f'The database "{database.name}" is only read: open it without read_only=True to change it.'
            )

    def _check_can_write(self, database: AttachedDatabase) -> None:
        self.check_writable(database.name.lower())
        if database.folder is None or self._before is None:
            return
        before, now = self._before, self._objects
        for key in before.keys() | now.keys():
            if before.get(key) is not now.get(key) and key.database != database.name.lower():
                other = self.databases.get(key.database)
                if other is not None and other.folder is not None:
                    raise TransactionError(
                        f'This transaction has changed "{other.name}", and one transaction changes one folder: COMMIT it first.'
                    )

    def _kept(
        self, changes: Mapping[co.ObjectKey, CatalogEntry | None]
    ) -> Mapping[co.ObjectKey, CatalogEntry | None]:
        """Have folders keep changes, and return what they became."""
        kept = changes
        for name, database in self.databases.items():
            mine = {
                co.ObjectKey("", *key[1:]): entry
                for key, entry in changes.items()
                if key.database == name
            }
            if database.folder is None or not mine:
                continue
            with database.folder.lock:
                made = database.folder.commit(database.seen, mine)
                if database.folder.version == database.seen + 1:
                    database.seen += 1
            placed = self._placed(name, {k: v for k, v in made.items() if v is not None})
            gone = {co.ObjectKey(name, *k[1:]): None for k, v in made.items() if v is None}
            kept = {**kept, **placed, **gone}
        return kept

    def create(self, entry: Relation, if_there: co.IfThere = "fail") -> bool:
        """Add a table or view; False when one was there and is left.

        Raises `CatalogError` when the name is taken and stays so, and also when it is to be replaced by the other kind.
        """
        with self._lock:
            key = self._new_key(entry.name)
            old = self._objects.get(key)
            if old is not None:
                if co.is_left(_kind(old), _name(old), if_there):
                    return False
                if _kind(old) != _kind(entry):
                    raise CatalogError(
                        f'"{_name(old)}" is a {_kind(old)}, which a {_kind(entry)} does not replace: drop it first.'
                    )
            self.change({key: entry})
            return True

    def _new_key(self, name: str, kind: co.ObjectKind = "relation") -> co.ObjectKey:
        """Return what a new object is kept under; one without a place ends with the connection."""
        check_name(name, "table")
        place = getattr(name, "place", None)
        if place is None:
            is_lasting = self.databases[self.current.database].folder is not None
            place = co.SchemaPlace(co.TEMP) if is_lasting else self.current
        return co.ObjectKey(place.database, kind, place.schema, name.lower())

    def put(self, entry: Relation) -> Relation | None:
        """Add a table or view in the place of anything that has the name, which is returned.

        Raises `InvalidQuery` for a name that is no text or empty.
        """
        with self._lock:
            key = self._new_key(entry.name)
            old = self._objects.get(key)
            self.change({key: entry})
            return old  # type: ignore[return-value]

    def put_named(self, entry: co.Macro | co.UserType | Sequence) -> None:
        """Add a macro, type or sequence in the place of one that has the name."""
        kind: co.ObjectKind = "macro" if isinstance(entry, co.Macro) else "type"
        kind = "sequence" if isinstance(entry, Sequence) else kind
        self.change({self._new_key(entry.name, kind): entry})

    def drop_named(self, name: str, kind: co.ObjectKind) -> bool:
        """Remove a macro, type or sequence; False when there is none."""
        with self._lock:
            key = self._key(name, kind)
            if key is not None:
                self.change({key: None})
            return key is not None

    def exchange(self, old: Relation, new: Relation) -> bool:
        """Put the next version of a table or view in its place, or under another name; False when another was first.

        Raises `CatalogError` when the new name is taken.
        """
        with self._lock:
            before = self._key(old.name)
            if before is None or self._objects[before] is not old:
                return False
            after = before._replace(name=new.name.lower())
            if after != before and after in self._objects:
                taken = self._objects[after]
                raise CatalogError(f'There is a {_kind(taken)} "{_name(taken)}" already.')
            try:
                self.change({before: None, after: new})
            except ConflictError:
                if self._before is not None:
                    raise
                self.refresh()
                return False
            return True

    def drop(self, name: str, kind: OneOf["table", "view"] | None = None) -> Relation | None:
        """Remove and return what the name stands for, None when it is unknown.

        Raises `CatalogError` when it is not of the kind.
        """
        with self._lock:
            key = self._key(name)
            if key is None:
                return None
            found: Any = self._objects[key]
            if kind is not None and _kind(found) != kind:
                raise CatalogError(
                    f'"{found.name}" is a {_kind(found)}, not a {kind}: write DROP {_kind(found).upper()}.'
                )
            self.change({key: None})
            return found


def _with(
    objects: Mapping[co.ObjectKey, CatalogEntry],
    changes: Mapping[co.ObjectKey, CatalogEntry | None],
) -> Entries:
    both = {**objects, **changes}
    return {key: entry for key, entry in both.items() if entry is not None}


def _is_next(old: object, new: object) -> bool:
    """Whether a table differs from another one in its rows alone."""
    fixed = ("name", "all_fields", "table_rules")
    known = type(old) is type(new) and hasattr(old, "table_rules")
    return known and all(getattr(old, name) == getattr(new, name) for name in fixed)


def _kind(entry: object) -> OneOf["table", "view"]:
    return "view" if isinstance(entry, co.View) else "table"


def _name(entry: CatalogEntry) -> str:
    return str(entry.name)
