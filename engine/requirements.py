"""The libraries that this package takes, as its metadata has them, and which of the installed are of other versions.

What pip has installed fits; another package's pip run, or `--no-deps`, may have changed it since.
"""

from __future__ import annotations

import re
from functools import cache
from importlib.metadata import PackageNotFoundError, requires, version

from .records import dataclass

NOT_FOR_USERS = ("dev", "docs", "foreign", "release")  # extras of those who work on this package
_WRITTEN = re.compile(r"([\w.-]+)(?:\[.*?\])?([^;]*)(?:; extra == .([\w-]+).)?")
_BOUND = re.compile(r"(>=|<|==)\s*([\d.]*\d)")
MOST_NUMBERS = 6  # of a version


@dataclass(frozen=True)
class Requirement:
    """A package and its versions, such as `>=2,<3`, of an extra, or of every installation (None)."""

    package: str
    versions: str
    extra: str | None

    @property
    def installed(self) -> str | None:
        """The version that is installed."""
        try:
            return version(self.package)
        except PackageNotFoundError:
            return None

    @property
    def misfit(self) -> str | None:
        """Say that another version is installed than this package takes, and how to get one that it takes."""
        found = self.installed
        if found is None or takes(self.versions, found):
            return None
        wanted = f"{self.package}{self.versions}"
        return f"{self.package} {found} is installed, and Fuseline needs {wanted}: pip install '{wanted}'."


@cache
def requirements() -> tuple[Requirement, ...]:
    """Return what every installation needs and what the extras for users do; nothing of a tree that is not installed."""
    try:
        written = requires("fuseline") or ()
    except PackageNotFoundError:
        return ()
    read = [Requirement(*match.groups()) for text in written if (match := _WRITTEN.match(text))]
    return tuple(r for r in read if r.extra not in NOT_FOR_USERS and r.package != "fuseline")


def takes(versions: str, found: str) -> bool:
    """Return whether a version lies within bounds such as `>=30.30,<31` or `==26.10.*`."""
    digits = re.match(r"[\d.]*", found)
    numbers = _numbers(digits[0] if digits else "")
    padded = (*numbers, *[0] * (MOST_NUMBERS - len(numbers)))
    for operator, said in _BOUND.findall(versions):
        wanted = _numbers(said)
        fits = {
            ">=": padded >= wanted,
            "<": padded < wanted,
            "==": padded[: len(wanted)] == wanted,
        }
        if not fits[operator]:
            return False
    return True


def _numbers(text: str) -> tuple[int, ...]:
    return tuple(int(number) for number in text.split(".") if number)
