"""The 22 TPC-H queries with the validation parameters of the specification, one file each."""

from __future__ import annotations

from decimal import Decimal
from pathlib import Path

FOLDER = Path(__file__).parent
TABLES = ("customer", "lineitem", "nation", "orders", "part", "partsupp", "region", "supplier")
FRACTION_AT_SF1 = Decimal("0.0001")
FRACTION_DIGITS = Decimal("1e-12")


def queries(scale: float) -> dict[str, str]:
    """Name to text, in order. Only Q11 depends on the scale: its FRACTION is 0.0001 divided by it, with as many digits as products of decimals have room for."""
    texts = {path.stem: path.read_text() for path in sorted(FOLDER.glob("q*.sql"))}
    fraction = (FRACTION_AT_SF1 / Decimal(str(scale))).quantize(FRACTION_DIGITS)
    texts["q11"] = texts["q11"].replace(f"* {FRACTION_AT_SF1}", f"* {fraction.normalize():f}")
    return texts
