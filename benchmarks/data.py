"""The benchmark data: found where it is, or made once."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from benchmarks import tpch

DATA = Path(__file__).parent.parent / "data"

Tables = dict[str, str]  # name -> path or glob of its Parquet files


def tpch_tables(scale: float, folder: Path | None = None) -> Tables:
    """The eight tables at this scale factor: those in `folder`, or those made once under `data/`."""
    folder = folder or make_tpch(scale)
    return {name: _parquet(folder, name) for name in tpch.TABLES}


def make_tpch(scale: float) -> Path:
    """`data/tpch-sf<scale>`, made if it is not there; several processes may ask at once."""
    folder = DATA / f"tpch-sf{scale:g}"
    if folder.exists():
        return folder
    DATA.mkdir(exist_ok=True)
    made = Path(tempfile.mkdtemp(prefix=folder.name, dir=DATA))
    try:
        subprocess.run(
            [_generator(), "parquet", "-s", f"{scale:g}", "-o", str(made), "--quiet"], check=True
        )
        made.chmod(0o755)
        made.rename(folder)
    except OSError:
        if not folder.exists():  # else another process was first, and its data are the same
            raise
    finally:
        shutil.rmtree(made, ignore_errors=True)
    return folder


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
