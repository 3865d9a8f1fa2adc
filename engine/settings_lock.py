"""Which settings may still be changed on an open connection: SQL and `set_option` make it stricter, never laxer."""

from __future__ import annotations

from pathlib import Path

from .errors import InvalidQuery
from .setting_values.paths import UrlPrefix
from .settings import DUCKDB_NAMES, PREFIX, Settings

# Where the process writes, which text from outside has no say in
CHOSEN_AT_START = ("cache_dir", "spill_dir", "column_store", "column_store_limit")


def check_change(old: Settings, new: Settings, name: str) -> None:
    """Raise `InvalidQuery` where the new settings, which differ in the one of this name, may not follow on the old ones."""
    name = DUCKDB_NAMES.get(name.lower(), name.lower())
    if old.lock_settings:
        raise InvalidQuery("The settings of this connection are locked: lock_settings is true.")
    if name in CHOSEN_AT_START and new != old:
        raise InvalidQuery(
            f"{name} is chosen when a connection is made: connect({name}=...), or {PREFIX}{name.upper()} in the environment."
        )
    if new.external_access and not old.external_access:
        raise InvalidQuery("external_access is false and stays so: make another connection.")
    if not _is_within(new, old):
        raise InvalidQuery(
            "allowed_paths may lose paths, but not get others: make another connection."
        )


def _is_within(new: Settings, old: Settings) -> bool:
    """Whether all files that may be opened by the new settings may be opened by the old ones."""
    before, after = _allowed(old), _allowed(new)
    if before is None:
        return True
    return after is not None and all(
        any(path.is_relative_to(known) for known in before) for path in after
    )


def _allowed(settings: Settings) -> tuple[Path | UrlPrefix, ...] | None:
    if settings.allowed_paths is None:
        return None if settings.external_access else ()
    return settings.allowed_paths
