"""What all plan trees share: children, rebuilding with other children, and walks.

Nodes are frozen dataclasses.  A class names the fields that hold its children (a node, a tuple of nodes, or None) in
`CHILDREN`; everything else follows from that.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterator, Sequence
from functools import cached_property
from typing import Any, ClassVar, Self, TypeVar


class Node:
    """A tree node: a frozen dataclass whose fields in `CHILDREN` hold nodes of the same family."""

    __slots__ = ()
    CHILDREN: ClassVar[tuple[str, ...]] = ()

    @cached_property  # a hot query asks for those of its plan some hundred times
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
        remaining = list(children)
        changes: dict[str, Any] = {}
        for name in self.CHILDREN:
            value = getattr(self, name)
            if isinstance(value, tuple):
                new: Any = tuple(remaining.pop(0) for _ in value)
                same = all(a is b for a, b in zip(new, value, strict=True))
            elif value is not None:
                new = remaining.pop(0)
                same = new is value
            else:
                continue
            if not same:
                changes[name] = new
        return dataclasses.replace(self, **changes) if changes else self  # type: ignore[type-var]


N = TypeVar("N", bound=Node)


def walk(node: N) -> Iterator[N]:
    """Yield `node` and everything below it, parents first."""
    yield node
    for child in node.children:
        yield from walk(child)


def transform_up(node: N, rule: Callable[[N], N | None]) -> N:
    """Rebuild a tree from the leaves up; `rule` gives the replacement of a node, or None to keep it."""
    children = node.children
    rebuilt = node.with_children([transform_up(c, rule) for c in children]) if children else node
    return rule(rebuilt) or rebuilt


def transform_down(node: N, rule: Callable[[N], N | None]) -> N:
    """Rebuild a tree from the root down; the children of a replacement are visited too."""
    node = rule(node) or node
    children = node.children
    return node.with_children([transform_down(c, rule) for c in children]) if children else node
