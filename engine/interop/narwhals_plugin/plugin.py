"""What Narwhals asks a backend for: whose objects it takes, and the namespace that wraps them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ...errors import NotSupportedError
from ...frame.frame import Frame

if TYPE_CHECKING:
    from narwhals.utils import Version

    from .narwhals_namespace import NarwhalsNamespace

NATIVE_PACKAGE = "fuseline"
NARWHALS = (2, 29)  # whose `_sql` this package is written for; pyproject.toml pins it


def is_native(native_object: object) -> bool:
    """Whether an object is a Frame."""
    return isinstance(native_object, Frame)


def __narwhals_namespace__(version: Version) -> NarwhalsNamespace:  # noqa: N807
    """Return the namespace of a version of Narwhals' API; raises `NotSupportedError` where another Narwhals is installed."""
    import narwhals

    found = tuple(int(part) for part in narwhals.__version__.split(".")[:2])
    if found != NARWHALS:
        wanted = ".".join(map(str, NARWHALS))
        raise NotSupportedError(
            f"Frames go into Narwhals {wanted}, and {narwhals.__version__} is installed: pip install 'fuseline[narwhals]' "
            "brings the one that fits."
        )
    from .narwhals_namespace import NarwhalsNamespace

    return NarwhalsNamespace(version=version)
