"""The engine's limits, by name: tests make small data large for them, wherever in the tree their modules stand."""

from __future__ import annotations

import importlib
import re
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import fuseline
from fuseline import sql

ROOTS = {"fuseline": Path(fuseline.__file__).parent, "fuseline.sql": Path(sql.__file__).parent}
DEFINITION = re.compile(r"^(_?[A-Z][A-Z0-9_]*)(?:: [^=\n]+)? = ", re.MULTILINE)
SetLimits = Callable[..., None]


@cache
def _definitions() -> frozenset[str]:
    """Each constant of the engine as `package.module.NAME`."""
    found = set()
    for package, root in ROOTS.items():
        for path in root.rglob("*.py"):
            module = [package, *path.relative_to(root).with_suffix("").parts]
            names = DEFINITION.findall(path.read_text())
            found |= {".".join([*module, name]).replace(".__init__.", ".") for name in names}
    return frozenset(found)


@cache
def definition(limit: str) -> str:
    """The one constant of a name: `NAME`, or `part__NAME` where several have it and one is in such a folder or module."""
    *parts, name = re.split(r"__(?=[a-zA-Z_])", limit)
    found = [d for d in _definitions() if d.endswith(f".{name}") and {*parts} <= {*d.split(".")}]
    assert len(found) == 1, f"{limit} is the name of {found or 'no constant'}"
    return found[0]


def place(limit: str) -> tuple[Any, str]:
    """The module and name of a limit."""
    module, _, name = definition(limit).rpartition(".")
    return importlib.import_module(module), name
