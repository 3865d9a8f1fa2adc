"""A Python function made anew of its image, in the process that compiles it."""

from __future__ import annotations

import builtins
import importlib
from base64 import b64decode
from collections.abc import Callable, Mapping
from types import CellType, CodeType, FunctionType
from typing import Any

import numpy as np

from ...plan.udf.code_image import CODE_FIELDS, literal

Compile = Callable[[FunctionType], object]


def python_of(
    image: str, compiled: Compile, replaced: Mapping[str, object], outermost: Compile | None = None
) -> Any:
    """Return the function of an image, compiled `outermost`, and each that it calls `compiled`; `replaced` are others for those of Python, by module and name."""
    _, *parts = literal(b64decode(image))
    made = _Making(compiled, replaced).function(*parts)
    return (outermost or compiled)(made)


def _template() -> None:
    """What all codes are made of."""


class _Making:
    def __init__(self, compiled: Compile, replaced: Mapping[str, object]) -> None:
        self._compiled = compiled
        self._replaced = replaced

    def value(self, content: Any) -> Any:
        """Return the value that tagged content stands for."""
        kind, *rest = content
        match kind:
            case "value" | "bool":
                return rest[0]
            case "float":
                return float(rest[0]) if "n" in rest[0] else float.fromhex(rest[0])
            case "tuple":
                return tuple(map(self.value, rest))
            case "set":
                return frozenset(map(self.value, rest))
            case "code":
                return self._code(rest[0])
            case "module":
                return importlib.import_module(rest[0])
            case "builtin":
                return self._replaced.get(rest[0], getattr(builtins, rest[0]))
            case "attribute":
                known = getattr(importlib.import_module(rest[0]), rest[1])
                return self._replaced.get(".".join(rest), known)
            case "array" | "scalar":
                array = np.frombuffer(rest[2], np.dtype(rest[0])).reshape(rest[1])
                return array if kind == "array" else array[()]
        return self._compiled(self.function(*rest))

    def function(self, code: Any, defaults: Any, cells: Any, reads: Any) -> FunctionType:
        known = {name: self.value(content) for name, content in reads}
        return FunctionType(
            self._code(code),
            {"__builtins__": builtins, "__name__": "<python function>", **known},
            argdefs=tuple(map(self.value, defaults)),
            closure=tuple(CellType(self.value(content)) for content in cells),
        )

    def _code(self, content: Any) -> CodeType:
        constants, *fields = content
        return _template.__code__.replace(
            co_consts=tuple(map(self.value, constants)),
            co_filename="<python function>",
            co_firstlineno=1,
            **dict(zip(CODE_FIELDS, fields, strict=True)),
        )
