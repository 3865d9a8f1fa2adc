"""Plans that are ready to run again: a query text that comes a second time is not parsed, bound or optimized anew, nor is one that
differs from another in its constants, where these say the same to what asked for them (`plan.shapes`).
"""

from __future__ import annotations

import time
from collections import OrderedDict
from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import field, replace
from itertools import chain, filterfalse
from operator import methodcaller
from typing import TYPE_CHECKING, Any, final

from .catalog import Catalog
from .errors import FuselineError, TypeMismatch
from .plan.copies import commons_of, nodes_of, replace_nodes, with_commons
from .plan.expr import Value
from .plan.logical import CatalogTable, Logical, Scan
from .plan.physical import Physical
from .plan.shapes.guards import GuardedValues
from .plan.shapes.parameters_key import Parameters as Parameters, parameters_key
from .plan.shapes.plan_model import PlanModel
from .plan.statements import Insert, Query
from .plan.temporal.zones import quarter_hour, today
from .plan.udf.python_function import PythonFunction
from .plan.udf.settled_calls import functions_of
from .records import dataclass
from .runtime.schedule import Schedule, inputs_first, schedule_of, shaped_schedule
from .settings import Settings
from .storage.file_identity import FileIdentity
from .storage.tables.access import Access, AccessRules
from .storage.tables.files import are_unchanged
from .storage.tables.parquet import ParquetTable
from .threads.fork_locks import new_lock

if TYPE_CHECKING:
    from .observe.profile import PlanOrigin
    from .sql import NamedPiece, TextShape, TextSlots

IS_CURRENT = methodcaller("is_current")
KEPT_PLANS = 512
KEPT_VARIANTS = 8  # plans of one shape


@final
@dataclass
class CachedPlan:
    """A bound query; `schedule` has its physical plan under `settings`, once it has run.

    `plan` is `source` with the tables as their files are now, `files` those of its tables that have any,
    with the rules that they were `opened_by`,
    `passing` those that serve one run.  `spent` holds the seconds that looking it up or binding
    took, until a run takes them into its profile.  `contents` are what the values of its Python functions depended on when it was planned.
    `draft` is what is to serve other texts of the shape, once it is planned; `like` the text whose plan this one was made of, and its own.
    `insert` is the statement that stores its rows.  `outlasts` says whether it stays right while tables that it does not read get other rows.
    """

    source: Logical
    text: str | None = None
    plan: Logical = field(init=False)
    reads: frozenset[int] = field(init=False)  # the identities of tables
    schedule: Schedule | None = None
    settings: Settings | None = None
    files: tuple[Any, ...] = ()  # `ParquetTable`s
    named_files: Sequence[FileIdentity] | None = None  # all of theirs, where a look is enough
    opened_by: Sequence[tuple[Access, AccessRules]] = ()
    passing: tuple[object, ...] = ()
    functions: tuple[PythonFunction, ...] = ()
    contents: object = ()
    spent: float = 0.0
    draft: Draft | None = None
    origin: PlanOrigin = "new"
    like: tuple[TextShape, TextShape] | None = None
    insert: Insert | None = None
    outlasts: bool = False

    def __post_init__(self) -> None:
        self._read(self.source)

    def stale_tables(self) -> list[ParquetTable]:
        """Return the tables whose files have changed since they were opened."""
        if self.named_files is not None and are_unchanged(self.named_files):
            for access, rules in self.opened_by:
                if access.rules is not rules:
                    break
            else:
                return []
        return list(filterfalse(IS_CURRENT, self.files))

    def replace_tables(self, replacements: Mapping[CatalogTable, CatalogTable]) -> None:
        """Read other tables from now on; columns keep their ids, and the query is planned anew."""
        self._read(_with_tables(self.plan, replacements))
        self.schedule = self.draft = None

    def look_at_functions(self, now: object) -> None:
        """Have the query planned anew if the code of a Python function, or a value that it reads, is no longer what it was."""
        if now != self.contents:
            self.contents, self.schedule = now, None

    def _read(self, plan: Logical) -> None:
        self.plan = plan
        tables = tables_of(plan)
        self.reads = frozenset(map(id, tables))
        self.files = tuple(t for t in tables if hasattr(t, "is_current"))
        named = [getattr(t, "named_files", None) for t in self.files]
        self.named_files = (
            None if None in named else tuple(chain.from_iterable(filter(None, named)))
        )
        if self.named_files is not None:
            pairs = ((t.access, t.rules) for t in self.files)
            self.opened_by = tuple({tuple(map(id, pair)): pair for pair in pairs}.values())
        self.functions = functions_of(plan)
        self.passing = tuple(t for t in tables if not getattr(t, "settled", True))

    def take_draft(self) -> Draft | None:
        """Return the draft to the first who asks."""
        with _drafts:
            draft, self.draft = self.draft, None
        return draft

    def place(self, error: FuselineError) -> None:
        """Give an error its place in this text, where the plan was made of another one."""
        if self.like is not None and error.span is not None and error.text is None:
            other, own = self.like
            error.span = own.like(other, error.span)

    def copy_for(self, source: Logical, text: str) -> CachedPlan:
        """Return a query over the same tables, as another text of the shape has it."""
        made = object.__new__(CachedPlan)
        made.__dict__.update(self.__dict__, source=source, plan=source, text=text)
        made.origin, made.spent, made.draft = "shape", 0.0, None
        return made

    def take_planning(self, is_known: bool, start: float) -> tuple[float, bool, PlanOrigin]:
        """Return the seconds of planning, up to now since `start` and `spent` before, whether the plan was known, and whose it is.

        Later runs have spent nothing, and take that of this text.
        """
        spent = self.spent + time.perf_counter() - start
        origin, self.origin, self.spent = self.origin, "text", 0.0
        if is_known != (origin in ("text", "shape")):
            origin = "text" if is_known else "new"
        return spent, is_known, origin


