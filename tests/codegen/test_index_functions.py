"""The functions that fill indexes and look into them: as dictionaries of Python do, on the CPU and as simulated CUDA."""

from __future__ import annotations

import re
from collections.abc import Callable
from itertools import product
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from numba import njit

from fuseline.codegen.cpu import functions_cpu as cpu
from fuseline.codegen.indexes.choose import MOST_SIEVE_BITS, SIEVE_BITS
from fuseline.codegen.indexes.layers import (
    Bitmap,
    BloomFilter,
    Buckets,
    Direct,
    Index,
    Ranks,
    asked,
    inserted,
)
from fuseline.codegen.names import RESERVED
from tests.codegen import simulator

LOWEST, HIGHEST = -(2**63), 2**63 - 1
SOME = [5, 7, 5, 0, 2**40, 7, 5, 2**62, -1]
RAW = [LOWEST, HIGHEST, -1, 0, 1, -1, LOWEST, 2**32, -(2**32)]
TARGETS = ["cpu", "cuda"]


@njit
def insert_all(heads, links, numbers, keys, valid):  # type: ignore[no-untyped-def]
    for row in range(len(keys)):
        cpu.insert_hashed_raw(heads, links, numbers, keys[row], valid[row], row)


@njit
def look_up(heads, links, numbers, key):  # type: ignore[no-untyped-def]
    found = [np.int32(0) for _ in range(0)]
    row = cpu.find_hashed_raw(heads, links, numbers, key, True)
    while row >= 0:
        found.append(row)
        row = cpu.next_hashed(links, numbers, key, row)
    return found


@njit
def mark_all(sieve, shift, keys):  # type: ignore[no-untyped-def]
    return [cpu.mark_sieve(sieve, shift, key) for key in keys]


@njit
def count_passed(sieve, shift, keys):  # type: ignore[no-untyped-def]
    passed = 0
    for key in keys:
        passed += cpu.pass_sieve(sieve, shift, key) >= 0
    return passed


def sieve(bits: int) -> BloomFilter:
    return BloomFilter(Index(0, "t", Bitmap, 1 << 31, 1, sieve_bits=bits))


def functions(target: str) -> Any:
    """The functions of a target, callable from Python."""
    if target == "cpu":
        return cpu
    cuda = simulator.Cuda(1, 32, 0)
    cuda.here.thread = 0
    return SimpleNamespace(**simulator.functions(cuda))


def rows_by_key(keys: list[int]) -> dict[int, list[int]]:
    rows: dict[int, list[int]] = {}
    for row, key in enumerate(keys):
        rows.setdefault(key, []).append(row)
    return rows


def chained(first: Any, following: Callable[[Any], Any]) -> list[int]:
    found = []
    while first >= 0:
        found.append(int(first))
        first = following(first)
    return sorted(found)


@pytest.mark.filterwarnings("ignore:overflow")
@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("slots", [1, 2, 64])
@pytest.mark.parametrize("keys", [SOME, RAW, [], [3], [4] * 20, list(range(50))])
def test_hashed_rows(target: str, slots: int, keys: list[int]) -> None:
    call = functions(target)
    heads, links = np.full(slots, -1, np.int32), np.full(len(keys), 99, np.int32)
    numbers = np.full(len(keys), 99)
    for row, key in enumerate(np.array(keys, np.int64)):
        call.insert_hashed_raw(heads, links, numbers, key, np.True_, row)
    for key in np.array([*keys, 3, -7, HIGHEST - 1], np.int64):
        first = call.find_hashed_raw(heads, links, numbers, key, np.True_)
        found = chained(first, lambda r, k=key: call.next_hashed(links, numbers, k, r))  # type: ignore[misc]
        assert found == rows_by_key(keys).get(int(key), [])
        assert call.find_hashed_raw(heads, links, numbers, key, np.False_) == -1


