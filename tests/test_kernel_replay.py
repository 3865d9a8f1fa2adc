"""No change of the code generator goes unnoticed: the kernels of fixed suites are those that are stored."""

from __future__ import annotations

from collections import Counter

from tests import kernel_replay
from tests.kernel_replay import changes, hashes, normal_form

SOURCE = '''"""What it does."""
def kernel(start, end, a_codes):
    """Of a plan."""
    for row in range(start, end):  # scan
        total = a_codes[row] + 1
    return total
'''


def test_kernels_are_those_that_are_stored() -> None:
    """Where this fails as it should: `make kernels`, read, `make kernels ARGS=--accept`."""
    changed = changes(kernel_replay.stored(), hashes(kernel_replay.kernels()))
    assert not changed, f"{Counter(changed.values())}: {list(changed)[:20]}"


def test_stored_sources_are_those_of_the_manifest() -> None:
    assert hashes(kernel_replay.stored_sources()) == kernel_replay.stored()


def test_renaming_and_comments_keep_the_normal_form() -> None:
    renamed = SOURCE.replace("a_codes", "b").replace("kernel", "work").replace("# scan", "# t")
    documented = SOURCE.replace("Of a plan.", "Of another plan.")
    assert normal_form(renamed) == normal_form(SOURCE) == normal_form(documented)


def test_a_function_that_lies_elsewhere_keeps_the_normal_form() -> None:
    here, there = (f"from {place} import *\n{SOURCE}" for place in ("a.cuda", "b.cpu"))
    assert normal_form(here) == normal_form(there) == normal_form(SOURCE)


def test_another_statement_or_another_order_of_names_changes_it() -> None:
    for old, new in [("+ 1", "+ 2"), ("+", "-"), ("start, end)", "end, start)"), ("    return", "        return")]:  # fmt: skip
        assert normal_form(SOURCE.replace(old, new, 1)) != normal_form(SOURCE)


def test_each_way_to_change_is_told_apart() -> None:
    before = hashes({"gone": SOURCE, "text": SOURCE, "form": SOURCE, "same": SOURCE})
    now = hashes(
        {
            "new": SOURCE,
            "text": SOURCE.replace("row", "r"),
            "form": SOURCE.replace("1", "2"),
            "same": SOURCE,
        }
    )
    assert changes(before, now) == {"gone": "gone", "new": "new", "text": "text", "form": "form"}
