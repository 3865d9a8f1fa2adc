"""Python functions on their way to workers, as code: no worker reads a file of the client's, or imports a module that lies beside its program.

Of packages that are installed go the names alone: workers have the same ones.
"""

from __future__ import annotations

import io
import sys
import sysconfig
from collections.abc import Sequence
from functools import cache
from hashlib import sha256
from pathlib import Path
from types import FunctionType, ModuleType
from typing import Any

import cloudpickle

from ..errors import Unsupported
from ..plan.udf.python_function import PythonFunction
from ..threads.fork_locks import new_reentrant_lock

# By name, wherever they lie: what workers have in any case, and what unpickles there
_KNOWN = {__name__.partition(".")[0], "cloudpickle"}
_LIBRARY = {sysconfig.get_path(name) for name in ("stdlib", "platstdlib")}
_lock = new_reentrant_lock()  # which modules go by value is noted for the whole process


class FunctionPickler(cloudpickle.Pickler):
    """Pickles what is not installed by its value: functions, classes and modules, with all that they read."""

    def dump(self, obj: Any) -> None:
        with _lock:
            self._noted: list[ModuleType] = []
            try:
                super().dump(obj)
            finally:
                for module in self._noted:
                    cloudpickle.unregister_pickle_by_value(module)

    def reducer_override(self, obj: Any) -> Any:
        if isinstance(obj, FunctionType | type | ModuleType):
            module = obj if isinstance(obj, ModuleType) else sys.modules.get(obj.__module__ or "")
            known = cloudpickle.list_registry_pickle_by_value()
            if module is not None and module.__name__ not in known and not _is_installed(module):
                cloudpickle.register_pickle_by_value(module)
                self._noted.append(module)
        return super().reducer_override(obj)


def _is_installed(module: ModuleType) -> bool:
    file, name = getattr(module, "__file__", None), module.__name__
    if file is None or name.partition(".")[0] in _KNOWN:
        return True
    path = Path(file)
    inside = [*path.parents][name.count(".") + (path.stem == "__init__") :]
    return _has_packages(inside[0]) or not _LIBRARY.isdisjoint(map(str, inside))


@cache
def _has_packages(folder: Path) -> bool:
    """Whether packages are installed in a folder, which an installer says beside them."""
    return any(folder.glob("*.dist-info"))


def digests_of(functions: Sequence[PythonFunction]) -> tuple[str, ...]:
    """Return what tells functions from what they were, with the values that they read; raises `Unsupported` for one that cannot be sent."""
    return tuple(map(_digest, functions))


def _digest(function: PythonFunction) -> str:
    if function.side_effects:
        raise Unsupported(
            f"The Python function {function.name} has side effects, which each worker of a cluster would have for itself: "
            "ask on a connection without cluster=."
        )
    file = io.BytesIO()
    try:
        FunctionPickler(file, protocol=5).dump(function)
    except Exception as error:  # whatever it reads may raise
        raise Unsupported(
            f"The Python function {function.name} cannot be sent to the workers of a cluster: {type(error).__name__}: {error}"
        ) from error
    return sha256(file.getbuffer()).hexdigest()
