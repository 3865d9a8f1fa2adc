"""The benchmark data: found where it is, or made once.

`python -m benchmarks.data ssb --sf 10 --tpch /data/tpch --out /data/ssb` makes a suite's files ahead, in a folder of your choice.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from benchmarks import clickbench, h2o, ssb, tpcds, tpch
from benchmarks.clickbench.generate import make_hits
from benchmarks.h2o.generate import make_h2o

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

DATA = Path(__file__).parent.parent / "data"
# Large enough for a GPU to read a few at once, and many enough to read in parallel at SF1
ROW_GROUP_ROWS = 500_000

Tables = dict[str, str]  # name -> path or glob of its Parquet files


class BytesAreText(str):
    """The path of Parquet files whose columns of bytes are text, without saying so."""

    __slots__ = ()


def relation(path: str) -> str:
    """What DuckDB's FROM says for the files of a table."""
    option = ", binary_as_string = true" if isinstance(path, BytesAreText) else ""
    return f"read_parquet('{path.replace(chr(39), chr(39) * 2)}'{option})"


def tpch_tables(scale: float, folder: Path | None = None) -> Tables:
    """The eight tables at this scale factor: those in `folder`, or those made once under `data/`."""
    folder = folder or make_tpch(scale)
    return {name: _parquet(folder, name) for name in tpch.TABLES}


def ssb_tables(scale: float, folder: Path | None = None) -> Tables:
    """The five tables of the Star Schema Benchmark: those in `folder`, or those made once under `data/`."""
    folder = folder or make_ssb(scale)
    return {name: _parquet(folder, name) for name in ssb.TABLES}


def tpcds_tables(scale: float, folder: Path | None = None) -> Tables:
    """The 24 tables of TPC-DS: those in `folder`, or those made once under `data/`."""
    folder = folder or make_tpcds(scale)
    return {name: _parquet(folder, name) for name in tpcds.TABLES}


def clickbench_tables(scale: float, folder: Path | None = None) -> Tables:
    """The table `hits` of a million rows a unit of scale: that in `folder`, or the one made once under `data/`."""
    folder = folder or make_generated("clickbench", scale)
    return {name: BytesAreText(_parquet(folder, name)) for name in clickbench.TABLES}


def h2o_tables(scale: float, folder: Path | None = None) -> Tables:
    """The five tables of the db-benchmark's shape, a million rows a unit of scale: those in `folder`, or those made once under `data/`."""
    folder = folder or make_generated("h2o", scale)
    return {name: _parquet(folder, name) for name in h2o.TABLES}


def tpcds_queries(scale: float) -> dict[str, str]:
    """The 99 queries of TPC-DS, name to text, in order, asked of its generator once; none depends on the scale."""
    target = DATA / "tpcds-queries"
    with made_once(target) as made:
        if made:
            tpcds.generate(_tpcds_generator(), "queries", str(made / "queries.json"))
    texts: dict[str, str] = json.loads((target / "queries.json").read_text())
    return texts


def make_tpch(scale: float, folder: Path | None = None) -> Path:
    """`folder`, or `data/tpch-sf<scale>`, made if it is not there; several processes may ask at once."""
    target = folder or DATA / f"tpch-sf{scale:g}"
    with made_once(target) as made:
        if made:
            command = [_generator(), "parquet", "-s", f"{scale:g}", "-o", str(made), "--quiet"]
            subprocess.run(command, check=True)
    return target


def make_ssb(scale: float, folder: Path | None = None, source: Path | None = None) -> Path:
    """`folder`, or `data/ssb-sf<scale>`, made if it is not there from TPC-H's tables of that scale in `source`."""
    import duckdb

    target = folder or DATA / f"ssb-sf{scale:g}"
    with made_once(target) as made:
        if made:
            with duckdb.connect() as connection:
                connection.execute("create schema tpch")
                for name, path in tpch_tables(scale, source).items():
                    connection.execute(f"create view tpch.{name} as from {relation(path)}")
                for name, rows in ssb.sizes(scale).items():
                    connection.execute(f"set variable {name} = {rows}::bigint")
                for name, query in ssb.definitions().items():
                    path = str(made / f"{name}.parquet").replace("'", "''")
                    kind = f"(format parquet, row_group_size {ROW_GROUP_ROWS})"
                    connection.execute(f"copy ({query}) to '{path}' {kind}")
    return target


