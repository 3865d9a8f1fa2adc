"""The 13 queries of the Star Schema Benchmark, one file each, and `tables/`: its five tables as SQL over those of TPC-H.

P. O'Neil, E. O'Neil, X. Chen: The Star Schema Benchmark, revision 3, 2009. Flight 1 filters the facts, flights 2 to 4 join two
to four dimensions to them. `sizes` and the files in `tables/` say what of the data is the paper's and what is chosen here.
"""

from __future__ import annotations

import math
from pathlib import Path

FOLDER = Path(__file__).parent
TABLES = ("lineorder", "date", "customer", "supplier", "part")


def queries(scale: float) -> dict[str, str]:
    """Name to text, in order; none depends on the scale."""
    return {path.stem: path.read_text() for path in sorted(FOLDER.glob("q*.sql"))}


def sizes(scale: float) -> dict[str, int]:
    """Rows of the dimensions at this scale factor; the facts are TPC-H's line items, 6 million at SF1.

    Parts grow with the logarithm of the scale; below SF1, which the paper leaves open, with the scale.
    """
    parts = 200_000 * (1 + math.floor(math.log2(scale))) if scale >= 1 else 200_000 * scale
    wanted = {"customers": 30_000 * scale, "suppliers": 2_000 * scale, "parts": parts}
    return {name: max(1, round(rows)) for name, rows in wanted.items()}


def definitions() -> dict[str, str]:
    """Each table as a SELECT over the schema `tpch`, in the variables that `sizes` names."""
    return {name: (FOLDER / "tables" / f"{name}.sql").read_text() for name in TABLES}
