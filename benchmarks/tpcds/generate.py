"""Make TPC-DS with DuckDB's extension: the tables as Parquet, or the texts of the queries.

A program of its own: it runs in the environment that `benchmarks.tpcds` makes, whose DuckDB is older than ours, and imports nothing of ours.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

import duckdb
import duckdb_extension_tpcds  # type: ignore[import-not-found,unused-ignore]

ROW_GROUP_ROWS = 500_000  # as TPC-H's and SSB's files have them


def main() -> None:
    """`tables FOLDER SCALE` or `queries FILE`."""
    what, where, *scale = sys.argv[1:]
    (extension,) = Path(duckdb_extension_tpcds.__path__[0]).rglob("tpcds.duckdb_extension")
    connection = duckdb.connect()
    connection.execute(f"load '{_quoted(extension)}'")
    if what == "queries":
        texts = dict(connection.execute("select query_nr, query from tpcds_queries()").fetchall())
        Path(where).write_text(json.dumps({f"q{n:02}": texts[n] for n in sorted(texts)}))
        return
    connection.execute(f"call dsdgen(sf = {float(scale[0])})")
    for (table,) in connection.execute("show tables").fetchall():
        path = _quoted(Path(where) / f"{table}.parquet")
        kind = f"(format parquet, row_group_size {ROW_GROUP_ROWS})"
        connection.execute(f"copy {table} to '{path}' {kind}")


def _quoted(path: Path) -> str:
    return str(path).replace("'", "''")


if __name__ == "__main__":
    main()
