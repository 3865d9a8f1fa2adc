"""A suite of ClickBench's shape (ClickHouse, 2022): 43 queries over one wide table of a web analytics service, written and generated here.

`queries.sql` asks for the same operations in our own texts, with an order that leaves no ties; `columns.py` says what each of the 105 columns
holds, `generate.py` writes them.  None of the published data or texts is in this repository, so a time here is no ClickBench result.
"""

from __future__ import annotations

from pathlib import Path

from benchmarks.clickbench import texts
from benchmarks.titled import titled

TABLES = ("hits",)
ROWS = 1_000_000  # a unit of scale; the published table has 100 of them
SUMS = 90

# What the data is like, beside each result
FIGURES = """
    select count(*) as "rows", count(distinct UserID) as "users", count(distinct URL) as "URLs",
        count(distinct SearchPhrase) as "search phrases", count(distinct Referer) as "referers",
        count(distinct Title) as "titles", count(distinct RegionID) as "regions",
        round(100 * avg((SearchPhrase = '')::integer), 1) as "% of phrases empty",
        min(octet_length(URL::blob)) as "bytes in the shortest URL", max(octet_length(URL::blob)) as "in the longest"
    from hits
"""


def queries(scale: float) -> dict[str, str]:
    """Name to text, in order. Limits of group sizes and offsets shrink with the scale; constants are values that the data has."""
    offset = max(10, round(1000 * min(1.0, scale / 10)))
    parts: dict[str, object] = {
        "user": texts.user(0),
        "url": texts.address_hash(texts.first_page(texts.SITE_62)),
        "referer": texts.address_hash(0),
        "large": round(ROWS * scale / 1000),
        "thousand": offset,
        "tenth": offset // 10,
        "sums": ", ".join(f"sum(ResolutionWidth + {n}) as sum{n}" for n in range(SUMS)),
    }
    found = titled(Path(__file__).with_name("queries.sql"))
    return {f"q{number:02}": _filled(text, parts) for number, (_, text) in enumerate(found)}


def _filled(text: str, parts: dict[str, object]) -> str:
    """The text with what the names in braces stand for."""
    for name, value in parts.items():
        text = text.replace(f"{{{name}}}", str(value))
    return text
