"""What the names of a catalog and of a connection stand for beside tables, and what a table asks of its rows."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import field, replace
from datetime import datetime
from random import Random
from typing import TYPE_CHECKING, Any, Literal as OneOf, NamedTuple, TypeVar

from ...errors import CatalogError
from ...records import dataclass
from ..expr import Expr
from ..text.quoted_name import quoted_name
from ..types import DataType
from ..udf.python_function import PythonAggregate, PythonFunction

if TYPE_CHECKING:
    from ..logical import Logical


@dataclass(frozen=True)
class StoredExpression:
    """An expression that statements bind anew; `text` is a SELECT of it, `shown` how DuckDB writes it."""

    text: str
    shown: str


@dataclass(frozen=True)
class UniqueKey:
    """Columns whose values no two rows share; a row with a NULL among them shares none, and a primary key has no NULL."""

    columns: tuple[str, ...]
    primary: bool

    @property
    def kind(self) -> str:
        return "primary key" if self.primary else "unique"


@dataclass(frozen=True)
class TableIndex:
    """What CREATE INDEX named: columns, and with `is_unique` a rule as that of a `UniqueKey`. No query is answered by it."""

    name: str
    columns: tuple[str, ...]
    is_unique: bool
    expressions: tuple[str, ...]  # as they are shown

    def renamed(self, name: Callable[[str], str]) -> TableIndex:
        columns = tuple(map(name, self.columns))
        shown = self.expressions if len(columns) < len(self.expressions) else columns
        return replace(self, columns=columns, expressions=shown)


@dataclass(frozen=True)
class Comments:
    """What is said of a table or view, and of its columns."""

    text: str | None = None
    columns: tuple[tuple[str, str], ...] = ()

    def of_column(self, name: str) -> str | None:
        return dict(self.columns).get(name)

    def with_text(self, column: str | None, text: str | None) -> Comments:
        """Return the comments with another one of the whole, or of a column; None ends it."""
        if column is None:
            return replace(self, text=text)
        others = tuple((name, said) for name, said in self.columns if name != column)
        return replace(self, columns=others if text is None else (*others, (column, text)))

    def renamed(self, name: Callable[[str], str]) -> Comments:
        return replace(self, columns=tuple((name(column), said) for column, said in self.columns))


NO_COMMENTS = Comments()


@dataclass(frozen=True)
class TableRules:
    """The rules of one table; columns are spelled as the table spells them."""

    not_null: frozenset[str] = frozenset()
    defaults: tuple[tuple[str, StoredExpression], ...] = ()
    checks: tuple[StoredExpression, ...] = ()
    keys: tuple[UniqueKey, ...] = ()
    generated: tuple[tuple[str, StoredExpression], ...] = ()  # each behind those that it reads
    comments: Comments = NO_COMMENTS
    indexes: tuple[TableIndex, ...] = ()

    @property
    def unique_keys(self) -> tuple[UniqueKey, ...]:
        """The keys, and those that unique indexes ask for."""
        asked = (UniqueKey(i.columns, False) for i in self.indexes if i.is_unique)
        return (*self.keys, *(key for key in asked if key not in self.keys))

    def generation(self, column: str) -> StoredExpression | None:
        """Return the expression of a generated column."""
        return dict(self.generated).get(column)

    def is_generated(self, column: str) -> bool:
        return any(name == column for name, _ in self.generated)

    def default(self, column: str) -> StoredExpression | None:
        return dict(self.defaults).get(column)

    def with_default(self, column: str, default: StoredExpression | None) -> TableRules:
        """Return the rules with another default of a column, or none."""
        others = tuple((name, e) for name, e in self.defaults if name != column)
        return replace(self, defaults=others if default is None else (*others, (column, default)))

    def renamed(self, name: Callable[[str], str]) -> TableRules:
        """Return the rules with other names for columns; expressions are left as they are."""
        return replace(
            self,
            not_null=frozenset(map(name, self.not_null)),
            defaults=tuple((name(column), default) for column, default in self.defaults),
            keys=tuple(replace(k, columns=tuple(map(name, k.columns))) for k in self.keys),
            generated=tuple((name(column), e) for column, e in self.generated),
            comments=self.comments.renamed(name),
            indexes=tuple(index.renamed(name) for index in self.indexes),
        )

    def key_of(self, column: str) -> str | None:
        """Return what DESCRIBE says of a column's keys."""
        kinds = {key.primary for key in self.keys if column in key.columns}
        return None if not kinds else "PRI" if True in kinds else "UNI"


NO_RULES = TableRules()
DESCRIPTION = ("column_name", "column_type", "null", "key", "default", "extra")


def described(name: str, data_type: DataType, rules: TableRules) -> tuple[str | None, ...]:
    """Return what DESCRIBE tells of a column, in the columns of `DESCRIPTION`."""
    default = rules.default(name)
    null = "NO" if name in rules.not_null else "YES"
    shown = None if default is None else default.shown
    return name, str(data_type), null, rules.key_of(name), shown, None


def rules_of(table: object) -> TableRules:
    """Return the rules of a table; those of files and of registered objects have none."""
    found = getattr(table, "table_rules", NO_RULES)
    assert isinstance(found, TableRules)
    return found


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


@dataclass(frozen=True)
class StoredText:
    """A text that is bound wherever its name is used."""

    name: str
    text: str


@dataclass(frozen=True)
class Macro(StoredText):
    """A macro: its text is an expression, or with `is_table` a query, over parameters, of which the last may have defaults.

    Parameters with types take arguments that widen to these; `overloads` are the texts for calls with other arguments.
    """

    parameters: tuple[str, ...] = ()
    defaults: Mapping[str, str] = field(default_factory=dict)  # by names in lower case, as types
    is_table: bool = False
    comment: str | None = None
    types: Mapping[str, DataType] = field(default_factory=dict)
    overloads: tuple[Macro, ...] = ()

    @property
    def written_parameters(self) -> str:
        """The parameters as CREATE MACRO has them."""
        return ", ".join(map(self._written, self.parameters))

    def _written(self, parameter: str) -> str:
        kind, default = (of.get(parameter.lower()) for of in (self.types, self.defaults))
        of_type = "" if kind is None else f" {kind}"
        return f"{parameter}{of_type}" + ("" if default is None else f" := {default}")


@dataclass(frozen=True)
class UserType:
    """A type that CREATE TYPE gave a name."""

    name: str
    type: DataType
    comment: str | None = None


@dataclass
class SessionObjects:
    """By names in lower case; functions are part of transactions."""

    prepared: dict[str, StoredText] = field(default_factory=dict)
    variables: dict[str, Expr] = field(default_factory=dict)
    functions: dict[str, PythonFunction | PythonAggregate] = field(default_factory=dict)
    seeds: Random = field(default_factory=Random)  # of random() and samples
    began: datetime | None = None  # the transaction, if one is open
