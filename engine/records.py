"""Dataclasses that are made in a fraction of the time.

The standard library generates up to six functions for each class and compiles them one by one, before Python 3.13: 471 classes of a first
query took 0.41 s of its 1.4 s.  Here the constructor, comparison and hash of a class are compiled together when one of them is first
asked for, which for most classes is never, and the other functions are the same for all.
"""

from __future__ import annotations

import dataclasses
from dataclasses import MISSING, Field, FrozenInstanceError
from reprlib import recursive_repr
from types import FunctionType
from typing import TYPE_CHECKING, ClassVar, Protocol

if TYPE_CHECKING:
    from dataclasses import dataclass as dataclass
else:

    def dataclass(cls=None, /, **options):
        """Do what `dataclasses.dataclass` does with `frozen`, `slots`, `eq`, `repr` and `kw_only`, which are all that there are; no `InitVar`."""
        return _made(cls) if cls is not None else lambda cls: _made(cls, **options)


class Record(Protocol):
    """An object of a dataclass."""

    __dataclass_fields__: ClassVar[dict[str, Field[object]]]


def _made(
    cls: type,
    frozen: bool = False,
    slots: bool = False,
    eq: bool = True,
    repr: bool = True,
    kw_only: bool = False,
) -> type:
    own = dict(cls.__dict__)
    if cls.__doc__ is None:
        cls.__doc__ = cls.__name__  # where there is none, the signature would be looked up to be it
    cls = dataclasses.dataclass(init=False, repr=False, eq=False, slots=slots, kw_only=kw_only)(cls)
    given: dict[str, object] = {"__repr__": _shown} if repr else {}
    if frozen:
        given |= {"__setattr__": _refuse_setting, "__delattr__": _refuse_deleting}
    if frozen and slots:
        given |= {"__getstate__": _state, "__setstate__": _set_state}
    # Where a class says how it compares, the lack of a hash is Python's rule and not its own word
    is_free = "__hash__" not in own or (own["__hash__"] is None and "__eq__" in own)
    if eq and is_free:
        own.pop("__hash__", None)
        given |= {"__hash__": None}
    hashed = frozen and eq and is_free
    for name in ("__init__", *["__eq__"] * eq, *["__hash__"] * hashed):
        given[name] = _Later(cls, name, frozen, eq, hashed)
    for name, function in given.items():
        if name not in own:
            setattr(cls, name, function)
    return cls


class _Later:
    """A function of a class until somebody looks it up: then it and the others like it are made, and stand there instead."""

    def __init__(self, cls: type, name: str, *asked: bool) -> None:
        self._cls, self._name, self._asked = cls, name, asked

    def __get__(self, record: object, kind: type | None = None) -> object:
        made = _generated(self._cls, *self._asked)
        for name, function in made.items():
            if isinstance(vars(self._cls)[name], _Later):
                setattr(self._cls, name, function)
        return made[self._name].__get__(record, kind)


def _generated(cls: type, frozen: bool, eq: bool, hashed: bool) -> dict[str, FunctionType]:
    fields: tuple[Field[object], ...] = dataclasses.fields(cls)
    known: dict[str, object] = {"_set": object.__setattr__, "_MISSING": MISSING}
    body = [_assigned(f, frozen, known) for f in fields]
    asked = [f for f in fields if f.init]
    by_place = [_asked(f, known) for f in asked if not f.kw_only]
    by_name = [_asked(f, known) for f in asked if f.kw_only]
    if hasattr(cls, "__post_init__"):
        body.append(" self.__post_init__()")
    parameters = ["self", *by_place, *(["*", *by_name] if by_name else ())]
    text = [f"def __init__({', '.join(parameters)}):", *(body or [" pass"])]
    if eq:
        mine, others = (
            "".join(f"{whose}.{f.name}," for f in fields if f.compare)
            for whose in ("self", "other")
        )
        text += [
            "def __eq__(self, other):",
            " if other.__class__ is self.__class__:",
            f"  return ({mine}) == ({others})",
            " return NotImplemented",
        ]
    if hashed:
        values = "".join(
            f"self.{f.name}," for f in fields if (f.compare if f.hash is None else f.hash)
        )
        text += ["def __hash__(self):", f" return hash(({values}))"]
    namespace: dict[str, FunctionType] = {}
    exec("\n".join(text), {"__name__": cls.__module__, **known}, namespace)
    for name, function in namespace.items():
        function.__qualname__ = f"{cls.__qualname__}.{name}"
    namespace["__init__"].__annotations__ = {f.name: f.type for f in asked} | {"return": None}
    return namespace


def _asked(field: Field[object], known: dict[str, object]) -> str:
    if field.default is not MISSING:
        known[f"_default_{field.name}"] = field.default
        return f"{field.name}=_default_{field.name}"
    return field.name if field.default_factory is MISSING else f"{field.name}=_MISSING"


def _assigned(field: Field[object], frozen: bool, known: dict[str, object]) -> str:
    value = field.name
    if field.default_factory is not MISSING:
        known[f"_make_{field.name}"] = field.default_factory
        made = f"_make_{field.name}()"
        value = f"{made} if {field.name} is _MISSING else {field.name}" if field.init else made
    elif not field.init:
        return " pass"  # its default is the class's
    return f" _set(self, {field.name!r}, {value})" if frozen else f" self.{field.name} = {value}"


@recursive_repr()
def _shown(self: Record) -> str:
    values = (f"{f.name}={getattr(self, f.name)!r}" for f in dataclasses.fields(self) if f.repr)
    return f"{type(self).__qualname__}({', '.join(values)})"


def _refuse_setting(self: Record, name: str, value: object) -> None:
    _refuse(self, name, "assign to")
    object.__setattr__(self, name, value)


def _refuse_deleting(self: Record, name: str) -> None:
    _refuse(self, name, "delete")
    object.__delattr__(self, name)


def _refuse(record: Record, name: str, what: str) -> None:
    kind = type(record)
    if "__dataclass_fields__" in vars(kind) or name in kind.__dataclass_fields__:
        raise FrozenInstanceError(f"cannot {what} field {name!r}")


def _state(self: Record) -> list[object]:
    return [getattr(self, f.name) for f in dataclasses.fields(self)]


def _set_state(self: Record, state: list[object]) -> None:
    for field, value in zip(dataclasses.fields(self), state, strict=True):
        object.__setattr__(self, field.name, value)
