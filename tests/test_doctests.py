"""The examples in docstrings, in the README, docs/frames.md and docs/databases.md are run."""

from __future__ import annotations

import doctest
import re
from importlib import import_module
from pathlib import Path

import pytest

from tests.test_layout import ENGINE, ROOT, module

WITH_EXAMPLES = [module(path) for path in ENGINE if ">>> " in path.read_text()]
OPTIONS = doctest.NORMALIZE_WHITESPACE | doctest.ELLIPSIS


@pytest.mark.parametrize("name", WITH_EXAMPLES)
def test_docstrings(name: str) -> None:
    result = doctest.testmod(import_module(name), optionflags=OPTIONS)
    assert result.attempted
    assert not result.failed


@pytest.mark.parametrize("document", ["README.md", "docs/frames.md", "docs/databases.md"])
def test_python_blocks(document: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """One after the other, in an empty folder."""
    monkeypatch.chdir(tmp_path)
    blocks = re.findall(r"```python\n(.*?)```", (ROOT / document).read_text(), re.DOTALL)
    assert blocks
    exec(compile("\n".join(blocks), document, "exec"), {})
