"""Each line of the report on 90bdf64 (A: wrong answers, B: hangs and crashes, C: security, D: limits) with the tests of it and its neighbours."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

TESTS = Path(__file__).parents[1]
# By number: what was wrong in a word, and the files in which it is repeated
DEFECTS: dict[str, tuple[str, tuple[str, ...]]] = {
    "A1": ("joins after FROM first", ("defects/test_a1_from_first.py",)),
    "A2": ("syntax without effect", ("defects/test_a2_accepted_and_ignored.py",)),
    "A3": ("INT96 outside 1677-2262", ("defects/test_a12_nanoseconds.py",)),
    "A4": ("strptime", ("defects/test_a4_strptime.py", "operators/test_kernels_formats.py")),
    "A5": ("TRY_CAST to NULL", ("defects/test_a5_pairs_of_types.py", "defects/test_hugeint.py", "defects/test_numbers_and_text.py")),
    "A6": ("functions at their limits", ("defects/test_numbers_and_text.py",)),
    "A7": ("invalid UTF-8", ("defects/test_a7_invalid_utf8.py",)),
    "A8": ("names of columns", ("defects/test_a14_names.py", "sql/test_result_names.py")),
    "A9": ("refused queries", ("defects/test_a9_refused.py",)),
    "A10": ("damaged machine code", ("defects/test_c1_planted_kernels.py",)),
    "A11": ("a file written in place", ("defects/test_a11_long_writes.py",)),
    "A12": ("nanoseconds", ("defects/test_a12_nanoseconds.py",)),
    "A13": ("digits of other scripts", ("defects/test_numbers_and_text.py",)),
    "A14": ("names of expressions", ("defects/test_a14_names.py",)),
    "A15": ("strings in dataframe calls", ("defects/test_a15_dataframe_calls.py",)),
    "B1": ("rounding by any number of digits", ("defects/test_numbers_and_text.py",)),
    "B2": ("encrypted columns", ("defects/test_b2_encrypted_files.py",)),
    "B3": ("intervals and dates", ("defects/test_b3_intervals.py", "defects/test_b3_dates_beyond_python.py")),
    "B4": ("numbers without blanks", ("defects/test_a2_accepted_and_ignored.py",)),
    "B5": ("names that nothing takes", ("defects/test_b5_names.py", "defects/test_c1_planted_kernels.py")),
    "B6": ("a process that does not end", ("defects/test_b6_process_ends.py",)),
    "B7": ("nesting", ("defects/test_b7_nesting.py", "defects/test_long_expressions.py")),
    "B8": ("what is named often", ("defects/test_b8_named_often.py",)),
    "B9": ("the parser's own words", ("defects/test_a2_accepted_and_ignored.py",)),
    "B10": ("many joins", ("defects/test_b10_wide_queries.py",)),
    "B11": ("LIMIT and count(*)", ("defects/test_d1_limits_stop_producers.py",)),
    "B12": ("columns of other types", ("defects/test_b12_other_types.py",)),
    "C1": ("planted kernels", ("defects/test_c1_planted_kernels.py", "codegen/test_stored.py")),
    "C2": ("flipped bits", ("defects/test_c1_planted_kernels.py", "codegen/test_stored.py")),
    "C3": ("who may open what", ("defects/test_c3_who_may_open_what.py", "storage/test_access.py")),
    "C4": ("what is left behind", ("defects/test_c4_constants_in_sources.py", "storage/test_spill_folders.py")),
    "C5": ("kernels that stay", ("codegen/test_many_kernels.py", "defects/test_long_lives.py")),
    "D1": (
        "memory_limit",
        ("defects/test_d1_one_budget.py", "defects/test_d1_peak_memory.py", "defects/test_d1_answers_of_any_size.py"),
    ),
    "D2": ("stopping", ("defects/test_d2_stopping.py", "test_cancels.py")),
    "D3": ("limits on a GPU", ("defects/test_d3_gpu_limits.py", "gpu/test_short_of_memory.py")),
}  # fmt: skip
NUMBERS = {"A": 15, "B": 12, "C": 5, "D": 3}


def test_each_line_of_the_report_is_here() -> None:
    assert set(DEFECTS) == {f"{a}{n + 1}" for a, count in NUMBERS.items() for n in range(count)}


@pytest.mark.parametrize("number", DEFECTS)
def test_it_is_repeated_by_tests(number: str) -> None:
    _, files = DEFECTS[number]
    for file in files:
        names = [
            node.name
            for node in ast.parse((TESTS / file).read_text()).body
            if isinstance(node, ast.FunctionDef) and node.name.startswith("test_")
        ]
        assert names, file
