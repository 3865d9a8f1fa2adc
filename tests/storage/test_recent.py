"""What was asked for last is kept, in a bounded number."""

from __future__ import annotations

from fuseline.storage.recent import Recent


def test_the_one_that_was_not_asked_for_the_longest_time_goes() -> None:
    known = Recent[int, str](3)
    for number in range(3):
        known.keep(number, str(number))
    assert known.find(0) == "0"
    known.keep(3, "3")
    assert (known.find(0), known.find(1), known.find(3)) == ("0", None, "3")


def test_a_value_is_made_once() -> None:
    known = Recent[int, list[int]](2)
    made = known.find_or_make(1, list)
    known.keep(2, [])
    assert known.find_or_make(1, list) is made
    known.keep(3, [])
    assert known.find(1) is made
    assert known.find(2) is None


def test_no_more_bytes_are_kept_than_may_be() -> None:
    known = Recent[int, bytes](9, 10, lambda value: len(value or b""))
    known.keep(0, b"four")
    known.keep(1, b"five.")
    known.keep(0, b"four")
    assert (known.find(0), known.find(1)) == (b"four", b"five.")
    known.keep(2, b"six..")
    assert (known.find(0), known.find(1), known.find(2)) == (None, b"five.", b"six..")
    known.keep(3, b"more than ten")
    assert [known.find(number) for number in range(4)] == [None] * 4
    known.keep(0, b"ten bytes.")
    known.forget()
    known.keep(1, b"ten bytes.")
    assert (known.find(0), known.find(1)) == (None, b"ten bytes.")
