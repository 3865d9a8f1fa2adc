"""range() and generate_series() as lists: how long each is, and then all values at once."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from .....errors import ExecutionError
from .....plan.arrow.arrow_arrays import from_numpy
from .....plan.calendar import MICROS_A_DAY
from .....plan.expr import Call
from .....plan.temporal import zones
from .....plan.types import TIMESTAMP, Kind
from ... import table as tables
from ...nested_arrays import Ints, Mask, check_elements, list_array
from ..kernels_intervals import shifted
from ..vectors import Array, Kernel, Vector, both_valid

_LEAST, _MOST = np.iinfo(np.int64).min, np.iinfo(np.int64).max


def _series(inclusive: bool) -> Kernel:
    def kernel(call: Call, args: tuple[Vector, ...]) -> Vector:
        zone = None
        if args[-1].type.kind is Kind.VARCHAR:
            zone = zones.zone(args[-1].data)
            args = args[:-1]
        count = next((len(v.data) for v in args if not v.is_constant), 1)
        valid = both_valid(*args)
        valid = None if valid is None else np.broadcast_to(valid, count)
        data = [np.broadcast_to(v.data, count) for v in args]
        if args[-1].type.kind is Kind.INTERVAL:
            lengths, values = _moments(data[0], data[1], data[2], valid, inclusive, zone)
        else:
            start = data[0] if len(data) > 1 else np.zeros(count, np.int64)
            step = data[2] if len(data) > 2 else np.ones(count, np.int64)
            lengths, values = _numbers(start, data[min(1, len(data) - 1)], step, valid, inclusive)
        arrow = tables.physical_type(call.type)
        elements = from_numpy(values, None, arrow.value_type)
        vector = Vector.from_arrow(list_array(lengths, elements, valid, arrow), call.type)
        return vector.first() if all(v.is_constant for v in args) else vector

    return kernel


def _numbers(
    start: Ints, stop: Ints, step: Ints, valid: Mask | None, inclusive: bool
) -> tuple[Ints, Ints]:
    """Return lengths and values; differences of integers of 64 bits fit those without a sign, and values wrap back."""
    upwards = step > 0
    goes = np.where(upwards, start <= stop, (start >= stop) & (step < 0))
    goes = goes if valid is None else goes & valid
    low, high = np.where(upwards, start, stop), np.where(upwards, stop, start)
    distance = high.astype(np.uint64) - low.astype(np.uint64)
    stride = np.where(upwards, step, -step).astype(np.uint64)
    whole, rest = np.divmod(distance, np.maximum(stride, 1))
    most = np.uint64(_MOST)
    counts = np.minimum(whole, most - np.uint64(1)) + (inclusive | (rest > 0)).astype(np.uint64)
    lengths = np.where(goes, counts, 0).astype(np.int64)
    check_elements(sum(lengths.tolist()))
    places = np.arange(int(lengths.sum())) - np.repeat(np.cumsum(lengths) - lengths, lengths)
    return lengths, np.repeat(start, lengths) + places * np.repeat(step, lengths)


def _moved(moments: Ints, step: Array, zone: zones.Zone | None) -> Ints:
    """Return moments a step on: of a zone months and then days by its clocks, and times before these where they go back."""
    if zone is None:
        return shifted(Vector(TIMESTAMP, moments), step)
    back = step["micros"] < 0
    found = np.where(back, moments + step["micros"], moments)
    for part in ("months", "days"):
        alone = np.zeros_like(step)
        alone[part] = step[part]
        shown = zone.local(found)
        wanted = shifted(Vector(TIMESTAMP, shown), alone)
        later, kept = zone.utc(wanted), wanted - (shown - found)
        if part == "days":  # which keep the offset where clocks show the time of day twice
            later = np.where(zone.local(kept) == wanted, kept, later)
        found = np.where(step[part] == 0, found, later)
    ahead: Ints = np.where(back, found, found + step["micros"])
    return ahead


def _moments(
    start: Ints,
    stop: Ints,
    step: Array,
    valid: Mask | None,
    inclusive: bool,
    zone: zones.Zone | None,
) -> tuple[Ints, Ints]:
    """Add months, which differ in length, as days of a zone do, one after the other; days and times are numbers."""
    known = np.ones(len(start), bool) if valid is None else valid
    parts = [step[name].astype(np.int64) for name in ("months", "days", "micros")]
    signs = np.stack([np.sign(part) for part in parts])[:, known]
    if bool((signs.min(axis=0, initial=0) * signs.max(axis=0, initial=0) < 0).any()):
        raise ExecutionError("The parts of an INTERVAL between moments have one sign.")
    if any(bool(((end == _MOST) | (end == -_MOST))[known].any()) for end in (start, stop)):
        raise ExecutionError("A series of moments has no infinite bounds.")
    months, days, micros = parts
    if not (months[known] != 0).any() and (zone is None or not (days[known] != 0).any()):
        return _numbers(start, stop, days * MICROS_A_DAY + micros, valid, inclusive)
    upwards = np.any(np.stack(parts) > 0, axis=0)
    moving = known & np.any(np.stack(parts) != 0, axis=0)
    now, found, owners = start.copy(), [], []
    rows = np.flatnonzero(moving)
    while len(rows):
        here, end = now[rows], stop[rows]
        goes = np.where(upwards[rows], here < end, here > end) | (inclusive & (here == end))
        rows, here = rows[goes], here[goes]
        found.append(here)
        owners.append(rows)
        check_elements(sum(map(len, found)))
        now[rows] = _moved(here, step[rows], zone)
    owner = np.concatenate(owners) if owners else np.zeros(0, np.int64)
    values = np.concatenate(found) if found else np.zeros(0, np.int64)
    lengths = np.bincount(owner, minlength=len(start))
    ordered: npt.NDArray[np.int64] = values[np.argsort(owner, kind="stable")]
    return lengths, ordered


KERNELS: dict[str, Kernel] = {
    "list_of_range": _series(inclusive=False),
    "list_of_generate_series": _series(inclusive=True),
}
