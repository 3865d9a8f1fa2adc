import threading
from weakref import ref

import pytest

from fuseline.storage.columns.cache import (
    NO_ENCODING,
    CacheKey,
    ColumnCache,
    encoded_key,
)
from fuseline.storage.columns.piece_caches import PassingCache, PieceCache


def key(column, device="cpu", source="file"):
    return CacheKey(source, None, column, device)


class Value:
    """What a column is here: something that can be referred to."""


def test_the_column_read_longest_ago_leaves_first():
    cache = ColumnCache(100)
    cache.put(key("a"), "A", 40)
    cache.put(key("b"), "B", 40)
    assert cache.get(key("a")) == "A"
    cache.put(key("c"), "C", 40)
    assert cache.get(key("b")) is None
    assert cache.get(key("a")) == "A"
    assert cache.used("cpu") == 80


def test_each_device_has_its_own_limit():
    cache = ColumnCache({"cpu": 50, "gpu": 100})
    cache.put(key("a"), "A", 50)
    cache.put(key("a", "gpu"), "GA", 100)
    assert (cache.used("cpu"), cache.used("gpu")) == (50, 100)
    cache.put(key("b"), "B", 10)
    assert cache.get(key("a")) is None
    assert cache.get(key("a", "gpu")) == "GA"


def test_a_column_larger_than_the_limit_is_not_kept_and_evicts_nothing():
    cache = ColumnCache(100)
    cache.put(key("a"), "A", 90)
    cache.put(key("b"), "B", 101)
    assert cache.get(key("b")) is None
    assert cache.get(key("a")) == "A"


def test_putting_a_key_again_replaces_its_bytes():
    cache = ColumnCache(100)
    cache.put(key("a"), "A", 90)
    cache.put(key("a"), "A2", 20)
    assert cache.get(key("a")) == "A2"
    assert cache.used("cpu") == 20


def test_drop_forgets_one_source_on_all_devices():
    cache = ColumnCache(100)
    for device in ("cpu", "gpu"):
        cache.put(key("a", device, "old"), 1, 10)
        cache.put(key("a", device, "new"), 2, 10)
    cache.drop("old")
    assert [(s.source, s.device) for s in cache.stats()] == [("new", "cpu"), ("new", "gpu")]


def test_release_evicts_at_least_what_is_asked_for():
    cache = ColumnCache(100)
    for column in "abcd":
        cache.put(key(column), column, 25)
    assert cache.release("cpu", 30) == 50
    assert [s.column for s in cache.stats()] == ["c", "d"]
    assert cache.release("gpu", 30) == 0


def test_all_but_what_is_wanted_leaves():
    cache = ColumnCache(100)
    for column in "abc":
        cache.put(key(column), column, 25)
    cache.put(key("d", "gpu"), "d", 25)
    assert cache.release_others("cpu", {key("b"), key("x")}) == 50
    assert cache.release_others("cpu", {key("b"), key("x")}) == 0
    assert [s.column for s in cache.stats()] == ["b", "d"]


def test_a_lower_limit_evicts():
    cache = ColumnCache(100)
    cache.put(key("a"), "A", 60)
    cache.put(key("b"), "B", 40)
    cache.set_limits(50)
    assert [s.column for s in cache.stats()] == ["b"]


def test_stats_show_bytes_and_hits():
    cache = ColumnCache(100)
    cache.put(key("a"), "A", 60)
    cache.get(key("a"))
    (entry,) = cache.stats()
    assert entry == ("file", None, "a", "cpu", 60, 1, "A", "memory")
    cache.clear()
    assert cache.stats() == []
    assert cache.used("cpu") == 0