def make_tpcds(scale: float, folder: Path | None = None) -> Path:
    """`folder`, or `data/tpcds-sf<scale>`, made if it is not there."""
    target = folder or DATA / f"tpcds-sf{scale:g}"
    with made_once(target) as made:
        if made:
            tpcds.generate(_tpcds_generator(), "tables", str(made), f"{scale:g}")
    return target


def make_generated(suite: str, scale: float, folder: Path | None = None) -> Path:
    """`folder`, or `data/<suite>-sf<scale>`, made if it is not there by the suite's own generator."""
    target = folder or DATA / f"{suite}-sf{scale:g}"
    with made_once(target) as made:
        if made and suite == "clickbench":
            (made / "hits").mkdir()
            make_hits(made / "hits", round(clickbench.ROWS * scale))
        elif made:
            make_h2o(made, round(h2o.ROWS * scale))
    return target


def _tpcds_generator() -> Path:
    target = DATA / "tpcds-generator"
    with made_once(target) as made:
        if made:
            tpcds.install(made)
    return target


def _wait_until_settled(folder: Path) -> None:
    """Wait until Fuseline keeps columns of new files: before that each run would be a cold one."""
    from fuseline.storage.tables import footers

    largest = max((file.stat().st_size for file in folder.rglob("*.parquet")), default=0)
    time.sleep(footers.SECONDS + min(largest, footers.LARGEST_WRITE) / footers.WRITE_RATE)


@contextmanager
def made_once(folder: Path) -> Iterator[Path | None]:
    """A folder to fill that becomes this one, or None when it is there already."""
    if folder.exists():
        yield None
        return
    folder.parent.mkdir(parents=True, exist_ok=True)
    made = Path(tempfile.mkdtemp(prefix=folder.name, dir=folder.parent))
    try:
        yield made
        os.sync()  # else the system writes it to disk while queries are timed: that took half as long again
        _wait_until_settled(made)
        made.chmod(0o755)
        made.rename(folder)
    except OSError:
        if not folder.exists():  # else another process was first, and its data are the same
            raise
    finally:
        shutil.rmtree(made, ignore_errors=True)


def _generator() -> str:
    beside_python = str(Path(sys.executable).parent)
    path = os.pathsep.join([beside_python, os.environ.get("PATH", "")])
    found = shutil.which("tpchgen-cli", path=path)
    if found is None:
        raise SystemExit("tpchgen-cli makes the data and is not installed: pip install tpchgen-cli")
    return found


def _parquet(folder: Path, name: str) -> str:
    """One file, or a folder of parts: tpchgen-cli writes either."""
    if (folder / f"{name}.parquet").exists():
        return str(folder / f"{name}.parquet")
    if any((folder / name).glob("*.parquet")):
        return str(folder / name / "*.parquet")
    raise SystemExit(f"There is no {name}.parquet in {folder}.")


def main(arguments: Sequence[str] | None = None) -> None:
    """Make the files of a suite and say where they are."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.data", description=__doc__)
    parser.add_argument("suite", choices=["tpch", "ssb", "tpcds", "clickbench", "h2o"])
    parser.add_argument("--sf", type=float, default=1, help="scale factor")
    parser.add_argument("--out", type=Path, help="by default a folder under data/")
    parser.add_argument("--tpch", type=Path, help="the TPC-H files that SSB is made from")
    options = parser.parse_args(arguments)
    if options.suite == "tpch":
        print(make_tpch(options.sf, options.out))
    elif options.suite == "tpcds":
        print(make_tpcds(options.sf, options.out))
    elif options.suite in ("clickbench", "h2o"):
        print(make_generated(options.suite, options.sf, options.out))
    else:
        print(make_ssb(options.sf, options.out, options.tpch))


if __name__ == "__main__":
    main()
