"""The Python functions of a plan as they are when it is planned: with the code that kernels are made of, or why Python is called."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace

from ...errors import Unsupported
from ..commons import commons_of, nodes_of, replace_nodes, with_commons
from ..expr import Expr
from ..logical import Logical
from ..node import transform_up, walk
from .additive_folds import STEP, Kinds, folded_by_kernels
from .code_image import CodeImage, NotCompilable, image_of
from .declaration import unfit_type
from .python_aggregate import PythonFold
from .python_function import AggregatePart, PythonCall, PythonFunction

# Returns why the compiler refuses the function of a call, which has an image
Refusal = Callable[[PythonCall | PythonFold], str | None]
DeviceRefusal = Callable[[PythonCall], str | None]  # the same for a GPU


@dataclass(frozen=True)
class FunctionCompiler:
    """What compilers know of Python functions: why one is refused, also for a GPU where a plan is for one, and how states of aggregates fold."""

    refusal: Refusal
    kinds: Kinds
    device_refusal: DeviceRefusal | None = None

    def settled(self, expr: Expr) -> Expr | None:
        """Return a call as it is now, or a fold, of which nobody knows yet who runs it; None for another expression."""
        if isinstance(expr, PythonFold):
            found = [_image(function) for function in expr.function.functions]
            why = next((why for image, why in found if image is None), None)
            if why is not None:
                raise _of_aggregate(expr, why)
            return replace(expr, images=tuple(image for image, _ in found if image is not None))
        if not isinstance(expr, PythonCall):
            return None
        image, why = _image(expr.function)
        made = replace(expr, image=image, why=why)
        # The terms of a step are known
        part = expr.function if isinstance(expr.function, AggregatePart) else None
        is_step = part is not None and part.role == STEP
        refused = None if image is None or is_step else self.refusal(made)
        if refused is not None:
            made = replace(expr, image=None, why=refused)
        if made.image is None and part is not None:
            raise _of_aggregate(expr, made.why)
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

    def check_loops(self, plan: Logical) -> None:
        """Raise `Unsupported` for an aggregate that no kernel folds, and whose loop over lists does not compile."""
        for fold in _parts_of(plan):
            if isinstance(fold, PythonFold) and (why := self.refusal(fold)) is not None:
                raise _of_aggregate(fold, why)


def _of_aggregate(expr: PythonFold | PythonCall, why: str) -> Unsupported:
    error = Unsupported(f"The Python aggregate {expr.function.name} {why}: it has to compile.")
    error.at(expr.span)
    return error


def settled(plan: Logical, compiler: FunctionCompiler) -> Logical:
    """Return a plan with its calls of Python functions settled; raises `Unsupported` for one that has to be compiled and cannot."""
    if not functions_of(plan):
        return plan
    on_gpu = compiler.device_refusal is not None

    def in_node(node: Logical) -> Logical:
        return node.map_expressions(lambda e: transform_up(e, compiler.settled))

    def rewrite(part: Logical) -> Logical:
        found = replace_nodes(part, in_node)
        found = folded_by_kernels(found, compiler.kinds, compiler.settled, on_gpu)
        compiler.check_loops(found)
        return found

    return with_commons(plan, rewrite)


def functions_of(plan: Logical) -> tuple[PythonFunction, ...]:
    """Return the Python functions that a plan calls, those of its subqueries included, each once."""
    found: dict[PythonFunction, None] = {}
    for part in (plan, *(common.plan for common in commons_of(plan))):
        for each in _parts_of(part):
            if isinstance(each, PythonCall):
                found.setdefault(each.function)
            elif isinstance(each, PythonFold):
                found |= dict.fromkeys(each.function.functions)
    return tuple(found)


def _parts_of(plan: Logical) -> Iterator[Expr]:
    for node in nodes_of(plan):
        for expr in node.expressions:
            yield from walk(expr)


def images_of(functions: Sequence[PythonFunction]) -> tuple[CodeImage | str, ...]:
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
    if isinstance(function, AggregatePart):  # whose sums may be wider than what functions take
        return None
    unfit = unfit_type(function)
    return None if unfit is None else unfit.partition(":")[0]
