"""Secrets: credentials for remote paths, as CREATE SECRET gives them; what they hide is shown nowhere."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field

from ...records import dataclass
from .write_options import Check, NotTaken, OptionTable, one_of, switch, text, texts

HIDDEN = (
    "secret",
    "session_token",
    "bearer_token",
    "connection_string",
    "client_secret",
    "extra_http_headers",
    "http_proxy_password",
)


@dataclass(frozen=True)
class RemoteSecret:
    """Credentials and the address of a service, for the paths that begin as `scope` says, for all of its kind where that is empty."""

    name: str
    type: str
    provider: str
    scope: tuple[str, ...]
    options: Mapping[str, object] = field(repr=False, hash=False)

    def get(self, option: str) -> str | None:
        found = self.options.get(option)
        return None if found is None else str(found)

    def shown(self) -> str:
        """Return it as `duckdb_secrets()` tells it, without what it hides."""
        head = {"name": self.name, "type": self.type, "provider": self.provider}
        head |= {"serializable": "true", "scope": ",".join(self.scope)}
        rest = {
            name: "redacted" if name in HIDDEN else _text(value)
            for name, value in sorted(self.options.items())
        }
        return ";".join(f"{n}={v}" if v else n for n, v in (head | rest).items())

    def reach(self, path: str) -> int:
        """Return how many characters of a path its scope has, -1 where it is not for the path."""
        if not self.scope:
            return 0
        return max((len(s) for s in self.scope if path.startswith(s)), default=-1)


def _text(value: object) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


def _headers(value: object) -> dict[str, str]:
    named = isinstance(value, dict) and all(isinstance(v, str) for p in value.items() for v in p)
    if not named or not isinstance(value, dict):
        raise NotTaken("names and texts: MAP {'name': 'value'}")
    return value


_ANY: dict[str, Check] = {"scope": lambda value: texts(value, "a path or a list of paths")}
_S3: dict[str, Check] = {
    **_ANY,
    "provider": one_of("config", "credential_chain"),
    "key_id": text,
    "secret": text,
    "session_token": text,
    "region": text,
    "endpoint": text,
    "url_style": one_of("vhost", "path"),
    "use_ssl": switch,
}
_REFUSED = frozenset(["kms_key_id", "requester_pays", "url_compatibility_mode", "refresh", "refresh_info", "chain", "profile", "assume_role_arn", "external_id", "validation", "verify_ssl"])  # fmt: skip
SECRET_TYPES = {
    "s3": OptionTable("CREATE SECRET (TYPE s3)", _S3, {}, _REFUSED),
    "gcs": OptionTable(
        "CREATE SECRET (TYPE gcs)", {**_S3, "bearer_token": text}, {}, _REFUSED
    ),
    "r2": OptionTable("CREATE SECRET (TYPE r2)", {**_S3, "account_id": text}, {}, _REFUSED),
    "azure": OptionTable(
        "CREATE SECRET (TYPE azure)",
        {
            **_ANY,
            "provider": one_of("config", "credential_chain", "service_principal"),
            "connection_string": text,
            "account_name": text,
            "tenant_id": text,
            "client_id": text,
            "client_secret": text,
        },
        {},
        frozenset(["chain", "client_certificate_path", "http_proxy", "proxy_user_name", "proxy_password", "access_token"]),
    ),
    "http": OptionTable(
        "CREATE SECRET (TYPE http)",
        {
            **_ANY,
            "provider": one_of("config"),
            "bearer_token": text,
            "extra_http_headers": _headers,
            "http_proxy": text,
        },
        {},
        frozenset(["http_proxy_username", "http_proxy_password", "verify_ssl"]),
    ),
}  # fmt: skip
SCOPES = {
    "s3": ("s3://", "s3n://", "s3a://"),
    "gcs": ("gcs://", "gs://"),
    "r2": ("r2://",),
    "azure": ("azure://", "az://"),
    "http": (),
}
# Which secrets are for a path of a scheme
TYPE_OF = {"s3": "s3", "gs": "gcs", "r2": "r2", "az": "azure", "http": "http", "https": "http"}
