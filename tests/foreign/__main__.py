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
from pathlib import Path

from benchmarks.data import DATA, made_once
from benchmarks.tpcds import install
from tests.foreign.suites import SUITES, Suite

HERE = Path(__file__).parent


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


def python_of(suite: Suite) -> str:
    """Return the interpreter that runs the tests with their own backend: this, or that of an environment made once."""
    if not suite.requirements:
        return sys.executable
    target = DATA / f"{suite.project}-environment"
    with made_once(target) as made:
        if made:
            install(made, suite.requirements)
    return str(target / "bin/python")


def outcomes(
    python: str, checkout: Path, suite: Suite, options: tuple[str, ...], tests: list[str]
) -> dict[str, str]:
    """Run tests and return for each its outcome: `passed`, `skipped`, or what it failed with."""
    with tempfile.TemporaryDirectory() as folder:
        report = Path(folder) / "report.xml"
        # The folder of the plugins goes first: the checkout has a package `tests` of its own
        environment = {**os.environ, **suite.variables, "PYTHONPATH": str(HERE)}
        command = [python, "-m", "pytest", "-q", "-p", "no:cacheprovider"]
        command += ["-W", "ignore:Unknown config option", f"--junitxml={report}", *options]
        subprocess.run(
            [*command, *(tests or [suite.folder])], cwd=checkout, env=environment, check=False
        )
        cases = list(ET.parse(report).iter("testcase"))
    found: dict[str, str] = {}
    for case in cases:
        failures = [*case.iter("failure"), *case.iter("error")]
        name = re.sub("duckdb|fuseline", "@", f"{case.get('classname')} {case.get('name')}")
        said = failures[0].get("message", "").split("\n")[0][:160] if failures else ""
        skipped = case.find("skipped") is not None
        found[name] = f"failed: {said}" if failures else "skipped" if skipped else "passed"
    return found


def versions(python: str, packages: tuple[str, ...]) -> list[str]:
    """Return what an interpreter's environment has of some packages."""
    command = [python, "-m", "pip", "list", "--format=freeze", "--disable-pip-version-check"]
    listed = subprocess.run(command, capture_output=True, text=True, check=True).stdout.split()
    return [line for line in listed if line.split("==")[0].lower() in packages]


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m tests.foreign", description=__doc__)
    parser.add_argument("checkout", type=Path)
    parser.add_argument("tests", nargs="*", help="files of tests in it, instead of all")
    given = parser.parse_args()
    checkout = given.checkout.resolve()
    suite = suite_of(checkout)
    suite.prepare(checkout)
    python = python_of(suite)
    theirs = outcomes(python, checkout, suite, suite.theirs, given.tests)
    ours = outcomes(sys.executable, checkout, suite, suite.ours, given.tests)
    wanted = [name for name, outcome in theirs.items() if outcome == "passed"]
    missed = [name for name in wanted if ours.get(name) != "passed"]
    for interpreter in dict.fromkeys((python, sys.executable)):
        print(", ".join(versions(interpreter, suite.packages)))
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
