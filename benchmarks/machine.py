"""What a result was measured on: processor, memory, GPU, driver and versions."""

from __future__ import annotations

import os
import platform
import subprocess
from importlib import metadata
from pathlib import Path
from typing import Any

PACKAGES = (
    "fuseline", "duckdb", "polars", "pyarrow", "numpy", "numba", "sqlglot", "pylibcudf-cu13",
    "rmm-cu13", "numba-cuda", "cudf-polars-cu13", "dask-cuda",
)  # fmt: skip


def machine() -> dict[str, Any]:
    """Processor, usable cores, memory and GPUs."""
    return {
        "cpu": _cpu(),
        "cores": len(os.sched_getaffinity(0)),
        "memory_gib": round(os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2**30, 1),
        "gpus": _gpus(),
        "system": platform.platform(terse=True),
    }


def versions() -> dict[str, str]:
    """Python, the packages that matter to a result, and the commit that was measured."""
    found = {"python": platform.python_version()}
    for package in PACKAGES:
        try:
            found[package] = metadata.version(package)
        except metadata.PackageNotFoundError:
            continue
    commit = _lines("git", "-C", str(Path(__file__).parent), "describe", "--always", "--dirty")
    return found | ({"commit": commit[0]} if commit else {})


def _cpu() -> str:
    for line in Path("/proc/cpuinfo").read_text().splitlines():
        if line.startswith("model name"):
            return line.split(":", 1)[1].strip()
    return platform.machine()


def _gpus() -> list[dict[str, str]]:
    """Those that a run may use: others of the host did not work for it."""
    fields = ("name", "driver_version", "memory.total")
    chosen = os.environ.get("CUDA_VISIBLE_DEVICES")
    lines = _lines(
        "nvidia-smi",
        f"--query-gpu={','.join(fields)}",
        "--format=csv,noheader",
        *(["-i", chosen] if chosen else []),
    )
    return [dict(zip(fields, line.split(", "), strict=True)) for line in lines]


def _lines(*command: str) -> list[str]:
    """What a command prints, or nothing where it is missing or fails."""
    try:
        done = subprocess.run(command, capture_output=True, text=True, check=True, timeout=30)
    except (OSError, subprocess.SubprocessError):
        return []
    return done.stdout.splitlines()
