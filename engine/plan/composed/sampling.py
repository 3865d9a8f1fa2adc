"""How ORDER BY sorts where it does not say, rows with their numbers, and samples of rows by what random() draws for these."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Literal as OneOf

from ...records import dataclass
from .. import infer
from ..expr import Call, Column, ColumnRef, Expr, Literal, SortKey, new_column
from ..functions import SCALAR, scalar_name
from ..logical import Filter, Limit, Logical, Project, Sort, Unnest
from ..types import BIGINT, DOUBLE, VARCHAR
from ..window.window_call import WHOLE, Window, WindowCall

ROW_NUMBER = WindowCall("row_number", (), BIGINT)
ROW_ID = "rowid"  # what queries call the numbers of a table's rows
SEED_BITS = 62
_BLOCK = 2048  # rows of which SYSTEM takes all or none, as DuckDB

Method = OneOf["SYSTEM", "BERNOULLI", "RESERVOIR"]


def drawn(number: Expr, seed: Expr) -> Expr:
    """Return what random() is for a row of that number: a DOUBLE from 0 to below 1."""
    return Call("random", (number, seed), DOUBLE)


def sample_rows(plan: Logical, count: int, seed: Expr) -> Logical:
    """Return so many rows of a plan: those with the smallest draws."""
    rows, number = _numbered(plan)
    kept = Limit(Sort(rows, (SortKey(drawn(ColumnRef(number), seed)),)), count, 0)
    return _without_number(kept, plan)


def sample_share(plan: Logical, share: float, seed: Expr, method: Method) -> Logical:
    """Return a share of the rows of a plan, which RESERVOIR takes to the nearest number of rows."""
    rows, number = _numbered(plan)
    if method == "RESERVOIR":
        return _without_number(_share_by_draw(rows, number, seed, share), plan)
    return _without_number(Filter(rows, _below(ColumnRef(number), seed, share, method)), plan)


def with_row_ids(plan: Logical) -> tuple[Logical, Column]:
    """Return a plan with one more column: the numbers of its rows from 0 on, in the order in which they lie."""
    rows, number = _numbered(plan)
    made = new_column(ROW_ID, BIGINT)
    row_id = infer.call("sub", [ColumnRef(number), Literal(1, BIGINT)])
    kept = tuple((column, ColumnRef(column)) for column in plan.columns)
    return Project(rows, (*kept, (made, infer.cast(row_id, BIGINT)))), made


def with_ordinality(plan: Logical) -> tuple[Logical, Column]:
    """Return a plan with the numbers of its rows from 1 on; those of a list begin anew with each."""
    number = new_column("ordinality", BIGINT)
    if isinstance(plan, Unnest) and plan.ordinality is None:
        return replace(plan, ordinality=number), number
    return Window(plan, (), (), ((number, ROW_NUMBER),)), number


def _numbered(plan: Logical) -> tuple[Logical, Column]:
    number = new_column("row_number", BIGINT)
    return Window(plan, (), (), ((number, ROW_NUMBER),)), number


def _without_number(kept: Logical, plan: Logical) -> Logical:
    return Project(kept, tuple((column, ColumnRef(column)) for column in plan.columns))


def _below(number: Expr, seed: Expr, share: float, method: Method) -> Expr:
    """Draw for each row, or for each block of rows."""
    if method == "SYSTEM":
        before = infer.call("sub", [number, Literal(1, BIGINT)])
        number = infer.cast(infer.call("int_div", [before, Literal(_BLOCK, BIGINT)]), BIGINT)
    return infer.compare("lt", drawn(number, seed), Literal(share, DOUBLE))


def _share_by_draw(rows: Logical, number: Column, seed: Expr, share: float) -> Logical:
    """Keep the nearest number of rows to a share of them: those with the smallest draws."""
    rank, total = new_column("rank", BIGINT), new_column("count", BIGINT)
    counted = Window(rows, (), (), ((total, WindowCall("count_star", (), BIGINT, WHOLE)),))
    key = SortKey(drawn(ColumnRef(number), seed))
    ranked = Window(counted, (), (key,), ((rank, ROW_NUMBER),))
    most = infer.call("mul", [infer.cast(ColumnRef(total), DOUBLE), Literal(share, DOUBLE)])
    last = infer.cast(infer.call("round", [most]), BIGINT)
    return Filter(ranked, infer.compare("le", ColumnRef(rank), last))


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
