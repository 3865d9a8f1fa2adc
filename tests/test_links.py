"""Links between the pages lead to files and headings that are there, llms.txt names each page, and all say the same version."""

from __future__ import annotations

import re
from pathlib import Path

import fuseline
from tests.test_layout import ROOT

PAGES = [*sorted(ROOT.glob("*.md")), *sorted(ROOT.glob("docs/*.md")), ROOT / "llms.txt"]
_LINK = re.compile(r"(?<!!)\[[^\]]*\]\(([^)\s]+)\)")
_CODE = re.compile(r"```.*?```|`[^`\n]*`", re.DOTALL)


def anchors(text: str) -> set[str]:
    """Return the names of a page's headings, as they are linked to."""
    titles = re.findall(r"^#+ (.+)$", re.sub(r"```.*?```", "", text, flags=re.DOTALL), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", title.lower()).replace(" ", "-") for title in titles}


def broken(page: Path, text: str) -> list[str]:
    """Return the links of a page's text that lead nowhere; those to other sites are not followed."""
    found = []
    for link in _LINK.findall(_CODE.sub("", text)):
        if re.match(r"\w+:", link):
            continue
        path, _, anchor = link.partition("#")
        target = (page.parent / path).resolve() if path else page
        if not target.exists() or (anchor and anchor not in anchors(target.read_text())):
            found.append(f"{page.name}: {link}")
    return found


def test_links_lead_to_pages_and_headings() -> None:
    assert [link for page in PAGES for link in broken(page, page.read_text())] == []


def test_a_link_that_leads_nowhere_is_found() -> None:
    page = ROOT / "README.md"
    assert broken(page, "[a](docs/no.md) [b](docs/sql.md#no-heading) [c](https://x.org)") == [
        "README.md: docs/no.md",
        "README.md: docs/sql.md#no-heading",
    ]


def test_each_page_is_named_for_readers_of_llms_txt() -> None:
    named = (ROOT / "llms.txt").read_text()
    assert [p.name for p in ROOT.glob("docs/*.md") if f"(docs/{p.name})" not in named] == []


def test_all_pages_say_the_same_version() -> None:
    project = re.search(r'^version = "([^"]+)"', (ROOT / "pyproject.toml").read_text(), re.M)
    cited = re.search(r"^version: (\S+)", (ROOT / "CITATION.cff").read_text(), re.M)
    told = re.search(r"^## (\d\S*?),? ", (ROOT / "CHANGELOG.md").read_text(), re.M)
    assert project is not None
    assert cited is not None
    assert told is not None
    assert {project[1], cited[1], told[1]} == {fuseline.__version__}
