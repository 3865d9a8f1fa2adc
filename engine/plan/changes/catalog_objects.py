"""What the names of a catalog stand for beside tables, and the names themselves with the place that they are in."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar
from typing import Literal as OneOf

from ...errors import CatalogError
from ..text.quoted_name import quoted_name
from .table_rules import NO_COMMENTS, Comments

if TYPE_CHECKING:
    from ..logical import Logical

MAIN = "main"  # the schema that each database has
TEMP = "temp"  # the database of what ends with its connection
MEMORY = "memory"  # the database of a connection that opened no folder

Tree = TypeVar("Tree")
ObjectKind = OneOf["relation", "macro", "type", "sequence", "schema"]
IfThere = OneOf["fail", "replace", "leave"]  # what CREATE does where an object of the name is there


def is_left(kind: str, name: str, if_there: IfThere) -> bool:
    """Whether CREATE leaves the object that is there; raises `CatalogError` where it neither leaves nor replaces it."""
    if if_there == "fail":
        raise CatalogError(
            f'There is a {kind} "{name}" already: drop it first, or write CREATE OR REPLACE.'
        )
    return if_there == "leave"


class SchemaPlace(NamedTuple):
    """A schema of a database, both in lower case."""

    database: str
    schema: str = MAIN


class ObjectName(str):
    """The name of a table, view or macro as it is spelled, with the database and schema that it is in.

    A name without them is a plain `str`, and is looked up in the places that a connection uses.
    """

    __slots__ = ("place",)
    place: SchemaPlace

    def __new__(cls, name: str, place: SchemaPlace) -> ObjectName:
        made = super().__new__(cls, name)
        made.place = place
        return made

    def __getnewargs__(self) -> tuple[str, SchemaPlace]:  # type: ignore[override]
        return str(self), self.place


def path_in_query(name: str) -> str:
    """Return a name as a query writes it: in quotes, behind those of its place if it has one."""
    place = name.place if isinstance(name, ObjectName) else ()
    return ".".join(map(quoted_name, (*place, name)))


def beside(old: str, name: str) -> str:
    """Return another name in the place of an old one."""
    return ObjectName(name, old.place) if isinstance(old, ObjectName) else name


class ObjectKey(NamedTuple):
    """What an object is kept under; a schema has no name but that of its own."""

    database: str
    kind: ObjectKind
    schema: str
    name: str

    @property
    def place(self) -> SchemaPlace:
        return SchemaPlace(self.database, self.schema)


@dataclass(frozen=True)
class SchemaObject:
    """A schema that was made beside main."""

    name: str


@dataclass(frozen=True)
class View:
    """A view's text, and the names of its columns if it was given some; that of a dataframe call has a plan and no text."""

    name: str
    text: str
    columns: tuple[str, ...]
    plan: Logical | None = field(default=None, repr=False)
    comments: Comments = NO_COMMENTS
    _trees: list[Any] = field(default_factory=list, compare=False, repr=False)

    def tree(self, parse: Callable[[str], Tree]) -> Tree:
        """Return what `parse` makes of the text, which is kept: queries name a view many times, and no one changes a tree."""
        known = self._trees or [parse(self.text)]  # its own, of which a thread checks what was read
        self._trees[:] = known
        tree: Tree = known[0]
        return tree
