"""How ORDER BY and list_sort() sort where they do not say, by the settings `default_order` and `default_null_order`."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from ..expr import Expr, Literal
from ..functions import SCALAR, scalar_name
from ..types import VARCHAR


@dataclass(frozen=True)
class SortDefaults:
    """The order and the place of NULLs of keys that have none written."""

    order: str = "ASC"
    nulls: str = "NULLS_LAST"

    def descending(self, written: bool | None) -> bool:
        return self.order == "DESC" if written is None else written

    def nulls_first(self, descending: bool) -> bool:
        """Whether NULLs come first in this direction."""
        if self.nulls in ("NULLS_FIRST", "NULLS_LAST"):
            return self.nulls == "NULLS_FIRST"
        return descending == (self.nulls == "NULLS_LAST_ON_ASC_FIRST_ON_DESC")


DEFAULTS = SortDefaults()


def with_order(
    name: str, args: Sequence[Expr], defaults: SortDefaults
) -> tuple[str, Sequence[Expr]]:
    """Return a call of a function that sorts lists with the order that its text leaves out."""
    row = None if defaults == DEFAULTS else SCALAR.get(scalar_name(name) or "")
    if row is None or not (row.sorts or row.reverses) or not args:
        return name, args
    values, *said = args
    if row.reverses:
        said = [_text("ASC" if defaults.order == "DESC" else "DESC"), *said]
    elif not said:
        said = [_text(defaults.order)]
    order = said[0]
    if len(said) == 1 and isinstance(order, Literal):
        first = defaults.nulls_first(str(order.value).lower() == "desc")
        said = [order, _text("NULLS FIRST" if first else "NULLS LAST")]
    return row.reverses or row.name, [values, *said]


def _text(value: str) -> Literal:
    return Literal(value, VARCHAR)
