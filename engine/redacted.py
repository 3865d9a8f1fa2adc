"""What a text of SQL may show in errors and logs: no secret that stands in it."""

from __future__ import annotations

import re

_CREATE_SECRET = re.compile(
    r"\bcreate\s+(?:or\s+replace\s+)?(?:(?:temp|temporary|persistent)\s+)?secret\b", re.IGNORECASE
)


# Misspelled statements too
_SECRETS = re.compile(
    r"\b(?:key_id|secret|session_token|bearer_token|connection_string|client_secret)\b\s*[=:]?\s*'[^']*'?",
    re.IGNORECASE,
)


def redacted(text: str) -> str:
    """Return a text of SQL in which stars stand for what follows CREATE SECRET, at the same places."""
    found = _CREATE_SECRET.search(text)
    if found is None:
        return _SECRETS.sub(lambda said: "*" * len(said[0]), text)
    return text[: found.end()] + re.sub(r"\S", "*", text[found.end() :])
