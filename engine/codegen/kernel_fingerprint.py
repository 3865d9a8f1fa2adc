"""What the statements of a kernel depend on: programs of one shape have one kernel, whose text need not be made again to find it.

Queries that differ in constants have programs of the same shapes.  Of all that a program consists of, a shape leaves out what only
comments show, what arguments give, and which columns and leaves of a plan it reads: by their names alone.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable
from dataclasses import fields
from operator import attrgetter
from typing import TYPE_CHECKING, Any, TypeVar

from .groups.accumulate import Accumulator, Folded
from .groups.conditions import Condition
from .groups.grouping import Grouping, GroupKey, OrderedGroups
from .loop import Doubt, Each, Guard, Let, Search, Statement
from .program import Program
from .row_sources import RowSource
from .typed_values import Element, Input, Parameter, TableParameter

if TYPE_CHECKING:
    from _typeshed import DataclassInstance

SHAPES_KEPT = 512  # of programs of which the kernel is known

Shape = tuple[Hashable, ...]
Part = TypeVar("Part", bound="DataclassInstance")


def _all_but(kind: type[Part], *left_out: str) -> Callable[[Part], Hashable]:
    """What gets all fields of an object, those that will be added one day too, but for some."""
    names = [field.name for field in fields(kind)]
    assert set(left_out) <= set(names)
    getter: Callable[[Part], Hashable] = attrgetter(*(n for n in names if n not in left_out))
    return getter


_PLAIN = _all_but(
    Program,
    *("inputs", "names", "parameters", "tables", "body", "grouping", "accumulators", "folded"),
    *("calls", "relations", "elements", "late", "kept_keys"),
)
_INPUT = _all_but(Input, "column", "encoding")
_ELEMENT = _all_but(Element, "input")
_PARAMETER = _all_but(Parameter, "value", "meaning")
_TABLE = _all_but(TableParameter, "array")
_RELATION = _all_but(RowSource, "leaf", "aliases")
_ACCUMULATOR = _all_but(Accumulator)  # of which equality leaves out some
_FOLDED = _all_but(Folded, "column", "finish", "values")
_GROUPING = _all_but(Grouping, "keys", "distinct", "ordered")
_KEY = _all_but(GroupKey, "column", "values")
_CONDITION = _all_but(Condition, "parameters")
_SEARCH = _all_but(Search, "step", "body")
_STATEMENTS: dict[type[Any], Callable[[Any], Hashable]] = {
    Let: _all_but(Let, "step"),
    Guard: _all_but(Guard, "step", "share"),
    Each: _all_but(Each, "step"),
    Doubt: _all_but(Doubt),
    Search: lambda search: (_SEARCH(search), _body(search.body)),
}


def shape(program: Program) -> Shape:
    """Return what programs with the same statements of a kernel have in common, besides the estimates in `shares`."""
    calls = zip(program.folded, program.calls, strict=True)
    return (
        _PLAIN(program),
        tuple(_input(i, program) for i in program.inputs),
        tuple((_input(e.input, program), _ELEMENT(e)) for e in program.elements),
        tuple(map(_PARAMETER, program.parameters)),
        tuple(map(_TABLE, program.tables)),
        tuple(map(_RELATION, program.relations)),
        _body(program.body),
        _grouping(program),
        tuple(map(_ACCUMULATOR, program.accumulators)),
        tuple((_FOLDED(folded), call.function) for folded, call in calls),
    )


def shares(program: Program) -> Shape:
    """Return the planner's estimates in a program: a target that goes by them makes other statements of others."""
    return tuple(s.share for s in program.body if isinstance(s, Guard))


def _body(statements: Iterable[Statement]) -> Shape:
    return tuple((type(s), _STATEMENTS[type(s)](s)) for s in statements)


def _input(source: Input, program: Program) -> Shape:
    return program.names[source.column], source.encoding.form, _INPUT(source)


def _grouping(program: Program) -> Shape:
    grouping = program.grouping
    if grouping is None:
        return ()
    keys = (tuple(map(_KEY, keys)) for keys in (grouping.keys, grouping.distinct))
    return _GROUPING(grouping), *keys, _ordered(grouping.ordered, program)


def _ordered(ordered: OrderedGroups | None, program: Program) -> Shape:
    if ordered is None:
        return ()
    condition, key = ordered.condition, _input(ordered.key, program)
    if condition is None:
        return (key,)
    return key, _CONDITION(condition), tuple(map(_PARAMETER, condition.parameters))
