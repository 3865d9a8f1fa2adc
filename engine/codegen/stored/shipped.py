"""Kernels that come with an installation: machine code in a folder that only root or the installation's owner can write."""

from __future__ import annotations

import hashlib
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from .private import check_folder, read_file
from .sealed import Manifest, unsealed

INSTALLATION = Path(__file__).parent.parent.parent
SHIPPED = INSTALLATION / "kernels"
LIST = "SHA256SUMS"  # a line for each file, as `sha256sum` writes and checks them


@dataclass(frozen=True)
class Shipped:
    """A folder of kernels, and what its list says of them."""

    folder: Path
    owners: tuple[int, ...]
    manifest: Manifest

    def load(self, name: str, key: bytes) -> bytes | None:
        """Return the machine code of a name and key, if it is there as the list says."""
        with suppress(OSError):
            return unsealed(name, read_file(self.folder / name, self.owners), key, self.manifest)
        return None


def shipped(folder: Path = SHIPPED) -> Shipped | None:
    """Return the kernels that were shipped; None where there are none, or where others can write."""
    try:
        owners = (0, INSTALLATION.stat().st_uid)
        check_folder(folder.parent, owners)
        check_folder(folder, owners)
        text = read_file(folder / LIST, owners).decode("ascii")
    except (OSError, UnicodeDecodeError):
        return None
    lines = (line.split("  ", 1) for line in text.splitlines() if "  " in line)
    return Shipped(folder, owners, Manifest({name: digest for digest, name in lines}))


def write_list(folder: Path) -> None:
    """List the files of a folder that is to be shipped."""
    files = sorted(path for path in folder.iterdir() if path.name != LIST)
    lines = [f"{hashlib.sha256(path.read_bytes()).hexdigest()}  {path.name}\n" for path in files]
    (folder / LIST).write_text("".join(lines), encoding="ascii")
