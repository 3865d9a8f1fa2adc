"""A suite of the shape of H2O's db-benchmark: 10 group-by and 5 join questions, and 12 of windows, in our own texts over data of the published shape.

`groupby.sql` asks of `x`, `join.sql` joins `j` with tables of a millionth and a thousandth of its rows and of as many, `window.sql` asks of the largest,
`big`.  Whole answers are fetched, as the published benchmark keeps them.
"""

from __future__ import annotations

from pathlib import Path

from benchmarks.titled import titled

TABLES = ("x", "j", "small", "medium", "big")
ROWS = 1_000_000  # a unit of scale
PARTS = ("groupby", "join", "window")

FIGURES = """
    select count(*) as "rows", count(distinct id1) as "id1", count(distinct id2) as "id2", count(distinct id3) as "id3",
        count(distinct id4) as "id4", count(distinct id5) as "id5", count(distinct id6) as "id6",
        (select count(*) from small) as "rows of small", (select count(*) from medium) as "of medium",
        (select count(*) from big) as "of big"
    from x
"""


def queries(scale: float) -> dict[str, str]:
    """Name to text, in order: the part and the number of the question in it; none depends on the scale."""
    return {
        f"{part}{number}": text
        for part in PARTS
        for number, (_, text) in enumerate(titled(Path(__file__).with_name(f"{part}.sql")), 1)
    }
