"""Replacement scans: a name in FROM that the catalog does not have is looked for among the variables of the Python code that asks.

As in DuckDB: the locals of the caller, then the globals of its module; with `python_scan_all_frames` those of its callers too.  What is
found is taken as it is now, each time a text is bound: no plan that names a variable is kept for the next run of the text.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from types import FrameType
from typing import TYPE_CHECKING

from ..errors import TypeMismatch
from ..plan.copies import fresh
from ..plan.logical import CatalogTable, Logical
from .ingest import TAKEN, is_table

if TYPE_CHECKING:
    from ..connection import Connection
    from ..running import QueryRunner

PACKAGE = "fuseline"


class CallerObjects:
    """The variables of who called this package, for one text; an object that is named twice is taken once."""

    def __init__(
        self,
        connection: Connection,
        runner: QueryRunner,
        frame: FrameType,
        tables: Mapping[str, Logical] | None = None,
    ) -> None:
        self._given = tables or {}
        self._connection, self._runner = connection, runner
        self._frame: FrameType | None = frame  # which keeps all that its callers have
        settings = runner.settings
        self._everywhere = settings.python_scan_all_frames
        self._is_on = settings.python_enable_replacements and settings.external_access
        self._taken: dict[int, tuple[object, CatalogTable | Logical]] = {}

    def __enter__(self) -> CallerObjects:
        return self

    def __exit__(self, *_: object) -> None:
        self._frame = None
        self._taken.clear()

    @property
    def were_named(self) -> bool:
        """Whether a plan reads any of them."""
        return bool(self._taken or self._given)

    def given(self, name: str) -> Logical | None:
        """Return a plan that the text was given under a name, which goes before tables of the catalog."""
        plan = self._given.get(name.lower())
        return None if plan is None else fresh(plan)[0]

    def find(self, name: str) -> CatalogTable | Logical | None:
        """Return a variable as a table, of one of our Frames its plan; None where there is no variable of the name.

        Raises `TypeMismatch` for an object that is no table.
        """
        for variables in self._variables():
            if name in variables:
                return self._table_of(name, variables[name])
        return None

    def names(self) -> list[str]:
        """Return the names of variables that are tables that anyone may mean: neither Python's own, as `__annotations__`, nor cursors."""
        from ..frame.cursor import Cursor

        variables = (pair for found in self._variables() for pair in found.items())
        tables = ((n, value) for n, value in variables if is_table(value))
        found = (n for n, v in tables if not (n.startswith("__") or isinstance(v, Cursor)))
        return list(dict.fromkeys([*self._given, *found]))

    def _variables(self) -> Iterator[dict[str, object]]:
        frame = self._frame
        while frame is not None and _is_own(frame):
            frame = frame.f_back
        while frame is not None and self._is_on:
            yield dict(frame.f_locals)
            yield frame.f_globals
            frame = frame.f_back if self._everywhere else None

    def _table_of(self, name: str, value: object) -> CatalogTable | Logical:
        from ..frame.frame import Frame

        if isinstance(value, Frame) and value.runs_on(self._runner):
            self._taken[id(value)] = value, value.plan
            return fresh(value.plan)[0]
        if id(value) not in self._taken:
            if not is_table(value):
                raise TypeMismatch(
                    f'There is no table "{name}", and the variable of this name is a {type(value).__name__}, which is no table: '
                    f"a table is {TAKEN}."
                )
            table = self._connection.table_of(name, value)
            table.settled = False  # its columns are not kept for another run
            self._taken[id(value)] = value, table
        return self._taken[id(value)][1]


def _is_own(frame: FrameType) -> bool:
    name = str(frame.f_globals.get("__name__", ""))
    return name == PACKAGE or name.startswith(f"{PACKAGE}.")