@pytest.mark.parametrize("target", TARGETS)
def test_negative_numbers_are_no_keys(target: str) -> None:
    call = functions(target)
    heads, links = np.full(8, -1, np.int32), np.full(4, -1, np.int32)
    numbers, bits = np.full(4, 7), np.zeros(1, np.uint32)
    none = np.int64(-1)
    assert call.insert_unique(heads, none, 0) == 0
    assert call.insert_linked(heads, links, none, 1) == 0
    assert call.insert_hashed(heads, links, numbers, none, 2) == 0
    assert call.set_bit(bits, none) == call.insert_bit(bits, none) == 0
    assert call.insert_guarded(bits, heads, none, 3) == 0
    assert (heads == -1).all()
    assert (links == -1).all()
    assert not bits.any()
    assert call.find_direct(heads, none) == call.find_guarded(bits, heads, none) == -1
    assert call.find_hashed(heads, links, numbers, none) == -1
    assert not call.has_bit(bits, none)


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("machine", [np.int32, np.int64])
def test_rows_addressed_directly(target: str, machine: Any) -> None:
    call = functions(target)
    keys = [3, 0, 9, 3, 3, 0]
    heads, links = np.full(10, -1, np.int32), np.full(6, 99, np.int32)
    repeated = [int(call.insert_linked(heads, links, machine(k), r)) for r, k in enumerate(keys)]
    assert repeated == [0, 0, 0, 1, 1, 1]
    for key in range(10):
        first = call.find_direct(heads, machine(key))
        assert chained(first, lambda r: call.next_linked(links, r)) == rows_by_key(keys).get(
            key, []
        )
    heads = np.full(10, -1, np.int32)
    repeated = [int(call.insert_unique(heads, machine(k), r)) for r, k in enumerate(keys)]
    assert repeated == [0, 0, 0, 1, 1, 1]
    assert {k for k in range(10) if call.find_direct(heads, machine(k)) >= 0} == set(keys)


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("function", ["set_bit", "insert_bit"])
def test_bits(target: str, function: str) -> None:
    call = functions(target)
    bits = np.zeros(4, np.uint32)
    keys = [0, 31, 32, 63, 64, 127, 31]
    again = [int(getattr(call, function)(bits, np.int64(k))) for k in keys]
    assert again == [0] * 6 + [function == "insert_bit"]
    assert {k for k in range(128) if call.has_bit(bits, np.int64(k))} == set(keys)
    assert {k for k in range(128) if call.bit_at(bits.view(np.uint8), np.int32(k))} == set(keys)


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("machine", [np.int32, np.int64])
def test_rows_behind_bits(target: str, machine: Any) -> None:
    """What no bit is set for is not read: it may be anything."""
    call = functions(target)
    keys = [3, 0, 95, 3, 31, 32, 0, -1]
    members, heads = np.zeros(3, np.uint32), np.full(96, 77, np.int32)
    repeated = [int(call.insert_guarded(members, heads, machine(k), r)) for r, k in enumerate(keys)]
    assert repeated == [0, 0, 0, 1, 0, 0, 1, 0]
    found = {k: int(call.find_guarded(members, heads, machine(k))) for k in range(-2, 96)}
    assert {k: r for k, r in found.items() if r >= 0} == {3: 0, 0: 1, 95: 2, 31: 4, 32: 5}
    assert set(found.values()) == {-1, 0, 1, 2, 4, 5}


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("machine", [np.int32, np.int64])
@pytest.mark.parametrize("bits", [SIEVE_BITS, MOST_SIEVE_BITS])
@np.errstate(over="ignore")  # what wraps in a kernel
def test_a_sieve(target: str, machine: Any, bits: int) -> None:
    """What was marked passes, and so may others, but few."""
    call, shift = functions(target), np.int32(sieve(bits).shift)
    words = np.zeros(bits // 32, np.uint32)
    marked = np.append(np.random.default_rng(1).integers(0, 2**31, 500), [0, 2**31 - 1])
    if machine is np.int64:
        marked = np.append(marked, [2**33 - 1, 2**32, 2**62])
    assert [int(call.mark_sieve(words, shift, machine(k))) for k in marked] == marked.tolist()
    assert words.any()
    before = words.copy()
    assert int(call.mark_sieve(words, shift, machine(-1))) == -1
    np.testing.assert_array_equal(words, before)
    assert [int(call.pass_sieve(words, shift, machine(k))) for k in marked] == marked.tolist()
    others = np.random.default_rng(2).integers(0, 2**31, 500)
    passed = [int(call.pass_sieve(words, shift, machine(k))) for k in others]
    assert [call.in_sieve(words, shift, machine(k)) for k in others] == [p >= 0 for p in passed]
    assert {p for p, k in zip(passed, others, strict=True) if p != k} == {-1}
    assert passed.count(-1) > 490
    everything = np.full(bits // 32, 2**32 - 1, np.uint32)
    for negative in (-1, -7):
        assert call.pass_sieve(everything, shift, machine(negative)) == -1
        assert not call.in_sieve(everything, shift, machine(negative))


@pytest.mark.parametrize("bits", [SIEVE_BITS, 1 << 19, MOST_SIEVE_BITS])
@pytest.mark.parametrize("step", [1 << k for k in range(16)])
def test_numbers_in_steps_have_bits_of_their_own_in_a_sieve(bits: int, step: int) -> None:
    """Else a sieve would let all through that lie on the same steps; here every fourth of them is marked, 8 bits a key."""
    shift, words = np.int32(sieve(bits).shift), np.zeros(bits // 32, np.uint32)
    count = min(bits // 8, (1 << 31) // (4 * step))
    keys = np.arange(4 * count, dtype=np.int64) * step
    np.testing.assert_array_equal(mark_all(words, shift, keys[::4]), keys[::4])
    met = count_passed(words, shift, keys)
    assert count <= met < count + 0.25 * 3 * count


def test_a_bit_beyond_32_bits() -> None:
    bits = np.zeros((1 << 33) // 32, np.uint32)  # memory that nothing touches costs nothing
    number = np.int64((1 << 33) - 1)
    cpu.set_bit(bits, number)
    assert cpu.has_bit(bits, number)
    assert bits[-1] == 1 << 31


def test_many_hashed_rows() -> None:
    """Keys in steps of a power of two do not share buckets."""
    random = np.random.default_rng(1)
    for keys in (np.arange(20_000) << 32, random.integers(LOWEST, HIGHEST, 20_000)):
        valid = random.random(20_000) < 0.9
        heads, links = np.full(1 << 15, -1, np.int32), np.empty(20_000, np.int32)
        numbers = np.empty(20_000, np.int64)
        insert_all(heads, links, numbers, keys, valid)
        assert np.count_nonzero(heads >= 0) > 10_000
        for row in range(0, 20_000, 97):
            assert (row in look_up(heads, links, numbers, keys[row])) == valid[row]


@pytest.mark.filterwarnings("ignore:overflow")
@pytest.mark.parametrize("target", TARGETS)
def test_slots_of_groups(target: str) -> None:
    """A number keeps its slot; a table without room says so."""
    numbers = np.array([5, 0, HIGHEST, 5, 2**40, 0], np.int64)
    keys, state = np.full(16, -1), np.zeros(4, np.int64)
    find = functions(target).group_slot
    slots = [int(find(keys, state, n)) for n in numbers]
    assert keys[slots].tolist() == numbers.tolist()
    assert len(set(slots)) == np.count_nonzero(keys != -1) == 4
    keys, state = np.full(2, -1), np.zeros(4, np.int64)
    assert [int(find(keys, state, n)) for n in np.arange(3)][-1] == -1


def missing(target: str) -> set[str]:
    """The functions that kernels call for an index of any kind, and a target lacks or columns may be called."""
    calls = []
    for kind, *flags in product((Bitmap, Direct, Ranks, Buckets), *[(False, True)] * 4):
        layers = Index(0, "t", kind, 64, 9, *flags, sieve_bits=64).layers
        calls += [asked(layers, "n"), asked(layers[-1:], "n"), asked(layers[:1], "n", test=True)]
        calls += [inserted(layers[:1], "n")]
        calls += [] if kind is Ranks else [inserted(layers[1:], "n, row")]
        calls += [asked(layers[:2], "n", test=True)] if isinstance(layers[1], Bitmap) else []
    called = {name for call in calls for name in re.findall(r"(?<![.\w])\w+(?=\()", call)}
    assert len(called) == 17
    return {name for name in called if name not in RESERVED or not hasattr(functions(target), name)}


@pytest.mark.parametrize("target", TARGETS)
def test_targets_have_the_functions_of_all_layers(
    target: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert missing(target) == set()
    monkeypatch.setattr(Bitmap, "tests", "has_no_bit")
    assert missing(target) == {"has_no_bit"}
