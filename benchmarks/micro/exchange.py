"""What control and exchanges of a cluster take: `python -m benchmarks.micro.exchange [--cluster ADDRESS] [--workers N] [--most 256MB]`.

Control: a call to one worker and to all, the turn that clients take, a query without data from `sql()` to Arrow, a meeting.  Exchanges of each kind
by size, from 8 bytes a worker: the slowest worker's time, the bytes that leave the worker that sends most, and what share that is of the bandwidth of a
copy, measured in the same run: from GPU to GPU where rows go so, else in the workers' memory.  There the kinds are the bytes alone, `rows` is a whole exchange: two
columns cut by the hash of one, and put together again; the way by the host is measured beside it.
"""

from __future__ import annotations

import argparse
import json
import statistics
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import fuseline
from fuseline.settings import parse_bytes

STEP = 16  # from one size to the next


def median_ms(work: Callable[[], object], times: int) -> dict[str, float]:
    """The least, the median and nearly the most milliseconds of a few runs."""
    work()
    found = []
    for _ in range(times):
        begun = time.perf_counter()
        work()
        found.append((time.perf_counter() - begun) * 1e3)
    return _spread(found)


def _spread(found: list[float]) -> dict[str, float]:
    found.sort()
    return {
        "min": found[0],
        "median": statistics.median(found),
        "p95": found[int(0.95 * (len(found) - 1))],
    }


def control(connection: Any, times: int) -> dict[str, dict[str, float]]:
    """What is paid before any row moves; a meeting is what the slowest worker takes for it."""
    crew = connection._runner.crew
    linked = not crew.not_linked

    def turn() -> None:
        with connection._runner._cluster.turn.held(lambda: None):
            pass

    return {
        "a call to all workers": median_ms(lambda: crew.ask_all("here"), times),
        "the turn of a client": median_ms(turn, times),
        "a query without data": median_ms(lambda: connection.sql("select 1").to_arrow(), times),
        **{
            f"a meeting{' over the link' * way}": _spread(
                [crew.trial("meeting", 0, way) * 1e3 for _ in range(times)]
            )
            for way in ((True, False) if linked else (False,))
        },
    }


def exchanges(
    connection: Any, most: int, times: int, linked: bool = False, copied: float = 0.0
) -> list[dict[str, Any]]:
    """Each kind of exchange by the bytes that each worker has; `linked`: from GPU to GPU. `copied` is the bandwidth of a copy."""
    crew = connection._runner.crew
    copied = copied or max(crew.each("copy_bandwidth", [()] * crew.size, lambda: None))
    found = []
    for kind in ("gather", "broadcast", "hash", *(("rows",) if linked else ())):
        size = 8
        while size <= most:
            seconds = min(crew.trial(kind, size, linked) for _ in range(times))
            out = _sent(kind, size, crew.size)
            found.append(
                {
                    "kind": kind,
                    "linked": linked,
                    "bytes": size,
                    "seconds": seconds,
                    "rate": out / seconds,
                    "share": out / seconds / copied,
                }
            )
            size = most if size < most < size * STEP else size * STEP
    return found


def _sent(kind: str, size: int, workers: int) -> float:
    """The bytes that leave the worker that sends most, or reach the one that gets most."""
    return size * (workers - 1) / (workers if kind in ("hash", "rows") else 1)


def peer_copy_bandwidth(nbytes: int = 1 << 30, times: int = 10) -> float:
    """The bytes a second of copies from one GPU of this machine to another; 0 where there is one alone.

    In a process of its own, which leaves nothing on the GPUs.
    """
    with ProcessPoolExecutor(1, mp_context=get_context("spawn")) as pool:
        return pool.submit(_peer_copy, nbytes, times).result()


def _peer_copy(nbytes: int, times: int) -> float:
    from cuda.bindings import runtime

    def called(answer: Any) -> Any:
        if int(answer[0]) != 0:
            raise RuntimeError(f"CUDA answered {answer[0].name}.")
        return answer[1] if len(answer) > 1 else None

    if called(runtime.cudaGetDeviceCount()) < 2:
        return 0.0
    places = []
    for device in (0, 1):
        called(runtime.cudaSetDevice(device))
        if called(runtime.cudaDeviceCanAccessPeer(device, 1 - device)):
            called(runtime.cudaDeviceEnablePeerAccess(1 - device, 0))
        places.append(called(runtime.cudaMalloc(nbytes)))
    called(runtime.cudaSetDevice(0))
    best = 0.0
    for _ in range(times):
        called(runtime.cudaDeviceSynchronize())
        begun = time.perf_counter()
        called(runtime.cudaMemcpyPeerAsync(places[1], 1, places[0], 0, nbytes, 0))
        called(runtime.cudaDeviceSynchronize())
        best = max(best, nbytes / (time.perf_counter() - begun))
    return best


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.micro.exchange", description=__doc__
    )
    parser.add_argument("--cluster", default="local", help="the address of a scheduler, or local")
    parser.add_argument("--workers", type=int, help="of a local cluster")
    parser.add_argument("--device", default="auto")
    parser.add_argument("--most", default="256MB", help="the largest size a worker")
    parser.add_argument(
        "--host-most", default="256MB", help="the same, of those by way of the host"
    )
    parser.add_argument("--times", type=int, default=20)
    parser.add_argument("--json", type=Path, help="write the result here")
    options = parser.parse_args(arguments)
    most = parse_bytes("most", options.most) or 0
    host_most = min(most, parse_bytes("host-most", options.host_most) or 0)
    given = {"cluster": options.cluster, "workers": options.workers}
    with fuseline.connect(options.device, **given) as connection:
        crew, times = connection._runner.crew, max(3, options.times // 4)
        linked = not crew.not_linked
        result = {
            "workers": crew.size,
            "device": connection.device,
            "not_linked": crew.not_linked,
            "peer_copy": peer_copy_bandwidth() if connection.device == "gpu" else 0.0,
            "control": control(connection, options.times),
        }
        copied = result["peer_copy"]
        result["exchanges"] = exchanges(connection, most, times, True, copied) if linked else []
        result["exchanges"] += exchanges(connection, host_most, times, False, copied)
    way = "from GPU to GPU by NCCL" if linked else f"by way of the host ({result['not_linked']})"
    print(f"{result['workers']} workers on the {result['device']}, rows go {way}")
    if copied:
        print(f"a copy from one GPU to another: {copied / 1e9:.1f} GB/s")
    for what, found in result["control"].items():
        print(
            f"{what:24s} {found['min']:8.2f} ms at best, {found['median']:8.2f} median, {found['p95']:8.2f} p95"
        )
    for row in result["exchanges"]:
        print(
            f"{'nccl' if row['linked'] else 'host'} {row['kind']:10s} {row['bytes']:14,d} B  {row['seconds'] * 1e3:10.3f} ms  {row['rate'] / 1e9:8.3f} GB/s  {row['share']:6.1%} of a copy"
        )
    if options.json:
        options.json.parent.mkdir(parents=True, exist_ok=True)
        options.json.write_text(json.dumps(result, indent=1) + "\n")


if __name__ == "__main__":
    main()
