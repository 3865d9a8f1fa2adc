"""What all plan trees share: children, rebuilding with other children, and walks.

Nodes are frozen dataclasses.  The fields that hold a node's children (a node, a tuple of nodes, or None) are those that its class
declares of its own family's type, unless it names others in `CHILDREN`; everything else follows from that.
"""

from __future__ import annotations

import dataclasses
import inspect
import operator
from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Any, ClassVar, Generic, Self, TypeVar, overload

if TYPE_CHECKING:
    from _typeshed import DataclassInstance

    from .expr import Column

T = TypeVar("T")


class Once(Generic[T]):
    """A property of an immutable object, worked out once: `cached_property` without its lock, which Python 3.12 dropped."""

    def __init__(self, work_out: Callable[[Any], T]) -> None:
        self.work_out = work_out
        self.__doc__ = work_out.__doc__

    def __set_name__(self, owner: type, name: str) -> None:
        self.name = name

    @overload
    def __get__(self, owner: None, kind: type) -> Self: ...
    @overload
    def __get__(self, owner: object, kind: type) -> T: ...
    def __get__(self, owner: object | None, kind: type) -> T | Self:
        if owner is None:
            return self
        found = owner.__dict__[self.name] = self.work_out(owner)  # which is asked first from now on
        return found


def hash_once(node: DataclassInstance) -> int:
    """The hash of a node's type and compared fields, worked out once: a tree's takes a look at each of its nodes, not one a level."""
    known: int | None = node.__dict__.get("_hash")
    if known is None:
        values = [getattr(node, f.name) for f in dataclasses.fields(node) if f.compare]
        known = node.__dict__["_hash"] = hash((type(node), *values))
    return known


class Node:
    """A tree node: a frozen dataclass whose fields in `CHILDREN` hold nodes of the same family."""

    __slots__ = ()
    CHILDREN: ClassVar[tuple[str, ...]] = ()
    WORKED_OUT: ClassVar[tuple[str, ...]] = ("children", "_hash")  # what is no field but kept

    def __init_subclass__(cls) -> None:
        super().__init_subclass__()
        if "CHILDREN" not in vars(cls):
            of = [c for c in cls.__mro__ if issubclass(c, Node) and c.__module__ != __name__]
            family = "".join(c.__name__ for c in of[-1:])
            kinds = (family, f"{family} | None", f"tuple[{family}, ...]")
            declared = inspect.get_annotations(cls).items()
            cls.CHILDREN = (*cls.CHILDREN, *(name for name, kind in declared if kind in kinds))
        own = tuple(name for name, value in vars(cls).items() if isinstance(value, Once))
        cls.WORKED_OUT = (*cls.WORKED_OUT, *own)
        # Which a dataclass keeps
        cls.__hash__ = hash_once  # type: ignore[method-assign, assignment]

    def __getstate__(self) -> dict[str, object]:
        """The fields alone: hashes of text differ from process to process."""
        return {k: v for k, v in self.__dict__.items() if k not in self.WORKED_OUT}

    @Once
    def children(self) -> tuple[Self, ...]:
        found: list[Any] = []
        for name in self.CHILDREN:
            value = getattr(self, name)
            if isinstance(value, tuple):
                found.extend(value)
            elif value is not None:
                found.append(value)
        return tuple(found)

    def with_children(self, children: Sequence[Any]) -> Self:
        """Return this node over other children, or this very object when they are the same objects."""
        if all(map(operator.is_, children, self.children)):
            return self
        remaining = iter(children)
        changes: dict[str, object] = {}
        for name in self.CHILDREN:
            value = getattr(self, name)
            if isinstance(value, tuple):
                changes[name] = tuple(next(remaining) for _ in value)
            elif value is not None:
                changes[name] = next(remaining)
        return self.replaced(**changes)

    def replaced(self, **changes: object) -> Self:
        """As `dataclasses.replace`, which sets each field through a method: planning makes some hundred nodes of others."""
        made = object.__new__(type(self))
        state = made.__dict__
        state.update(self.__dict__)
        for name in self.WORKED_OUT:
            state.pop(name, None)
        assert changes.keys() <= state.keys(), f"{type(self).__name__} has not all of {[*changes]}"
        state.update(changes)
        return made


class RelationNode(Node):
    """A node that makes rows: of the columns `made`, or else of those that its first input has, which it passes on."""

    __slots__ = ()

    @Once
    def columns(self) -> tuple[Column, ...]:
        """What it makes or passes on, in order."""
        made: tuple[Column, ...] | None = getattr(self, "made", None)
        return self.children[0].columns if made is None else made


N = TypeVar("N", bound=Node)


def walk(node: N) -> Iterator[N]:
    """Yield `node` and everything below it, parents first."""
    waiting = [node]
    while waiting:
        found = waiting.pop()
        yield found
        if found.CHILDREN:  # most are leaves
            waiting.extend(reversed(found.children))


def walk_once(node: N) -> Iterator[N]:
    """As `walk`, but a node object that is reached over several paths comes once."""
    waiting, met = [node], {id(node)}
    while waiting:
        found = waiting.pop()
        yield found
        for child in reversed(found.children):
            if id(child) not in met:
                met.add(id(child))
                waiting.append(child)


def transform_up(node: N, rule: Callable[[N], N | None]) -> N:
    """Rebuild a tree from the leaves up; `rule` gives the replacement of a node, or None to keep it."""
    if node.CHILDREN:  # most are leaves
        node = node.with_children([transform_up(c, rule) for c in node.children])
    return rule(node) or node


def transform_down(node: N, rule: Callable[[N], N | None]) -> N:
    """Rebuild a tree from the root down; the children of a replacement are visited too."""
    node = rule(node) or node
    if not node.CHILDREN:
        return node
    return node.with_children([transform_down(c, rule) for c in node.children])
