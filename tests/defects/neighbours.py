"""How many neighbours of the defects a run of their tests tries, class by class: `python -m tests.defects.neighbours [--nightly]`.

A call is a statement, a setting or a table that a connection is given, or a text that strptime reads; a value is one that was compared
with DuckDB's.  `--nightly` adds what tests of the night draw, for minutes each.
"""

from __future__ import annotations

import argparse
import functools
import sys
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

TESTS = Path(__file__).parents[1]
# Class of defects -> the tests of its neighbours
CLASSES: dict[str, tuple[str, ...]] = {
    "functions of numbers and texts over the extremes of each type": (
        "operators/test_function_sweep.py::test_a_sample[functions]", "operators/test_function_sweep.py::test_new_seeds[functions]",
        "defects/test_numbers_and_text.py", "operators/test_expressions_numeric.py",
    ),
    "CAST and TRY_CAST between all pairs of types": (
        "operators/test_function_sweep.py::test_a_sample[casts]", "operators/test_function_sweep.py::test_new_seeds[casts]",
        "operators/test_expressions_casts.py", "defects/test_hugeint.py", "defects/test_a5_pairs_of_types.py",
    ),
    "dates and intervals of the whole range": (
        "defects/test_b3_intervals.py", "defects/test_b3_dates_beyond_python.py", "types/test_infinite_moments.py", "operators/test_expressions_dates.py",
    ),
    "strftime and strptime: specifiers and pairs of them": ("operators/test_kernels_formats.py", "defects/test_a4_strptime.py"),
    "names, long ones among them": ("sql/test_result_names.py", "defects/test_a14_names.py", "defects/test_b5_names.py"),
    "lone surrogates and invalid UTF-8": ("defects/test_b5_names.py", "defects/test_a7_invalid_utf8.py"),
    "types in each output format": ("test_formats.py",),
    "settings of any value": ("defects/test_settings_of_any_value.py",),
    "Python calls with arguments of any type": ("test_any_argument.py", "defects/test_a15_dataframe_calls.py"),
    "arguments of functions: count, type, constant or not": ("sql/test_arguments.py", "sql/test_known_values.py"),
    "arguments of the syntax tree": ("sql/test_tree_coverage.py", "sql/test_tree_grafts.py", "defects/test_a2_accepted_and_ignored.py", "defects/test_a1_from_first.py"),
    "texts with one token changed": ("sql/test_mutations.py",),
    "signatures and examples of DuckDB's functions": ("test_function_table.py",),
    "functions over texts that come thousands of times": ("operators/test_repeated_values.py",),
}  # fmt: skip


class Count:
    """Counts calls and compared values, and pytest's outcomes."""

    def __init__(self) -> None:
        self.found: Counter[str] = Counter()

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        if report.when == "call":
            self.found[report.outcome] += 1

    def calls(self, owner: Any, name: str) -> None:
        self._around(owner, name, lambda *args, **named: {"calls": 1})

    def compared(self, owner: Any, name: str) -> None:
        def size(expected: Any, *args: Any, **named: Any) -> dict[str, int]:
            return {"values": expected.num_rows * expected.num_columns}

        self._around(owner, name, size)

    def _around(self, owner: Any, name: str, counted: Callable[..., dict[str, int]]) -> None:
        plain = getattr(owner, name)

        @functools.wraps(plain)
        def counting(*args: Any, **named: Any) -> Any:
            self.found.update(counted(*args, **named))
            return plain(*args, **named)

        setattr(owner, name, counting)


def counting() -> Count:
    """Return a counter of what tests that are not imported yet will do."""
    import fuseline
    import fuseline.plan.functions.strptime as reading
    from tests import compare

    made = Count()
    for name in ("sql", "execute", "set_option", "register", "table", "read_parquet"):
        made.calls(fuseline.Connection, name)
    made.calls(fuseline, "connect")
    made.calls(reading, "moment")
    made.compared(compare, "difference")
    return made


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--nightly", action="store_true", help="with what draws new seeds")
    parser.add_argument("--only", default="", help="the classes with this word")
    options = parser.parse_args()
    count, total, failed = counting(), Counter[str](), False
    marks = "nightly or not nightly" if options.nightly else "not nightly"
    lines = ["| class | tests | calls | values compared with DuckDB |", "|---|---|---|---|"]
    for name, files in CLASSES.items():
        if options.only not in name:
            continue
        count.found.clear()
        given = ["-q", "-p", "no:cacheprovider", "-m", f"({marks}) and not gpu", "--no-header"]
        code = pytest.main([*given, *(str(TESTS / file) for file in files)], plugins=[count])
        failed |= code not in (pytest.ExitCode.OK, pytest.ExitCode.NO_TESTS_COLLECTED)
        row = count.found
        total.update(row)
        lines.append(f"| {name} | {row['passed']:,} | {row['calls']:,} | {row['values']:,} |")
    lines.append(f"| all | {total['passed']:,} | {total['calls']:,} | {total['values']:,} |")
    sys.stdout.write("\n".join(lines) + "\n")
    sys.exit(failed)


if __name__ == "__main__":
    main()
