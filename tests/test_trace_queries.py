"""Two queries may walk through no more of the house than they do, and the ways become shorter."""

from __future__ import annotations

import pytest

from tests.trace_queries import height, walked, walks

# Files entered by each query, cold and hot, the first one of a process three more; 80, 90, 25 and 30 are wanted.
MOST_FILES = {"group, cold": 178, "group, hot": 36, "join, cold": 190, "join, hot": 43}
# Rooms that call a higher one; the list may only become shorter.
CLIMBS = {
    ("codegen", "operators.cpu"),  # a kernel's finish runs operators
    ("frame", ""), ("frame", "runtime"),  # a frame asks its connection for rows
    ("operators", "operators.cpu"), ("operators.cpu", "runtime"),  # backends and their hooks, which runs are given
    ("plan", "planner"),  # walks over a tree call rules
    ("plan", "operators.cpu"),  # a property that is worked out once, of a table
    ("plan", "codegen"), ("plan", "operators"),  # shapes of plans work out what a kernel asked, and make its variants
    ("sql", "interop"),  # names that no table has are looked for among the caller's variables
    ("storage", "codegen"),  # what a cache lacks is made by who asks for it
    ("threads", "codegen"), ("threads", "storage"),  # threads do the work of who asks them
}  # fmt: skip


@pytest.mark.nightly
def test_queries_enter_no_more_files() -> None:
    found = walks()
    assert found.keys() == MOST_FILES.keys()
    assert {n: w.row() for n, w in found.items() if len(w.files) > MOST_FILES[n]} == {}
    assert set().union(*(walk.climbs for walk in found.values())) <= CLIMBS


def test_calls_are_seen_and_libraries_are_not() -> None:
    walk = walked(lambda: [height("plan"), height.__wrapped__("plan")])
    assert walk.row() == (0, 0, 0, 0, 0)
    from fuseline.sql.names import result_name

    walk = walked(lambda: result_name("a + ~b"))
    files = {file.rpartition("/")[2] for file in walk.files}
    assert {"operator_names.py", "ranks.py", "reader.py"} <= files
    assert walk.climbs == set()
    assert walk.calls > walk.changes > 2
