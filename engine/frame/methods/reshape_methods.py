"""Other shapes of a frame: values as columns and columns as values, lists as rows, summaries and samples."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial, reduce
from itertools import product
from typing import Any, Self

from ...errors import InvalidQuery, TypeMismatch, WrongArguments, check_name, shown
from ...fence import fenced
from ...plan import expr as ex, infer
from ...plan.composed.nested_values import field
from ...plan.composed.sampling import SEED_BITS, Method, sample_rows, sample_share
from ...plan.composed.unpivoted import unpivoted
from ...plan.functions.lists import element_type
from ...plan.logical import Aggregate, Item, Project, Unnest, Values
from ...plan.node import transform_up
from ...plan.types import BIGINT, DOUBLE, VARCHAR, Kind, list_of
from ..binding import bind_columns, flat, lift_aggregates
from ..expressions.expression import Expression, as_column, col
from ..functions import count
from ..joins import join_plans
from .relational_methods import RelationalMethods

MOST_COLUMNS = 2_000  # that pivot() makes, as many as PIVOT of SQL
# Rows of describe(), as DuckDB's: the aggregate of each, and whether it is of numbers alone
_SUMMARY: dict[str, tuple[Callable[[Sequence[ex.Expr]], ex.Expr], bool]] = {
    "count": (partial(infer.aggregate, "count"), False),
    "mean": (partial(infer.aggregate, "avg"), True),
    "stddev": (partial(infer.aggregate, "stddev_samp"), True),
    "min": (partial(infer.aggregate, "min"), False),
    "max": (partial(infer.aggregate, "max"), False),
    "median": (partial(infer.aggregate, "median"), True),
}


@fenced
class ReshapeMethods(RelationalMethods):
    """Pivot, unpivot, explode, describe, value counts, samples."""

    def pivot(
        self,
        on: str | Sequence[str],
        values: Expression | str | Sequence[Expression | str] | None = None,
        index: str | Sequence[str] | None = None,
        columns: Sequence[ex.Value] | None = None,
    ) -> Self:
        """Return a row for each different `index`, with a column for each value of `on`: PIVOT ... ON ... USING ... GROUP BY.

        `values` are aggregates, such as `sum_("price")`; by default the rows are counted.  Without `index` all columns that nothing else
        names are.  Without `columns`, the values of `on` that get a column, the query runs once now to find them.
        """
        axes = [self._ref(n) for n in flat([on])]
        chosen = [as_column(v) for v in flat([values])] if values is not None else [count()]
        bound = [
            pair
            for e in chosen
            for pair in bind_columns(e, self._plan.columns, self.resolve, aggregates=True)
        ]
        axis_columns = [self._column(n) for n in flat([on])]
        named = {*axis_columns, *(c for _, e in bound for c in ex.columns_of(e))}
        keys = (
            [c for c in self._plan.columns if c not in named]
            if index is None
            else [self._column(n) for n in flat([index])]
        )
        if columns is not None and len(axes) != 1:
            raise InvalidQuery("`columns` goes with one column in `on`.")
        cells = [self._cells(axis, columns) for axis in axis_columns]
        made = reduce(lambda a, b: a * len(b), cells, len(bound))
        if made > MOST_COLUMNS:
            raise InvalidQuery(
                f"This pivot makes {made} columns, and the most are {MOST_COLUMNS}: name the values that you need with columns=."
            )
        items: list[Item] = [(c, ex.ColumnRef(c)) for c in keys]
        groups = tuple((ex.new_column(c.name, c.type), ex.ColumnRef(c)) for c in keys)
        items = [(c, ex.ColumnRef(c)) for c, _ in groups]
        calls: list[tuple[ex.Column, ex.AggregateCall]] = []
        for combination in product(*cells):
            name = "_".join(text for text, _ in combination)
            tests: list[ex.Expr] = [
                infer.call("is_not_distinct", [ex.ColumnRef(axis), value])
                for axis, (_, value) in zip(axis_columns, combination, strict=True)
            ]
            for label, expr in bound:
                full = f"{name}_{label}" if len(bound) > 1 else name
                value = lift_aggregates(_filtered(expr, tests), groups, calls, full)
                items.append((ex.new_column(full, value.type), value))
        return self.with_plan(Project(Aggregate(self._plan, groups, tuple(calls)), tuple(items)))

    def _cells(
        self, axis: ex.Column, given: Sequence[ex.Value] | None
    ) -> list[tuple[str, ex.Expr]]:
        """Return the values of a column that get a column each, with their names: those that are not NULL, in their order."""
        if given is not None:
            wanted = [infer.coerce(infer.literal(v), axis.type) for v in given]
            texts = [str(v) for v in given]
            if len({*texts}) < len(texts):
                raise InvalidQuery("`columns` of pivot() has a value twice.")
            return list(zip(texts, wanted, strict=True))
        here = Expression(lambda _: ex.ColumnRef(axis), axis.name)
        text = here.cast(VARCHAR).alias("shown")
        found = self.filter(here.is_not_null()).select(here.alias("value"), text).distinct()
        rows = found.sort("value").limit(MOST_COLUMNS + 1).select("shown")._run().to_arrow()
        return [
            (shown_text, infer.cast(ex.Literal(shown_text, VARCHAR), axis.type))
            for shown_text in rows.column(0).to_pylist()
        ]

    def unpivot(
        self,
        *on: str | Sequence[str],
        index: str | Sequence[str] | None = None,
        name: str = "name",
        value: str = "value",
        include_nulls: bool = False,
    ) -> Self:
        """Return a row for each of several columns of a row, with the column's name beside its value: UNPIVOT.

        Without `on` all columns but `index`; without `index` all others stay.  Rows whose value is NULL are left out, as in SQL, unless
        `include_nulls` keeps them.
        """
        kept = [self._column(n) for n in flat([index])] if index is not None else []
        turned = [self._column(n) for n in flat(on)] or [
            c for c in self._plan.columns if c not in kept
        ]
        if index is None:
            kept = [c for c in self._plan.columns if c not in turned]
        if not turned:
            raise InvalidQuery("unpivot() needs at least one column.")
        for new in (name, value):
            check_name(new, "column")
        texts = [c for c in turned if c.type == VARCHAR]
        if texts and len(texts) < len(turned):
            other = next(c for c in turned if c.type != VARCHAR)
            raise TypeMismatch(
                f'unpivot() does not mix VARCHAR and {other.type} ("{other.name}"): cast one of them.'
            )
        rows = [(c.name, [ex.ColumnRef(c)]) for c in turned]
        names = [*(c.name for c in kept), name, value]
        return self.with_plan(unpivoted(self._plan, kept, rows, names, include_nulls))

    def explode(self, *columns: str | Sequence[str]) -> Self:
        """Return a row for each element of lists, side by side where there are several; an empty list or NULL gives one row with NULL.

        `unnest` leaves such rows out, as UNNEST of SQL.
        """
        return self._unnested([self._column(n) for n in flat(columns)], outer=True)

    def unnest(self, *columns: str | Sequence[str]) -> Self:
        """Return a row for each element of lists, and the fields of structs as columns in their place."""
        chosen = [self._column(n) for n in flat(columns)]
        if not chosen:
            raise InvalidQuery("unnest() takes names of columns.")
        lists = [c for c in chosen if c.type.kind is not Kind.STRUCT]
        frame = self._unnested(lists, outer=False) if lists else self
        items: list[Item] = []
        for c in frame._plan.columns:
            if c not in chosen or c.type.kind is not Kind.STRUCT:
                items.append((c, ex.ColumnRef(c)))
                continue
            for part in c.type.names:
                value = field(ex.ColumnRef(c), part, None)
                items.append((ex.new_column(part, value.type), value))
        return self.with_plan(Project(frame._plan, tuple(items)))

    def _unnested(self, columns: list[ex.Column], outer: bool) -> Self:
        if not columns:
            raise InvalidQuery("explode() takes names of columns.")
        items: list[Item] = []
        for column in columns:
            kind = element_type(column.type)
            if kind is None:
                raise TypeMismatch(
                    f'"{column.name}" is {column.type}, and only a list has rows to give.'
                )
            made = ex.new_column(column.name, kind)
            items.append((made, infer.coerce(ex.ColumnRef(column), list_of(kind))))
        there = dict(zip(columns, (c for c, _ in items), strict=True))
        plan = Unnest(self._plan, tuple(items), outer=outer)
        places = [there.get(c, c) for c in self._plan.columns]
        return self.with_plan(Project(plan, tuple((c, ex.ColumnRef(c)) for c in places)))

    def describe(self) -> Self:
        """Return a row each for count, mean, stddev, min, max and median of every column, as DuckDB's `describe`."""
        row: list[Item] = []
        calls: list[tuple[ex.Column, ex.AggregateCall]] = []
        cells: list[tuple[str, list[ex.Expr]]] = []
        for c in self._plan.columns:
            there = ex.ColumnRef(c)
            numeric = c.type.is_numeric
            target = DOUBLE if numeric else VARCHAR
            values: list[ex.Expr] = []
            for what, (aggregate, needs_numbers) in _SUMMARY.items():
                if needs_numbers and not numeric:
                    values.append(ex.Literal(None, target))
                    continue
                bound = aggregate([there])
                values.append(infer.cast(lift_aggregates(bound, (), calls, what), target))
            cells.append((c.name, values))
        row = [
            (ex.new_column(f"{name}_{what}", v.type), v)
            for name, values in cells
            for what, v in zip(_SUMMARY, values, strict=True)
        ]
        summary = Project(Aggregate(self._plan, (), tuple(calls)), tuple(row))
        label = ex.new_column("aggr", VARCHAR)
        labels = Values((label,), tuple((ex.Literal(what, VARCHAR),) for what in _SUMMARY))
        joined = join_plans(labels, summary, None, "cross", "_right")
        items: list[Item] = [(label, ex.ColumnRef(label))]
        made = iter(summary.columns)
        for name, values in cells:
            own = [next(made) for _ in values]
            tests = [
                infer.call("eq", [ex.ColumnRef(label), ex.Literal(w, VARCHAR)]) for w in _SUMMARY
            ]
            value = infer.case(tests, [ex.ColumnRef(c) for c in own], ex.Literal(None, own[0].type))
            items.append((ex.new_column(name, value.type), value))
        return self.with_plan(Project(joined, tuple(items)))

    def value_counts(self, *columns: str | Sequence[str], name: str = "count") -> Self:
        """Return how many rows have each value of some columns, the most frequent first."""
        chosen = [self._ref(n) for n in flat(columns)] or [self._ref(n) for n in self.columns]
        check_name(name, "column")
        keys = [c.name for c in chosen]
        counted: Any = self.group_by(chosen).agg(count().alias(name))
        return counted.sort(col(name).desc(), keys)

    def sample(
        self,
        n: int | None = None,
        *,
        fraction: float | None = None,
        seed: int | None = None,
        method: str = "reservoir",
    ) -> Self:
        """Return some rows at random: `n` of them, or a fraction from 0 to 1 (USING SAMPLE).

        The rows are the same each time this frame runs; with `seed` also those of another frame of the same query.  `method` of a fraction is
        reservoir (to the nearest number of rows), bernoulli (each row by itself) or system (blocks of rows).
        """
        if (n is None) == (fraction is None):
            raise WrongArguments("sample() takes a number of rows, or fraction=.")
        given = method.upper() if isinstance(method, str) else ""
        if given not in ("RESERVOIR", "BERNOULLI", "SYSTEM"):
            raise InvalidQuery(
                f"There is no method {shown(method)} of samples: there are reservoir, bernoulli and system."
            )
        if seed is not None and (not isinstance(seed, int) or not 0 <= seed < 2**SEED_BITS):
            raise WrongArguments(f"The seed is a whole number from 0 on, not {shown(seed)}.")
        drawn = self._connection.catalog.session.seeds.getrandbits(SEED_BITS)
        number = ex.Literal(drawn if seed is None else seed, BIGINT)
        if n is not None:
            if not isinstance(n, int) or isinstance(n, bool) or not 0 <= n < 2**62:
                raise WrongArguments(f"sample() takes a number of rows, not {shown(n)}.")
            if given != "RESERVOIR":
                raise InvalidQuery(f"{method} takes a fraction, and no number of rows.")
            return self.with_plan(sample_rows(self._plan, n, number))
        if not isinstance(fraction, int | float) or not 0 <= fraction <= 1:
            raise WrongArguments(f"A fraction lies between 0 and 1, and this is {shown(fraction)}.")
        kind: Method = given  # type: ignore[assignment]
        return self.with_plan(sample_share(self._plan, float(fraction), number, kind))


def _filtered(expr: ex.Expr, tests: list[ex.Expr]) -> ex.Expr:
    """Return an expression whose aggregates are those of the rows for which all conditions hold."""

    def narrowed(node: ex.Expr) -> ex.Expr | None:
        if not isinstance(node, ex.AggregateCall):
            return None
        own = [] if node.filter is None else [node.filter]
        fields = {f: getattr(node, f) for f in ("function", "args", "type", "distinct")}
        return ex.AggregateCall(**fields, filter=ex.conjunction([*own, *tests]), order=node.order)

    return transform_up(expr, narrowed)
