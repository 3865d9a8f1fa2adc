"""The secret by which a user's processes know the machine code that they have made."""

from __future__ import annotations

import os
import secrets
from pathlib import Path

from ...settings import state_folder
from .private import NotPrivate, check_folder, make_folder, read_file, write_file
from .sealed import Secret

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
