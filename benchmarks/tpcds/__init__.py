"""The 24 tables and 99 queries of TPC-DS, both made by DuckDB's extension of that name: none of their texts is in this repository.

The extension comes as a wheel for an older DuckDB than the reference here, so it lives in an environment of its own under `data/`;
`generate.py` runs there.  Queries have the parameters of the specification's qualification run at any scale, so at SF1 and above each
but a few has rows.
"""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

REQUIREMENTS = ("duckdb==1.5.5", "duckdb-extension-tpcds==1.5.5")
TABLES = (
    "call_center", "catalog_page", "catalog_returns", "catalog_sales", "customer", "customer_address",
    "customer_demographics", "date_dim", "household_demographics", "income_band", "inventory", "item", "promotion",
    "reason", "ship_mode", "store", "store_returns", "store_sales", "time_dim", "warehouse", "web_page", "web_returns",
    "web_sales", "web_site",
)  # fmt: skip


def install(environment: Path, requirements: Sequence[str] = REQUIREMENTS) -> None:
    """Make a virtual environment with the generator in it, or with other packages."""
    subprocess.run([sys.executable, "-m", "venv", str(environment)], check=True)
    options = ["--quiet", "--disable-pip-version-check"]
    pip = [str(environment / "bin" / "python"), "-m", "pip", "install", *options]
    subprocess.run([*pip, *requirements], check=True)


def generate(environment: Path, *arguments: str) -> None:
    """Run `generate.py` in the environment."""
    program = Path(__file__).with_name("generate.py")
    python = environment / "bin" / "python"
    subprocess.run([str(python), "-I", str(program), *arguments], check=True)
