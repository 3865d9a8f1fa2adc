"""Names as statements write them."""


def quoted_name(name: str) -> str:
    """Return a name in quotes, which any name may stand in."""
    return '"' + name.replace('"', '""') + '"'
