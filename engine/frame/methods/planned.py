"""What all methods of frames share: a plan, the connection that runs it, and expressions bound to its columns."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from contextlib import AbstractContextManager
from typing import TYPE_CHECKING, Self

from ...errors import FuselineError, InvalidQuery, check_name
from ...fence import fenced
from ...plan import infer
from ...plan.expr import Column, ColumnRef, Expr
from ...plan.logical import Item, Logical, Project, Scan
from ...plan.text.quoted_name import quoted_name
from ...plan.types import BOOLEAN, DataType
from ..binding import bind_columns, flat, lift_windows, of_connection, output_column
from ..expressions.expression import Expression, as_column
from ..expressions.sql_text import SqlText, inlined
from ..expressions.unbound import Operand, Unbound
from ..plan_columns import find_column

if TYPE_CHECKING:
    from ...connection import Connection, Result
    from ...observe.profile import Profile
    from ...plan_cache import Parameters
    from ...reading import Reading

Columns = str | Expression | Sequence[str | Expression]  # what a method takes any number of


@fenced
class Planned:
    """A query that has not run: a logical plan and what it is bound to."""

    def __init__(
        self, connection: Connection, plan: Logical, key: object = None, text: str | None = None
    ) -> None:
        self._connection = connection
        self._plan = plan
        self._key = key
        self._text = text  # the SQL that all places of the plan's expressions are in
        self._profile: Callable[[], Profile] | None = None
        self._alias: str | None = None

    @property
    def columns(self) -> list[str]:
        return [c.name for c in self._plan.columns]

    @property
    def _types(self) -> list[DataType]:
        return [c.type for c in self._plan.columns]

    @property
    def plan(self) -> Logical:
        return self._plan

    def resolve(self, name: str) -> Expr:
        """Return the column of that name, or what a text of SQL says."""
        if isinstance(name, SqlText):
            made = self._connection.sql_over({"self": self._plan}, f"SELECT {name} FROM self", None)
            return inlined(made.plan, self._plan)
        return ColumnRef(self._column(name))

    def with_plan(self, plan: Logical) -> Self:
        """Return a frame of another plan over the same text."""
        made = type(self)(self._connection, plan, text=self._text_of_places)
        made._alias = self._alias
        return made

    @property
    def _text_of_places(self) -> str | None:
        """The SQL in which the plan's expressions have their places: not of a plan that was made of another text's."""
        return None if getattr(self._key, "like", None) else self._text

    def runs_on(self, runner: object) -> bool:
        return self._connection.runs_on(runner)

    @property
    def alias(self) -> str:
        """What the frame is called in SQL that is given to its methods: as `set_alias` says, else by its table's name, or self."""
        table = self._plan.table.name if isinstance(self._plan, Scan) else "self"
        return self._alias or table

    def set_alias(self, name: str) -> Self:
        """Return the frame under a name for SQL: `trips.set_alias("t").filter("t.fare > 5")`, and in conditions of joins."""
        check_name(name, "frame")
        made = self.with_plan(self._plan)
        made._alias = name
        return made

    def _asked(self, start: str, end: str = "", params: Parameters = None) -> Self:
        """Return a query over the frame, of what stands before and behind its FROM."""
        text = f"{start} FROM self AS {quoted_name(self.alias)} {end}"
        made = self._connection.sql_over({"self": self._plan}, text.strip(), params)
        made._alias = self._alias
        return made  # type: ignore[return-value]

    def in_zone(self) -> AbstractContextManager[None]:
        """Have what is bound inside use the connection's `timezone` and Python functions."""
        return of_connection(self._connection)

    @property
    def zone(self) -> str:
        """The time zone of the connection, in which timestamps with a zone are shown and taken apart."""
        return self._connection.settings.timezone

    def _column(self, name: str) -> Column:
        return find_column(self._plan.columns, name)

    def _with(self, other: Planned, plan: Logical) -> Self:
        """Return a frame of both; errors show no place where that could be in either of two texts."""
        text = self._text_of_places if self._text == other._text_of_places else None
        return type(self)(self._connection, plan, text=text)

    def _items(
        self, expressions: Iterable[Columns], named: dict[str, Operand]
    ) -> tuple[Logical, tuple[Item, ...]]:
        """Return columns with their values, and the plan that these are over: with windows, where there are some."""
        bound = self._bound(expressions, named)
        plan, values = lift_windows(self._plan, [value for _, value in bound])
        items: list[Item] = []
        for (name, _), value in zip(bound, values, strict=True):
            items.append((output_column(name, value, items), value))
        return plan, tuple(items)

    def _bound(
        self, expressions: Iterable[Columns], named: dict[str, Operand]
    ) -> list[tuple[str, Expr]]:
        chosen = [as_column(e) for e in flat(list(expressions))]
        chosen.extend(as_column(e).alias(name) for name, e in named.items())
        return [pair for expression in chosen for pair in self._bind_each(expression)]

    def _bind_each(self, expression: Unbound) -> list[tuple[str, Expr]]:
        with self.in_zone():
            return bind_columns(expression, self._plan.columns, self.resolve)

    def _condition(self, conditions: Iterable[Columns]) -> tuple[Logical, list[Expr]]:
        """Return conditions, and the plan that they are over."""
        bound = [
            infer.coerce(value, BOOLEAN)
            for condition in flat(list(conditions))
            for _, value in self._bind_each(as_column(condition))
        ]
        return lift_windows(self._plan, bound)

    def _back(self, plan: Logical) -> Self:
        """Return a frame of this one's columns alone, of a plan that may have windows beside them."""
        if plan.columns != self._plan.columns:
            plan = Project(plan, tuple((c, ColumnRef(c)) for c in self._plan.columns))
        return self.with_plan(plan)

    def _run(self, timed: bool = False) -> Result:
        try:
            result = self._connection.run(self._plan, self._key, timed)
        except FuselineError as error:
            error.with_text(self._text)
            raise
        profile = result.profile
        self._profile = lambda: profile
        return result

    def _stream(self) -> Reading:
        try:
            reading = self._connection.stream(self._plan, self._key)
        except FuselineError as error:
            error.with_text(self._text)
            raise
        self._profile = reading.profile
        return reading


def plan_of(other: object) -> Logical:
    """Return the plan of another frame; raises `InvalidQuery` for what is none."""
    if not isinstance(other, Planned):
        raise InvalidQuery(
            f"The other side has to be a Frame, not a {type(other).__name__}: connection.register(name, table) makes one."
        )
    return other.plan
