"""Dataclasses of `records` do what those of the standard library do."""

from __future__ import annotations

import copy
import dataclasses
import inspect
import pickle
import re
from collections.abc import Callable
from dataclasses import field
from functools import cached_property
from pathlib import Path
from typing import Any, ClassVar

import pytest

from fuseline.records import dataclass

ROOT = Path(__file__).parents[1]
MAKERS: dict[str, Callable[..., Any]] = {"ours": dataclass, "library": dataclasses.dataclass}


def classes(make: Callable[..., Any]) -> dict[str, Any]:
    @make(frozen=True)
    class Frozen:
        a: int
        b: str = "x"
        c: list[int] = field(default_factory=list, compare=False)
        d: int = field(default=3, repr=False, hash=False)
        count: ClassVar[int] = 7

        @cached_property
        def twice(self) -> int:
            return self.a * 2

    @make(frozen=True)
    class Below(Frozen):
        """With a word about it."""

        e: float = field(default=0.5, kw_only=True)

        def __post_init__(self) -> None:
            object.__setattr__(self, "made", self.a + 1)

    @make(frozen=True, slots=True)
    class Slotted:
        a: int
        b: tuple[int, ...] = ()

    @make
    class Plain:
        a: int
        b: dict[str, int] = field(default_factory=dict)
        c: int = field(init=False, default=5)
        d: set[int] = field(init=False, default_factory=set)

    @make(eq=False)
    class Identity:
        a: int

    @make(frozen=True, eq=False, repr=False)
    class Bare:
        a: int

    @make(slots=True, kw_only=True)
    class Named:
        a: int
        b: int = 2

    @make(frozen=True)
    class Empty:
        pass

    return {k: v for k, v in locals().items() if isinstance(v, type)}


def with_own_words(make: Callable[..., Any]) -> dict[str, Any]:
    @make(frozen=True)
    class OwnWords:  # noqa: PLW1641
        a: int

        def __eq__(self, other: object) -> bool:
            return isinstance(other, OwnWords)

        def __repr__(self) -> str:
            return "mine"

    @make(frozen=True)
    class OwnHash:
        a: int

        def __hash__(self) -> int:
            return 5

    @make
    class OwnHashOfPlain:
        a: int

        def __hash__(self) -> int:
            return 6

    return {k: v for k, v in locals().items() if isinstance(v, type)}


BOTH = {name: classes(make) | with_own_words(make) for name, make in MAKERS.items()}


def outcome(action: Callable[[], Any]) -> str:
    """What came of it, without where objects lie and where their classes were written."""
    try:
        found = repr(action())
    except Exception as error:
        found = f"{type(error).__name__}: {error}"
    return found.partition(" object at ")[0].replace("ours", "").replace("library", "")


def tried(kind: Any) -> dict[str, str]:
    given: dict[str, Any] = {"a": 1} if "a" in kind.__dataclass_fields__ else {}

    def one(**more: Any) -> Any:
        return kind(**given | more)

    def removed() -> Any:
        made = one()
        del made.a
        return vars(made)

    def put(name: str) -> Any:
        made = one()
        setattr(made, name, 9)
        return getattr(made, name)

    return {name: outcome(action) for name, action in {
        "shown": one,
        "signature": lambda: [str(p).split(":")[0] for p in inspect.signature(kind).parameters],
        "by place": lambda: kind(1, 2),
        "too many": lambda: kind(*range(9)),
        "missing": kind,
        "unknown": lambda: one(z=1),
        "equal": lambda: (one() == one(), one() != one(), one() == 1),
        "other value": lambda: one() == one(a=2) if given else None,
        "hash": lambda: hash(one()) == hash(one()),
        "hash is none": lambda: kind.__hash__ is None,
        "as key": lambda: len({one(), one()}),
        "fields": lambda: [(f.name, f.init, f.kw_only) for f in dataclasses.fields(kind)],
        "matched": lambda: kind.__match_args__,
        "replaced": lambda: dataclasses.replace(one(), a=7),
        "a dict": lambda: dataclasses.asdict(one()),
        "copied": lambda: copy.deepcopy(one()).__class__ is kind,
        "own": lambda: one().c is one().c,
        "put": lambda: put("a"),
        "put another": lambda: put("zz"),
        "removed": removed,
        "cached": lambda: (one().twice, one().made),
        "nested": lambda: one(a=one()),
        "slots": lambda: kind.__slots__,
        "names": lambda: [kind.__init__.__qualname__, kind.__init__.__module__],
    }.items()}  # fmt: skip


@pytest.mark.parametrize("name", list(BOTH["ours"]))
def test_ours_are_as_those_of_the_library(name: str) -> None:
    ours, theirs = tried(BOTH["ours"][name]), tried(BOTH["library"][name])
    if (
        "super(type, obj)" in theirs["put another"]
    ):  # what the library says of classes with slots, by mistake
        theirs["put another"] = "FrozenInstanceError: cannot assign to field 'zz'"
    assert ours == theirs


@dataclass(frozen=True, slots=True)
class Sent:
    a: int
    b: Any = None


@dataclass(frozen=True)
class SentWithDict:
    a: int
    b: Any = None


@pytest.mark.parametrize("kind", [Sent, SentWithDict])
def test_they_can_be_sent_and_hold_themselves(kind: Any) -> None:
    made = kind(1, [kind(2)])
    assert pickle.loads(pickle.dumps(made)) == made
    held: list[Any] = []
    held.append(kind(1, held))
    assert repr(held[0]) == f"{kind.__name__}(a=1, b=[...])"


def test_a_child_that_is_no_dataclass_has_attributes_of_its_own() -> None:
    class Child(SentWithDict):
        def __init__(self) -> None:
            super().__init__(1)
            self.more = 2

    made = Child()
    assert (made.a, made.more) == (1, 2)
    with pytest.raises(dataclasses.FrozenInstanceError, match="cannot assign to field 'a'"):
        made.a = 3  # type: ignore[misc]


def test_the_engine_has_no_others() -> None:
    """But those with an `InitVar`, which ours have not."""
    found = [
        str(path.relative_to(ROOT))
        for folder in ("engine", "sql")
        for path in (ROOT / folder).rglob("*.py")
        if re.search(r"^from dataclasses import .*\bdataclass\b", text := path.read_text(), re.M)
        and "InitVar" not in text
    ]
    assert found == [], (
        "import dataclass from records: a new process makes it in a third of the time"
    )
