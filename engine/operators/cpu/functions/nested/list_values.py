"""What the values of lists are among each other: searched, compared with those of another list, made distinct, sorted."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pyarrow as pa

from .....errors import ExecutionError
from .....plan.arrow.arrow_arrays import from_numpy, truth_values
from .....plan.expr import Call
from ... import table as tables
from ...nested_arrays import Ints, Lists, Mask, list_array
from ...sort.sort import SortColumn, sorted_order
from ..vectors import over_arrays
from .list_parts import both, codes_of, found, integers, picked


def _position(call: Call, args: list[pa.Array]) -> pa.Array:
    """The first place of a value, from 1 on, also of NULL; NULL where it is not."""
    lists = Lists.of(args[0])
    hits = np.flatnonzero(found(lists, args[1]))
    first = np.zeros(len(lists.lengths), np.int64)
    first[lists.rows[hits[::-1]]] = lists.places[hits[::-1]] + 1
    return from_numpy(first.astype(np.int32), both(lists.valid, first > 0), pa.int32())


def _shared(left: Lists, right: Lists) -> tuple[Mask, Mask]:
    """Return which elements of a list are in the other one of the row; NULL is in none."""
    ours, theirs = codes_of(left.elements, right.elements)
    base = int(max(ours.max(initial=0), theirs.max(initial=0))) + 1
    keys, others = left.rows * base + ours, right.rows * base + theirs
    known = [truth_values(each.elements.is_valid()) for each in (left, right)]
    return np.isin(keys, others[known[1]]) & known[0], known[0]


def _has_any(call: Call, args: list[pa.Array]) -> pa.Array:
    left, right = map(Lists.of, args)
    inside, _ = _shared(left, right)
    hits = np.bincount(left.rows[inside], minlength=len(left.lengths)) > 0
    return from_numpy(hits, both(left.valid, right.valid), pa.bool_())


def _has_all(call: Call, args: list[pa.Array]) -> pa.Array:
    left, right = map(Lists.of, args)
    inside, known = _shared(right, left)
    missing = np.bincount(right.rows[known & ~inside], minlength=len(left.lengths)) > 0
    return from_numpy(~missing, both(left.valid, right.valid), pa.bool_())


def _first_of_each(lists: Lists) -> Ints:
    """Return the places of the elements that no equal one of their list comes before, without NULL."""
    (codes,) = codes_of(lists.elements)
    keys = lists.rows * (int(codes.max(initial=0)) + 1) + codes
    known = np.flatnonzero(truth_values(lists.elements.is_valid()))
    _, first = np.unique(keys[known], return_index=True)
    return np.sort(known[first])


def _distinct(call: Call, args: list[pa.Array]) -> pa.Array:
    lists = Lists.of(args[0])
    places = _first_of_each(lists)
    places = places[np.lexsort([-places, lists.rows[places]])]  # as DuckDB has them of a few
    lengths = np.bincount(lists.rows[places], minlength=len(lists.lengths))
    return picked(lengths, places, lists.elements, lists.valid, call)


def _unique(call: Call, args: list[pa.Array]) -> pa.Array:
    lists = Lists.of(args[0])
    counts = np.bincount(lists.rows[_first_of_each(lists)], minlength=len(lists.lengths))
    return from_numpy(counts.astype(np.uint64), lists.valid, pa.uint64())


def _intersect(call: Call, args: list[pa.Array]) -> pa.Array:
    """Those of a list that another one has, each once; nothing is in NULL."""
    left, right = map(Lists.of, args)
    inside, _ = _shared(left, right)
    first = _first_of_each(left)
    places = first[inside[first]]
    lengths = np.bincount(left.rows[places], minlength=len(left.lengths))
    return picked(lengths, places, left.elements, left.valid, call)


def _words(args: list[pa.Array], known: tuple[str, ...], what: str) -> Mask:
    """Return where a text is the second of two words; raises `ExecutionError` for another."""
    texts = tables.decode(args[0]).to_pylist()
    other = next((t for t in texts if t is not None and t.lower() not in known), None)
    if other is not None:
        raise ExecutionError(f"{what} is {' or '.join(known)}, and not '{other}'.")
    half = len(known) // 2
    return np.array([t is not None and t.lower() in known[half:] for t in texts], bool)


def _sorted(lists: Lists, args: list[pa.Array], backwards: bool = False) -> Ints:
    """Return the places of elements in the order of their lists: NULL last unless it is to be first."""
    rows = len(lists.lengths)
    none = np.zeros(rows, bool)
    orders = ("asc", "ascending", "desc", "descending")
    nulls = args if backwards else args[1:]
    downwards = _words(args, orders, "An order") if args and not backwards else none | backwards
    first = _words(nulls, ("nulls last", "nulls first"), "The place of NULL") if nulls else none
    order = np.empty(len(lists.elements), np.int64)
    owners = lists.rows
    for down in (False, True):
        for early in (False, True):
            chosen = np.flatnonzero(((downwards == down) & (first == early))[owners])
            if not len(chosen):
                continue
            values = SortColumn(tables.take_array(lists.elements, chosen), down, early)
            by_row = SortColumn(from_numpy(owners[chosen]), False, False)
            order[chosen] = chosen[sorted_order([by_row, values])]
    return order


def _sort(backwards: bool) -> Callable[[Call, list[pa.Array]], pa.Array]:
    def sort(call: Call, args: list[pa.Array]) -> pa.Array:
        lists = Lists.of(args[0])
        order = _sorted(lists, args[1:], backwards)
        return picked(lists.lengths, order, lists.elements, lists.valid, call)

    return sort


def _grade_up(call: Call, args: list[pa.Array]) -> pa.Array:
    """The places that elements have in the sorted list's order."""
    lists = Lists.of(args[0])
    places = lists.places[_sorted(lists, args[1:])] + 1
    return list_array(
        lists.lengths, from_numpy(places), lists.valid, tables.physical_type(call.type)
    )


