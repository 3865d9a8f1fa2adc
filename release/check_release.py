"""Checks what is about to be uploaded: `make release` runs it over dist/ after the build, and uploads nothing."""

from __future__ import annotations

import re
import sys
from collections.abc import Sequence
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent


def faults(version: str, changes: str, cited: str, built: Sequence[str]) -> list[str]:
    """Return what is wrong with a release, each as a sentence: of pages that say another version or no day, and of archives."""
    found = []
    heading = re.search(r"^## (\S+?), (.+)$", changes, re.MULTILINE)
    if heading is None or heading[1] != version:
        found.append(f"CHANGELOG.md has no heading of {version} at its top.")
    elif not re.fullmatch(r"\d{4}-\d{2}-\d{2}", heading[2]):
        found.append(f'CHANGELOG.md says "{heading[2]}" of {version}: write the day.')
    if f"version: {version}\n" not in cited:
        found.append(f"CITATION.cff has another version than {version}.")
    wanted = {f"fuseline-{version}-py3-none-any.whl", f"fuseline-{version}.tar.gz"}
    if set(built) != wanted:
        found.append(
            f"dist/ has {', '.join(sorted(built)) or 'nothing'}, not {', '.join(sorted(wanted))}."
        )
    return found


def main() -> int:
    """Print what is wrong, or what to upload; returns the exit status."""
    project = re.search(
        r'^version = "([^"]+)"', (ROOT / "pyproject.toml").read_text(), re.MULTILINE
    )
    assert project is not None
    texts = [(ROOT / name).read_text() for name in ("CHANGELOG.md", "CITATION.cff")]
    found = faults(project[1], *texts, [path.name for path in (ROOT / "dist").iterdir()])
    for fault in found:
        print(fault, file=sys.stderr)
    if not found:
        print(f"{project[1]} is ready in dist/: twine upload dist/*")
    return bool(found)


if __name__ == "__main__":
    sys.exit(main())
