"""The Python functions of a plan as they are when it is planned: with the code that kernels are made of, or why Python is called."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

from ...errors import Unsupported
from ..commons import commons_of, nodes_of, replace_nodes, with_commons
from ..expr import Expr
from ..logical import Logical
from ..node import transform_up, walk
from .code_image import CodeImage, NotCompilable, image_of
from .declaration import unfit_type
from .python_aggregate import PythonFold
from .python_function import PythonCall, PythonFunction

# Returns why the compiler refuses the function of a call, which has an image
Refusal = Callable[[PythonCall | PythonFold], str | None]
DeviceRefusal = Callable[[PythonCall], str | None]  # the same for a GPU
Images = tuple[CodeImage | str, ...]


@dataclass(frozen=True)
class SettledPlan:
    """A plan with its calls settled."""

    plan: Logical
    refusal: Refusal
    device_refusal: DeviceRefusal | None

    def call(self, expr: Expr) -> Expr | None:
        if isinstance(expr, PythonFold):
            return self._fold(expr)
        if not isinstance(expr, PythonCall):
            return None
        image, why = _image(expr.function)
        made = replace(expr, image=image, why=why)
        refused = None if image is None else self.refusal(made)
        if refused is not None:
            made = replace(expr, image=None, why=refused)
        if made.image is None and expr.function.way == "compiled":
            error = Unsupported(
                f"The Python function {expr.function.name} {made.why}, so that it cannot be compiled: "
                "write vectorized=True, with which Python runs it over arrays."
            )
            error.at(expr.span)
            raise error
        if made.image is None or self.device_refusal is None:
            return made
        return replace(made, not_on_gpu=self.device_refusal(made) or "")

    def _fold(self, fold: PythonFold) -> Expr:
        found = [_image(function) for function in fold.function.functions]
        images = tuple(image for image, _ in found if image is not None)
        made = replace(fold, images=images)
        why = next((why for image, why in found if image is None), None) or self.refusal(made)
        if why is not None:
            error = Unsupported(
                f"The Python aggregate {fold.function.name} {why}: it has to compile."
            )
            error.at(fold.span)
            raise error
        return made


def settled(
    plan: Logical, refusal: Refusal, device_refusal: DeviceRefusal | None = None
) -> Logical:
    """Return a plan, for a GPU where that may refuse, with its calls of Python functions settled.

    Raises `Unsupported` for one that has to be compiled and cannot.
    """
    if not functions_of(plan):
        return plan
    made = SettledPlan(plan, refusal, device_refusal)

    def in_node(node: Logical) -> Logical:
        return node.map_expressions(lambda e: transform_up(e, made.call))

    return with_commons(plan, lambda part: replace_nodes(part, in_node))


def functions_of(plan: Logical) -> tuple[PythonFunction, ...]:
    """Return the Python functions that a plan calls, those of its subqueries included, each once."""
    found: dict[PythonFunction, None] = {}
    for part in (plan, *(common.plan for common in commons_of(plan))):
        for node in nodes_of(part):
            for expr in node.expressions:
                for each in walk(expr):
                    if isinstance(each, PythonCall):
                        found.setdefault(each.function)
                    elif isinstance(each, PythonFold):
                        found |= dict.fromkeys(each.function.functions)
    return tuple(found)


def images_of(functions: tuple[PythonFunction, ...]) -> Images:
    """Return what the values of functions depend on now, for those that may be compiled, or why they are not."""
    return tuple(image or why for image, why in map(_image, functions))


def _image(function: PythonFunction) -> tuple[CodeImage | None, str]:
    why = _uncompiled(function)
    if why is not None:
        return None, why
    try:
        return image_of(function.python), ""
    except NotCompilable as reason:
        return None, reason.message


def _uncompiled(function: PythonFunction) -> str | None:
    """Return why a function is not compiled, whatever its code is."""
    if function.way == "vectorized":
        return "is vectorized: Python runs it over arrays"
    if function.side_effects:
        return "has side effects: Python is called for each row"
    if function.takes_nulls:
        return "takes NULLs: Python is called for each row"
    unfit = unfit_type(function)
    return None if unfit is None else unfit.partition(":")[0]
