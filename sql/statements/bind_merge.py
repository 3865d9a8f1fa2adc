"""MERGE INTO: the table joined with its source, and for each WHEN what it does with its pairs of rows."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from sqlglot import exp

from fuseline.errors import InvalidQuery
from fuseline.plan import infer
from fuseline.plan.changes.stand_in import StandIn
from fuseline.plan.expr import TRUE, Column, ColumnRef, Expr, Literal, conjunction, new_column
from fuseline.plan.join_kinds import JoinKind
from fuseline.plan.logical import CatalogTable, Filter, Item, Join, Logical, Project, Scan
from fuseline.plan.statements import Merge, WrittenRows
from fuseline.plan.types import BOOLEAN, INTEGER, VARCHAR, DataType
from fuseline.sql.parsing.pieces import span_of

from ...plan.statements import ACTION, MergeAction, MergedPairs
from ...records import dataclass
from ..binding.bind_from import beside, bind_list, equal, named_column
from ..binding.bind_query import is_default, with_entries
from ..binding.draws.volatile import CELL_OF_ROWS
from ..binding.scope import Relation, Scope, Source
from ..parsing.unread import use, use_all
from .assignments import Target, assignments, with_values
from .bind_changes import (
    bind_returning,
    rows_of_table,
    target_columns,
    written_rows,
)
from .bind_table_rules import source_of


@dataclass(frozen=True)
class _Merging:
    """The table and the source of a MERGE; `there` is true in each row of the source, and `number` is not NULL in each of the table."""

    table: CatalogTable
    target: Source
    source: Source
    there: Column
    number: Column
    scope: Scope

    def visible(self, when: exp.When) -> Source:
        """Return the rows whose columns a WHEN may name."""
        if when.args.get("matched"):
            both = beside(self.source, self.target)
            return replace(both, merged={**both.merged, **self.target.merged})
        return self.target if when.args.get("source") else self.source

    def condition(self, when: exp.When) -> Expr:
        """Return which pairs a WHEN is about."""
        is_old = infer.call("is_not_null", [ColumnRef(self.number)])
        is_given = infer.call("is_not_null", [ColumnRef(self.there)])
        if when.args.get("matched"):
            parts = [is_old, is_given]
        elif when.args.get("source"):
            parts = [infer.call("not", [is_given])]
        else:
            parts = [infer.call("not", [is_old])]
        asked = when.args.get("condition")
        if asked is not None:
            inside = self.scope.over(self.visible(when)).inside("the condition of WHEN")
            parts.append(infer.condition(inside.bind(asked)))
        return conjunction(parts)


def merge_rows(node: exp.Expr, scope: Scope) -> Merge:
    assert isinstance(node, exp.Merge)
    use(node)
    scope = with_entries(node, scope)
    target = Target.of(node.this, scope)
    table = target.table
    given = bind_list(node.args["using"], (), scope)
    there = new_column("there", BOOLEAN)
    items: list[Item] = [(c, ColumnRef(c)) for c in given.plan.columns]
    source = replace(given, plan=Project(given.plan, (*items, (there, TRUE))))
    merging = _Merging(table, target.source, source, there, target.number[0], scope)
    merging, matches = _matched_by(node, merging)
    whens = _whens(node)
    joined = Join(source.plan, target.source.plan, _join_kind(whens), matches)
    action = new_column("action", INTEGER)
    numbers = [Literal(i, INTEGER) for i in range(len(whens))]
    chosen = infer.cast(infer.case([merging.condition(w) for w in whens], numbers, None), INTEGER)
    pairs = (*((c, ColumnRef(c)) for c in joined.columns), (action, chosen))
    known = infer.call("is_not_null", [ColumnRef(action)])
    query = Filter(Project(joined, pairs), known)
    names = tuple(f"pair{i}" for i in range(len(pairs)))
    rows = StandIn(
        table.name, tuple((n, c.type) for n, c in zip(names, query.columns, strict=True))
    )
    scan = Scan(rows, tuple(query.columns), names)
    actions = []
    for i, when in enumerate(whens):
        mine = Filter(scan, infer.call("eq", [ColumnRef(action), Literal(i, INTEGER)]))
        found = _action(when, mine, merging)
        actions += [] if found is None else [found]
    written, returned = _returned(node, table, target.alias, scope)
    found_pairs = MergedPairs(target.existing, rows, query)
    return Merge(table.name, found_pairs, tuple(actions), written, returned)


def _join_kind(whens: Sequence[exp.When]) -> JoinKind:
    """Return the join that keeps rows of the source, on the left, and of the table if a WHEN is about those without a match."""
    left = any(not w.args.get("matched") and not w.args.get("source") for w in whens)
    right = any(bool(w.args.get("source")) for w in whens)
    kinds = (kind for kind in JoinKind if kind.outputs_right and not kind.at_most_one)
    return next(k for k in kinds if (k.keeps_left, k.keeps_right) == (left, right))


def _matched_by(node: exp.Merge, merging: _Merging) -> tuple[_Merging, Expr]:
    """Bind ON or USING; a name in USING then means the column of the table where both can be meant."""
    names: Sequence[exp.Identifier] = node.args.get("using_cond") or ()
    scope, source, target = merging.scope, merging.source, merging.target
    if not names:
        inside = scope.over(beside(source, target)).inside("a join condition")
        return merging, infer.condition(inside.bind(node.args["on"]))
    use(*names)
    pairs = [(n, named_column(source, n, scope), named_column(target, n, scope)) for n in names]
    own = {n.name.lower(): theirs for n, _, theirs in pairs}
    shared = replace(target, merged={**target.merged, **own})
    equals = [equal(mine, theirs, span_of(n)) for n, mine, theirs in pairs]
    return replace(merging, target=shared), conjunction(equals)


def _whens(node: exp.Merge) -> list[exp.When]:
    clauses = node.args["whens"]
    use(clauses, *clauses.expressions)
    ended: set[str] = set()
    for when in clauses.expressions:
        shown = _shown(when)
        if shown in ended:
            message = (
                f"No pair of rows gets here: an earlier {shown} without AND takes all of them."
            )
            raise InvalidQuery(message, span_of(when) or span_of(clauses) or span_of(node.this))
        if when.args.get("condition") is None:
            ended.add(shown)
    return list(clauses.expressions)


def _shown(when: exp.When) -> str:
    if when.args.get("matched"):
        return "WHEN MATCHED"
    return "WHEN NOT MATCHED BY SOURCE" if when.args.get("source") else "WHEN NOT MATCHED"


def _action(when: exp.When, pairs: Logical, merging: _Merging) -> MergeAction | None:
    """Bind what a WHEN does with its pairs; None for nothing."""
    then, clause = when.args["then"], _shown(when)
    use(then)
    word = then.name.upper() if isinstance(then, exp.Var) else ""
    if word == "DO NOTHING":
        return None
    if word == "ABORT":
        message = new_column("message", VARCHAR)
        return MergeAction("ERROR", Project(pairs, ((message, Literal("", VARCHAR)),)), (), clause)
    if isinstance(then, exp.Update) and then.args.get("where"):
        return _error(then.args["where"], when, pairs, merging)
    if isinstance(then, exp.Insert):
        return MergeAction("INSERT", _inserted(then, when, pairs, merging))
    if clause == "WHEN NOT MATCHED":
        raise InvalidQuery(
            "A row of the source that matches none of the table can be inserted alone: write WHEN MATCHED or WHEN NOT MATCHED BY SOURCE.",
            span_of(when) or span_of(then),
        )
    number: Item = (merging.number, ColumnRef(merging.number))
    if word == "DELETE":
        return MergeAction("DELETE", Project(pairs, (number,)))
    values = _values(then, when, merging)
    return MergeAction("UPDATE", with_values(pairs, (number,), values), tuple(values))


def _error(where: exp.Expr, when: exp.When, pairs: Logical, merging: _Merging) -> MergeAction:
    use(where)
    inside = merging.scope.over(merging.visible(when)).inside("ERROR")
    text = infer.cast(inside.bind(where.this), VARCHAR)
    said = infer.call("coalesce", [text, Literal("NULL", VARCHAR)])
    message = new_column("message", VARCHAR)
    return MergeAction("ERROR", Project(pairs, ((message, said),)), (), _shown(when))


def _values(then: exp.Update, when: exp.When, merging: _Merging) -> Mapping[str, Expr]:
    """Return what UPDATE gives to columns: by SET, by their names in the source, or one after the other."""
    visible, table = merging.visible(when), merging.table
    listed = then.args.get("expressions")
    if isinstance(listed, exp.Expr):
        use(listed)
    elif listed:
        return assignments(listed, table, merging.scope.over(visible).inside("SET"))
    found = _given(when, merging, by_name=bool(listed))
    return {name: infer.cast(ColumnRef(column), kind) for (name, kind), column in found}


def _given(
    when: exp.When, merging: _Merging, *, by_name: bool
) -> list[tuple[tuple[str, DataType], Column]]:
    """Return the columns of the table, each with the column of the source that it gets."""
    place = span_of(when)
    if when.args.get("source"):
        message = "A row that matches none of the source gets no values of it: name them, as in SET column = value."
        raise InvalidQuery(message, place)
    star, table = merging.source.star, merging.table
    names = [name for name, _ in star] if by_name else None
    fields = target_columns(table, names, when)
    if len(fields) != len(star):
        raise InvalidQuery(
            f'The table "{table.name}" takes {len(fields)} columns here and is given {len(star)}.',
            place,
        )
    return [(field, column) for field, (_, column) in zip(fields, star, strict=True)]


def _inserted(then: exp.Insert, when: exp.When, pairs: Logical, merging: _Merging) -> Logical:
    """Return the rows that INSERT makes of pairs."""
    listed, cells = then.this, then.args.get("expression")
    table = merging.table
    if isinstance(listed, exp.Var):  # DEFAULT VALUES
        use(listed)
        return rows_of_table(pairs, {}, table, merging.scope)
    if not isinstance(cells, exp.Tuple):
        if listed is not None:
            use(listed)
        found = _given(when, merging, by_name=listed is not None)
        return rows_of_table(pairs, {n: c for (n, _), c in found}, table, merging.scope)
    use(cells)
    fields = target_columns(table, _names(listed), when)
    if len(cells.expressions) != len(fields):
        raise InvalidQuery(
            f'The table "{table.name}" takes {len(fields)} columns here and is given {len(cells.expressions)}.',
            span_of(cells),
        )
    inside = merging.scope.over(merging.visible(when)).inside(CELL_OF_ROWS)
    values: dict[str, Expr] = {}
    for (name, kind), cell in zip(fields, cells.expressions, strict=True):
        if is_default(cell):
            use_all(cell)
        else:
            values[name] = infer.cast(inside.bind(cell), kind)
    number: Item = (merging.number, ColumnRef(merging.number))
    made = with_values(pairs, (number,), values)
    given = dict(zip(values, made.columns[1:], strict=True))
    return rows_of_table(made, given, table, merging.scope)


def _names(listed: exp.Expr | None) -> list[str] | None:
    """Return the names in parentheses behind INSERT."""
    if listed is None:
        return None
    use(listed)
    names = []
    for item in listed.expressions if isinstance(listed, exp.Tuple) else [listed]:
        if not isinstance(item, exp.Column) or len(item.parts) > 1:
            raise InvalidQuery("Names of columns alone can stand here.", span_of(item))
        use(item, *item.parts)
        names.append(item.name)
    return names


def _returned(
    node: exp.Merge, table: CatalogTable, alias: str | None, scope: Scope
) -> tuple[WrittenRows, WrittenRows]:
    """Return what is asked of the rows: the table's checks, and RETURNING, which has the column of the action too."""
    clause = node.args.get("returning")
    node.set("returning", None)
    written = written_rows(node, table, alias, scope, checked=True)
    if not clause:
        return written, WrittenRows(written.rows)
    name = ACTION
    while any(name == field.lower() for field, _ in table.fields):
        name += "_"
    rows = StandIn(table.name, (*table.fields, (name, VARCHAR)), name)
    source = source_of(rows, alias)
    (relation,) = source.relations
    also = () if name != ACTION else ((ACTION, source.plan.columns[-1]),)
    shown: Relation = replace(relation, also=also)
    asked = bind_returning(clause, replace(source, relations=(shown,)), scope)
    return written, WrittenRows(rows, (), asked)
