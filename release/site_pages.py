"""The site's pages beside those of docs/: files of the root, with links that lead to pages of the site."""

from __future__ import annotations

import posixpath
import re
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from mkdocs.config.defaults import MkDocsConfig
    from mkdocs.structure.files import Files
    from mkdocs.structure.pages import Page

ROOT = Path(__file__).resolve().parent.parent
OF_ROOT = ("CHANGELOG.md", "SECURITY.md", "CONTRIBUTING.md")
_LINK = re.compile(r"(?<!!)\[([^\]]*)\]\(([^)\s#:]+)(#[^)\s]*)?\)")


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Add the pages of the root."""
    from mkdocs.structure.files import File

    for name in OF_ROOT:
        files.append(File.generated(config, name, content=(ROOT / name).read_text()))
    return files


def on_page_markdown(markdown: str, page: Page, config: MkDocsConfig, files: Files) -> str:
    """Return a page's text with the links that its place in the site needs."""
    return with_site_links(markdown, "" if page.file.src_uri in OF_ROOT else "docs")


def with_site_links(text: str, folder: str) -> str:
    """Return a text that lies in a folder of the repository, with links to pages as the site has them, and the words alone of others."""

    def placed(link: re.Match[str]) -> str:
        words, path, anchor = link[1], link[2], link[3] or ""
        target = posixpath.normpath(posixpath.join(folder, path))
        name = target.removeprefix("docs/")
        if target in OF_ROOT or target.startswith("docs/"):
            return f"[{words}]({name}{anchor})"
        return words

    return _LINK.sub(placed, text)
