"""Tables with their rows in no order: `python -m benchmarks.run tpch --sf 10 --shuffle`, or `python -m benchmarks.shuffle FROM TO`.

Generators write rows in the order of their keys, by which an engine may be spared indexes, joins and sorts; real files seldom are so.
"""

from __future__ import annotations

import argparse
import shutil
from collections.abc import Sequence
from pathlib import Path

from benchmarks.data import ROW_GROUP_ROWS, Tables, made_once, relation

ROWS_AT_ONCE = 150_000_000  # that are sorted in memory


def shuffled(tables: Tables, folder: Path) -> Tables:
    """Return the tables of `folder`, made if it is not there: the rows of `tables`, each table by a hash of the row's number."""
    with made_once(folder) as made:
        if made:
            for name, path in tables.items():
                shuffle_table(path, made / name)
    return {name: type(path)(folder / name / "*.parquet") for name, path in tables.items()}


def shuffle_table(path: str, folder: Path) -> None:
    """Write the rows of a Parquet file or glob in another order, the same each time, as the files of a folder."""
    import duckdb

    folder.mkdir()
    source = relation(path)
    place = "hash(file_index * 4294967296 + file_row_number)"
    with duckdb.connect() as connection:
        (rows,) = connection.execute(f"select count(*) from {source}").fetchone() or (0,)
        parts = rows // ROWS_AT_ONCE + 1
        for part in range(parts):
            target = str(folder / f"{part:03}.parquet").replace("'", "''")
            connection.execute(
                f"copy (select * from {source} where {place} % {parts} = {part} order by {place}) "
                f"to '{target}' (format parquet, row_group_size {ROW_GROUP_ROWS})"
            )


def main(arguments: Sequence[str] | None = None) -> None:
    """Shuffle each table of a folder into another; with `--move` what is done is deleted, so that both need not fit on the disk."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.shuffle", description=__doc__)
    parser.add_argument("source", type=Path, metavar="FROM")
    parser.add_argument("target", type=Path, metavar="TO")
    parser.add_argument("--move", action="store_true", help="delete each table that is done")
    options = parser.parse_args(arguments)
    options.target.mkdir(parents=True, exist_ok=True)
    for entry in sorted(options.source.iterdir()):
        path = str(entry / "*.parquet") if entry.is_dir() else str(entry)
        shuffle_table(path, options.target / entry.stem)
        if options.move:
            shutil.rmtree(entry) if entry.is_dir() else entry.unlink()


if __name__ == "__main__":
    main()