def test_many_threads_keep_the_count_right():
    cache = ColumnCache(1000)

    def work(seed):
        for i in range(500):
            cache.put(key(str((seed * 7 + i) % 40)), i, 10 + i % 50)
            cache.get(key(str(i % 40)))

    threads = [threading.Thread(target=work, args=(n,)) for n in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert cache.used("cpu") == sum(s.bytes for s in cache.stats()) <= 1000


def test_a_table_without_an_identity_is_not_kept():
    cache = ColumnCache(100)
    cache.put(key("a", source=None), "A", 1)
    assert cache.get(key("a", source=None)) is None
    assert cache.used("cpu") == 0


def test_a_note_that_there_is_no_encoding_is_no_column() -> None:
    cache = ColumnCache(100)
    key = CacheKey("a", ("encoded", None), "x", "cpu")
    cache.put(key, NO_ENCODING, 0)
    assert cache.get(key) is NO_ENCODING
    assert cache.stats() == []


def test_what_was_made_of_several_values_is_there_as_long_as_all_of_them_are() -> None:
    cache, owner, first, second = ColumnCache(100), Value(), Value(), Value()
    cache.put(key("a"), first, 40)
    cache.put(key("b"), second, 40)
    assert cache.together(owner) is None
    assert cache.keep_together(owner, [key("a"), key("b")], [first, second], "made")
    assert cache.together(owner) == "made"
    assert cache.together(Value()) is None
    cache.release("cpu", 1)
    assert cache.together(owner) is None


def test_reads_of_owners_that_are_gone_do_not_add_up() -> None:
    cache, first = ColumnCache(100), Value()
    cache.put(key("a"), first, 40)
    owners = [Value() for _ in range(100)]  # no two of one identity
    for owner in owners:
        assert cache.keep_together(owner, [key("a")], [first], first)
        assert cache.together(owner) is first
    assert len(cache._reads) == 1
    assert next(iter(cache.stats())).hits == 2 * len(owners)


def test_what_is_read_together_is_read_last() -> None:
    cache, owner, first = ColumnCache(100), Value(), Value()
    cache.put(key("a"), first, 40)
    cache.put(key("b"), "B", 40)
    assert cache.keep_together(owner, [key("a")], [first], first)
    for _ in range(10):
        assert cache.together(owner) is first
    cache.put(key("c"), "C", 40)  # pushes out what was read longest ago
    assert cache.get(key("b")) is None
    hits = {entry.column: entry.hits for entry in cache.stats()}
    assert hits == {"a": 11, "c": 0}


def test_nothing_is_kept_of_another_value_than_the_one_that_is_there() -> None:
    cache, owner, first = ColumnCache(100), Value(), Value()
    cache.put(key("a"), first, 40)
    assert cache.keep_together(owner, [], [], "nothing read")
    for wrong in ("b", "a"), (first, Value()), (None, None):
        keys = [key("a"), key(str(wrong[0]))]
        assert not cache.keep_together(owner, keys, [first, wrong[1]], "wrong")
    assert cache.together(owner) == "nothing read"
    cache.put(key("a"), Value(), 40)
    assert not cache.keep_together(owner, [key("a")], [first], "replaced")


def test_what_was_made_goes_with_who_asked_for_it() -> None:
    cache, owner, first, made = ColumnCache(100), Value(), Value(), Value()
    cache.put(key("a"), first, 40)
    assert cache.keep_together(owner, [key("a")], [first], made)
    gone = ref(made)
    del owner, made
    assert gone() is None


def moved_down(key: CacheKey, value: object, is_refused: bool) -> tuple[object, int] | None:
    return (
        None if value == "kept nowhere" else (f"{value} on the host{' as it is' * is_refused}", 30)
    )


def below(cache: ColumnCache) -> dict[str, object]:
    return {c.column: c.value for c in cache.stats() if c.device == "cpu"}


def test_what_leaves_a_device_goes_to_the_host():
    cache = ColumnCache({"gpu": 100, "cpu": 70}, to_host=moved_down)
    for name in "abc":
        cache.put(CacheKey("t", None, name, "gpu"), name, 40)
    assert below(cache) == {"a": "a on the host"}
    cache.release("gpu", 1000)
    assert below(cache) == {"b": "b on the host", "c": "c on the host"}  # which has its own limit
    assert (cache.used("gpu"), cache.used("cpu")) == (0, 60)
    cache.release("cpu", 1000)
    assert below(cache) == {}


def test_what_is_on_the_host_is_copied_once():
    cache, copied = ColumnCache({"gpu": 50, "cpu": 100}), []
    cache.to_host = lambda key, value, _: copied.append(key.column) or (value, 30)
    for _ in range(3):
        for name in "ab":
            cache.put(CacheKey("t", None, name, "gpu"), name, 40)
    assert copied == ["a", "b"]
    cache.put_mapped(CacheKey("t", None, "c", "cpu"), "mapped")
    cache.put(CacheKey("t", None, "c", "gpu"), "c", 40)
    cache.release_others("gpu", set())
    assert copied == ["a", "b", "c"]  # of a mapped file's pages the device has to wait
    assert below(cache)["c"] == "c"


@pytest.mark.parametrize("limit", [0, 39])
def test_what_the_host_has_no_room_for_is_not_copied(limit):
    cache = ColumnCache({"gpu": 50, "cpu": limit}, to_host=moved_down)
    for name in "ab":
        cache.put(CacheKey("t", None, name, "gpu"), name, 40)
    assert below(cache) == {}


def test_a_column_without_encoding_is_known_as_such_on_the_host():
    cache = ColumnCache({"gpu": 50, "cpu": 100}, to_host=moved_down)
    cache.put(encoded_key("t", None, "a", "gpu"), NO_ENCODING, 0)
    for name in ("a", "b"):
        cache.put(CacheKey("t", None, name, "gpu"), name, 40)
    cache.set_limits({"gpu": 0, "cpu": 100})
    assert below(cache) == {"a": "a on the host as it is", "b": "b on the host"}
    assert cache.peek(encoded_key("t", None, "a", "cpu")) is NO_ENCODING
    assert cache.peek(encoded_key("t", None, "b", "cpu")) is None


def test_copies_of_what_kernels_read_take_half_of_the_limit_and_leave_first_and_for_good():
    cache = ColumnCache({"gpu": 100, "cpu": 100}, to_host=moved_down)
    for name, nbytes in (("a", 20), ("b", 10)):
        cache.put(encoded_key("t", None, name, "gpu"), f"{name}, encoded", nbytes)
    cache.put(key("a", "gpu", "t"), "a", 20)
    cache.put(key("b", "gpu", "t"), "b", 20)  # for which half of the limit has no room
    assert [c.value for c in cache.stats()] == ["a, encoded", "b, encoded", "a"]
    cache.put(key("c", "gpu", "t"), "c", 60)  # without an encoding
    assert [c.value for c in cache.stats()] == ["a, encoded", "b, encoded", "c"]
    assert below(cache) == {}
    cache.set_limits({"gpu": 70, "cpu": 100})
    assert [c.value for c in cache.stats() if c.device == "gpu"] == ["b, encoded", "c"]
    assert below(cache) == {"a": "a, encoded on the host"}


def test_some_values_are_kept_nowhere():
    cache = ColumnCache({"gpu": 50, "cpu": 100}, to_host=moved_down)
    cache.put(CacheKey("t", None, "a", "gpu"), "kept nowhere", 40)
    cache.set_limits(0)
    assert cache.stats() == []


def test_a_piece_reads_what_is_there_and_leaves_nothing():
    lasting = ColumnCache(100)
    lasting.put(key("a"), "whole", 10)
    piece = PieceCache(PassingCache(lasting, read_all=True))
    piece.put(key("b"), "of this piece", 1000)
    assert [piece.get(key(name)) for name in "abc"] == ["whole", "of this piece", None]
    assert [piece.peek(key(name)) for name in "abc"] == ["whole", "of this piece", None]
    assert (piece.lasting, piece.is_lasting, piece.is_stored) == (lasting, False, False)
    assert [c.column for c in lasting.stats()] == ["a"]
