"""The direction in which ORDER BY sorts, and the place of NULLs, as values of settings."""

from __future__ import annotations

from ..errors import shown
from .paths import refused

_DIRECTIONS = {"asc": "ASC", "ascending": "ASC", "desc": "DESC", "descending": "DESC"}
_PLACES = {
    "first": "NULLS_FIRST",
    "last": "NULLS_LAST",
    "first_on_asc_last_on_desc": "NULLS_FIRST_ON_ASC_LAST_ON_DESC",
    "last_on_asc_first_on_desc": "NULLS_LAST_ON_ASC_FIRST_ON_DESC",
    "sqlite": "NULLS_FIRST_ON_ASC_LAST_ON_DESC",
    "mysql": "NULLS_FIRST_ON_ASC_LAST_ON_DESC",
    "postgres": "NULLS_LAST_ON_ASC_FIRST_ON_DESC",
}


def parse_direction(name: str, value: object) -> str:
    found = _DIRECTIONS.get(_word(value))
    if found is None:
        raise refused(name, value, "asc or desc")
    return found


def parse_place_of_nulls(name: str, value: object) -> str:
    found = _PLACES.get(_word(value).removeprefix("nulls_"))
    if found is None:
        wanted = "nulls_first, nulls_last, nulls_first_on_asc_last_on_desc or nulls_last_on_asc_first_on_desc"
        raise refused(name, value, wanted)
    return found


def _word(value: object) -> str:
    """Return a value as one word in lower case: `NULLS FIRST` is nulls_first."""
    return "_".join(value.lower().split()) if isinstance(value, str) else shown(value)
