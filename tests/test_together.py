"""Work that threads share: results in order, the first item's error, and no wait for a thread that is busy."""

from __future__ import annotations

import threading

import pytest

from fuseline.threads.together import shared_threads, together


def test_results_are_in_the_order_of_the_items() -> None:
    assert together(lambda n: n * n, range(100), 3) == [n * n for n in range(100)]
    assert together(str, [], 2) == []


def test_the_error_of_the_first_item_that_has_one_is_raised_when_nobody_works_any_more() -> None:
    begun, working = threading.Barrier(2), []

    def work(item: int) -> None:
        working.append(item)
        begun.wait(30)
        working.remove(item)
        raise ValueError(item)

    with pytest.raises(ValueError, match="0"):
        together(work, [0, 1], 2)
    assert working == []


def test_work_goes_on_while_all_other_threads_are_busy_and_inside_of_other_work() -> None:
    end = threading.Event()
    pool = shared_threads("fuseline-kernel", 2)
    busy = [pool.submit(end.wait, 60) for _ in range(2)]
    try:
        assert together(lambda n: sum(together(abs, [n, n], 2)), [1, 2, 3], 2) == [2, 4, 6]
    finally:
        end.set()
    assert all(future.result() for future in busy)
