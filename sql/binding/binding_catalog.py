"""What binding asks of its surroundings: the connection's tables, views and functions, and the caller's variables."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Protocol

from fuseline.catalog import TableFunction, View
from fuseline.plan.changes.catalog_objects import ObjectKey, ObjectName, SchemaPlace
from fuseline.plan.changes.recursion import Recursion
from fuseline.plan.changes.sequences import Sequence as SequenceObject
from fuseline.plan.changes.session_objects import Macro, SessionObjects, UserType
from fuseline.plan.logical import CatalogTable, Logical

if TYPE_CHECKING:
    import pyarrow as pa


class BindingCatalog(Protocol):
    """What binding asks of the connection; names are matched without regard to case."""

    @property
    def timezone(self) -> str: ...

    def table(self, name: str) -> CatalogTable | None: ...

    def view(self, name: str) -> View | None: ...

    def macro(self, name: str) -> Macro | None: ...

    def sequence(
        self, parts: Sequence[str], home: SchemaPlace | None = None
    ) -> tuple[ObjectKey, SequenceObject] | None:
        """Return the sequence that parts mean, under its key; `home` is where one part is looked up first."""

    def check_writable(self, database: str) -> None:
        """Raise `CatalogError` for a database that is only read."""

    def sequence_names(self) -> list[str]:
        """Return the names of all sequences."""

    @property
    def user_types(self) -> Mapping[str, UserType]:
        """The types that CREATE TYPE made, by names in lower case."""

    def names(self) -> list[str]:
        """Return the names of all tables and views that need no schema before them."""

    def here(self) -> SchemaPlace:
        """Return the schema in which names without one are looked up, as it is spelled."""

    def located(self, parts: Sequence[str], home: SchemaPlace | None = None) -> ObjectName | None:
        """Return the name of the table or view that parts mean, with its place; `home` is where one part is looked up first."""

    def qualified(self, parts: Sequence[str]) -> str | None:
        """Return the name that parts mean, as `t`, `main.t` or `shop.main.t`; None where the first ones are no place."""

    def place_of(self, parts: Sequence[str]) -> SchemaPlace | None:
        """Return the schema that one or two parts mean."""

    def new_name(self, parts: Sequence[str], temporary: bool = False) -> ObjectName:
        """Return the name of what is to be made; raises `UnknownName` for a place that is not there."""

    def system_view(self, name: str, schema: str | None) -> View | None:
        """Return a view of information_schema or pg_catalog."""

    def table_function(self, name: str) -> TableFunction | None:
        """Return a function in FROM that is not part of the language."""

    def table_functions(self) -> list[str]:
        """Return the names of those functions."""

    def rows(self, plan: Logical) -> pa.Table:
        """Return the rows of a query that has to be known before another is bound."""

    def recursive(self, recursion: Recursion) -> CatalogTable:
        """Return the table of a recursive query, whose rows are worked out whenever a plan of it runs."""

    def snapshot(
        self, name: str, columns: Sequence[str], rows: Sequence[tuple[str | None, ...]]
    ) -> CatalogTable:
        """Return a table of texts that no plan may keep."""

    @property
    def session(self) -> SessionObjects:
        """Prepared statements and variables."""

    def read_files(self, form: str, paths: list[str], options: dict[str, object]) -> CatalogTable:
        """Return the table of files of a format; raises `FileError`."""


class CallerVariables(Protocol):
    """The variables of the code that asks."""

    def find(self, name: str) -> CatalogTable | Logical | None:
        """Return a variable as a table or plan; raises `TypeMismatch` for one that is neither."""

    def given(self, name: str) -> Logical | None:
        """Return a plan that goes before tables of the catalog."""

    def names(self) -> list[str]: ...
