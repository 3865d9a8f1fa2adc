"""From which tier a run took the columns that it brought into the cache: the column store, or Parquet files."""

from __future__ import annotations

from collections.abc import Sequence

from ..operators.column_tiers import LiftedColumn

WHENCE = {"store": "from the column store", "Parquet": "from Parquet files"}


def tier_lines(lifted: Sequence[LiftedColumn] | None) -> list[str]:
    """Return a line for each table and tier that columns were lifted from, and one for each column that was to be in the store; none without a store."""
    if lifted is None:
        return []
    if not lifted:
        return ["columns: all in memory"]
    lines = []
    for table, tier in dict.fromkeys((each.table, each.tier) for each in lifted):
        own = {each.column: each for each in lifted if (each.table, each.tier) == (table, tier)}
        size = sum(e.bytes for e in lifted if (e.table, e.tier) == (table, tier))
        lines.append(f"columns {WHENCE[tier]}, {size / 1e6:,.1f} MB of {table}: {', '.join(own)}")
    reasons = {each.reason: each for each in lifted if each.reason}
    lines += [
        f"{each.column} of {each.table} is not in the column store: {reason}"
        for reason, each in reasons.items()
    ]
    return lines
