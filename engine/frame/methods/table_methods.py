"""Frames and the connection's tables: SQL over a frame, rows into tables, frames as tables and views."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ...errors import WrongArguments, check_name, shown
from ...fence import fenced
from ...plan.changes.catalog_objects import TEMP, ObjectName, SchemaPlace, View
from ...plan.text.quoted_name import quoted_name
from .planned import Planned

if TYPE_CHECKING:
    from ...plan_cache import Parameters
    from ..frame import Frame


@fenced
class TableMethods(Planned):
    """SQL over the frame, and its rows as tables of the connection."""

    def sql(self, query: str, params: Parameters = None, name: str = "self") -> Frame:
        """Return a query in which the frame is a table: `frame.sql("SELECT city, sum(sold) FROM self GROUP BY ALL")`.

        Another `name` may stand for it; it goes before a table or view of that name.
        """
        check_name(name, "table")
        if not isinstance(query, str):
            raise WrongArguments(f"sql() takes a text, not {shown(query)}.")
        return self._connection.sql_over({name.lower(): self._plan}, query, params)

    def insert_into(self, table: str, by_name: bool = False) -> None:
        """Run and append the rows to a table of the connection, by position or by the columns' names: INSERT INTO."""
        check_name(table, "table")
        how = "BY NAME " if by_name else ""
        self.sql(f"INSERT INTO {quoted_name(table)} {how}FROM self")

    def create_table(self, name: str, replace: bool = False, if_not_exists: bool = False) -> Frame:
        """Run, keep the rows as a table of the connection, and return that: CREATE TABLE AS."""
        check_name(name, "table")
        start = "CREATE OR REPLACE TABLE" if replace else "CREATE TABLE"
        middle = " IF NOT EXISTS" if if_not_exists else ""
        self.sql(f"{start}{middle} {quoted_name(name)} AS FROM self")
        return self._connection.table(name)

    def create_view(self, name: str, replace: bool = True) -> Frame:
        """Make the query, which does not run now, usable in SQL under a name, as long as the connection is open.

        The view reads the tables that the frame reads: one that is created anew later is another one.
        """
        check_name(name, "view")
        catalog = self._connection.catalog
        in_folder = catalog.databases[catalog.current.database].folder is not None
        # A folder keeps texts alone
        place = ObjectName(name, SchemaPlace(TEMP)) if in_folder else name
        catalog.create(View(place, "", (), self._plan), "replace" if replace else "fail")
        return self._connection.table(name)
