"""What a table asks of its rows: NOT NULL, CHECK, PRIMARY KEY and UNIQUE, the defaults of its columns, generated columns, indexes, and comments."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

from ..types import DataType


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
