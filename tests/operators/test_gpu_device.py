"""What the GPU backend says of a machine that lacks something."""

from __future__ import annotations

import sys
import types
from typing import TYPE_CHECKING, Any, cast

import pytest

from fuseline.operators.gpu.memory import device
from fuseline.operators.host_memory import NoRoom
from fuseline.storage.columns.cache import CacheKey, ChunkCache, ColumnCache

if TYPE_CHECKING:
    from fuseline.operators.context import Context


@pytest.fixture(autouse=True)
def _asked_anew() -> Any:
    device.available.cache_clear()
    yield
    device.available.cache_clear()


def machine(monkeypatch: pytest.MonkeyPatch, driver: int, gpus: int, error: int = 0) -> None:
    """Put a CUDA runtime with these answers in the place of the real one."""
    runtime = types.SimpleNamespace(
        cudaError_t=types.SimpleNamespace(cudaSuccess=0),
        cudaDriverGetVersion=lambda: (0, driver),
        cudaGetDeviceCount=lambda: (error, gpus),
    )
    bindings = types.ModuleType("cuda.bindings")
    bindings.runtime = runtime  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "cuda.bindings", bindings)
    monkeypatch.setattr(device, "_importable", lambda module: True)


def test_extra_is_missing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(device, "_importable", lambda module: False)
    usable, reason = device.available()
    assert not usable
    assert "pip install 'fuseline[cuda13]'" in reason


@pytest.mark.parametrize(
    ("driver", "gpus", "words"),
    [(0, 0, "no NVIDIA driver"), (12080, 1, "too old (CUDA 12.8)"), (13000, 0, "finds no GPU")],
)
def test_machine_without_gpu(
    monkeypatch: pytest.MonkeyPatch, driver: int, gpus: int, words: str
) -> None:
    machine(monkeypatch, driver, gpus)
    usable, reason = device.available()
    assert not usable
    assert words in reason


def test_machine_with_gpu(monkeypatch: pytest.MonkeyPatch) -> None:
    machine(monkeypatch, 13000, 1)
    assert device.available() == (True, "")


@pytest.mark.parametrize("error", [MemoryError(), RuntimeError("std::bad_alloc: out_of_memory")])
def test_out_of_memory_is_recognised(error: Exception) -> None:
    assert device.is_out_of_memory(error)
    assert not device.is_out_of_memory(RuntimeError("CUDA error: misaligned address"))


def test_columns_read_longest_ago_leave_until_there_is_room(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """And no more of them: without a limit none, and none where what leaves is held by others."""
    cache = ColumnCache(1000)
    keys = [CacheKey("t", None, name, "gpu") for name in "abcd"]
    for key in keys:
        cache.put(key, key.column, 100)
    cache.get(keys[0])
    context = cast("Context", types.SimpleNamespace(cache=ChunkCache(cache)))

    def there(limit: int | None, besides: int) -> str:
        taken = lambda: besides + cache.used("gpu")  # noqa: E731
        limiter = types.SimpleNamespace(get_allocated_bytes=taken)
        monkeypatch.setattr(device._Memory, "limiter", limiter)
        monkeypatch.setattr(device._Memory, "limit", limit)
        device.make_room(300, context)
        return "".join(key.column for key in keys if cache.holds(key))

    assert there(None, 10**6) == there(800, 100) == "abcd"
    assert there(800, 101) == "acd"
    assert there(800, 250) == "ad"
    assert there(800, 900) == ""


def test_cached_columns_go_before_garbage_is_collected(monkeypatch: pytest.MonkeyPatch) -> None:
    """A collection looks at all objects of the process, and what is cached is most of what a device can give back."""
    key, cache = CacheKey("t", None, "c", "gpu"), ColumnCache(1000)
    context = cast("Context", types.SimpleNamespace(cache=cache))
    monkeypatch.setattr(device, "free_memory", lambda: "0 bytes are free")

    def steps(failures: int, error: type[MemoryError] = MemoryError) -> list[str]:
        done: list[str] = []
        collecting = types.SimpleNamespace(collect=lambda: done.append("gc"))
        monkeypatch.setattr(device, "gc", collecting)
        errors = [error("out_of_memory")] * failures

        def work() -> None:
            done.append("cached" if cache.holds(key) else "alone")
            cache.put(key, "column", 100)
            if errors:
                raise errors.pop()

        device.with_room(work, context)
        return done

    assert steps(0) == ["alone"]
    assert steps(1) == ["cached", "alone"]
    assert steps(2) == steps(2, NoRoom) == ["cached", "alone", "gc", "alone"]
    with pytest.raises(MemoryError, match="out_of_memory; 0 bytes are free") as failed:
        steps(3, NoRoom)
    assert not isinstance(failed.value, NoRoom)  # an operator that this is part of tries again
    cache.set_limits(0)
    assert steps(1) == ["alone", "gc", "alone"]
