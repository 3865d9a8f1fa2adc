"""What binding asks of a catalog about schemas and orders, for one of a test that has a few tables and no schema."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from fuseline.plan.changes.catalog_objects import MEMORY, ObjectName, SchemaPlace
from fuseline.plan.composed.sampling import DEFAULTS
from fuseline.plan.dialect import SqlReading

HERE = SchemaPlace(MEMORY)


class UnplacedTables:
    """The methods of a catalog whose tables are all in memory.main."""

    user_types: Mapping[str, Any] = {}
    sort_defaults, dialect = DEFAULTS, SqlReading()

    def table(self, name: str) -> Any:
        raise NotImplementedError

    def macro(self, name: str) -> None:
        return None

    def sequence_names(self) -> list[str]:
        return []

    def located(self, parts: Sequence[str], home: SchemaPlace | None = None) -> ObjectName | None:
        found = len(parts) == 1 and self.table(parts[0]) is not None
        return ObjectName(parts[0], HERE) if found else None
