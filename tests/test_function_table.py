"""Our functions are DuckDB's, name by name and signature by signature; what is missing stands in `function_gaps.py` with its reason."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator

import pytest

from tests import function_gaps as gaps
from tests.duckdb_functions import Comparison, Signature, is_named, signatures

# How many of DuckDB's names may be missing: lower these with the lists
MOST_MISSING = {"scalar": 48, "aggregate": 3, "window": 0}


def listed(gaps: dict[str, str]) -> list[str]:
    return [name for names in gaps.values() for name in names.split()]


@pytest.fixture(scope="module")
def comparison() -> Iterator[Comparison]:
    made = Comparison()
    yield made
    made.close()


def named(kind: str) -> tuple[set[str], set[str]]:
    """Return DuckDB's names of a kind that are here, and those that are missing."""
    found: defaultdict[bool, set[str]] = defaultdict(set)
    for signature in signatures()[0]:
        if signature.kind == kind:
            found[is_named(signature)].add(signature.name)
    return found[True], found[False]


def test_names_that_are_missing_have_a_reason(capsys: pytest.CaptureFixture[str]) -> None:
    missing = {kind: named(kind)[1] for kind in MOST_MISSING}
    with capsys.disabled():
        for kind, names in missing.items():
            here = len(named(kind)[0])
            print(f"\n{kind} functions: {here} of {here + len(names)} of DuckDB's", end="")
    assert sorted(listed(gaps.NAMES)) == sorted(set().union(*missing.values()))
    assert {kind: len(names) for kind, names in missing.items()} == MOST_MISSING


def test_signatures_answer_as_duckdb(comparison: Comparison) -> None:
    """Each that has no type that is missing here; of those the type is the reason."""
    problems = {
        str(s): problem
        for s in signatures()[0]
        if is_named(s) and not comparison.missing_types(s)
        if (problem := comparison.problem(s.query)) is not None
    }
    known = listed(gaps.SIGNATURES)
    assert {name: found for name, found in problems.items() if name not in known} == {}
    assert sorted(problems) == sorted(known)


def test_examples_answer_as_duckdb(comparison: Comparison) -> None:
    """Those of the functions that are here, but for examples that show a type that is not."""
    known = set().union(*(named(kind)[0] for kind in MOST_MISSING))
    examples = signatures()[1]
    problems = {
        example: problem
        for name in sorted(known)
        for example in examples[name]
        if (problem := comparison.problem(f"select {example}")) is not None
        if not any(f"{words} not supported" in problem for words in gaps.TYPES)
    }
    assert {e: found for e, found in problems.items() if e not in gaps.EXAMPLES} == {}
    assert sorted(problems) == sorted(gaps.EXAMPLES)


def test_what_differs_is_found(comparison: Comparison) -> None:
    wrong = Signature("scalar", "xor", ("HUGEINT", "HUGEINT"), "HUGEINT")
    assert "does not take" in str(comparison.problem(wrong.query))
    assert comparison.problem("select gcd(4, 6), no_such_function(1)") is None
    assert comparison.problem("select 1::uhugeint") is not None
    assert not comparison.has_type("UNION")
    assert comparison.has_type("VARCHAR")
