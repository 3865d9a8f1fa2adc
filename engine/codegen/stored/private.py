"""Files that only their owner can have written, and those of machine code, which prove by the secret of a user where they come from.

A file of machine code, of either target:
bytes  0-15   MAGIC, which ends with the version of the format
bytes 16-47   the SHA-256 of all that the code depends on: source, parameters, target, toolchain
bytes 48-55   the length of the code
then          the code, and the tag
"""

from __future__ import annotations

import hashlib
import hmac
import os
import secrets
import struct
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from ...settings import state_folder
from ...storage.spill_folders import NotPrivate, check_folder, make_folder, read_file, write_file

SECRET_BYTES = 32
NAME = "kernel-secret"


def secret_file() -> Path:
    """Where it lies: in the user's state directory, which no setting names."""
    return state_folder() / NAME


def secret_for(folder: Path) -> Secret:
    """Return the secret, which is made if there is none; raises `OSError` where it cannot be kept from others.

    It must not lie in the folder whose files it proves: who can write these could replace it.
    """
    path = secret_file()
    if path.resolve().is_relative_to(folder.resolve()):
        raise NotPrivate(f"{path} lies in the folder of the kernels")
    make_folder(path.parent)
    check_folder(path.parent)
    try:
        return _read(path)
    except FileNotFoundError:
        _make(path)
    return _read(path)


def _read(path: Path) -> Secret:
    found = read_file(path, secret=True)
    if len(found) != SECRET_BYTES:
        raise NotPrivate(f"{path} is damaged: remove it")
    return Secret(found)


def _make(path: Path) -> None:
    """Another process may make it at the same time: the first one's stays."""
    made = secrets.token_bytes(SECRET_BYTES)
    try:
        write_file(path, made, replace=False)
    except FileExistsError:
        return
    except OSError:  # a file system without hard links
        handle = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW, 0o600)
        with os.fdopen(handle, "wb") as file:
            file.write(made)


MAGIC = b"FUSELINE KERNEL1"
_HEADER = struct.Struct("<16s32sQ")
TAG_BYTES = 32


class Proof(Protocol):
    """What vouches for the bytes of a file."""

    def holds(self, name: str, body: bytes, tag: bytes) -> bool:
        """Whether a file of this name may consist of this body and tag."""


@dataclass(frozen=True, repr=False)
class Secret:
    """Only who knows the secret can make the tag of a body."""

    key: bytes

    def tag(self, body: bytes) -> bytes:
        return hmac.digest(self.key, body, "sha256")

    def holds(self, name: str, body: bytes, tag: bytes) -> bool:
        return hmac.compare_digest(self.tag(body), tag)


@dataclass(frozen=True)
class Manifest:
    """The SHA-256 of each file, by its name, as a list says that nobody else can write."""

    digests: dict[str, str]

    def holds(self, name: str, body: bytes, tag: bytes) -> bool:
        return self.digests.get(name) == hashlib.sha256(body + tag).hexdigest()


def sealed(code: bytes, key: bytes, secret: Secret | None) -> bytes:
    """Return the content of a file; without a secret its tag is empty, and a manifest has to vouch for it."""
    body = _HEADER.pack(MAGIC, key, len(code)) + code
    return body + (bytes(TAG_BYTES) if secret is None else secret.tag(body))


def unsealed(name: str, content: bytes, key: bytes, proof: Proof) -> bytes | None:
    """Return the code of a file, or None unless it is whole, was made for this key, and the proof holds."""
    body, tag = content[:-TAG_BYTES], content[-TAG_BYTES:]
    if len(body) < _HEADER.size or not proof.holds(name, body, tag):
        return None
    magic, found, length = _HEADER.unpack_from(body)
    if (magic, found, length) != (MAGIC, key, len(body) - _HEADER.size):
        return None
    return body[_HEADER.size :]
