"""The databases of a connection and the names of what is in them: tables, views and macros in schemas."""

from __future__ import annotations

import weakref
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from ..errors import (
    AmbiguousName,
    CatalogError,
    InvalidQuery,
    TransactionError,
    UnknownName,
    nearest,
    shown,
)
from ..plan.changes import catalog_objects as co
from ..plan.changes.sequences import Sequence as SequenceObject
from ..plan.logical import CatalogTable
from ..records import dataclass
from ..threads.fork_locks import new_reentrant_lock
from .folder_database import FolderDatabase
from .open_folders import close_folder
from .stored_table import StoredTable

CatalogEntry = CatalogTable | co.View | co.Macro | co.UserType | SequenceObject | co.SchemaObject
Relation = CatalogTable | co.View
Entries = dict[co.ObjectKey, CatalogEntry]


@dataclass
class AttachedDatabase:
    """A database under the name that a connection calls it by; one without a folder ends with the connection.

    `seen` is the version of the folder that the connection has.
    """

    name: str
    folder: FolderDatabase | None = None
    read_only: bool = False
    seen: int = 0


class AttachedDatabases:
    """Objects by name; `version` grows with each change, so plans made before it are known as old.

    `row_changes` counts those that gave tables other rows, and left each its name, columns and rules.
    """

    def __init__(self) -> None:
        self.version = self.row_changes = 0
        self.session = co.SessionObjects()
        self.databases = {name: AttachedDatabase(name) for name in (co.MEMORY, co.TEMP)}
        self.current = co.SchemaPlace(
            co.MEMORY
        )  # the schema of names without one, behind TEMP and before MAIN
        self._objects: Entries = {}
        self._before: Entries | None = None  # in a transaction
        self._user_types: tuple[int, Mapping[str, co.UserType]] = (-1, {})
        self._lock = new_reentrant_lock()
        # Of a connection that nobody closes; what was committed is there also without this
        weakref.finalize(self, _closed, self.databases).atexit = False

    # Names

    def qualified(self, parts: Sequence[str]) -> str | None:
        """Return the name that parts mean, as `t`, `main.t`, `shop.t` or `shop.main.t`; None where the first ones are no place."""
        *around, name = parts
        if not around:
            return name
        place = self.place_of(around)
        return None if place is None else co.ObjectName(name, place)

    def located(
        self, parts: Sequence[str], home: co.SchemaPlace | None = None
    ) -> co.ObjectName | None:
        """Return the name of the table or view that parts mean, with its place; `home` is where one part is looked up first."""
        key = self._key_of(parts, home, "relation")
        return None if key is None else co.ObjectName(parts[-1], key.place)

    def _key_of(
        self, parts: Sequence[str], home: co.SchemaPlace | None, kind: co.ObjectKind
    ) -> co.ObjectKey | None:
        name, key = self.qualified(parts), None
        if name is not None and home is not None and len(parts) == 1:
            key = self._key(co.ObjectName(name, home), kind)
        return self._key(name, kind) if key is None and name is not None else key

    def named(self, name: str) -> str:
        """Return the name of a table or view as it is given, or with its place where it stands behind that; raises `UnknownName`."""
        if self.entry(name) is not None:
            return name
        located = self.located(name.split(".")) if "." in name else None
        if located is None:
            raise self.unknown(name)
        return located

    def here(self) -> co.SchemaPlace:
        """Return the schema in which names without one are looked up, as it is spelled."""
        return self.spelled(self.current)

    def spelled(self, place: co.SchemaPlace) -> co.SchemaPlace:
        """Return a schema as its database and itself are spelled."""
        database = self.databases[place.database].name
        schema = self._objects.get(self._schema_key(place))
        return co.SchemaPlace(database, place.schema if schema is None else schema.name)

    def place_of(self, parts: Sequence[str]) -> co.SchemaPlace | None:
        """Return the schema that one or two parts mean, None where there is none; raises `AmbiguousName`."""
        folded = [part.lower() for part in parts]
        if len(folded) == 2:
            place = co.SchemaPlace(*folded)
            return place if self.has_schema(place) else None
        if len(folded) != 1:
            return None
        here = co.SchemaPlace(self.current.database, folded[0])
        if self.has_schema(here):
            if folded[0] in self.databases and folded[0] != co.MAIN:
                raise AmbiguousName(
                    f'"{parts[0]}" is a database and a schema: write {parts[0]}.{co.MAIN} or {here.database}.{parts[0]}.'
                )
            return here
        return co.SchemaPlace(folded[0]) if folded[0] in self.databases else None

    def has_schema(self, place: co.SchemaPlace) -> bool:
        known = place.schema == co.MAIN or self._schema_key(place) in self._objects
        return place.database in self.databases and known

    def new_name(self, parts: Sequence[str], temporary: bool = False) -> co.ObjectName:
        """Return the name of what is to be made; raises `UnknownName` for a place that is not there."""
        *around, name = parts
        if temporary and not around:
            return co.ObjectName(name, co.SchemaPlace(co.TEMP))
        place = self.place_of(around) if around else self.current
        if place is None:
            raise UnknownName(f'There is no schema "{".".join(around)}".{self._near(around[-1])}')
        if temporary and place.database != co.TEMP:
            raise CatalogError("What is temporary is in the database temp: leave out the schema.")
        return co.ObjectName(name, place)

    def _near(self, name: str) -> str:
        schemas = (key.schema for key in self._objects if key.kind == "schema")
        return nearest(name, [*self.databases, co.MAIN, *schemas])

    def _key(self, name: str, kind: co.ObjectKind = "relation") -> co.ObjectKey | None:
        """Return what a name's object is kept under, None where there is no such object."""
        if not isinstance(name, str):
            raise InvalidQuery(f"A table is named by a str, not by {shown(name)}.")
        place = getattr(name, "place", None)
        for database, schema in self._searched() if place is None else (place,):
            key = co.ObjectKey(database, kind, schema, name.lower())
            if key in self._objects:
                return key
        return None

    def entry(self, name: str) -> Relation | None:
        """Return what a table's or view's name stands for."""
        key = self._key(name)
        return None if key is None else self._objects[key]  # type: ignore[return-value]

    def is_lasting(self, name: str) -> bool:
        """Whether what has a name is in a folder."""
        place = getattr(name, "place", self.current)
        return self.databases[place.database].folder is not None

    def view(self, name: str) -> co.View | None:
        found = self.entry(name)
        return found if isinstance(found, co.View) else None

    def macro(self, name: str) -> co.Macro | None:
        key = self._key(name, "macro")
        return None if key is None else self._objects[key]  # type: ignore[return-value]

    def sequence(
        self, parts: Sequence[str], home: co.SchemaPlace | None = None
    ) -> tuple[co.ObjectKey, SequenceObject] | None:
        """Return the sequence that parts mean, under its key; `home` is where one part is looked up first."""
        key = self._key_of(parts, home, "sequence")
        return None if key is None else (key, self._objects[key])  # type: ignore[return-value]

    def named_entry(
        self, parts: Sequence[str], kind: co.ObjectKind
    ) -> tuple[co.ObjectKey, CatalogEntry] | None:
        """Return the object of a kind that parts mean, under its key."""
        name = self.qualified(parts)
        key = None if name is None else self._key(name, kind)
        return None if key is None else (key, self._objects[key])

    def sequence_names(self) -> list[str]:
        """Return the names of all sequences."""
        return [entry.name for _, entry in self.objects("sequence")]

    @property
    def user_types(self) -> Mapping[str, co.UserType]:
        """The types that CREATE TYPE made, by names in lower case."""
        version, found = self._user_types
        if version != self.version:
            made = dict(self.objects("type"))
            found = {
                key.name: entry
                for place in reversed(self._searched())
                for key, entry in made.items()
                if key.place == place
            }
            self._user_types = self.version, found
        return found

    def names(self) -> list[str]:
        """Return the names of all tables and views in the schemas that are looked through, in their order."""
        with self._lock:
            places = self._searched()
            found = [
                str(entry.name)
                for key, entry in self._objects.items()
                if key.kind == "relation" and key.place in places
            ]
            return sorted(found, key=str.lower)

    def _searched(self) -> tuple[co.SchemaPlace, ...]:
        """Return the schemas in which names without one are looked up, the first first."""
        return co.SchemaPlace(co.TEMP), self.current, co.SchemaPlace(self.current.database)

    def objects(self, kind: co.ObjectKind) -> list[tuple[co.ObjectKey, Any]]:
        """Return all objects of a kind, in the order of their places and names."""
        with self._lock:
            found = [item for item in self._objects.items() if item[0].kind == kind]
        return sorted(found, key=lambda item: item[0])

    def made_in(self, database: str) -> list[tuple[co.ObjectKey, CatalogEntry]]:
        """Return the objects of a database in the order in which they were made."""
        with self._lock:
            return [item for item in self._objects.items() if item[0].database == database]

    def places(self) -> Iterator[co.SchemaPlace]:
        """Yield all schemas."""
        for database in self.databases:
            yield co.SchemaPlace(database)
        for key, _ in self.objects("schema"):
            yield key.place

    def unknown(self, name: str) -> UnknownName:
        """Return the error for a name that stands for nothing."""
        return UnknownName(f'There is no table or view "{name}".{nearest(name, self.names())}')

    @staticmethod
    def _schema_key(place: co.SchemaPlace) -> co.ObjectKey:
        return co.ObjectKey(place.database, "schema", place.schema, "")

    # Databases

    def attach(self, database: AttachedDatabase, home: bool = False) -> None:
        """Add a database under its name; the `home` of a connection takes the place of the one in memory.

        Raises `CatalogError` where the name or the folder is taken.
        """
        with self._lock:
            folded = database.name.lower()
            if folded in self.databases or folded == "system":
                raise CatalogError(
                    f'There is a database "{database.name}" already: give this one a name with AS.'
                )
            for known in self.databases.values():
                if database.folder is not None and known.folder is database.folder:
                    raise CatalogError(
                        f'The folder "{database.folder.path}" is attached already, as "{known.name}".'
                    )
            if home:
                del self.databases[co.MEMORY]
                self.current = co.SchemaPlace(folded)
            self.databases[folded] = database
            self._pull(folded)

    def detach(self, name: str) -> list[CatalogEntry]:
        """Remove a database and return what was in it; raises `UnknownName` and `CatalogError`."""
        with self._lock:
            folded = name.lower()
            database = self.databases.get(folded)
            if database is None:
                raise UnknownName(f'There is no database "{name}".{nearest(name, self.databases)}')
            if folded in (self.current.database, co.TEMP):
                raise CatalogError(f'"{name}" is in use: USE another database first.')
            if self._before is not None:
                raise TransactionError("DETACH within a transaction: COMMIT or ROLLBACK it first.")
            del self.databases[folded]
            gone = [v for k, v in self._objects.items() if k.database == folded]
            self._objects = {k: v for k, v in self._objects.items() if k.database != folded}
            self.version += 1
        if database.folder is not None:
            close_folder(database.folder)
        return gone

    def use(self, parts: Sequence[str]) -> None:
        """Look names up in another schema from now on; raises `UnknownName`."""
        with self._lock:
            place = self.place_of(parts)
            if place is None:
                raise UnknownName(
                    f'There is no database or schema "{".".join(parts)}".{self._near(parts[-1])}'
                )
            self.current = place
            self.version += 1

    def refresh(self) -> None:
        """Take in what others have committed to the folders, unless a transaction is open; once before each statement."""
        if self._before is not None:
            return
        for name, database in tuple(self.databases.items()):
            if database.folder is not None and database.folder.refresh() != database.seen:
                self._pull(name)

    def _pull(self, name: str) -> None:
        with self._lock:
            database = self.databases[name]
            if database.folder is not None:
                with database.folder.lock:
                    found, database.seen = database.folder.objects, database.folder.version
                others = {k: v for k, v in self._objects.items() if k.database != name}
                self._objects = {**others, **self._as_known(self._placed(name, found))}
            self.version += 1

    @staticmethod
    def _placed(database: str, found: Mapping[co.ObjectKey, CatalogEntry]) -> Entries:
        """Return objects of a folder under the name that the database has here."""
        made: Entries = {}
        for key, entry in found.items():
            place = co.SchemaPlace(database, key.schema)
            here = co.ObjectKey(database, *key[1:])
            if isinstance(entry, StoredTable):
                made[here] = entry.renamed(co.ObjectName(entry.name, place))
            elif isinstance(entry, co.View):
                named = co.ObjectName(entry.name, place)
                made[here] = co.View(named, entry.text, entry.columns, comments=entry.comments)
            else:
                made[here] = entry
        return made

    def _as_known(self, found: Entries) -> Entries:
        """Return objects, of which those that are known already are the very ones."""
        return {
            key: known if (known := self._objects.get(key)) and _same(known, entry) else entry
            for key, entry in found.items()
        }

    def release(self) -> None:
        """Let go of all folders."""
        with self._lock:
            self._objects = {}
            _closed(self.databases)


def _closed(databases: dict[str, AttachedDatabase]) -> None:
    while databases:
        _, database = databases.popitem()
        if database.folder is not None:
            close_folder(database.folder)


def _same(known: object, entry: object) -> bool:
    if isinstance(known, StoredTable) and isinstance(entry, StoredTable):
        return known.rows is entry.rows
    return not isinstance(known, StoredTable) and known == entry
