"""The fence around what users call: whatever leaves it is a `FuselineError`.

`@fenced` on a class or function of the API is the one mechanism.  Errors of this package pass as they are, through any number of
fences, and so do `KeyboardInterrupt` and `SystemExit`; what nobody foresaw becomes an `InternalError` with the original as its
cause.  An entered and left fence costs 0.1 us.
"""

from __future__ import annotations

import errno
import platform
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from functools import wraps
from importlib.metadata import PackageNotFoundError, version
from inspect import CO_VARARGS, isgeneratorfunction
from types import FunctionType
from typing import Any, TypeVar, cast

from . import errors as err
from .requirements import requirements

T = TypeVar("T")

# Python asks for these itself, and takes an AttributeError or a StopIteration for an answer
PASSED = frozenset(
    [
        "__getattr__",
        "__getattribute__",
        "__setattr__",
        "__delattr__",
        "__del__",
        "__next__",
        "__new__",
        "__init_subclass__",
        "__class_getitem__",
        "pipe",  # what it is given raises its own errors
        "stoppable",  # what is done inside is fenced itself
    ]
)
# What the system says when it has no room or gives no right: no fault of a program
REFUSALS = frozenset(
    getattr(errno, name)
    for name in [
        "ENOSPC",
        "EDQUOT",
        "EFBIG",
        "EMFILE",
        "ENFILE",
        "EIO",
        "EROFS",
        "EACCES",
        "EPERM",
        "ESTALE",
        "ELOOP",
        "ENAMETOOLONG",
        "EBUSY",
    ]
    if hasattr(errno, name)
)


# What other dataframe libraries call an argument: a parameter that the called function has (None: whatever it has), and what to write
KEYWORDS: dict[str, tuple[tuple[str | None, str], ...]] = {
    "ascending": (("descending", "descending=, the opposite"),),
    "reverse": (("descending", "descending="),),
    "nulls_last": (("descending", "col(...).nulls_last() or .nulls_first() for a key"),),
    "na_position": (("descending", "col(...).nulls_last() or .nulls_first() for a key"),),
    "by": ((None, "the columns themselves as the first arguments"),),
    "subset": ((None, "the columns themselves as the first arguments"),),
    "columns": (
        ("names", "the names, as in rename({old: new})"),
        (None, "the columns themselves as the first arguments"),
    ),
    "axis": (
        (None, "no axis: methods of a frame work on rows, and select, drop and rename on columns"),
    ),
    "inplace": ((None, "the frame that the method returns"),),
    "keep": ((None, "sort(...) before it: the first row of each is kept"),),
    "n": (("count", "count="),),
    "k": (("count", "count="),),
    "left_index": ((None, "columns: a frame has no index"),),
    "right_index": ((None, "columns: a frame has no index"),),
    "suffixes": (("suffix", "suffix=, for the right side"),),
    "id_vars": (("index", "index="),),
    "value_vars": (("on", "the columns as the first arguments"),),
    "var_name": (("name", "name="),),
    "variable_name": (("name", "name="),),
    "value_name": (("value", "value="),),
    "aggfunc": (("values", 'values=, such as sum_("price")'),),
    "aggregate_function": (("values", 'values=, such as sum_("price")'),),
    "frac": (("fraction", "fraction="),),
    "random_state": (("seed", "seed="),),
    "strict": (("safe", "safe=True for TRY_CAST"),),
    "window": (("window_size", "window_size="),),
    "min_periods": (("min_samples", "min_samples="),),
    "fill_value": (("fill", "fill="),),
    "periods": (("n", "the number of rows as the first argument"),),
    "dtype": (("data_type", "the type as the first argument"),),
    "analyze": (("stage", 'explain("analyze")'),),
    "type": (("stage", 'explain("analyze"), explain("all") or another stage'),),
}


def fenced(guarded: T) -> T:
    """Fence a function, or all public methods and properties of a class with those that Python calls by itself."""
    if isinstance(guarded, FunctionType):
        return cast("T", _fenced_function(guarded))
    _ = guarded.__init__  # type: ignore[misc]  # which `records` makes with the first look
    for name, member in list(vars(guarded).items()):
        if name in PASSED or (name.startswith("_") and not name.endswith("_")):
            continue
        if isinstance(member, FunctionType):
            setattr(guarded, name, _fenced_function(member))
        elif isinstance(member, classmethod | staticmethod):
            setattr(
                guarded, name, type(member)(_fenced_function(cast("FunctionType", member.__func__)))
            )
        elif isinstance(member, property) and member.fget is not None:
            getter = _fenced_function(cast("FunctionType", member.fget))
            setattr(guarded, name, property(getter, doc=member.__doc__))
    return guarded


