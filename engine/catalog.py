"""What binding asks of a connection: names without regard to case, files, and what a connection tells of itself."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Hashable, Mapping, Sequence
from os import PathLike, fspath
from typing import TYPE_CHECKING

from .database.namespace import Namespace
from .errors import TypeMismatch, Unsupported, shown
from .plan.arrow.arrow_arrays import array_from
from .plan.changes.catalog_objects import Macro, SchemaObject, SessionObjects, UserType, View
from .plan.changes.sequences import Sequence as SequenceObject
from .plan.changes.stand_in import Recursion
from .plan.composed.sampling import DEFAULTS, SortDefaults
from .plan.dialect import SqlReading
from .plan.logical import CatalogTable, Logical
from .records import dataclass
from .storage.tables.access import Access, AccessRules

if TYPE_CHECKING:
    import pyarrow as pa

    from .file_tables.converted_table import UnreadTable
    from .settings import Settings
    from .storage.tables.parquet import ParquetTable

__all__ = ["Catalog", "TableFunction", "View", "file_paths"]

KEPT_FILES = 256  # read_parquet calls whose table is remembered

FilesKey = tuple[str, tuple[str, ...], str]
OpenFiles = Callable[..., "ParquetTable | UnreadTable"]  # of format, paths, options and rules


@dataclass(frozen=True)
class TableFunction:
    """A function in FROM: `make` gives its table, of a text that errors call `argument` if it takes one, or `several` of a list."""

    make: Callable[..., CatalogTable]
    argument: str = ""
    several: bool = False


class Catalog(Namespace):
    """What the names in SQL stand for, and the files that were read."""

    def __init__(
        self,
        functions: Mapping[str, TableFunction] | None = None,
        views: Mapping[tuple[str, str], View] | None = None,
        run: Callable[[Logical], pa.Table] | None = None,
        open_files: OpenFiles | None = None,
        recursive: Callable[[Recursion], CatalogTable] | None = None,
    ) -> None:
        """`functions` and `views` are those that each catalog has, views by schema and name; `run` gives the rows of a plan, `open_files` tables of other files than Parquet."""
        super().__init__()
        self.timezone = "UTC"
        self.sort_defaults, self.dialect = DEFAULTS, SqlReading()
        self.access = Access()
        self._functions = functions or {}
        self._system_views = views or {}
        self._run = run
        self._open_files = open_files
        self._recursive = recursive
        self._files: OrderedDict[FilesKey, ParquetTable | UnreadTable] = OrderedDict()

    # What the binder asks for

    def table(self, name: str) -> CatalogTable | None:
        """Return a table; one of files is opened anew, with the columns that they have now, when they have changed.

        Raises `FileError` when the files are gone or damaged.
        """
        found = self.entry(name)
        if found is None or isinstance(found, View):
            return None
        if _is_stale(found):
            new: CatalogTable = found.anew()  # type: ignore[attr-defined]
            self.replace_table(found, new)
            return new
        return found

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
        table = self._opened(form, paths, options or {}, self.access)
        with self._lock:
            self._files[key] = table
            self._files.move_to_end(key)
            while len(self._files) > KEPT_FILES:
                self._files.popitem(last=False)
            if known is not None:
                self.version += 1
        return table

    def open_own(
        self, form: str, path: str, options: Mapping[str, object]
    ) -> ParquetTable | UnreadTable:
        """Return the table of a file that was written for this, whatever files may be opened; raises `FileError`."""
        return self._opened(form, [path], options, Access())

    def _opened(
        self, form: str, paths: Sequence[str], options: Mapping[str, object], access: Access
    ) -> ParquetTable | UnreadTable:
        if form != "parquet":
            assert self._open_files is not None
            return self._open_files(form, paths, options, access)
        from .storage.tables.parquet import ParquetTable

        return ParquetTable.open(paths, options, access=access)

    def restrict(self, rules: AccessRules) -> None:
        """Open files by other rules from now on; what was read by earlier ones is looked at anew."""
        with self._lock:
            if rules != self.access.rules:
                self.access.rules = rules
                self._files.clear()
                self.version += 1

    def plan_by(self, settings: Settings) -> None:
        """Plan statements in another zone, and sort and read them in another way, from now on."""
        with self._lock:
            before = self.timezone, self.sort_defaults, self.dialect
            self.timezone = settings.timezone
            self.dialect = SqlReading(
                settings.error_on_division_by_zero,
                settings.integer_division,
                settings.lambda_syntax == "enable_single_arrow",
                settings.scalar_subquery_error_on_multiple_rows,
            )
            self.sort_defaults = SortDefaults(settings.default_order, settings.default_null_order)
            self.version += before != (self.timezone, self.sort_defaults, self.dialect)

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

        from .storage.tables.memory_table import LiveTable

        values = [array_from([row[i] for row in rows], pa.string()) for i in range(len(columns))]
        made = pa.table(values, names=list(columns))
        return LiveTable(name, lambda: made)

    def all_tables(self) -> list[CatalogTable]:
        """Return all tables, and files that were read."""
        with self._lock:
            others = View, Macro, UserType, SequenceObject, SchemaObject
            named: list[CatalogTable] = [
                o for o in self._objects.values() if not isinstance(o, others)
            ]
            return [*self._files.values(), *named]

    def identities(self) -> dict[Hashable, str]:
        """Return the names of all tables, and of files that were read, by what their columns are cached under."""
        return {t.identity: t.name for t in self.all_tables()}

    # What statements change

    def change_session(self, change: Callable[[SessionObjects], object]) -> None:
        """Change prepared statements or variables; plans of texts that may name them are made anew."""
        with self._lock:
            change(self.session)
            self.version += 1

    def replace_table(self, old: CatalogTable, new: CatalogTable) -> None:
        """Put `new` wherever a name, or a remembered read of files, stands for `old`."""
        with self._lock:
            if all(known is not old for known in (*self._objects.values(), *self._files.values())):
                return
            self._objects = {k: new if o is old else o for k, o in self._objects.items()}
            for key, table in self._files.items():
                if table is old:
                    self._files[key] = new  # type: ignore[assignment]
            self.version += 1


def file_paths(path: object) -> list[str]:
    """Return one path or several as texts; raises `TypeMismatch` for what is no path, as an open file is."""
    try:
        # An open file would give its lines
        alone = isinstance(path, str | PathLike) or hasattr(path, "read")
        found = [fspath(p) for p in ([path] if alone else path)]  # type: ignore[attr-defined]
    except TypeError:
        found = [None]
    if all(isinstance(p, str) for p in found):
        return found
    raise TypeMismatch(
        f"A path is a str or a pathlib.Path, or there is a list of them, not {shown(path)}."
    )


def _is_stale(table: object) -> bool:
    """Whether a table is of files that have changed since they were looked at."""
    return hasattr(table, "anew") and not table.is_current()  # type: ignore[attr-defined]
