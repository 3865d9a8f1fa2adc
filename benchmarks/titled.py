"""Files with several queries: each a title in a comment, its text, and a semicolon."""

from __future__ import annotations

import re
from pathlib import Path

_QUERY = re.compile(r"^-- (?P<title>.*)\n(?P<text>[^;]*);\n", re.MULTILINE)


def titled(path: Path) -> list[tuple[str, str]]:
    """Title and text of each query of a file, in order."""
    return [(found["title"], found["text"]) for found in _QUERY.finditer(path.read_text())]
