"""MERGE: the pairs of rows that it is about, and what becomes of them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal as OneOf

from ..logical import Logical
from .stand_in import StandIn

ACTION = "merge_action"  # the column of RETURNING that says what was done with a row


@dataclass(frozen=True)
class MergeAction:
    """What one WHEN does with its pairs, of which `rows` is a query.

    DELETE has the numbers of rows; UPDATE these and new values for `columns`; INSERT whole rows; ERROR a message.  `clause` is how errors
    call it.
    """

    kind: OneOf["DELETE", "UPDATE", "INSERT", "ERROR"]
    rows: Logical
    columns: tuple[str, ...] = ()
    clause: str = ""


@dataclass(frozen=True)
class MergedPairs:
    """Rows of the table, by their numbers, each beside the row of the source that it matches; either may be missing.

    `query` gives them over the table, for which `existing` stands; actions read them where `rows` stands.
    """

    existing: StandIn
    rows: StandIn
    query: Logical
