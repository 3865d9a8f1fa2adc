"""Parameters of hundreds of megabytes: taken with as little work as those of a few bytes, and refused at once where no column holds them."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable

import pytest

import fuseline
from fuseline import errors
from fuseline.errors import OutOfRange


@pytest.mark.parametrize("given", ["x" * 65, "é" * 33, b"x" * 65], ids=["plain", "wide", "bytes"])
def test_what_is_too_long_is_refused_at_its_place(
    connection: fuseline.Connection, monkeypatch: pytest.MonkeyPatch, given: str | bytes
) -> None:
    monkeypatch.setattr(errors, "LONGEST_VALUE", 64)
    for params in ([given], [[given]]):
        with pytest.raises(OutOfRange, match=r"A value of 6\d bytes is larger than 64") as raised:
            connection.sql("select 1, ?", params)
        assert str(raised.value).endswith("LINE 1: select 1, ?\n                  ^")
    with pytest.raises(OutOfRange, match="larger than 64"):
        connection.execute("create table t as select ? as x", [given])
    assert connection.sql("select ?", [given[:32]]).fetchall() == [(given[:32],)]


@pytest.mark.parametrize("given", ["x" * 3_000_000, b"x" * 3_000_000], ids=["text", "bytes"])
def test_a_long_value_is_never_shown_as_text(
    connection: fuseline.Connection, given: str | bytes
) -> None:
    longest = []

    def watch(_: object, event: str, argument: object) -> None:
        if event == "c_call" and argument is repr:
            frame = sys._getframe(1)
            longest.extend(v for v in frame.f_locals.values() if v is given)

    sys.setprofile(watch)
    try:
        found = connection.sql("select octet_length(?::blob), ?", [given, 1]).fetchall()
    finally:
        sys.setprofile(None)
    assert found == [(3_000_000, 1)]
    assert not longest


@pytest.mark.nightly
@pytest.mark.parametrize("make", [lambda: "x" * (1 << 31), lambda: b"x" * (1 << 31)])
def test_two_gigabytes_are_refused_soon(
    connection: fuseline.Connection, make: Callable[[], str | bytes]
) -> None:
    given = make()
    began = time.process_time()
    with pytest.raises(OutOfRange, match="larger than 2,147,483,647"):
        connection.sql("select length(?)", [given])
    assert time.process_time() - began < 5
