"""Faults planted into a run: an exception out of any function of a floor, at its first call.

Python's trace hook raises it, so that no function needs to be named and each new one is found by itself.
"""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable
from pathlib import Path
from types import CodeType, FrameType
from typing import Any

import fuseline

ROOT = Path(next(iter(fuseline.__path__))).resolve()
SQL = ROOT.parent / "sql"
# Inside these nothing can be caught: they catch
NOT_PLANTED = (ROOT / "fence.py", ROOT / "errors.py", ROOT / "__init__.py")


def floor_of(code: CodeType) -> str | None:
    """`engine/plan/types.py` -> plan, `engine/operators/cpu/sort/sort.py` -> operators.cpu, `engine/frame/frame.py` -> frame."""
    path = Path(code.co_filename)
    if not path.is_absolute() or path in NOT_PLANTED or code.co_name.startswith("<"):
        return None
    for root, name in ((ROOT, ""), (SQL, "sql")):
        if path.is_relative_to(root):
            folders = path.relative_to(root).parts[:-1]
            return ".".join(folders[:2]) or name or path.stem
    return None


def called(run: Callable[[], Any]) -> dict[CodeType, str]:
    """The functions that a run calls in any thread, in their order, and the floor of each."""
    found: dict[CodeType, str | None] = {}

    def look(frame: FrameType, event: str, _: Any) -> None:
        if frame.f_code not in found:
            found[frame.f_code] = floor_of(frame.f_code)

    with_trace(look, run)
    return {code: floor for code, floor in found.items() if floor is not None}


def with_fault(code: CodeType, fault: BaseException, run: Callable[[], Any]) -> bool:
    """Run with a fault at the first call of a function; whether the run got there."""
    met: list[bool] = []

    def plant(frame: FrameType, event: str, _: Any) -> None:
        if frame.f_code is code and not met:
            met.append(True)
            raise fault

    with_trace(plant, run)
    return bool(met)


def with_trace(look: Callable[[FrameType, str, Any], None], run: Callable[[], Any]) -> None:
    before = sys.gettrace()
    threading.settrace(look)
    sys.settrace(look)
    try:
        run()
    finally:
        sys.settrace(before)
        threading.settrace(before)  # type: ignore[arg-type]
