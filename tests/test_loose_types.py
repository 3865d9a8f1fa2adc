"""Lines with `Any`: what flows through the engine has a type, a protocol or a type variable, and the lines without one become fewer."""

from __future__ import annotations

import io
import tokenize

from tests.test_layout import ROOT

MOST_LINES = 229  # lower it with each change that types what was loose
SLACK = 40  # by which it may lag behind


def loose_lines(text: str) -> int:
    """Count the lines that name `Any` outside of imports, strings and comments."""
    found: set[int] = set()
    imported = False
    text = text.replace("exp.Any", "exp")  # sqlglot's class of ANY
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        if token.type == tokenize.NAME and token.string in ("import", "from"):
            imported = True
        elif token.type == tokenize.NEWLINE:
            imported = False
        elif token.type == tokenize.NAME and token.string == "Any" and not imported:
            found.add(token.start[0])
    return len(found)


def test_lines_with_any_become_fewer() -> None:
    files = [name for folder in ("engine", "sql") for name in (ROOT / folder).rglob("*.py")]
    count = sum(loose_lines(path.read_text()) for path in files)
    assert count <= MOST_LINES, f"{count} lines with Any: type what flows there"
    assert count > MOST_LINES - SLACK, f"lower MOST_LINES to {count}"


def test_a_new_line_is_counted_and_an_import_is_not() -> None:
    text = 'from typing import (\n    Any,\n)\n"""Any"""\nx: Any = 1  # Any\ny: list[Any]\nz = exp.Any\n'
    assert loose_lines(text) == 2
