"""From a remote path and its secret to obstore's store of a bucket, container or server."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from ...errors import FileError
from ...plan.files.remote_secret import RemoteSecret
from ...settings import has_variable
from .object_stores import ObjectStore, Patience, obstore
from .urls import Url

AWS = ("AWS_ACCESS_KEY_ID", "AWS_WEB_IDENTITY_TOKEN_FILE", "AWS_CONTAINER_CREDENTIALS_RELATIVE_URI", "AWS_CONTAINER_CREDENTIALS_FULL_URI")  # fmt: skip
GOOGLE = ("GOOGLE_APPLICATION_CREDENTIALS", "GOOGLE_SERVICE_ACCOUNT", "GOOGLE_SERVICE_ACCOUNT_PATH", "GOOGLE_SERVICE_ACCOUNT_KEY", "GOOGLE_BEARER_TOKEN")  # fmt: skip
_GOOGLE_HOST = "storage.googleapis.com"


def open_store(url: Url, secret: RemoteSecret | None, patience: Patience) -> ObjectStore:
    """Return what answers for a path; nothing is asked of it yet."""
    if url.is_web:
        return _web(url, secret, patience)
    if url.scheme == "az":
        return _azure(url, secret, patience)
    if url.scheme == "gs" and (secret is None or secret.get("key_id") is None):
        return _google(url, secret, patience)
    return _s3(url, secret, patience)


def _client(patience: Patience, plain: bool, **more: object) -> dict[str, object]:
    limits = {"timeout": f"{patience.seconds}s", "connect_timeout": f"{patience.seconds}s"}
    return {"client_options": {**limits, "allow_http": plain, **more}, **patience.options()}


def _root(url: Url) -> str:
    return f"{url.scheme}://{url.host}/"


def _s3(url: Url, secret: RemoteSecret | None, patience: Patience) -> ObjectStore:
    """S3, and the services that speak as S3 does: Google's with HMAC keys, R2."""
    config: dict[str, object] = {"bucket": url.host}
    options: dict[str, object] = {}
    plain, address = has_variable("AWS_ENDPOINT_URL", "AWS_ENDPOINT", "AWS_ENDPOINT_URL_S3"), ""
    if secret is not None:
        address = _address(url, secret)
        plain = address.startswith("http://") or (plain and not address)
        if secret.get("region"):
            config["region"] = secret.get("region")
        config["virtual_hosted_style_request"] = _is_virtual(url, secret)
        if address:
            config["endpoint"] = address
        keys = _keys(secret)
        if keys is not None:
            options["credential_provider"] = keys
        elif secret.provider == "config":
            config["skip_signature"] = True
    elif not has_variable(*AWS):
        config["skip_signature"] = True
    made = obstore().store.S3Store(config=config, **options, **_client(patience, plain))
    return ObjectStore(f"{address}|{_root(url)}", _root(url), patience, made)


def _keys(secret: RemoteSecret) -> Callable[[], Mapping[str, str | None]] | None:
    """Return what gives a secret's keys and nothing of the environment's; None where there are no keys in it."""
    key, hidden = secret.get("key_id"), secret.get("secret")
    if key is None or hidden is None:
        return None
    found = {"access_key_id": key, "secret_access_key": hidden, "expires_at": None}
    found["token"] = secret.get("session_token")
    return lambda: found


def _is_virtual(url: Url, secret: RemoteSecret) -> bool:
    style = secret.get("url_style")
    return url.scheme == "s3" if style is None else style == "vhost"


def _address(url: Url, secret: RemoteSecret) -> str:
    """Return the address of a secret's service, with the bucket before it where that is the style."""
    host = secret.get("endpoint")
    if host is None and url.scheme == "gs":
        host = _GOOGLE_HOST
    if host is None and url.scheme == "r2":
        account = secret.get("account_id")
        if account is None:
            raise FileError("A secret of TYPE r2 needs ACCOUNT_ID.")
        host = f"{account}.r2.cloudflarestorage.com"
    if host is None:
        return ""
    scheme, given, rest = host.partition("://")
    if not given:
        scheme, rest = ("http" if secret.options.get("use_ssl") is False else "https"), host
    return f"{scheme}://{url.host}.{rest}" if _is_virtual(url, secret) else f"{scheme}://{rest}"


def _google(url: Url, secret: RemoteSecret | None, patience: Patience) -> ObjectStore:
    config: dict[str, object] = {"bucket": url.host}
    token = None if secret is None else secret.get("bearer_token")
    plain = has_variable("GOOGLE_BASE_URL")
    if token is not None:
        config["bearer_token"] = token
    elif not has_variable(*GOOGLE) and (secret is None or secret.provider == "config"):
        config["skip_signature"] = True
    made = obstore().store.GCSStore(config=config, **_client(patience, plain))
    return ObjectStore(_root(url), _root(url), patience, made)


def _azure(url: Url, secret: RemoteSecret | None, patience: Patience) -> ObjectStore:
    config: dict[str, object] = {"container_name": url.host}
    said = _connection_string(None if secret is None else secret.get("connection_string"))
    account = said.get("accountname") or (None if secret is None else secret.get("account_name"))
    if account is None and not has_variable("AZURE_STORAGE_ACCOUNT_NAME"):
        raise FileError(
            "A path of az:// needs the name of the account: CREATE SECRET (TYPE azure, ACCOUNT_NAME ...), or AZURE_STORAGE_ACCOUNT_NAME."
        )
    if account is not None:
        config["account_name"] = account
    if "accountkey" in said:
        config["account_key"] = said["accountkey"]
    if "sharedaccesssignature" in said:
        config["sas_key"] = said["sharedaccesssignature"]
    if (
        not config.keys() & {"account_key", "sas_key"}
        and secret is not None
        and secret.provider == "config"
    ):
        config["skip_signature"] = True
    if "blobendpoint" in said:
        config["endpoint"] = said["blobendpoint"]
    if secret is not None and secret.provider == "service_principal":
        for name in ("tenant_id", "client_id", "client_secret"):
            config[name] = secret.get(name)
    plain = said.get("blobendpoint", "").startswith("http://")
    made = obstore().store.AzureStore(config=config, **_client(patience, plain))
    return ObjectStore(f"{said.get('blobendpoint') or account}|{_root(url)}", _root(url), patience, made)  # fmt: skip


def _connection_string(text: str | None) -> dict[str, str]:
    pairs = (part.partition("=") for part in (text or "").split(";") if part)
    return {name.strip().lower(): value for name, _, value in pairs}


def _web(url: Url, secret: RemoteSecret | None, patience: Patience) -> ObjectStore:
    query = f"?{url.query}" if url.query else ""
    more: dict[str, object] = {}
    if secret is not None:
        headers = dict(secret.options.get("extra_http_headers") or {})  # type: ignore[call-overload]
        token = secret.get("bearer_token")
        if token is not None:
            headers["Authorization"] = f"Bearer {token}"
        more = {"default_headers": headers} if headers else {}
        if secret.get("http_proxy"):
            more["proxy_url"] = secret.get("http_proxy")
    base = f"{_root(url)}{query}"
    made = obstore().store.HTTPStore(base, **_client(patience, url.scheme == "http", **more))
    return ObjectStore(base, _root(url), patience, made)
