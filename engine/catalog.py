"""Names -> tables and views, without regard to case; files that were read are remembered."""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass, field
from os import PathLike, fspath
from typing import TYPE_CHECKING, Any, TypeVar
from typing import Literal as OneOf

from .errors import (
    CatalogError,
    InvalidQuery,
    TransactionError,
    TypeMismatch,
    UnknownName,
    Unsupported,
    check_name,
    nearest,
    shown,
)
from .plan.changes.recursion import Recursion
from .plan.changes.session_objects import SessionObjects
from .plan.logical import CatalogTable, Logical
from .plan.temporal import statement_time
from .storage.tables.access import Access, AccessRules

if TYPE_CHECKING:
    import pyarrow as pa

    from .file_tables.converted_table import UnreadTable
    from .storage.tables.parquet import ParquetTable

KEPT_FILES = 256  # read_parquet calls whose table is remembered

Tree = TypeVar("Tree")
FilesKey = tuple[str, tuple[str, ...], str]
OpenFiles = Callable[[str, Sequence[str], Mapping[str, object], Access], "UnreadTable"]


@dataclass(frozen=True)
class View:
    """The text of a view, and the names of its columns if it was given some."""

    name: str
    text: str
    columns: tuple[str, ...]
    _trees: list[Any] = field(default_factory=list, compare=False, repr=False)

    def tree(self, parse: Callable[[str], Tree]) -> Tree:
        """Return what `parse` makes of the text, which is kept: queries name a view many times, and no one changes a tree."""
        known = self._trees or [parse(self.text)]  # its own, of which a thread checks what was read
        self._trees[:] = known
        tree: Tree = known[0]
        return tree


@dataclass(frozen=True)
class TableFunction:
    """A function in FROM: `make` gives its table, of a text that errors call `argument` if it takes one."""

    make: Callable[..., CatalogTable]
    argument: str = ""


