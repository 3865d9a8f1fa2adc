"""Run another project's tests twice, with the backend that they know and with Fuseline: `python -m tests.foreign CHECKOUT`.

It prints the versions, how many of the tests that the other backend passes Fuseline passes too, and the rest by reason; the exit
status is 1 where fewer pass than are asked for.
"""

from __future__ import annotations

import argparse
import os
import re
import subprocess
import sys
import tempfile
import xml.etree.ElementTree as ET
from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path

HERE = Path(__file__).parent


@dataclass(frozen=True)
class Suite:
    """How to run the tests of a project, with their own backend and with ours, and why some of ours fail."""

    project: str
    packages: tuple[str, ...]  # whose versions matter
    folder: str  # of the tests, in the checkout
    theirs: tuple[str, ...]
    ours: tuple[str, ...]
    least: float  # the share that has to pass
    reasons: Mapping[str, str]  # a regular expression that finds tests or what they say -> why


NARWHALS = Suite(
    project="narwhals",
    packages=("narwhals", "duckdb", "fuseline"),
    folder="tests",
    theirs=("--constructors=duckdb", "-k", "duckdb"),
    ours=("--use-external-constructor", "-p", "narwhals_constructor", "-k", "fuseline"),
    least=0.85,
    reasons={
        r"_@|interchange|DUCKDB|imports_test|namespace_from_backend|preserve_type_var"
        r"|raise_with_lazy|conflicting_separator|map_dtype": "is about DuckDB's own objects, and takes no constructor",
        r"is_into_|enum_v1": "in the first version of the API a Frame has rows, which charts need",
        r"(cov|corr)_over|eager_only_pass_through|is_finite_expr|keep_all_lazy|rank_with_order_by|var_value_names"
        r"|native_namespace_frame|v1_test with_row_index|numpy_array|test_cast\b|float16": (
            "chooses what to expect, or whether to run, by the word duckdb in the constructor's name"
        ),
        r"to_datetime_tz_aware|all_null_offset_format": "strptime reads no time zones",
    },
)
SUITES = (NARWHALS,)


def suite_of(checkout: Path) -> Suite:
    """Return how to test what lies in a folder; exits where nobody knows."""
    found = re.search(r'^name = "(.*)"', (checkout / "pyproject.toml").read_text(), re.MULTILINE)
    name = found[1] if found else ""
    for suite in SUITES:
        if suite.project == name:
            return suite
    sys.exit(
        f"{checkout} is the project {name!r}, and there are suites of {', '.join(s.project for s in SUITES)}."
    )


def outcomes(checkout: Path, suite: Suite, options: tuple[str, ...]) -> dict[str, str]:
    """Run tests and return for each its outcome: `passed`, `skipped`, or what it failed with."""
    with tempfile.TemporaryDirectory() as folder:
        report = Path(folder) / "report.xml"
        # The folder of the plugins goes first: the checkout has a package `tests` of its own
        environment = {**os.environ, "PYTHONPATH": str(HERE)}
        command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider"]
        command += ["-W", "ignore:Unknown config option", f"--junitxml={report}", *options]
        subprocess.run([*command, suite.folder], cwd=checkout, env=environment, check=False)
        cases = list(ET.parse(report).iter("testcase"))
    found: dict[str, str] = {}
    for case in cases:
        failures = [*case.iter("failure"), *case.iter("error")]
        name = re.sub("duckdb|fuseline", "@", f"{case.get('classname')} {case.get('name')}")
        said = failures[0].get("message", "").split("\n")[0][:160] if failures else ""
        skipped = case.find("skipped") is not None
        found[name] = f"failed: {said}" if failures else "skipped" if skipped else "passed"
    return found


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m tests.foreign", description=__doc__)
    parser.add_argument("checkout", type=Path)
    checkout = parser.parse_args().checkout.resolve()
    suite = suite_of(checkout)
    theirs = outcomes(checkout, suite, suite.theirs)
    ours = outcomes(checkout, suite, suite.ours)
    wanted = [name for name, outcome in theirs.items() if outcome == "passed"]
    missed = [name for name in wanted if ours.get(name) != "passed"]
    print(", ".join(f"{p} {version(p)}" for p in suite.packages))
    share = 1 - len(missed) / len(wanted)
    print(
        f"{len(wanted) - len(missed)} of {len(wanted)} ({share:.1%}) that the other backend passes"
    )
    by_reason = defaultdict(list)
    for name in missed:
        said = ours.get(name, "not run")
        known = (why for found, why in suite.reasons.items() if re.search(found, f"{name} {said}"))
        by_reason[next(known, "no reason is known")].append(f"{name}: {said}")
    for reason, names in by_reason.items():
        print(f"\n{len(names)}: {reason}", *sorted(names), sep="\n  ")
    sys.exit(share < suite.least)


if __name__ == "__main__":
    main()
