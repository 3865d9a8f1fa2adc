"""UNPIVOT as a UNION ALL of a query's columns, of which each part reads those alone that it has."""

from __future__ import annotations

from collections.abc import Callable, Sequence, Set

from .. import infer
from ..copies import fresh
from ..expr import Column, ColumnRef, Expr, Literal, columns_of, conjunction, new_column, substitute
from ..logical import Filter, Logical, Project, Scan, SetOperation
from ..types import VARCHAR


def unpivoted(
    plan: Logical,
    kept: Sequence[Column],
    rows: Sequence[tuple[str, Sequence[Expr]]],
    names: Sequence[str],
    with_nulls: bool,
) -> Logical:
    """Return for each row of a plan one for each of `rows`: the columns kept, the name, and the values of expressions over the plan.

    `names` are those of all columns.  Without `with_nulls` rows of which a value is NULL are left out.
    """
    places = zip(*(values for _, values in rows), strict=True)
    types = [infer.common_type([e.type for e in each], each[-1].span) for each in places]
    shown = [*(c.type for c in kept), VARCHAR, *types]

    def made() -> tuple[Column, ...]:
        return tuple(map(new_column, names, shown))

    reading = _reading(plan)
    parts: list[Logical] = []
    for name, values in rows:
        read = frozenset(kept).union(*map(columns_of, values))
        part, renamed = fresh(reading(read))
        refs = {column: ColumnRef(renamed.get(column, column)) for column in read}
        cast = [infer.cast(substitute(e, refs.get), t) for e, t in zip(values, types, strict=True)]
        if not with_nulls:
            tests = [infer.call("is_not_null", [substitute(e, refs.get)]) for e in values]
            part = Filter(part, conjunction(tests))
        items = [*(refs[c] for c in kept), Literal(name, VARCHAR), *cast]
        parts.append(Project(part, tuple(zip(made(), items, strict=True))))
    while len(parts) > 1:  # a balanced tree, which no later step finds deep
        pairs = zip(parts[::2], parts[1::2], strict=False)
        unions: list[Logical] = [SetOperation(a, b, "union", True, made()) for a, b in pairs]
        parts = unions + parts[len(parts) // 2 * 2 :]
    return parts[0]


def _reading(plan: Logical) -> Callable[[Set[Column]], Logical]:
    """Return what leaves out columns of a table, and of a selection of its columns, that are not read: each copy of 1,500 columns would have all.

    Each looks at what it keeps alone.
    """
    if isinstance(plan, Project):
        below, items = _reading(plan.input), plan.items
        own = {column: place for place, (column, _) in enumerate(items)}

        def selected(read: Set[Column]) -> Logical:
            kept = tuple(items[place] for place in sorted(own[c] for c in read if c in own))
            return Project(
                below(frozenset[Column]().union(*(columns_of(e) for _, e in kept))), kept
            )

        return selected
    if isinstance(plan, Scan):
        scan, pairs = plan, tuple(zip(plan.made, plan.sources, strict=True))
        made = {column: place for place, column in enumerate(scan.made)}

        def scanned(read: Set[Column]) -> Logical:
            kept = [pairs[place] for place in sorted(made[c] for c in read if c in made)]
            return scan.replaced(made=tuple(c for c, _ in kept), sources=tuple(s for _, s in kept))

        return scanned
    return lambda _: plan
