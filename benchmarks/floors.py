"""The floor under a query: the encoded bytes that it must read (`least_bytes`), passed once at the device's bandwidth.

What is built and probed in between does not count. The bandwidth is that of a copy, which reads and writes.
"""

from __future__ import annotations

from collections import Counter
from typing import Any


def add_floors(result: dict[str, Any]) -> None:
    """Give each measurement that knows its columns a `floor`; an engine without kernels has the bandwidth that others saw."""
    bandwidth: dict[str, float] = {}
    for engine in result["engines"].values():
        bandwidth |= engine["bandwidth"]
    for row in result["queries"].values():
        for found in row["engines"].values():
            found["floor"] = floor(found, bandwidth)


def floor(found: dict[str, Any], bandwidth: dict[str, float]) -> dict[str, Any] | None:
    """Bytes, the seconds that they take at least, where the hot time went, and what took most of it; None where unknown.

    `spent` has the seconds of kernels by what bounds them (memory, compute, latency), those of `operators` outside of
    kernels, and those of the `host`, which is the rest of the hot time: planning, launches, copies, the answer's way back.
    """
    sizes = found.get("needed", found["columns"]).values()
    devices = Counter(node["device"] for node in found["placement"])
    device = devices.most_common(1)[0][0] if devices else ""
    if found["hot"] is None or not sizes or None in sizes or device not in bandwidth:
        return None
    spent: Counter[str] = Counter()
    for pipeline in found["pipelines"]:
        if pipeline["bound"]:
            spent[pipeline["bound"]] += pipeline["seconds"]
    spent["operators"] = found["operator_seconds"] or 0.0
    spent["host"] = max(0.0, found["hot"] - sum(spent.values()))
    size = sum(sizes)
    return {
        "bytes": size,
        "seconds": size / bandwidth[device],
        "spent": dict(spent),
        "bound": spent.most_common(1)[0][0],
    }
