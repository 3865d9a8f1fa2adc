"""What a statement gave: its rows, or how many it wrote; and `executemany`, which runs one for many sets of parameters."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from typing import TYPE_CHECKING

import pyarrow as pa

from ..errors import InvalidQuery, NotByRows
from ..plan.types import DataType
from ..reading import Reading

if TYPE_CHECKING:
    from ..connection import Connection
    from ..plan_cache import Parameters


@dataclass(frozen=True)
class Rowset:
    """The rows that a statement gave, in memory or made while they are read, and how they may be stopped meanwhile.

    `source` is None for a statement that is not written for rows.  `count`: of the rows, or of those that were written; -1 where
    nobody knows.
    """

    source: pa.Table | Reading | None
    types: tuple[DataType, ...] = ()
    count: int = -1
    stoppable: Callable[[], AbstractContextManager[object]] = nullcontext
    of_query: bool = False


NOTHING = Rowset(None)


def run_many(connection: Connection, text: str, sets: Sequence[Parameters]) -> Rowset:
    """Run a statement for each set of parameters; raises `InvalidQuery` for a query. RETURNING gives the rows of all sets.

    INSERT ... VALUES of plain parameters stores all sets at once, or none.  Other statements run one after the other, and what ran
    before an error stays, unless a transaction takes it back.
    """
    table = _as_table(sets)
    if table is not None:
        try:
            return connection._rowset(text, sets[0], table)
        except NotByRows:
            pass
    found, written, returned = NOTHING, 0, []
    for given in sets:
        found = connection._rowset(text, given)
        if isinstance(found.source, Reading):
            found.source.close()
        if found.of_query:
            raise InvalidQuery("executemany() takes a statement that is no query: use execute().")
        written += max(found.count, 0)
        if found.source is not None:
            returned.append(found.source)
    return Rowset(pa.concat_tables(returned) if returned else None, found.types, written)


def _as_table(sets: Sequence[Parameters]) -> pa.Table | None:
    """Return a column for each parameter; None where its values are of several types."""
    first = sets[0] if sets else None
    if isinstance(first, Mapping):
        names: list[str] = list(first)
        named = [s for s in sets if isinstance(s, Mapping) and s.keys() == first.keys()]
        columns = [[one[name] for one in named] for name in names]
    elif isinstance(first, list | tuple):
        names = [str(number) for number in range(1, len(first) + 1)]
        plain = [s for s in sets if isinstance(s, list | tuple) and len(s) == len(first)]
        columns = [list(column) for column in zip(*plain, strict=True)]
    else:
        return None
    if not names or len(columns[0]) < len(sets):
        return None
    if any(len({type(value) for value in column} - {type(None)}) > 1 for column in columns):
        return None
    try:
        return pa.table([pa.array(column) for column in columns], names=names)
    except (pa.ArrowException, ValueError, TypeError, OverflowError):
        return None  # one after the other says which value it is
