"""Which rows a kernel has to go through, by the indexes that were made before it (`codegen.cpu.kept_rows`)."""

from __future__ import annotations

from ....codegen.cpu.kept_rows import KeptRows, kept_rows, zones_with
from ....codegen.program import Program
from ....plan.physical import Stored
from ....storage.columns.encodings import Array
from ....storage.columns.row_zones import zones_of
from .pipeline_inputs import Leaves

ROWS_WORTH_A_LOOK = 1 << 17  # of which it may pay to look which are looked for


def rows_with_keys(
    made: Program, rows: int, memory: dict[str, Array], leaves: Leaves
) -> KeptRows | None:
    """Return the only rows that may be in, by the zones of the columns that are looked for in indexes; None for all."""
    found: Array | None = None
    source = made.relations[0]
    if rows < ROWS_WORTH_A_LOOK or made.ranking is not None or isinstance(source.leaf, Stored):
        return None
    for key in made.kept_keys:
        zones = zones_of(leaves.columns[id(source.leaf), source.stored[key.column].id])
        if zones is not None:
            there = zones_with(key.index, memory, zones, key.least, rows)
            if there is not None:
                found = there if found is None else found & there
    return None if found is None or found.all() else kept_rows(found, rows)