@contextmanager
def fence(*passed: type[BaseException]) -> Iterator[None]:
    """Fence a block; exceptions of these types pass as they are."""
    try:
        yield
    except err.FuselineError:
        raise
    except BaseException as error:
        found = None if isinstance(error, passed) else translated(error)
        if found is None:
            raise
        raise found from error


def translated(error: BaseException) -> err.FuselineError | None:
    """Return the error to raise in the place of one that is not ours; None for what has to pass."""
    if isinstance(error, err.FuselineError) or not _is_fault(error):
        return None
    if isinstance(error, RecursionError):
        return err.InvalidQuery(err.TOO_DEEP)
    if isinstance(error, MemoryError):
        return err.MemoryLimitError(
            "The host has no memory left for this: set memory_limit, so that queries stay within it, or read less at a time."
        )
    if isinstance(error, OSError) and error.errno in REFUSALS:
        return err.ExecutionError(f"The operating system refused: {error}.")
    library = _missing_library(error)
    if library:
        return err.ExecutionError(f"{library} is not installed: pip install {library}.")
    return internal_error(error)


def _missing_library(error: BaseException) -> str:
    """The library that somebody else's module, or a call such as `df()`, could not import; nothing for a module of ours or of Python."""
    name = (error.name or "") if isinstance(error, ModuleNotFoundError) else ""
    library = name.partition(".")[0]
    return "" if library == __package__ or library in sys.stdlib_module_names else library


def _is_fault(error: BaseException) -> bool:
    """A panic of a library written in Rust is no Exception, so that it ends a thread that runs Python; here it is a fault."""
    return isinstance(error, Exception) or type(error).__module__ == "pyo3_runtime"


def _fenced_function(function: FunctionType) -> Callable[..., object]:
    # A property's getter, an inherited method: one fence is enough
    if hasattr(function, "is_fenced"):
        return function
    gives_rows = isgeneratorfunction(function)

    @wraps(function)
    def guarded(*args: object, **kwargs: object) -> object:
        try:
            return function(*args, **kwargs)
        except err.FuselineError:
            raise
        except BaseException as error:
            found = _wrong_call(error, function) or translated(error)
            if found is None:
                raise
            raise found from error

    @wraps(function)
    def iterated(*args: object, **kwargs: object) -> Iterator[object]:
        with fence():
            yield from function(*args, **kwargs)

    chosen: Any = iterated if gives_rows else guarded
    chosen.is_fenced = True
    return cast("Callable[..., object]", chosen)


def _wrong_call(error: BaseException, function: FunctionType) -> err.WrongArguments | None:
    """Return the error for a TypeError that the call itself raised, for the number or names of its arguments."""
    trace = error.__traceback__
    if isinstance(error, TypeError) and trace is not None and trace.tb_next is None:
        message = str(error).replace(function.__qualname__, function.__name__)
        return err.WrongArguments(f"{message}.{_keyword_hint(message, function)}")
    return None


def _keyword_hint(message: str, function: FunctionType) -> str:
    """Return what to write instead of a keyword of another library, or the nearest one that there is."""
    name = message.partition("unexpected keyword argument '")[2].partition("'")[0]
    if not name:
        return ""
    code = function.__code__
    own = code.co_varnames[1 : code.co_argcount + code.co_kwonlyargcount]
    for there, remedy in KEYWORDS.get(name, ()):
        if there is None or there in own:
            return f" Use {remedy}."
    named = code.co_argcount + code.co_kwonlyargcount
    any_number = [f"*{code.co_varnames[named]}"] if code.co_flags & CO_VARARGS else []
    takes = ", ".join([*any_number, *own]) or "no arguments"
    return err.nearest(name, own) or f" It takes {takes}."


def internal_error(error: BaseException) -> err.InternalError:
    """Return the error that says what happened, and what a report needs."""
    notes = "".join(f" ({note})" for note in getattr(error, "__notes__", ()))
    what = str(error).strip().split("\n")[0].rstrip(".")
    cause = type(error).__name__ + (f": {what}" if what else "") + notes
    misfit = next((r.misfit for r in requirements() if r.extra is None and r.misfit), None)
    if misfit is not None:
        return err.InternalError(f"Something went wrong inside Fuseline: {cause}. {misfit}")
    versions = [f"Python {platform.python_version()}", platform.platform()]
    for package in ("pyarrow", "fuseline"):
        with suppress(PackageNotFoundError):
            versions.insert(0, f"{package} {version(package)}")
    return err.InternalError(
        f"Something went wrong inside Fuseline: {cause}. This is a fault of Fuseline and not of the query: please report it with the "
        f"query, the types of its columns, the traceback of the cause and these versions: {', '.join(versions)}."
    )
