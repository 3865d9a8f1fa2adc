"""What notebooks show of a frame, and the clients that people ask from them."""

from __future__ import annotations

import os
import subprocess
import sys
from html.parser import HTMLParser
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest

from fuseline.frame.notebook_methods import MOST_CHARACTERS


class Cells(HTMLParser):
    """The tags of a page, and the text of its cells."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.tags: list[str] = []
        self.cells: list[tuple[str | None, str]] = []
        self._inside = False
        self.feed(text)

    def handle_starttag(self, tag: str, attributes: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        self._inside = tag == "td"
        if self._inside:
            self.cells.append((dict(attributes).get("class"), ""))

    def handle_endtag(self, tag: str) -> None:
        self._inside = False

    def handle_data(self, data: str) -> None:
        if self._inside:
            kind, text = self.cells[-1]
            self.cells[-1] = kind, text + data


def test_null_is_set_apart_and_numbers_are_aligned(connection: Any) -> None:
    frame = connection.sql("select * from (values (1, null, 'NULL'), (null, '', 'x')) v(a, b, c)")
    page = Cells(frame._repr_html_())
    assert page.cells == [
        *[("number", "1"), ("null", "NULL"), (None, "NULL")],
        *[("null", "NULL"), (None, ""), (None, "x")],
    ]


def test_nothing_in_data_is_html(connection: Any) -> None:
    evil = "</td></table><script>alert(1)</script><img src=x onerror=\"alert('1')\">&amp;"
    connection.register("t", {evil: [evil, evil * 10]})
    text = connection.sql("from t")._repr_html_()
    page = Cells(text)
    assert {*page.tags} <= {
        "div",
        "style",
        "table",
        "thead",
        "tbody",
        "tr",
        "th",
        "td",
        "br",
        "small",
        "p",
    }
    assert page.cells[0][1] == evil
    assert page.cells[1][1] == (evil * 10)[:MOST_CHARACTERS] + "…"
    assert "<script" not in text
    assert 'onerror="' not in text


def test_long_and_wide_frames_are_cut_in_the_middle(connection: Any) -> None:
    columns = ", ".join(f"range + {n} as c{n}" for n in range(50))
    text = connection.sql(f"select {columns} from range(300)")._repr_html_()
    page = Cells(text)
    rows = [page.cells[i : i + 21] for i in range(0, len(page.cells), 21)]
    assert [row[0][1] for row in rows] == [*map(str, range(10)), "…", *map(str, range(290, 300))]
    assert [text for _, text in rows[0]] == [*map(str, range(10)), "…", *map(str, range(40, 50))]
    assert "300 rows × 50 columns" in text
    text = connection.sql("from range(5000)")._repr_html_()
    assert "more than 1,000 rows × 1 column<" in text
    assert [t for _, t in Cells(text).cells] == [*map(str, range(20)), "…"]
    assert "1 row × 1 column<" in connection.sql("select 1")._repr_html_()
    assert "0 rows × 1 column<" in connection.sql("select 1 where false")._repr_html_()


def test_the_bundle_has_what_is_asked_for(connection: Any) -> None:
    frame = connection.sql("select 1 as a")
    assert frame._repr_mimebundle_() == {
        "text/plain": repr(frame),
        "text/html": frame._repr_html_(),
    }
    assert [*frame._repr_mimebundle_(include={"text/plain"})] == ["text/plain"]
    assert [*frame._repr_mimebundle_(exclude={"text/html"})] == ["text/plain"]


JUPYSQL = """
from IPython.core.interactiveshell import InteractiveShell
shell = InteractiveShell.instance()
shell.run_line_magic("load_ext", "sql")
shell.run_line_magic("sql", "fuseline:///?device=cpu")
found = shell.run_line_magic("sql", "select range as n from range(3)")
print("rows", [tuple(row) for row in found])
"""


@pytest.mark.nightly
def test_jupysql_asks_through_sqlalchemy(tmp_path: Path) -> None:
    """`%sql` in IPython, in the place of a magic of our own; elsewhere, since its package is called as a folder here."""
    if None in (find_spec("IPython"), find_spec("jupysql_plugin")):
        pytest.skip("JupySQL is not installed: pip install jupysql ipython")
    environment = {**os.environ, "IPYTHONDIR": str(tmp_path)}
    done = subprocess.run(
        [sys.executable, "-c", JUPYSQL],
        cwd=tmp_path,
        env=environment,
        capture_output=True,
        text=True,
        check=False,
        timeout=240,
    )
    assert "rows [(0,), (1,), (2,)]" in done.stdout, done.stderr


@pytest.mark.nightly
def test_marimo_asks_through_the_db_api(connection: Any) -> None:
    """Its cells of SQL take a connection of PEP 249."""
    if find_spec("marimo") is None:
        pytest.skip("marimo is not installed: pip install marimo")
    from marimo._sql.get_engines import get_engines_from_variables

    ((_, engine),) = get_engines_from_variables([("connection", connection)])
    assert len(engine.execute("select range as n from range(3)")) == 3
