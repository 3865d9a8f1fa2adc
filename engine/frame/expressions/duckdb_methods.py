"""What DuckDB calls methods of expressions, for code written for its module."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ...fence import fenced
from .unbound import Operand
from .value_methods import ValueMethods

if TYPE_CHECKING:
    from .expression import Expression


@fenced
class DuckDBMethods(ValueMethods):
    """The same under other names, and lists of values as arguments."""

    def isnull(self) -> Expression:
        return self.is_null()

    def isnotnull(self) -> Expression:
        return self.is_not_null()

    def isin(self, *values: Operand) -> Expression:
        """IN some values, or the values of one list."""
        only = values[0] if len(values) == 1 else None
        return self.is_in(only if isinstance(only, list | tuple) else values)

    def isnotin(self, *values: Operand) -> Expression:
        """NOT IN some values, or the values of one list."""
        return ~self.isin(*values)

    def get_name(self) -> str:
        """Return the name of the column that it makes."""
        return self.name
