"""What must be the same on all workers and the client."""

from __future__ import annotations

import platform
from importlib.metadata import PackageNotFoundError, version

COMPARED = ("fuseline", "pyarrow", "numpy", "numba", "distributed")
COMPARED_ON_GPU = ("pylibcudf-cu13", "rmm-cu13", "numba-cuda")


def description(device: str) -> dict[str, str]:
    """Return what must be the same on all workers and the client."""
    found = {"device": device, "Python": ".".join(platform.python_version_tuple()[:2])}
    for package in (*COMPARED, *(COMPARED_ON_GPU if device == "gpu" else ())):
        try:
            found[package] = version(package)
        except PackageNotFoundError:
            found[package] = "not installed"
    return found