def _from_the_end(call: Call, args: list[pa.Array]) -> pa.Array:
    lists = Lists.of(args[0])
    places = np.repeat(lists.starts + lists.lengths - 1, lists.lengths) - lists.places
    return picked(lists.lengths, places, lists.elements, lists.valid, call)


def _resize(call: Call, args: list[pa.Array]) -> pa.Array:
    """So many elements: the first ones, and a value or NULL behind them; a length of NULL is 0."""
    lists = Lists.of(args[0])
    wanted, _ = integers(args[1])
    if bool((wanted < 0).any()):
        raise ExecutionError("The length of a list is not negative.")
    lengths = wanted if lists.valid is None else np.where(lists.valid, wanted, 0)
    rows = np.repeat(np.arange(len(lengths)), lengths)
    places = np.arange(len(rows)) - np.repeat(np.cumsum(lengths) - lengths, lengths)
    inside = places < lists.lengths[rows]
    behind = len(lists.elements) + rows if len(args) > 2 else np.full(len(rows), -1)
    chosen = np.where(inside, lists.starts[rows] + places, behind)
    elements = lists.elements
    if len(args) > 2:
        filler = tables.as_element(args[2], elements.type)
        elements = tables.concat_arrays([elements, filler])
    return picked(lengths, chosen, elements, lists.valid, call)


def _select(call: Call, args: list[pa.Array]) -> pa.Array:
    """The elements at places from 1 on, NULL where there is none."""
    lists, wanted = Lists.of(args[0]), Lists.of(args[1])
    places, given = integers(wanted.elements)
    inside = given & (places > 0) & (places <= lists.lengths[wanted.rows])
    chosen = np.where(inside, lists.starts[wanted.rows] + places - 1, -1)
    valid = both(lists.valid, wanted.valid)
    lengths = wanted.lengths if valid is None else np.where(valid, wanted.lengths, 0)
    kept = chosen if valid is None else chosen[valid[wanted.rows]]
    return picked(lengths, kept, lists.elements, valid, call)


KERNELS = {
    name: over_arrays(function)
    for name, function in {
        "list_position": _position,
        "list_has_any": _has_any,
        "list_has_all": _has_all,
        "list_distinct": _distinct,
        "list_unique": _unique,
        "list_intersect": _intersect,
        "list_sort": _sort(backwards=False),
        "list_reverse_sort": _sort(backwards=True),
        "list_grade_up": _grade_up,
        "list_reverse": _from_the_end,
        "list_resize": _resize,
        "list_select": _select,
    }.items()
}
