"""What each rule does to a query, as text that reads like a tutorial: tests/golden/<rule>.txt.

A file holds cases: a title, the query, the plan before the rule first changed it, and after.  `--rewrite-goldens` writes the
plans anew; a case is added by writing its title and query.  Each query also runs over rows drawn for its tables, and gives
DuckDB's answer.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path

import duckdb
import pytest

from fuseline.errors import FuselineError
from fuseline.plan.text.plan_text import tree
from tests.compare import assert_same_as_duckdb, connected
from tests.planner.build import (
    physical,
    physical_rules,
    physical_steps,
    rows,
    rules,
    steps,
)

GOLDEN = Path(__file__).parent.parent / "golden"
LOGICAL_NAMES = [rule.name for rule in rules()]
PHYSICAL_NAMES = [rule.name for rule in physical_rules()]
RULE_NAMES = [*LOGICAL_NAMES, *PHYSICAL_NAMES]
OF_CPUS = {"filter_texts_late"}  # which a GPU does without


@dataclass(frozen=True)
class Case:
    title: str
    query: str
    rest: str

    def text(self, rest: str) -> str:
        return f"=== {self.title}\n{self.query}\n\n{rest}"


def cases(name: str) -> list[Case]:
    text = (GOLDEN / f"{name}.txt").read_text()
    found = []
    for block in re.split(r"^=== ", text, flags=re.MULTILINE)[1:]:
        title, rest = block.split("\n", 1)
        query, _, plans = rest.partition("\n\n")
        found.append(Case(title, query.strip(), plans.strip()))
    return found


def before_and_after(rule: str, query: str) -> str:
    """The plan that the rule got and the plan that it gave, or that it left the query alone."""
    if rule in LOGICAL_NAMES:
        done = [(name, before, made) for (_, before), (name, made) in pairwise(steps(query))]
    else:
        done = physical_steps(query, "cpu" if rule in OF_CPUS else "gpu")
    for name, before, after in done:
        if name == rule:
            return f"--- before\n{tree(before)}\n--- {rule}\n{tree(after)}"
    return "--- unchanged"


def all_steps(query: str) -> str:
    parts = [f"--- {name}\n{tree(node)}" for name, node in steps(query)]
    parts.append(f"--- physical\n{tree(physical(query))}")
    return "\n".join(parts)


def check(name: str, rewrite: bool, render: object) -> None:
    found = cases(name)
    assert found, f"tests/golden/{name}.txt holds no case"
    actual = [case.text(render(case.query)) for case in found]  # type: ignore[operator]
    if rewrite:
        (GOLDEN / f"{name}.txt").write_text("\n\n".join(actual) + "\n")
        return
    for case, text in zip(found, actual, strict=True):
        assert text == case.text(case.rest)


@pytest.mark.parametrize("rule", RULE_NAMES)
def test_rule(rule: str, rewrite_goldens: bool) -> None:
    check(rule, rewrite_goldens, lambda query: before_and_after(rule, query))


def test_whole_way(rewrite_goldens: bool) -> None:
    check("whole_way", rewrite_goldens, all_steps)


def test_fuse(rewrite_goldens: bool) -> None:
    check("fuse", rewrite_goldens, lambda q: tree(physical(q, device="gpu", fuse="auto")))


@pytest.mark.by_day(3)
@pytest.mark.parametrize("name", [*RULE_NAMES, "whole_way", "fuse"])
def test_answers(name: str, backend: str) -> None:
    tables = rows()
    fuse = "always" if name in PHYSICAL_NAMES else "never"
    with connected(tables, backend, fuse=fuse, check=True) as connection:
        for case in cases(name):
            query = case.query
            if "limit" in query and "order by" not in query:  # any rows, but as many
                query = f"select count(*) as n from ({query})"
            try:
                assert_same_as_duckdb(query, tables, connection=connection)
            except duckdb.Error:
                with pytest.raises(FuselineError):
                    connection.sql(query).fetchall()


@pytest.mark.parametrize("rule", RULE_NAMES)
def test_every_rule_has_a_positive_and_a_negative_case(rule: str) -> None:
    unchanged = [case.rest == "--- unchanged" for case in cases(rule)]
    assert any(unchanged)
    assert not all(unchanged)
