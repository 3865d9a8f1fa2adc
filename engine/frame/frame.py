"""Frame: a lazy table.  Each method builds the logical nodes that SQL would."""

from __future__ import annotations

from collections.abc import Callable
from typing import NoReturn

from ..errors import InvalidQuery
from ..fence import fenced
from ..plan.types import DataType
from .api_hints import missing
from .expressions.expression import Expression
from .file_methods import FileMethods
from .methods.relation_names import RelationNames
from .methods.reshape_methods import ReshapeMethods
from .notebook_methods import NotebookMethods


@fenced
class Frame(ReshapeMethods, RelationNames, FileMethods, NotebookMethods):
    """A query that has not run: of `connection.sql`, of a table, or of the methods below.

    Column names are case-insensitive.  Where a method takes expressions, a string names a column, and a list of them is
    as good as several.  Results are computed anew by each call that returns data; `profile` describes the latest of them.

    >>> import fuseline
    >>> sales = fuseline.connect(device="cpu").register("sales", {"city": ["Oslo", "Rome", "Oslo"], "sold": [3, 5, 4]})
    >>> sales.group_by("city").agg(total=fuseline.sum_("sold")).sort("city").fetchall()
    [('Oslo', 7), ('Rome', 5)]
    """

    @property
    def schema(self) -> dict[str, DataType]:
        """Column name -> SQL type, in order."""
        return {c.name: c.type for c in self._plan.columns}

    def __getitem__(self, name: str) -> Expression:
        """Return a column as an expression that stays this frame's in a join with a table that has the name too."""
        if not isinstance(name, str):
            raise InvalidQuery(
                "frame[...] takes one column name: use select(...) for columns, limit(...) for rows."
            )
        column = self.resolve(name)
        return Expression(lambda _: column, name)

    def __getattr__(self, name: str) -> NoReturn:
        """Say what a method of other libraries is called here."""
        raise missing(Frame, name, () if name.startswith("_") else self.columns)

    def __bool__(self) -> bool:
        """Raise: the truth of a frame could mean that it is there or that it has rows, which takes a run."""
        raise InvalidQuery(
            "A frame has no truth value: ask `frame is None` or `frame.count() > 0`."
        )

    def __reduce__(self) -> tuple[Callable[..., Frame], tuple[object, ...]]:
        """The plan, and the files that it reads; raises `Unsupported` where a table lies in memory."""
        from ..interop.sent_frames import sent

        return sent(self._plan)

    def __repr__(self) -> str:
        """The first rows, where tables are not too large to run the query for them; `show()` runs any."""
        from .frame_text import frame_text

        return frame_text(self)
