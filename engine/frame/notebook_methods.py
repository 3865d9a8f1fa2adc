"""What notebooks ask a frame for, to show it below a cell."""

from __future__ import annotations

from collections.abc import Container
from typing import TYPE_CHECKING

from ..fence import fenced
from ..plan.logical import Logical

if TYPE_CHECKING:
    from .frame import Frame

LOOKED_AT = 1000  # rows, of which the last ones are shown too; of more only the first


@fenced
class NotebookMethods:
    """The HTML of a frame's first and last rows, and the text beside it for clients that show none."""

    _plan: Logical

    def _repr_html_(self) -> str:
        from .display import rows_of
        from .html_table import html_table

        frame: Frame = self  # type: ignore[assignment]
        table = frame.limit(LOOKED_AT + 1).to_arrow()
        more_than = LOOKED_AT if table.num_rows > LOOKED_AT else None
        types = [column.type for column in self._plan.columns]
        rows = rows_of(table.slice(0, LOOKED_AT), types)
        return html_table(table.column_names, types, rows, more_than)

    def _repr_mimebundle_(
        self, include: Container[str] | None = None, exclude: Container[str] | None = None
    ) -> dict[str, str]:
        """Return the forms in which a notebook may show the frame, of those that it asks for."""
        made = {"text/plain": self.__repr__, "text/html": self._repr_html_}
        return {
            kind: make()
            for kind, make in made.items()
            if (not include or kind in include) and not (exclude and kind in exclude)
        }
