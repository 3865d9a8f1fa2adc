"""What has to be touched to add something is what CONTRIBUTING.md says, shown by things that are there."""

from __future__ import annotations

import ast
import re

import pytest

from tests.test_layout import ENGINE, ROOT, tree

TEXT = (ROOT / "CONTRIBUTING.md").read_text()
SECTION = re.compile(r"^### An? [^\n]*, as `(\w+)`\n(.*?)(?=^##)", re.MULTILINE | re.DOTALL)
LISTED = {
    name: set(re.findall(r"`((?:engine|sql)/[\w/]+\.py)`", text))
    for name, text in SECTION.findall(TEXT)
}


def names(code: ast.AST) -> set[str]:
    """What code says as an identifier or as a text, and what it defines, also privately."""
    said: set[str] = set()
    for node in ast.walk(code):
        match node:
            case ast.Constant(value=str(name)) | ast.Name(id=name) | ast.Attribute(attr=name):
                said.add(name)
            case ast.FunctionDef(name=name) | ast.ClassDef(name=name):
                said |= {name, name.removeprefix("_")}
    return said


@pytest.fixture(scope="module")
def said() -> dict[str, set[str]]:
    named = re.compile("|".join(LISTED))  # what a file does not say at all, its code does not say
    files = [path for path in ENGINE if named.search(path.read_text())]
    return {str(path.relative_to(ROOT)): names(tree(path)) for path in files}


# Where dataframe calls, ours and Narwhals', have some functions as methods: all are `fn.<name>` without a word more
METHODS = (
    "engine/frame/expressions/",
    "engine/frame/methods/",
    "engine/frame/group_by.py",
    "engine/fence.py",
    "engine/interop/narwhals_plugin/",
)


@pytest.mark.parametrize("name", LISTED)
def test_each_addition_touches_the_files_that_are_listed(
    name: str, said: dict[str, set[str]]
) -> None:
    found = {path for path, names in said.items() if name in names}
    assert {path for path in found if not path.startswith(METHODS)} == LISTED[name]


def test_a_file_more_would_be_noticed() -> None:
    assert len(LISTED) == 11
    assert "cbrt" in names(ast.parse("KINDS = {'cbrt': 1}"))
    assert "cbrt" in names(ast.parse("def _cbrt(): pass"))
    assert "cbrt" not in names(ast.parse("# cbrt\ncbrt_of = 'a cbrt'"))


def test_each_command_that_the_pages_name_is_there() -> None:
    makefile = (ROOT / "Makefile").read_text()
    for page in ("CONTRIBUTING.md", "README.md"):
        text = (ROOT / page).read_text()
        for command in re.findall(r"^make ([a-z]+)|`make ([a-z]+)", text, re.MULTILINE):
            assert f"\n{''.join(command)}:" in makefile, f"{page} says make {command}"
