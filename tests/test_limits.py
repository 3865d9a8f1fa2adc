"""Tests set limits of the engine by name: each name is one constant, in tests that only a GPU runs too."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

from fuseline.storage.tables import footers
from tests.limits import SetLimits, definition, place


def test_a_limit_is_set_where_it_stands(limits: SetLimits) -> None:
    limits(footers__SECONDS=5.0, WRITE_RATE=7.0)
    assert (footers.SECONDS, footers.WRITE_RATE) == (5.0, 7.0)


@pytest.mark.parametrize("name", ["LEAST_ROWS", "NO_SUCH_LIMIT", "footers__LEAST_ROWS"])
def test_a_name_of_none_or_of_several(name: str) -> None:
    with pytest.raises(AssertionError, match=f"{name} is the name of"):
        place(name)


def test_every_name_that_a_test_gives_is_one_constant() -> None:
    for path in Path(__file__).parent.rglob("*.py"):
        text = path.read_text()
        for node in ast.walk(ast.parse(text)) if "limits(" in text else ():
            if isinstance(node, ast.Call) and ast.unparse(node.func) == "limits":
                for given in node.keywords:
                    assert definition(str(given.arg)), path