_drafts = new_lock()


@dataclass(frozen=True)
class Draft:
    """A bound query with the slots of its text, which is to be planned; `first` is it with its values, `version` that of the catalog."""

    slots: TextSlots
    first: CachedPlan
    plan: Logical
    model: PlanModel[Logical]
    version: int

    def make_plan(self, make: Callable[[Logical], Physical], settings: Settings) -> ShapedPlan:
        """Plan it, and note under which values the plan serves."""
        self.slots.guards.is_bound = True
        plan = make(self.plan)
        guards = self.slots.guards.close()
        shape, names = self.slots.shape, tuple(self.slots.names)
        models = self.model, PlanModel(plan), tuple(inputs_first(plan))
        return ShapedPlan(shape, names, guards, settings, self.first, *models)


@dataclass(frozen=True)
class ShapedPlan:
    """A plan for all texts of a shape for which its guards hold, under these settings; `nodes` are its nodes with slots, inputs first."""

    shape: TextShape
    names: tuple[NamedPiece, ...]
    guards: GuardedValues
    settings: Settings
    first: CachedPlan
    logical: PlanModel[Logical]
    physical: PlanModel[Physical]
    nodes: tuple[Physical, ...]

    def schedule(self) -> Schedule:
        """Return the plan of the text that it was made of."""
        return self._schedule(self.guards.present)

    def plan_for(self, shape: TextShape) -> CachedPlan | None:
        """Return the plan of a text of this shape, None where a guard does not hold."""
        values = self.guards.values(shape.values)
        if values is None or not all(piece.has_its_name(shape) for piece in self.names):
            return None
        plan = self.first.copy_for(self.logical.plan(values), shape.text)
        plan.like = self.shape, shape
        plan.schedule, plan.settings = self._schedule(values), self.settings
        return plan

    def _schedule(self, values: Sequence[Value]) -> Schedule:
        return shaped_schedule(self.physical.plan(values), self.nodes, values)


