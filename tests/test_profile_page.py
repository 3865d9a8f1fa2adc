"""A profile as a page, as JSON and as a diagram."""

from __future__ import annotations

import json
import re
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pytest

from fuseline.cli.write_results import write_profile_files
from fuseline.errors import FileError
from tests.compare import connected
from tests.test_layout import ROOT

EVIL = "</pre><script>alert(1)</script>"
TABLES = {
    "t": {"k": [i % 3 for i in range(500)], "v": list(range(500))},
    "u": {"k": [0, 1, 2], EVIL: ["a", "b", EVIL]},
}
QUERY = f'select u."{EVIL}" as x, sum(v) as s from t join u using (k) where v > 7 group by all order by s'


class Tags(HTMLParser):
    """The tags of a page with their attributes, and its text."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.text = ""
        self.feed(page)

    def handle_starttag(self, tag: str, attributes: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attributes)))

    def handle_data(self, data: str) -> None:
        self.text += data


@pytest.fixture(scope="module")
def profile() -> Any:
    with connected(TABLES, fuse="always") as connection:
        return connection.run(connection.sql(QUERY).plan, timed=True).profile


def test_the_page_takes_nothing_from_elsewhere_and_runs_nothing(profile: Any) -> None:
    page = profile.to_html(QUERY)
    tags = Tags(page)
    assert not {"script", "link", "img", "iframe", "object"} & {tag for tag, _ in tags.tags}
    assert not {"src", "href", "onclick", "onload"} & {
        name for _, found in tags.tags for name in found
    }
    assert "url(" not in page
    assert "@import" not in page
    (policy,) = (found["content"] for tag, found in tags.tags if "http-equiv" in found)
    assert policy == "default-src 'none'; style-src 'unsafe-inline'"
    assert QUERY in tags.text


def test_the_page_has_plan_bars_and_sources(profile: Any) -> None:
    page = profile.to_html()
    tags = Tags(page)
    for node in profile.nodes:
        assert node.text in tags.text
        assert f"{node.rows:,}" in tags.text
    (receipt,) = (node.receipt for node in profile.pipelines)
    assert receipt.fused
    for file in (receipt.kernel, *(build.kernel for build in receipt.builds)):
        assert file.read_text() in tags.text
    widths = [float(w) for w in re.findall(r'style="width: ([\d.]+)%', page)]
    assert len(widths) == len(profile.nodes) + 1
    assert all(0 <= width <= 100 for width in widths)
    assert "prefers-color-scheme: dark" in page


def test_json_has_all_of_it(profile: Any) -> None:
    data = json.loads(profile.to_json())
    assert data == json.loads(json.dumps(profile.to_dict()))
    assert [node["text"] for node in data["nodes"]] == [node.text for node in profile.nodes]
    assert data["nodes"][0]["rows"] == 3
    (kernel,) = (node["kernel"] for node in data["nodes"] if node["kernel"])
    assert kernel["rows"] == 500
    assert kernel["bytes"] > 0
    assert kernel["share_of_copy"] > 0
    assert len(kernel["indexes"]) == 1
    (steps,) = (node["steps"] for node in data["nodes"] if node["steps"])
    assert steps[0]["text"].startswith("MemoryScan")


def test_a_diagram_has_an_arrow_for_each_input(profile: Any) -> None:
    lines = profile.to_mermaid().splitlines()
    assert lines[0] == "flowchart BT"
    assert sum("-->" in line for line in lines) == len(profile.nodes) - 1
    assert not re.search(
        r"[<>\"'`]", "".join(re.sub(r'^  n\d+\["|"\]$|<br>|-->', "", line) for line in lines)
    )


def test_what_has_no_kernel_says_why() -> None:
    with connected(TABLES, fuse="never") as connection:
        frame = connection.sql("select k, count(*) from t group by k")
        frame.fetchall()
        page = frame.profile.to_html()
        on_gpu = any(node["device"] == "gpu" for node in frame.profile.to_dict()["nodes"])
        assert ("The run was not timed" in page) == on_gpu
        assert frame.profile.to_dict()["nodes"][0]["kernel"] is None


def test_files_are_written_together(profile: Any, tmp_path: Path) -> None:
    files = {form: tmp_path / f"p.{form}" for form in ("html", "json", "mermaid")}
    write_profile_files(profile, QUERY, files)
    assert files["html"].read_text().startswith("<!doctype html>")
    assert json.loads(files["json"].read_text())["timed"]
    with pytest.raises(FileError, match="cannot be written"):
        write_profile_files(
            profile, QUERY, {"html": tmp_path / "new.html", "json": tmp_path / "none" / "x"}
        )
    assert sorted(path.name for path in tmp_path.iterdir()) == ["p.html", "p.json", "p.mermaid"]


def test_the_example_of_the_page_about_explain_runs() -> None:
    text = (ROOT / "docs/explain.md").read_text()
    (code,) = re.findall(r"```python\n(.*?)```", text, re.DOTALL)
    exec(f"import fuseline\n{code}", {})
