"""Names as statements and types write them."""

import re

_PLAIN_NAME = re.compile(r"[a-z_][a-z0-9_]*", re.IGNORECASE)


def quoted_name(name: str) -> str:
    """Return a name in quotes, which any name may stand in."""
    return '"' + name.replace('"', '""') + '"'


def quoted_field(name: str) -> str:
    """Return the name of a field as types show it."""
    return name if _PLAIN_NAME.fullmatch(name) else quoted_name(name)
