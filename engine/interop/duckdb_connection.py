"""What DuckDB's connections have beside those of here: values, functions of tables, rows appended, extensions."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..errors import WrongArguments, shown
from ..fence import fenced
from ..plan.text.quoted_name import quoted_name

if TYPE_CHECKING:
    from ..frame.cursor import Cursor
    from ..frame.frame import Frame
    from ..plan_cache import Parameters


class Statement(str):
    """The text of one statement, which `execute` and `sql` take."""

    __slots__ = ()

    @property
    def query(self) -> str:
        return str(self)


@fenced
class DuckDBSteps:
    """Steps of DuckDB's documentation, each made of one that is here."""

    if TYPE_CHECKING:  # what a connection has

        def sql(self, text: str, params: Parameters = None) -> Frame: ...
        def cursor(self) -> Cursor: ...
        def execute(self, text: str, params: Parameters = None) -> Cursor: ...
        def from_df(self, source: object) -> Frame: ...

    def values(self, *rows: object) -> Frame:
        """Return rows of values as a Frame: of one list, of several tuples, or of single values."""
        single = len(rows) > 1 and not any(isinstance(row, list | tuple) for row in rows)
        made = [rows] if single else [r if isinstance(r, list | tuple) else (r,) for r in rows]
        if not made or not all(made) or len({*map(len, made)}) > 1:
            raise WrongArguments(f"values() takes rows of equally many values, not {shown(rows)}.")
        row = f"({', '.join('?' * len(made[0]))})"
        return self.sql(
            f"VALUES {', '.join([row] * len(made))}", [value for r in made for value in r]
        )

    def table_function(self, name: str, parameters: object = ()) -> Frame:
        """Return what a function of SQL gives that stands in FROM: `table_function("range", [3])`."""
        given = [*parameters] if isinstance(parameters, list | tuple) else [parameters]
        return self.sql(f"FROM {quoted_name(name)}({', '.join('?' * len(given))})", given)

    def append(self, table: str, source: object, *, by_name: bool = False) -> None:
        """Append the rows of a frame of another library to a table, by position or by names."""
        self.from_df(source).insert_into(table, by_name=by_name)

    def duplicate(self) -> Cursor:
        """Do what `cursor` does."""
        return self.cursor()

    def checkpoint(self) -> None:
        self.execute("CHECKPOINT")

    def install_extension(self, name: str) -> None:
        """Do nothing for what is built in, as INSTALL; raises `Unsupported` for other extensions."""
        self.execute(f"INSTALL {quoted_name(name)}")

    def load_extension(self, name: str) -> None:
        """Do nothing for what is built in, as LOAD; raises `Unsupported` for other extensions."""
        self.execute(f"LOAD {quoted_name(name)}")

    def extract_statements(self, text: str) -> list[Statement]:
        """Return the statements of a script, which `execute` takes one by one."""
        from ..sql import split

        if not isinstance(text, str):
            raise WrongArguments(f"extract_statements() takes a text, not {shown(text)}.")
        return [Statement(piece.sql.strip()) for piece in split(text)]

    def get_table_names(self, text: str, *, qualified: bool = False) -> set[str]:
        """Return the names of the tables and views that a query reads, which need not be there; `qualified` with their schemas."""
        from ..sql import table_names

        if not isinstance(text, str):
            raise WrongArguments(f"get_table_names() takes a text, not {shown(text)}.")
        return table_names(text, qualified)
