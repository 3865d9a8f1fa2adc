"""Cases of a test of which few run by day, and all with make nightly."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any
from zlib import crc32

import pytest


def thinned(cases: Iterable[Any], every: int) -> list[Any]:
    """Return the parameters of a test; but for about one in `every`, the same each day, they are for the night."""

    def param(case: Any) -> Any:
        values = case if isinstance(case, tuple) else (case,)
        by_day = crc32(repr(values).encode()) % every == 0
        return pytest.param(*values, marks=() if by_day else pytest.mark.nightly)

    return [param(case) for case in cases]
