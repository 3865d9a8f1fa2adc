"""Calls of the driver as words: with functions of this test in the place of the driver's, which write down what they are given."""

from __future__ import annotations

import ctypes

import numpy as np
import pytest

from fuseline.operators.gpu.pipeline import driver_calls as calls
from fuseline.operators.gpu.pipeline.driver_calls import POINTERS, DriverCall, Late, LateArgument
from fuseline.operators.gpu.pipeline.regions import BufferSpan, Region

STARTS = {Region.SMALL: 1 << 40, Region.RESULTS: 1 << 41, Region.HOST: 1 << 42}
Seen = list[tuple[str, tuple[int, ...]]]


@pytest.fixture
def seen(monkeypatch: pytest.MonkeyPatch) -> Seen:
    """What was called, with eleven arguments each; `fail` answers 2, `first` reads the first word that its kernel takes."""
    noted: Seen = []
    kind = ctypes.CFUNCTYPE(ctypes.c_int, *[ctypes.c_uint64] * (calls.WIDTH - 1))
    kept = []

    def function(name: str) -> int:
        def called(*given: int) -> int:
            if name == "launch":
                places = (ctypes.c_uint64 * 3).from_address(given[0])
                given = tuple(ctypes.c_uint64.from_address(place).value for place in places)
            noted.append((name, given))
            return 2 if name == "fail" else 0

        kept.append(kind(called))  # as long as it may be called
        return ctypes.cast(kept[-1], ctypes.c_void_p).value or 0

    monkeypatch.setattr(calls, "_function", function)
    return noted


def test_arguments_reach_their_functions(seen: Seen) -> None:
    span, late = BufferSpan(Region.RESULTS, 24, 1, 8), Late()
    made = calls.driver_calls(
        [
            DriverCall("copy", (span, BufferSpan(Region.HOST, 0, 1, 1), 7, late)),
            DriverCall("launch", (POINTERS,), (span, late, 1.5)),
            DriverCall("launch", (POINTERS,), (np.float32(1.5), -1, np.int8(-1))),
        ]
    )
    for given in ([5, 6], [8, 9]):
        seen.clear()
        made.run(STARTS, given)
        double, single = (int.from_bytes(kind(1.5).tobytes(), "little") for kind in (np.float64, np.float32))  # fmt: skip
        assert [(name, arguments[:4]) for name, arguments in seen] == [
            ("copy", (STARTS[Region.RESULTS] + 24, STARTS[Region.HOST], 7, given[0])),
            ("launch", (STARTS[Region.RESULTS] + 24, given[1], double)),
            ("launch", (single, 2**64 - 1, 255)),
        ]


def test_each_run_is_given_its_own_memory_and_arguments(seen: Seen) -> None:
    made = calls.driver_calls([DriverCall("copy", (BufferSpan(Region.RESULTS, 8, 1, 8), Late()))])
    for start, given in [(64, 1), (64, 1), (128, 1), (128, 2), (64, 1)]:
        seen.clear()
        made.run({Region.RESULTS: start}, [given])
        assert [arguments[:2] for _, arguments in seen] == [(start + 8, given)]


def test_a_run_amid_another_has_words_of_its_own(
    seen: Seen, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = calls.driver_calls([DriverCall("copy", (BufferSpan(Region.RESULTS, 0, 1, 8),))] * 2)
    caller, waiting = calls._caller(), [64]

    def interrupted(words: int, count: int) -> int:
        while waiting:
            made.run({Region.RESULTS: waiting.pop()}, [])
        return caller(words, count)

    monkeypatch.setattr(calls, "_caller", lambda: interrupted)
    made.run({Region.RESULTS: 128}, [])
    assert [arguments[0] for _, arguments in seen] == [64, 64, 128, 128]


def test_nothing_is_called_after_a_call_that_failed(seen: Seen) -> None:
    names = ("copy", "fail", "copy")
    made = calls.driver_calls([DriverCall(name, (1,)) for name in names])
    with pytest.raises(MemoryError, match="answered CUDA_ERROR_OUT_OF_MEMORY to fail"):
        made.run(STARTS, [])
    assert [name for name, _ in seen] == ["copy", "fail"]


def test_no_calls_are_none(seen: Seen) -> None:
    calls.driver_calls([]).run(STARTS, [])
    assert seen == []


def test_some_arguments_are_completed_for_all_runs(seen: Seen) -> None:
    first, second = LateArgument(0), LateArgument(1)
    made = calls.driver_calls([DriverCall("copy", (first, 2, second, second))])
    made.completed({second: 7}).run(STARTS, [5])
    made.run(STARTS, [5, 8, 9])
    assert [given[:4] for _, given in seen] == [(5, 2, 7, 7), (5, 2, 8, 9)]