class Catalog:
    """What the names in SQL stand for; `version` grows with each change, so plans made before it are known as old.

    Every change is atomic: a table is replaced, never altered, and a query keeps the tables it was planned with.  So a transaction
    is what the names stood for when it began.
    """

    def __init__(
        self,
        functions: Mapping[str, TableFunction] | None = None,
        views: Mapping[tuple[str, str], View] | None = None,
        run: Callable[[Logical], pa.Table] | None = None,
        open_files: OpenFiles | None = None,
        recursive: Callable[[Recursion], CatalogTable] | None = None,
    ) -> None:
        """`functions` and `views` are those that each catalog has, views by schema and name; `run` gives the rows of a plan, `open_files` tables of other files than Parquet."""
        self.version = 0
        self.timezone = "UTC"
        self.access = Access()
        self._functions = functions or {}
        self._system_views = views or {}
        self._run = run
        self._open_files = open_files
        self._recursive = recursive
        self._objects: dict[str, CatalogTable | View] = {}
        self._before: dict[str, CatalogTable | View] | None = None  # in a transaction
        self._only_reads = False
        self.failed = False  # an error in the transaction left nothing to do but to roll back
        self._files: OrderedDict[FilesKey, ParquetTable | UnreadTable] = OrderedDict()
        self.session = SessionObjects()
        self._named_before = self.session.named()
        self._lock = threading.RLock()

    # What the binder asks for

    def table(self, name: str) -> CatalogTable | None:
        """Return a table; one of files is opened anew, with the columns that they have now, when they have changed.

        Raises `FileError` when the files are gone or damaged.
        """
        found = self._objects.get(folded(name))
        if found is None or isinstance(found, View):
            return None
        if _is_stale(found):
            new: CatalogTable = found.anew()  # type: ignore[attr-defined]
            self.replace_table(found, new)
            return new
        return found

    def view(self, name: str) -> View | None:
        found = self._objects.get(name.lower())
        return found if isinstance(found, View) else None

    def names(self) -> list[str]:
        """Return the names of all tables and views, in their order."""
        with self._lock:
            return sorted((o.name for o in self._objects.values()), key=str.lower)

    def read_files(
        self, form: str, paths: Sequence[str], options: Mapping[str, object] | None = None
    ) -> ParquetTable | UnreadTable:
        """Return the table of files of a format: the same object as long as the files are the same.

        Raises `FileError`, naming the file or pattern.
        """
        if form == "parquet":
            from .storage.tables.schemas import check_options

            check_options(options or {})
        key = form, tuple(paths), repr(sorted((options or {}).items()))
        with self._lock:
            known = self._files.get(key)
        if known is not None and not _is_stale(known):
            return known
        table = self._opened(form, paths, options or {})
        with self._lock:
            self._files[key] = table
            self._files.move_to_end(key)
            while len(self._files) > KEPT_FILES:
                self._files.popitem(last=False)
            if known is not None:
                self.version += 1
        return table

    def _opened(
        self, form: str, paths: Sequence[str], options: Mapping[str, object]
    ) -> ParquetTable | UnreadTable:
        if form != "parquet":
            assert self._open_files is not None
            return self._open_files(form, paths, options, self.access)
        from .storage.tables.parquet import ParquetTable

        return ParquetTable.open(paths, options, access=self.access)

    def restrict(self, rules: AccessRules) -> None:
        """Open files by other rules from now on; what was read by earlier ones is looked at anew."""
        with self._lock:
            if rules != self.access.rules:
                self.access.rules = rules
                self._files.clear()
                self.version += 1

    def set_timezone(self, name: str) -> None:
        """Plan statements in another zone from now on."""
        with self._lock:
            if name != self.timezone:
                self.timezone = name
                self.version += 1

    def system_view(self, name: str, schema: str | None) -> View | None:
        """Return a view of information_schema or pg_catalog; without a schema one of main or pg_catalog."""
        schemas = ("main", "pg_catalog") if schema is None else (schema.lower(),)
        found = (self._system_views.get((schema, name.lower())) for schema in schemas)
        return next(filter(None, found), None)

    def table_function(self, name: str) -> TableFunction | None:
        return self._functions.get(name.lower())

    def table_functions(self) -> list[str]:
        """Return the names of the functions in FROM that are not part of the language."""
        return sorted(self._functions)

    def rows(self, plan: Logical) -> pa.Table:
        """Return the rows of a query; raises `Unsupported` for a catalog of no connection, which only plans."""
        if self._run is None:
            raise Unsupported("A catalog without a connection runs no query.")
        return self._run(plan)

    def recursive(self, recursion: Recursion) -> CatalogTable:
        """Return the table of a recursive query, whose rows are worked out whenever a plan of it runs."""
        if self._recursive is None:
            raise Unsupported("A catalog without a connection runs no query.")
        return self._recursive(recursion)

    def snapshot(
        self, name: str, columns: Sequence[str], rows: Sequence[tuple[str | None, ...]]
    ) -> CatalogTable:
        """Return a table of texts that is made anew with each plan that reads it, since no change of files ends such a plan."""
        import pyarrow as pa

        from .storage.tables.live_table import LiveTable

        values = [pa.array([row[i] for row in rows], pa.string()) for i in range(len(columns))]
        made = pa.table(values, names=list(columns))
        return LiveTable(name, lambda: made)

    def identities(self) -> dict[Hashable, str]:
        """Return the names of all tables, and of files that were read, by what their columns are cached under."""
        with self._lock:
            named: list[Any] = [o for o in self._objects.values() if not isinstance(o, View)]
            return {t.identity: t.name for t in (*self._files.values(), *named)}

    # Transactions

    def begin(self, only_reads: bool = False) -> None:
        """Begin a transaction; raises `TransactionError` inside of one."""
        with self._lock:
            if self._before is not None:
                raise TransactionError(
                    "A transaction is open already: COMMIT or ROLLBACK it first."
                )
            self._before, self._only_reads = dict(self._objects), only_reads
            self._named_before = self.session.named()
            self.session.began = statement_time.clock()

    def fail(self) -> None:
        """Let the transaction, if there is one, take no more statements after an error in it."""
        self.failed = self._before is not None

    def check_transaction(self) -> None:
        """Raise `TransactionError` after an error in the transaction."""
        if self.failed:
            raise TransactionError("An earlier statement of this transaction failed: ROLLBACK it.")

    def commit(self) -> None:
        """End the transaction and keep its changes; raises `TransactionError` outside of one."""
        with self._lock:
            self._end("COMMIT")

    def roll_back(self) -> list[CatalogTable | View]:
        """End the transaction, undo its changes, and return what no name stands for any more; raises as `commit`."""
        with self._lock:
            made = self._objects
            self._objects = self._end("ROLLBACK")
            self.session.restore(self._named_before)
            self.version += 1
            kept = {id(entry) for entry in self._objects.values()}
            return [entry for entry in made.values() if id(entry) not in kept]

    @property
    def in_transaction(self) -> bool:
        return self._before is not None

    def _end(self, what: str) -> dict[str, CatalogTable | View]:
        """Return what the names stood for before the transaction."""
        if self._before is None:
            raise TransactionError(f"There is no transaction for {what} to end: write BEGIN first.")
        before, self._before = self._before, None
        self._only_reads, self.failed, self.session.began = False, False, None
        return before

    def _check_changes(self) -> None:
        if self._only_reads:
            raise TransactionError(
                "This transaction only reads: COMMIT it before tables are changed."
            )

    # What statements change

    def change_session(self, change: Callable[[SessionObjects], object]) -> None:
        """Change prepared statements, variables or macros; plans of texts that may name them are made anew."""
        with self._lock:
            change(self.session)
            self.version += 1

    def create(
        self, entry: CatalogTable | View, *, replace: bool = False, if_not_exists: bool = False
    ) -> bool:
        """Add a table or view; False when it was there and `if_not_exists` leaves it.

        Raises `CatalogError` when the name is taken, and also with `replace` when it is taken by the other kind.
        """
        with self._lock:
            old = self._objects.get(entry.name.lower())
            if old is not None:
                if if_not_exists:
                    return False
                if not replace:
                    raise CatalogError(
                        f'There is a {_kind(old)} "{old.name}" already: drop it first, or write CREATE OR REPLACE.'
                    )
                if _kind(old) != _kind(entry):
                    raise CatalogError(
                        f'"{old.name}" is a {_kind(old)}, which a {_kind(entry)} does not replace: drop it first.'
                    )
            self.put(entry)
            return True

    def put(self, entry: CatalogTable | View) -> CatalogTable | View | None:
        """Add a table or view in the place of anything that has the name, which is returned.

        Raises `InvalidQuery` for a name that is no text or empty.
        """
        check_name(entry.name, "table")
        with self._lock:
            self._check_changes()
            old = self._objects.get(entry.name.lower())
            self._objects[entry.name.lower()] = entry
            self.version += 1
            return old

    def exchange(self, old: CatalogTable | View, new: CatalogTable | View) -> bool:
        """Put the next version of a table or view in its place, or under another name; False when another thread was first.

        Raises `CatalogError` when the new name is taken.
        """
        with self._lock:
            before, after = old.name.lower(), new.name.lower()
            if self._objects.get(before) is not old:
                return False
            if after != before and after in self._objects:
                taken = self._objects[after]
                raise CatalogError(f'There is a {_kind(taken)} "{taken.name}" already.')
            self._check_changes()
            del self._objects[before]
            self.put(new)
            return True

    def drop(
        self, name: str, kind: OneOf["table", "view"] | None = None
    ) -> CatalogTable | View | None:
        """Remove and return what the name stands for, None when it is unknown.

        Raises `CatalogError` when it is not of the kind.
        """
        with self._lock:
            found = self._objects.get(folded(name))
            if found is None:
                return None
            if kind is not None and _kind(found) != kind:
                raise CatalogError(
                    f'"{found.name}" is a {_kind(found)}, not a {kind}: write DROP {_kind(found).upper()}.'
                )
            self._check_changes()
            del self._objects[name.lower()]
            self.version += 1
            return found

    def replace_table(self, old: CatalogTable, new: CatalogTable) -> None:
        """Put `new` wherever a name, or a remembered read of files, stands for `old`."""
        from .storage.tables.parquet import ParquetTable

        with self._lock:
            if all(known is not old for known in (*self._objects.values(), *self._files.values())):
                return
            self._objects = {k: new if o is old else o for k, o in self._objects.items()}
            if isinstance(new, ParquetTable):
                for key, table in self._files.items():
                    if table is old:
                        self._files[key] = new
            self.version += 1

    def unknown(self, name: str) -> UnknownName:
        """Return the error for a name that stands for nothing."""
        return UnknownName(f'There is no table or view "{name}".{nearest(name, self.names())}')


def file_paths(path: object) -> list[str]:
    """Return one path or several as texts; raises `TypeMismatch` for what is no path."""
    try:
        several = [path] if isinstance(path, str | PathLike) else list(path)  # type: ignore[call-overload]
        return [fspath(p) for p in several]
    except TypeError:
        raise TypeMismatch(
            f"A path is a str or a pathlib.Path, or there is a list of them, not {shown(path)}."
        ) from None


def folded(name: object) -> str:
    """Return what a table's name is kept under; raises `InvalidQuery` for what is no text."""
    if not isinstance(name, str):
        raise InvalidQuery(f"A table is named by a str, not by {shown(name)}.")
    return name.lower()


def _is_stale(table: object) -> bool:
    """Whether a table is of files that have changed since they were looked at; what was not read yet is not."""
    looked = getattr(table, "is_as_found", None) or getattr(table, "is_current", None)
    return looked is not None and hasattr(table, "anew") and not looked()


def _kind(entry: CatalogTable | View) -> OneOf["table", "view"]:
    return "view" if isinstance(entry, View) else "table"