class PlanCache:
    """The prepared queries that were used last, by text and parameters or by the plan of a Frame; safe with several threads.

    A change of the catalog empties it: kept plans would keep tables alive that the catalog has no more.  Where tables have other
    rows and nothing else is new, plans that read others stay.  A new day empties it too: plans of CURRENT_DATE have it as a constant.
    """

    def __init__(self, catalog: Catalog, serves_shapes: bool = True) -> None:
        self._catalog = catalog
        self._serves_shapes = serves_shapes
        self._version = catalog.version
        self._layout = catalog.version - catalog.row_changes
        self._day = today(catalog.timezone)
        self._day_of = catalog.timezone, quarter_hour()
        self._kept: OrderedDict[Hashable, CachedPlan] = OrderedDict()
        self._shaped: OrderedDict[Hashable, tuple[ShapedPlan, ...]] = OrderedDict()
        self._lock = new_lock()

    def find(
        self, text: str, params: Parameters, settings: Settings
    ) -> tuple[CachedPlan | None, TextShape | None]:
        """Return what is kept for a text or another one of its shape, and the shape where it was looked at.

        Raises `TypeMismatch` for what is no text, or no parameters.
        """
        if type(text) is not str and not isinstance(text, str):
            raise TypeMismatch(f"SQL is given as a str, not as {type(text).__name__}.")
        found = self._find(text if params is None else (text, parameters_key(params)))
        if found is not None or not self._serves_shapes:
            return found, None
        from .sql import text_shape

        shape = text_shape(text, params)
        return (None if shape is None else self._find_shape(shape, params, settings)), shape

    def keep_text(self, text: str, params: Parameters, prepared: CachedPlan, version: int) -> None:
        """Keep what was bound with `version` of the catalog, unless that has changed since."""
        key = text if params is None else (text, parameters_key(params))
        self._keep(key, prepared, version)

    def _find_shape(
        self, shape: TextShape, params: Parameters, settings: Settings
    ) -> CachedPlan | None:
        """Return a plan for a text of a shape that was planned under these settings, where its guards hold."""
        with self._lock:
            self._drop_old()
            version = self._version
            known = self._shaped.get(shape.key, ())
            if known:
                self._shaped.move_to_end(shape.key)
        for shaped in known:
            if shaped.settings == settings and (found := shaped.plan_for(shape)) is not None:
                if found.insert is None:  # whose text hardly comes again
                    self.keep_text(shape.text, params, found, version)
                return found
        return None

    def knows(self, shape: TextShape) -> bool:
        """Whether there are plans of a shape, whether their guards hold or not."""
        with self._lock:
            return shape.key in self._shaped

    def schedule(
        self, prepared: CachedPlan, make: Callable[[Logical], Physical], settings: Settings
    ) -> Schedule:
        """Plan a query, and keep the plan for others of its shape where it may serve them."""
        draft = prepared.take_draft()
        if draft is None:
            return schedule_of(make(prepared.plan))
        shaped = draft.make_plan(make, settings)
        key = shaped.shape.key
        with self._lock:
            self._drop_old()
            if draft.version == self._version:
                # Before those of the same shape, of which the last one goes
                self._shaped[key] = (shaped, *self._shaped.pop(key, ())[: KEPT_VARIANTS - 1])
                while len(self._shaped) > KEPT_PLANS:
                    self._shaped.popitem(last=False)
        return shaped.schedule()

    def of_plan(self, plan: Logical) -> CachedPlan:
        """Return what is kept for this plan object, or keep it anew."""
        known = self._find(id(plan))
        if known is None or known.source is not plan:
            known = CachedPlan(plan)
            self._keep(id(plan), known, self._catalog.version)
        return known

    def clear(self) -> None:
        with self._lock:
            self._kept.clear()
            self._shaped.clear()

    def _find(self, key: Hashable) -> CachedPlan | None:
        with self._lock:
            self._drop_old()
            found = self._kept.get(key)
            if found is not None:
                self._kept.move_to_end(key)
            return found

    def _keep(self, key: Hashable, prepared: CachedPlan, version: int) -> None:
        with self._lock:
            self._drop_old()
            if version != self._version:
                return
            self._kept[key] = prepared
            self._kept.move_to_end(key)
            while len(self._kept) > KEPT_PLANS:
                self._kept.popitem(last=False)

    def _drop_old(self) -> None:
        day, day_of = self._day, (self._catalog.timezone, quarter_hour())
        if day_of != self._day_of:
            day, self._day_of = today(self._catalog.timezone), day_of
        version = self._catalog.version
        if self._version == version and day == self._day:
            return
        layout = version - self._catalog.row_changes
        if layout == self._layout and day == self._day:
            here = {id(table) for table in self._catalog.all_tables()}
            kept = self._kept.items()
            for key in [key for key, p in kept if not (p.outlasts and p.reads <= here)]:
                del self._kept[key]
            shaped = [(key, plans[0].first) for key, plans in self._shaped.items()]
            for key in [key for key, p in shaped if not (p.outlasts and p.reads <= here)]:
                del self._shaped[key]
        else:
            self._kept.clear()
            self._shaped.clear()
        self._version, self._layout, self._day = version, layout, day


def tables_of(plan: Logical) -> tuple[CatalogTable, ...]:
    """Return the tables that a plan scans, those of its subqueries included, each once."""
    found: dict[int, CatalogTable] = {}
    for part in (plan, *(common.plan for common in commons_of(plan))):
        for node in nodes_of(part):
            if isinstance(node, Scan):
                found[id(node.table)] = node.table
    return tuple(found.values())


def _with_tables(plan: Logical, replacements: Mapping[CatalogTable, CatalogTable]) -> Logical:
    def replaced(node: Logical) -> Logical | None:
        if isinstance(node, Scan) and node.table in replacements:
            return replace(node, table=replacements[node.table])
        return None

    return with_commons(plan, lambda part: replace_nodes(part, replaced))


def new_cached_plan(
    slots: TextSlots | None, statement: Query | Insert, text: str, version: int, is_known: bool
) -> CachedPlan:
    """Return a bound query, or that of an INSERT, with the values of its text, and where it may serve others of its shape as a draft of that.

    `is_known`: there are plans of the shape, whose guards do not hold.

    It may not where tables or functions may be others the next time, or have a plan of their own, nor where more of an INSERT than
    its query has values of the text.
    """
    query = statement.query if isinstance(statement, Insert) else statement
    if slots is None:
        return CachedPlan(query.plan, text)
    model, values = PlanModel(query.plan), slots.guards.values
    made = CachedPlan(model.plan(values), text, outlasts=not slots.reads_rows)
    lasting = all(getattr(table, "identity", None) is not None for table in tables_of(made.plan))
    if isinstance(statement, Insert):
        rest = PlanModel(replace(statement, query=Query(made.source)))
        made.insert = rest.plan(values)
        lasting = lasting and not rest.slots and query.is_kept
    if lasting and not made.functions and not made.passing:
        first = made.copy_for(made.source, text)  # which no run changes
        made.draft = Draft(slots, first, query.plan, model, version)
        made.origin = "guards" if is_known else "new"
    return made
