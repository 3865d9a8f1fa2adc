"""Plans that are ready to run again: a query text that comes a second time is not parsed, bound or optimized anew."""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from .catalog import Catalog
from .errors import TypeMismatch
from .plan.commons import commons_of, nodes_of, replace_nodes, with_commons
from .plan.logical import CatalogTable, Logical, Scan
from .plan.temporal.statement_time import quarter_hour, today
from .plan.udf.python_function import PythonFunction
from .plan.udf.settled_calls import Images, functions_of, images_of
from .runtime.schedule import Schedule
from .settings import Settings
from .storage.tables.parquet import ParquetTable

Parameters = Sequence[object] | Mapping[str, object] | None
KEPT_PLANS = 512


@dataclass
class CachedPlan:
    """A bound query; `schedule` has its physical plan under `settings`, once it has run.

    `plan` is `source` with the tables as their files are now, `files` those of its tables that have any,
    `passing` those that serve one run.  `spent` holds the seconds that looking it up or binding
    took, until a run takes them into its profile.  `images` are what the values of its Python functions depended on when it was planned.
    """

    source: Logical
    text: str | None = None
    plan: Logical = field(init=False)
    schedule: Schedule | None = None
    settings: Settings | None = None
    files: tuple[Any, ...] = ()  # `ParquetTable`s
    passing: tuple[object, ...] = ()
    functions: tuple[PythonFunction, ...] = ()
    images: Images = ()
    spent: float = 0.0

    def __post_init__(self) -> None:
        self._read(self.source)

    def stale_tables(self) -> list[ParquetTable]:
        """Return the tables whose files have changed since they were opened."""
        return [t for t in self.files if not t.is_current()]

    def replace_tables(self, replacements: Mapping[Any, ParquetTable]) -> None:
        """Read other tables from now on; columns keep their ids, and the query is planned anew."""
        self._read(_with_tables(self.plan, replacements))
        self.schedule = None

    def look_at_functions(self) -> None:
        """Have the query planned anew if the code of a Python function, or a value that it reads, is no longer what it was."""
        if self.functions and (now := images_of(self.functions)) != self.images:
            self.images, self.schedule = now, None

    def _read(self, plan: Logical) -> None:
        self.plan = plan
        tables = tables_of(plan)
        self.files = tuple(t for t in tables if hasattr(t, "is_current"))
        self.functions = functions_of(plan)
        self.passing = tuple(t for t in tables if not getattr(t, "settled", True))

    def take_spent(self) -> float:
        spent, self.spent = self.spent, 0.0
        return spent


class PlanCache:
    """The prepared queries that were used last, by text and parameters or by the plan of a Frame; safe with several threads.

    A change of the catalog empties it: kept plans would keep tables alive that the catalog has no more.  So does a new day, which
    plans of CURRENT_DATE have as a constant.
    """

    def __init__(self, catalog: Catalog) -> None:
        self._catalog = catalog
        self._version = catalog.version
        self._day = today(catalog.timezone)
        self._day_of = catalog.timezone, quarter_hour()
        self._kept: OrderedDict[Hashable, CachedPlan] = OrderedDict()
        self._lock = threading.Lock()

    def find_text(self, text: str, params: Parameters) -> CachedPlan | None:
        """Return what is kept for a text; raises `TypeMismatch` for what is no text, or no parameters."""
        if not isinstance(text, str):
            raise TypeMismatch(f"SQL is given as a str, not as {type(text).__name__}.")
        return self._find((text, _parameters_key(params)))

    def keep_text(self, text: str, params: Parameters, prepared: CachedPlan, version: int) -> None:
        """Keep what was bound with `version` of the catalog, unless that has changed since."""
        self._keep((text, _parameters_key(params)), prepared, version)

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
        if self._version != self._catalog.version or day != self._day:
            self._kept.clear()
            self._version, self._day = self._catalog.version, day


def _parameters_key(params: Parameters) -> Hashable:
    """Return a key that differs whenever the bound plan could: 1, 1.0, TRUE and '1' are four."""
    if params is None:
        return None
    if isinstance(params, Mapping):
        return tuple((name, type(v), _value_key(v)) for name, v in params.items())
    listed = hasattr(params, "__len__") and hasattr(params, "__getitem__")
    if not listed or isinstance(params, str | bytes) or getattr(params, "ndim", 1) != 1:
        raise TypeMismatch(
            f"params takes a list or a dictionary, not {type(params).__name__}: give one value as [value]."
        )
    return tuple((type(v), _value_key(v)) for v in params)


def _value_key(value: object) -> Hashable:
    if type(value) in (int, str):
        return value
    try:
        return repr(value)
    except Exception as error:  # an object's own
        raise TypeMismatch(
            f"A parameter of the type {type(value).__name__} cannot be shown: {error}."
        ) from error


def tables_of(plan: Logical) -> tuple[CatalogTable, ...]:
    """Return the tables that a plan scans, those of its subqueries included, each once."""
    found: dict[int, CatalogTable] = {}
    for part in (plan, *(common.plan for common in commons_of(plan))):
        for node in nodes_of(part):
            if isinstance(node, Scan):
                found[id(node.table)] = node.table
    return tuple(found.values())


def _with_tables(plan: Logical, replacements: Mapping[Any, ParquetTable]) -> Logical:
    def replaced(node: Logical) -> Logical | None:
        if isinstance(node, Scan) and node.table in replacements:
            return replace(node, table=replacements[node.table])
        return None

    return with_commons(plan, lambda part: replace_nodes(part, replaced))
