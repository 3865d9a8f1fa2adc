"""Python functions under names that SQL and frames of a connection know: `create_function`, as DuckDB has it, and `remove_function`."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Self

from ..catalog import Catalog
from ..errors import CatalogError, UnknownName, WrongArguments, check_name, nearest, shown
from ..fence import fenced
from ..frame.functions import UserAggregate, UserFunction
from ..plan.changes.catalog_objects import SessionObjects
from ..plan.udf.declaration import checked, declared, options
from ..plan.udf.python_function import PythonAggregate, PythonFunction


@fenced
class FunctionRegistry:
    """The methods of a connection that name Python functions."""

    catalog: Catalog

    if TYPE_CHECKING:  # what a connection has

        def _check_open(self) -> None: ...

    def create_function(
        self,
        name: str,
        function: Callable[..., object],
        parameters: Sequence[object] | None = None,
        return_type: object = None,
        *,
        type: object = "native",
        null_handling: object = "default",
        exception_handling: object = "default",
        side_effects: bool = False,
    ) -> Self:
        """Let SQL and frames of this connection call a Python function by a name, until `remove_function`.

        Takes what `@fuseline.udf` made, or a function with the types of its parameters and result, by default those of its annotations.
        `type` "native" calls it with Python's values, from a kernel where Numba compiles it and its values stay the same, else row by
        row; "arrow" with Arrow arrays, a batch at a time.  Raises `CatalogError` for a name that is taken.
        """
        self._check_open()
        made = _function(
            name,
            function,
            (parameters, return_type),
            (null_handling, exception_handling, side_effects, type),
        )

        def create(objects: SessionObjects) -> None:
            _check_free(name, objects)
            if self.catalog.macro(name) is not None:
                raise CatalogError(f'There is a macro "{name}" already: drop it first.')
            objects.functions[name.lower()] = made

        self.catalog.change_session(create)
        return self

    def remove_function(self, name: str) -> Self:
        """Forget a function; frames that call it go on to.  Raises `UnknownName`."""
        self._check_open()
        check_name(name, "function")

        def remove(objects: SessionObjects) -> None:
            if objects.functions.pop(name.lower(), None) is None:
                known = [f.name for f in objects.functions.values()]
                raise UnknownName(
                    f'There is no Python function "{name}" in this connection.{nearest(name, known)}'
                )

        self.catalog.change_session(remove)
        return self


def _function(
    name: str, function: Any, types: tuple[Any, Any], given: tuple[Any, Any, Any, Any]
) -> PythonFunction | PythonAggregate:
    if isinstance(function, UserFunction | UserAggregate):
        if types != (None, None) or given != ("default", "default", False, "native"):
            raise WrongArguments(
                f"{shown(function)} has its types and options from @udf: give its name alone."
            )
        check_name(name, "function")
        if isinstance(function, UserAggregate):
            return replace(function.python_aggregate, name=name)
        return replace(function.python_function, name=name)
    way, traits = options(*given)
    return checked(declared(name, function, *types, way, traits))


def _check_free(name: str, objects: SessionObjects) -> None:
    from ..sql import is_function

    if name.lower() in objects.functions:
        raise CatalogError(
            f'There is a Python function "{name}" already: remove it first, with remove_function.'
        )
    if is_function(name):
        raise CatalogError(
            f'"{name}" is a function of SQL here or elsewhere, so that its calls are read as of that: give yours another name.'
        )
